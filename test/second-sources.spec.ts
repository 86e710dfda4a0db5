/**
 * What a report says beside what programs measured themselves, with their own clock and their own counts: two records of
 * the same run that share no code.
 */
import { expect, it } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programsOf, runPrograms } from './machines.ts';

it.each([1, 1024])(
  'latencies of QPs whose numbers differ by %i are those that the program measured',
  async (apart) => {
    const rounds = 3;
    const { results, report } = await runPrograms(programsOf('own-clock', 'farApart', { apart, rounds }));
    const own = results[0] as { apart: number; latencyPs: number };
    expect(own.apart).toBe(apart);
    const { count, milestonesPs, latencyPs } = report.operations['WRITE']!;
    expect(count).toBe(2 * rounds);
    expect(Object.values(milestonesPs).reduce((sum, ps) => sum + ps, 0)).toBe(own.latencyPs);
    expect(latencyPs!.max).toBeGreaterThan(150e6);
    expectBalanced(report);
  },
  120_000,
);
