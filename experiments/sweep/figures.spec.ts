import { expect, it } from 'vitest';
import type { PerfRow } from '../runs/perf-run.ts';
import { outcomeOfRun } from './figures.ts';

/** A run whose longest stage is this one. */
const rowWith = (stages: readonly (readonly [name: string, share: number])[]): PerfRow =>
  ({
    ...{ args: { sizeBytes: 64 }, isBalanced: true, result: { typicalPs: 5 }, interrupts: [7, 8] },
    caches: [{ mtt: { misses: 3 } }],
    stages: stages.map(([name, share]) => ({ name, share, turn: [{ what: '--inline', towards: 'more' }] })),
  }) as unknown as PerfRow;

it('a figure has the same name at every point: list members are identified by name, in any order', () => {
  const plain = { typicalPs: 5, 'interrupts.0': 7, 'interrupts.1': 8, 'caches.0.mtt.misses': 3 };
  const turnOf = (stage: string) => ({
    [`stages.${stage}.turn.0.what`]: '--inline',
    [`stages.${stage}.turn.0.towards`]: 'more',
  });
  const expected = {
    status: 'done',
    figures: {
      ...{ ...plain, 'stages.transmit.share': 0.6, 'stages.remote.share': 0.4 },
      ...{ ...turnOf('transmit'), ...turnOf('remote') },
    },
  };
  const [transmit, remote] = [['transmit', 0.6] as const, ['remote', 0.4] as const];
  expect(outcomeOfRun(rowWith([transmit, remote]))).toEqual(expected);
  expect(outcomeOfRun(rowWith([remote, transmit]))).toEqual(expected);
  // Two with the same name are distinguished only by index.
  expect(outcomeOfRun(rowWith([remote, remote]))).toMatchObject({
    figures: { 'stages.0.name': 'remote', 'stages.1.share': 0.4 },
  });
  expect(outcomeOfRun(rowWith([]))).toEqual({ status: 'done', figures: plain });
});
