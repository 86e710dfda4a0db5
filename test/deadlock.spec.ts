/** Runs that cannot continue: the error names, for each program, its call and the awaited object, the same in all partitions. */
import { expect, it, vi } from 'vitest';
import type { DeadlockError } from '../sim/index.ts';
import { bothPartitions, programOf, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Calls in which the programs of a machine wait when no event is left. */
async function waitsOf(
  programs: readonly (readonly [exportName: string, node: number])[],
  partitions = bothPartitions,
): Promise<string[]> {
  const texts: string[] = [];
  for (const partition of partitions) {
    await using machine = await smallMachine({ partition, set: { 'machine.pollPatienceMs': 1 } });
    for (const [exportName, node] of programs) await machine.load(programOf('stuck', exportName, node));
    const error = await machine.run().then(
      () => expect.unreachable('it ends'),
      (thrown: unknown) => thrown as DeadlockError,
    );
    expect(error.name).toBe('DeadlockError');
    texts.push(error.message);
  }
  expect(new Set(texts).size).toBe(1);
  const [, ...programTexts] = texts[0]!.split('; ');
  return programTexts.map((text) => text.replace(/0x[0-9a-f]+/, '0x…'));
}

it('names program, call and object when nothing is left to do', async () => {
  expect(
    await waitsOf([
      ['inCqEvent', 0],
      ['inSpin', 0],
      ['inAsyncEvent', 1],
      ['inExchange', 1],
    ]),
  ).toEqual([
    "program 'inCqEvent0' on node 0 waits in ibv_get_cq_event for CQ 0x…",
    "program 'inSpin0' on node 0 waits in ibv_poll_cq for CQ 0x…",
    "program 'inAsyncEvent1' on node 1 waits in ibv_get_async_event for its context",
    "program 'inExchange1' on node 1 waits in exchange.take for 'an answer'",
  ]);
});

it('names them if programs poll for events that never occur', async () => {
  expect(
    await waitsOf(
      [
        ['inPolls', 0],
        ['inCqEvent', 1],
      ],
      ['single'],
    ),
  ).toEqual([
    "program 'inPolls0' on node 0 waits in ibv_poll_cq for CQ 0x…",
    "program 'inCqEvent1' on node 1 waits in ibv_get_cq_event for CQ 0x…",
  ]);
});
