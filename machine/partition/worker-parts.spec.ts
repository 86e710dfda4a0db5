/** Machines that reuse threads, one after another. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { programOf, smallMachine } from '../../test/machines.ts';

vi.setConfig({ testTimeout: 120_000 });

let startedCount = 0;
const count = (): void => {
  startedCount++;
};
beforeAll(() => void process.on('worker', count));
afterAll(() => void process.off('worker', count));

/**
 * Threads that a machine of two has started.
 * @param name of a program in test/programs/endings.ts
 * @param words of the error by which it ends; undefined if it continues
 */
async function threadsStartedFor(name: string, words?: string): Promise<number> {
  const before = startedCount;
  await using machine = await smallMachine({ partition: 'per-node' });
  await machine.load(programOf('endings', name, 0));
  const run = machine.run(6e9);
  if (words === 'was lost') await machine.terminateWorker(1);
  if (words === undefined) await run;
  else await expect(run).rejects.toThrow(words);
  return startedCount - before;
}

it('threads serve the next machine, also after a failed one; lost threads do not', async () => {
  expect(await threadsStartedFor('goesOn')).toBe(2);
  expect(await threadsStartedFor('goesOn')).toBe(0);
  expect(await threadsStartedFor('throws', 'gives up')).toBe(0);
  expect(await threadsStartedFor('goesOn', 'was lost')).toBe(0);
  expect(await threadsStartedFor('goesOn')).toBeGreaterThan(0);
  expect(await threadsStartedFor('goesOn')).toBe(0);
});

it('concurrent machines have separate threads', async () => {
  const before = startedCount;
  await using first = await smallMachine({ partition: 'per-node' });
  await using second = await smallMachine({ partition: 'per-node' });
  expect([await first.runTo(1e6), await second.runTo(2e6)]).toMatchObject([
    { stoppedPs: 1e6 },
    { stoppedPs: 2e6 },
  ]);
  expect(startedCount - before).toBe(2);
});
