/**
 * The host's memory under RDMA: pinned buffers keep their place and every byte while the rest of memory is swapped in and out,
 * and through a fork.
 */
import { describe, expect, it, vi } from 'vitest';
import { renderReport } from '../explain/text/render.ts';
import { expectBalanced, expectUntouched } from './expectations.ts';
import { bystanders, eachPartition, programOf, programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

describe('a workload of four times physical memory', () => {
  it('keeps every byte, of swapped pages and of registered buffers, whose frames never move', async () => {
    // A quarter of the 64 MiB is for programs, and each takes 64.
    const { results, report } = await runPrograms(programsOf('pressure', 'squeeze', 1), {
      set: { 'host.memory.reservedKib': 48 * 1024, 'host.swap.sizeMib': 128 },
    });
    const right = { exchanges: 32, wrong: [], isStill: true, pinnedBytes: true };
    expect(results).toEqual([right, right]);
    expectBalanced(report);
    for (const { memory, cpu } of report.nodes) {
      expect(memory.majorFaults).toBeGreaterThan(10_000);
      expect(memory.swappedOutPages).toBeGreaterThan(12 * 1024);
      expect(memory.oomKills).toBe(undefined);
      expect(cpu.systemCalls.dataPath).toBe(0);
    }
  });
});

describe.each(eachPartition)('exhausted memory and swap (%s)', (partition) => {
  it('kill the process that used them, and cost no other a byte', async () => {
    const outcome = await runPrograms(
      [programOf('pressure', 'overseer', 0), programOf('pressure', 'glutton', 0), ...bystanders()],
      { partition, set: { 'host.swap.sizeMib': 8 } },
    );
    const { results, report } = outcome;
    expect(results[0]).toEqual({
      kills: 1,
      refusedBySwap: true,
      swappedOut: true,
      isGivenBack: true,
      isOwnRight: true,
    });
    expect(results[1]).toBeUndefined();
    expectUntouched(outcome);
    expect(report.nodes.map(({ memory }) => memory.oomKills)).toEqual([1, undefined]);
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

describe('an IOMMU', () => {
  const set = { 'pcie.iommu.isEnabled': true };

  it('changes no byte, costs time, and releases everything that the driver released', async () => {
    const [without, within] = [
      await runPrograms(programsOf('pressure', 'devicePages')),
      await runPrograms(programsOf('pressure', 'devicePages'), { set }),
    ];
    expect(without.results).toEqual([{ isRight: true }, { isRight: true }]);
    const right = { isRight: true, areGivenBack: true };
    expect(within.results).toEqual([right, right]);
    expectBalanced(within.report);
    expect(within.report.elapsedPs).toBeGreaterThan(without.report.elapsedPs);
    for (const { iommu, deviceFaults } of within.report.nodes) {
      expect(iommu).toMatchObject({ faults: 0, lostFaults: 0 });
      expect(iommu!.misses).toBeGreaterThan(20);
      expect(iommu!.hits).toBeGreaterThan(iommu!.misses);
      expect(deviceFaults).toEqual({});
    }
  });

  it('keeps the device out of unmapped memory, and reports it', async () => {
    const { results, report } = await runPrograms(programsOf('pressure', 'trespass'), { set });
    expect(results).toEqual([
      { statuses: ['SUCCESS'], faults: [] },
      { isUntouched: true, reasons: ['notPresent'] },
    ]);
    expect(report.nodes[1]!.iommu!.faults).toBeGreaterThan(0);
    expect(report.nodes[1]!.deviceFaults).toHaveProperty('writeOutsideMemory');
    const text = renderReport(report);
    expect(text).toMatch(/IOMMU.*turned away[\s\S]*faults +│ +0 │ +\d+ │[\s\S]*writeOutsideMemory/);
    expect(text).not.toContain('On-demand paging');
  });
});
