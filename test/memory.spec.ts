/**
 * The host's memory under RDMA: pinned buffers stay where they are and keep every byte while the rest of memory is swapped
 * in and out around them, and through a fork.
 */
import { describe, expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

describe('a workload of four times physical memory', () => {
  it('keeps every byte, of swapped pages as of registered buffers, whose frames never move', async () => {
    const { results, report } = await runPrograms(programsOf('pressure', 'squeeze'), {
      set: { 'host.swap.sizeMib': 512 },
    });
    const right = { exchanges: 128, wrong: [], isStill: true, pinnedBytes: true };
    expect(results).toEqual([right, right]);
    expectBalanced(report);
    for (const { memory, cpu } of report.nodes) {
      expect(memory.majorFaults).toBeGreaterThan(40_000);
      expect(memory.swappedOutPages).toBeGreaterThan(48 * 1024);
      expect(memory.oomKills).toBe(undefined);
      expect(cpu.systemCalls.dataPath).toBe(0);
    }
  });
});

describe('a fork with registered memory', () => {
  it('leaves the device and the parent their frames, and gives the child a copy', async () => {
    const { results, report } = await runPrograms(programsOf('pressure', 'forker'));
    const right = { isRight: true, isStill: true, seen: [true], copied: true };
    expect(results).toEqual([right, right]);
    expectBalanced(report);
  });
});
