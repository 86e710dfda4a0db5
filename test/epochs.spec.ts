/**
 * Time counts from epochs (sim/epoch.ts): where one begins, every instant and every edge that any block keeps moves. Made short,
 * thousands begin in the middle of all that is under way, at every phase of the clocks, and nothing may be seen of them.
 */
import { describe, expect, it, vi } from 'vitest';
import type { ProgramOptions } from '../system/program.ts';
import { bytesOf, type Outcome, programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const args = { qps: 2, rounds: 2 };
const mixture = (): ProgramOptions[] => [
  ...programsOf('mixture', 'polling', args),
  ...programsOf('mixture', 'sleeping', args),
];

/** The whole of a run: the report and what the programs returned. */
const factsOf = ({ report, results }: Outcome): [string, unknown] => [bytesOf(report), results];

/** Lengths of an epoch that are not whole microseconds, nor whole cycles of any clock. */
const lengthsPs = [3_000_001, 7_654_321, 100_000_123];

describe('a run', () => {
  it.each(lengthsPs)('is the same, byte for byte, with epochs of %i ps', async (epochPs) => {
    expect(factsOf(await runPrograms(mixture(), { epochPs }))).toEqual(factsOf(await runPrograms(mixture())));
  });
});
