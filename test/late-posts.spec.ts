/**
 * Work posted to a QP that has long been in the error state completes as flushed (IBTA vol. 1, 10.3.1), for which Linux's
 * ib_drain_rq and ib_drain_sq wait without limit. A QP left in error neither keeps a run from ending nor hides a deadlock.
 */
import { describe, expect, it, vi } from 'vitest';
import { WordMonitor } from '../hw/pcie/root-complex/word-monitor.ts';
import { DeadlockError } from '../sim/index.ts';
import { IBV_WC_WR_FLUSH_ERR } from '../userlib/index.ts';
import { expectBalanced } from './expectations.ts';
import { bothPartitions, bytesOf, programsOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

const flushed = ['receive', 'send', 'receive'].map((kind) => `${kind} ${IBV_WC_WR_FLUSH_ERR}`);

describe('a QP that has been in error for a second', () => {
  it.each([
    // Each simulated second takes several real ones in threads.
    ['single', { rounds: 4, waitPs: 1e12 }],
    ['per-node', { rounds: 1, waitPs: 2e11 }],
    ['per-device', { rounds: 1, waitPs: 2e11 }],
  ] as const)('IBTA 10.3.1: flushes what is posted to it: %s', async (partition, args) => {
    const { results, report } = await runPrograms(programsOf('late-posts', 'drains', args), { partition });
    const each = Array.from({ length: args.rounds }, () => flushed);
    expect(results).toEqual([each, each]);
    expectBalanced(report);
  });

  it('IBTA 10.3.1: does so with an IOMMU', async () => {
    const set = { 'pcie.iommu.isEnabled': true };
    const { results } = await runPrograms(programsOf('late-posts', 'drains', { rounds: 1, waitPs: 1e12 }), {
      set,
    });
    expect(results[0]).toEqual([flushed]);
  });

  it('IBTA 10.3.1: flushes a receive whose doorbell record the IOMMU maps later', async () => {
    const set = { 'pcie.iommu.isEnabled': true };
    const { results } = await runPrograms(programsOf('late-posts', 'remaps'), { set });
    const each = ['0 early', `receive ${IBV_WC_WR_FLUSH_ERR}`];
    expect(results).toEqual([each, each]);
  });

  it('IBTA 10.3.1: leaves the receives of its shared queue to other QPs', async () => {
    const { results } = await runPrograms(programsOf('late-posts', 'shares', null));
    expect(results).toEqual([
      ['send 0', 'nothing'],
      ['receive 0', 'nothing'],
    ]);
  });
});

describe('a QP left in error', () => {
  it('has a monitored doorbell record, which no report shows: neither in the IOTLB nor anywhere else', async () => {
    // With one entry, each comparison through the IOTLB would evict the device's entry.
    const set = { 'pcie.iommu.isEnabled': true, 'pcie.iommu.iotlbEntries': 1, 'pcie.iommu.iotlbWays': 1 };
    const run = async () =>
      bytesOf((await runPrograms(programsOf('late-posts', 'worksBeside'), { set })).report);
    const compare = vi.spyOn(WordMonitor.prototype, 'compareLater');
    const monitored = await run();
    expect(compare).toHaveBeenCalled();
    compare.mockRestore();
    const receive = vi.spyOn(WordMonitor.prototype, 'receive').mockReturnValue();
    expect(await run()).toBe(monitored);
    expect(receive).toHaveBeenCalled();
    receive.mockRestore();
  });

  it.each(bothPartitions)('lets a run end, or be detected as deadlocked: %s', async (partition) => {
    await runPrograms(programsOf('late-posts', 'leaves', false), { partition });
    await using machine = await smallMachine({ partition });
    for (const program of programsOf('late-posts', 'leaves', true)) await machine.load(program);
    await expect(machine.run()).rejects.toThrow(DeadlockError);
  });
});
