/** Memory windows and invalidation by the verbs of programs, from bind to deregistration (InfiniBand vol 1, 10.6.5, 10.6.7). */
import { describe, expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

describe('memory windows', () => {
  it('give access to a part of a region until either side revokes it', async () => {
    const programs = [programOf('windows', 'user', 0), programOf('windows', 'owner', 1)];
    const { results, report } = await runPrograms(programs);
    expect(results[0]).toEqual([
      'write: SUCCESS',
      'write: REM_ACCESS_ERR',
      'write: SUCCESS',
      'write: SUCCESS',
      'invalidate: SUCCESS',
      'write: REM_ACCESS_ERR',
    ]);
    expect(results[1]).toEqual([
      'bind: SUCCESS',
      'there: true',
      'not deregistered: EBUSY',
      'unbind: SUCCESS',
      'bind 2: SUCCESS',
      'there: true',
      'invalidate: SUCCESS',
      'bind 2 again: SUCCESS',
      'received: SUCCESS, key true, flags 8',
      'deregistered',
    ]);
    expectBalanced(report);
  });
});
