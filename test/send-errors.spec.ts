/** IBTA vol 1, 10.3.1: a failed send queue of an unreliable service can be restored, and receiving continues meanwhile. */
import { describe, expect, it } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programOf, runPrograms } from './machines.ts';

describe('a send error of an unreliable connection', () => {
  it('leaves the QP in SQE, receiving, until software moves it back to RTS', async () => {
    const { results, report } = await runPrograms([programOf('send-errors', 'sendErrors', 0)]);
    expect(results).toEqual([
      {
        failed: ['LOC_PROT_ERR', 'WR_FLUSH_ERR'],
        stateAfter: true,
        flushed: ['WR_FLUSH_ERR'],
        received: ['SUCCESS'],
        recovered: 'ok',
        again: ['SUCCESS'],
      },
    ]);
    expectBalanced(report);
  });
});
