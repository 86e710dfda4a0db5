/**
 * On-demand regions: registered memory is not pinned; the device requests pages, and releases them when memory management wants
 * them. The first access is expensive, later ones cost as much as with pins; every byte is right under memory pressure, fork
 * and replacement; a page that cannot be paged in causes the same error as in a pinned region.
 */
import { describe, expect, it, vi } from 'vitest';
import { renderReport } from '../explain/text/render.ts';
import { expectBalanced } from './expectations.ts';
import { eachPartition, programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

interface Operated {
  readonly wrong: string[];
  readonly times: Readonly<Record<string, readonly [number, number]>>;
}

/** Leaves this share of the 64 MiB of memory to programs, with room in swap for the rest. */
const pressed = (share: number) => ({
  'host.memory.reservedKib': (1 - share) * 64 * 1024,
  'host.swap.sizeMib': 128,
});

const sumOf = (figures: Readonly<Record<string, number>>): number =>
  Object.values(figures).reduce((sum, figure) => sum + figure, 0);

describe('on-demand regions', () => {
  it.each([
    ['both sides', true, true, 'single'],
    ['both sides', true, true, 'per-device'],
    ['the sender alone', true, false, 'single'],
    ['the receiver alone', false, true, 'single'],
  ] as const)('serve every operation on %s, slowly at the first access (%s, %s, %s)', async (...how) => {
    const [, sender, receiver, partition] = how;
    const programs = programsOf('on-demand', 'everyOperation', { sender, receiver });
    const { results, report } = await runPrograms(programs, { partition });
    const [client, server] = results as [Operated, unknown];
    expect(client.wrong).toEqual([]);
    expect(client).toMatchObject({ isGivenBack: true, isPinned: !sender });
    const right = {
      statuses: ['SUCCESS', 'SUCCESS'],
      wrote: true,
      sent: true,
      counted: 10,
      isGivenBack: true,
    };
    expect(server).toMatchObject({ ...right, isPinned: !receiver });
    expectBalanced(report);
    for (const name of ['WRITE', 'SEND', 'READ', 'FETCH_ADD']) {
      const [firstPs, steadyPs] = client.times[name]!;
      expect(firstPs).toBeGreaterThan(2 * steadyPs);
      expect(steadyPs).toBeLessThan(20e6);
    }
    expect(report.nodes.map(({ onDemand }) => onDemand !== undefined)).toEqual([sender, receiver]);
    expect(renderReport(report)).toMatch(/On-demand paging[\s\S]*cycles waited, /);
    for (const { onDemand, hca } of report.nodes) {
      if (onDemand === undefined) continue;
      const { requests, refused, waitCycles } = onDemand.device;
      expect(onDemand.driver.pageRequests).toBe(hca.commands['PAGE_FAULT_RESUME']);
      expect(sumOf(requests)).toBe(onDemand.driver.pageRequests);
      expect(refused).toEqual({ requester: 0, responder: 0, response: 0 });
      expect(sumOf(waitCycles)).toBeGreaterThan(0);
    }
  });

  it('keep every byte when they are larger than memory, through swap', async () => {
    const share = 1 / 4;
    // The driver has given the device three quarters of memory: the rest holds a quarter of the region.
    const programs = programsOf('on-demand', 'largerThanMemory', share);
    const { results, report } = await runPrograms(programs, { set: pressed(1 / 4) });
    expect(results).toEqual([{ wrong: [] }, { wrong: [] }]);
    expectBalanced(report);
    const { memory, onDemand } = report.nodes[1]!;
    expect(memory.swappedOutPages).toBeGreaterThan(share * 8 * 1024);
    expect(memory.devicePagesHeld).toBe(memory.devicePagesReleased);
    expect(onDemand!.device.rnrNaks).toBeGreaterThan(share * 100);
    expect(onDemand!.driver.pagesEvicted + onDemand!.driver.pagesWanted).toBeGreaterThan(share * 8 * 1024);
  });

  it('keep a forked child’s old data, and give the parent new ones', async () => {
    const { results, report } = await runPrograms(programsOf('on-demand', 'forked'));
    expect(results).toEqual([{ statuses: ['SUCCESS', 'SUCCESS'] }, { isRight: true, seen: [true, true] }]);
    expectBalanced(report);
    expect(report.nodes[1]!.onDemand!.driver.pagesInvalidated).toBeGreaterThan(2);
  });

  it.each([
    ['target', ['REM_ACCESS_ERR', 'WR_FLUSH_ERR'], ['WR_FLUSH_ERR'], ['QP_ACCESS_ERR']],
    ['source', ['LOC_PROT_ERR', 'WR_FLUSH_ERR'], [], []],
    ['receive', ['REM_OP_ERR'], ['LOC_PROT_ERR'], []],
  ] as const)(
    'end in an error of the program that unmaps the %s in flight, and of no other',
    async (what, ...expected) => {
      const [statuses, received, events] = expected;
      const { results, report } = await runPrograms(programsOf('on-demand', 'unmapped', what));
      const [client, server] = results as Record<string, unknown>[];
      expect(client).toMatchObject({ statuses, again: ['SUCCESS'], isRight: true });
      expect(server).toMatchObject({ received, isRight: true, events });
      expectBalanced(report);
    },
  );

  it('continue over pages that the program releases with MADV_DONTNEED', async () => {
    const { results, report } = await runPrograms(programsOf('on-demand', 'unmapped', 'dontNeed'));
    expect(results[0]).toMatchObject({ statuses: ['SUCCESS', 'SUCCESS'], again: ['SUCCESS'], state: 'RTS' });
    expect(results[1]).toMatchObject({ isRight: true, events: [], state: 'RTS' });
    expectBalanced(report);
  });

  it('are seen by the device as the program left them when it posted', async () => {
    const { results, report } = await runPrograms(programsOf('on-demand', 'replaced'));
    expect(results[0]).toEqual({ wrong: [] });
    expectBalanced(report);
    const { device, driver } = report.nodes[0]!.onDemand!;
    expect(device.invalidateDoorbells).toBeGreaterThan(30);
    expect(driver.pagesInvalidated).toBeGreaterThan(30);
  });

  it.each(eachPartition)(
    'reject pages that cannot be paged in, with the status of pinned memory: %s',
    async (partition) => {
      const { results, report } = await runPrograms(programsOf('on-demand', 'refused'), { partition });
      const [client, server] = results as { statuses: string[]; events: string[] }[];
      expect(client!.statuses).toEqual(['REM_ACCESS_ERR', 'LOC_PROT_ERR', 'REM_ACCESS_ERR', 'REM_OP_ERR']);
      expect(server).toEqual({ statuses: ['LOC_PROT_ERR'], events: ['QP_ACCESS_ERR', 'QP_ACCESS_ERR'] });
      expectBalanced(report);
      const refused = report.nodes.map(({ onDemand }) => onDemand!.device.refused);
      expect(refused).toEqual([
        { requester: 1, responder: 0, response: 0 },
        { requester: 0, responder: 3, response: 0 },
      ]);
    },
  );
});

describe('on-demand regions without a limit of their own', () => {
  it('release the pages that reclaim wants', async () => {
    const { results, report } = await runPrograms(programsOf('on-demand', 'largerThanMemory', 1.125 / 4), {
      set: { ...pressed(1 / 4), 'driver.onDemandPagesMax': 1_000_000 },
    });
    expect(results).toEqual([{ wrong: [] }, { wrong: [] }]);
    expectBalanced(report);
    const { pagesWanted, pagesEvicted } = report.nodes[1]!.onDemand!.driver;
    expect([pagesWanted > 256, pagesEvicted]).toEqual([true, 0]);
  });
});

describe('an IOMMU under on-demand regions', () => {
  it('lets the device reach its pages, and no others', async () => {
    const programs = programsOf('on-demand', 'everyOperation', { sender: true, receiver: true });
    const { results, report } = await runPrograms(programs, { set: { 'pcie.iommu.isEnabled': true } });
    expect(results[0]).toMatchObject({ wrong: [], isGivenBack: true });
    expectBalanced(report);
    for (const { iommu, deviceFaults } of report.nodes) {
      expect(iommu).toMatchObject({ faults: 0 });
      expect(deviceFaults).toEqual({});
    }
  });
});
