import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { COMPLETION_DATA, FLAG_PLACED_EARLY } from '../pcie/tlp/tlp.ts';
import { DmaBench, type SentRead } from './dma-bench.ts';
import { DmaStatus } from './errors.ts';
import { withRequesters } from './read-bench.ts';

const piecesOf = (reads: readonly SentRead[]) => reads.map(({ address, bytes }) => [address, bytes]);

describe('reads that fail', () => {
  it('PCIe 2.3.2: report the completer status once all their reads have ended, and store nothing afterwards', () => {
    for (const [pcieStatus, expected] of [
      [1, DmaStatus.unsupportedRequest],
      [4, DmaStatus.completerAbort],
      [2, DmaStatus.unsupportedRequest],
    ] as const) {
      const bench = new DmaBench();
      const reports = withRequesters(bench, 1);
      bench.atCycle(1, () => {
        bench.reads.request(0, 0, 1024, 0, 5);
        bench.reads.request(0, 0x2000, 8, 2048, 6);
      });
      bench.atPs(100_000, () => bench.link.refuse(bench.link.reads[0]!, pcieStatus));
      bench.atPs(200_000, () => bench.link.answer(bench.link.reads[2]!));
      bench.runTo(300);
      expect(reports).toEqual([]);
      bench.atPs(300_000, () => bench.link.answer(bench.link.reads[1]!));
      bench.runTo(400);
      expect(reports.map(({ cookie, status }) => [cookie, status])).toEqual([
        [5, expected],
        [6, DmaStatus.ok],
      ]);
      expect(bench.reads.isIdle).toBe(true);
    }
  });

  it('keep the first of several errors', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 1);
    bench.atCycle(1, () => bench.reads.request(0, 0, 1024, 0, 5));
    bench.atPs(100_000, () => bench.link.refuse(bench.link.reads[1]!, 4));
    bench.atPs(110_000, () => bench.link.refuse(bench.link.reads[0]!, 1));
    bench.runTo(200);
    expect(reports.map(({ status }) => status)).toEqual([DmaStatus.completerAbort]);
    expect(bench.reads.requesters[0]!.counters.failedRequests).toBe(1);
  });

  it('send no more of a request that has failed', () => {
    const bench = new DmaBench({ tagCount: 1 });
    const reports = withRequesters(bench, 1);
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 4096, 0, 5);
      bench.reads.request(0, 0x3000, 8, 0, 6);
    });
    bench.atPs(100_000, () => bench.link.refuse(bench.link.reads[0]!, 1));
    bench.atPs(200_000, () => bench.link.answer(bench.link.reads[1]!));
    bench.runTo(300);
    expect(piecesOf(bench.link.reads)).toEqual([
      [0, 512],
      [0x3000, 8],
    ]);
    expect(reports.map(({ status }) => status)).toEqual([DmaStatus.unsupportedRequest, DmaStatus.ok]);
    bench.reads.account.close(300);
    expect(bench.reads.account.overlapCount).toBe(0);
  });

  it('end when the failed request was the only one outstanding', () => {
    const bench = new DmaBench({ tagCount: 4 });
    withRequesters(bench, 1);
    bench.link.room[1] = 1;
    bench.atCycle(1, () => bench.reads.request(0, 0, 4096, 0, 5));
    bench.atPs(100_000, () => bench.link.refuse(bench.link.reads[0]!, 1));
    bench.runTo(300);
    bench.reads.account.close(300);
    // Stalled for the link from 3 until the answer is taken at edge 101.
    expect([...bench.reads.account.stalledCycles]).toEqual([98, 0]);
    bench.atCycle(301, () => bench.reads.request(0, 0x1000, 8, 0, 6));
    bench.runTo(302);
    bench.atPs(400_000, () => bench.link.makeRoom(1, 1));
    bench.runTo(500);
    expect(bench.link.reads).toHaveLength(2);
  });

  it('PCIe 2.7.2: report poisoned data and do not store them', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 1);
    bench.sram.fill(0xee);
    bench.atCycle(1, () => bench.reads.request(0, 0, 128, 0, 5));
    bench.atPs(100_000, () => bench.link.answerPoisoned(bench.link.reads[0]!, 64));
    bench.atPs(110_000, () => bench.link.answer(bench.link.reads[0]!, 64));
    bench.runTo(300);
    expect(reports.map(({ status }) => status)).toEqual([DmaStatus.poisoned]);
    expect(bench.sram.subarray(0, 64).every((byte) => byte === 0xee)).toBe(true);
  });

  it('PCIe 2.8: time out, ignore late completions, and reuse the tag only then', () => {
    const bench = new DmaBench({ tagCount: 1 });
    bench.pcieFunction.completionTimeoutPs = 1_000_000;
    const reports = withRequesters(bench, 1);
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 8, 0, 5);
      bench.reads.request(0, 0x100, 8, 8, 6);
    });
    bench.runTo(1500);
    // Sent at edge 2; 1 us is 1000 cycles.
    expect(reports).toEqual([{ requester: 0, cookie: 5, status: DmaStatus.timeout, cycle: 1002 }]);
    expect(bench.reads.timeouts).toBe(1);
    expect(bench.link.reads).toHaveLength(1);
    bench.sram.fill(0xee);
    bench.atPs(1_500_000, () => bench.link.answer(bench.link.reads[0]!));
    bench.runTo(1600);
    expect(bench.reads.lateCompletions).toBe(1);
    expect(bench.pcieFunction.reported).toEqual(['timeout', 'unexpected']);
    expect(bench.sram.every((byte) => byte === 0xee)).toBe(true);
    // The late answer freed the tag at edge 1501.
    expect(bench.link.reads[1]!.timePs).toBe(1_501_000);
    bench.atPs(1_600_000, () => bench.link.answer(bench.link.reads[1]!));
    bench.runTo(1700);
    expect(reports.at(-1)).toMatchObject({ cookie: 6, status: DmaStatus.ok });
    expect(bench.reads.isIdle).toBe(true);
  });

  it('free a tag after a second timeout if nothing ever arrives', () => {
    const bench = new DmaBench({ tagCount: 2 });
    bench.pcieFunction.completionTimeoutPs = 1_000_000;
    withRequesters(bench, 1);
    bench.atCycle(1, () => bench.reads.request(0, 0, 8, 0, 5));
    bench.runTo(2002);
    expect(bench.reads.pendingTagCount).toBe(1);
    bench.runTo(2003);
    expect(bench.reads.pendingTagCount).toBe(0);
  });

  it('PCIe 7.8.16: never time out while software has switched the timeout off, and obey a changed one', () => {
    const bench = new DmaBench({ tagCount: 3 });
    const reports = withRequesters(bench, 1);
    bench.pcieFunction.completionTimeoutPs = Number.POSITIVE_INFINITY;
    bench.atCycle(1, () => bench.reads.request(0, 0, 8, 0, 1));
    bench.runTo(10);
    bench.pcieFunction.completionTimeoutPs = 50_000_000;
    bench.atCycle(10, () => bench.reads.request(0, 0, 8, 0, 2));
    bench.runTo(20);
    bench.pcieFunction.completionTimeoutPs = 1_000_000;
    bench.atCycle(20, () => bench.reads.request(0, 0, 8, 0, 3));
    bench.runTo(1022);
    // Sent at 21 and timed out 1000 cycles later; reported after the others.
    expect(bench.reads.timeouts).toBe(1);
    bench.runTo(100_000);
    expect(bench.reads.timeouts).toBe(2);
    expect(reports).toEqual([]);
    bench.atPs(100_000_000, () => bench.link.answer(bench.link.reads[0]!));
    bench.runTo(100_100);
    expect(reports.map(({ status }) => status)).toEqual([DmaStatus.ok, DmaStatus.timeout, DmaStatus.timeout]);
  });

  it('PCIe 2.3.2: ignore completions that belong to no read or do not continue one', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 1);
    const { link } = bench;
    bench.atCycle(1, () => bench.reads.request(0, 0, 64, 0, 5));
    bench.atPs(10_000, () => link.announce(link.record(COMPLETION_DATA, 31, 0, 8, 8)));
    bench.atPs(20_000, () => link.announce(link.record(COMPLETION_DATA, 200, 0, 8, 8)));
    bench.atPs(30_000, () => link.announce(link.record(COMPLETION_DATA, link.reads[0]!.tag, 0, 128, 64)));
    bench.atPs(40_000, () => link.announce(link.record(COMPLETION_DATA, link.reads[0]!.tag, 0, 32, 32)));
    bench.runTo(100);
    expect([bench.reads.unexpectedCompletions, bench.reads.malformedCompletions]).toEqual([2, 2]);
    expect(bench.pcieFunction.reported).toEqual(Array(4).fill('unexpected'));
    expect(link.heldRecords).toBe(0);
    bench.atPs(100_000, () => link.answer(link.reads[0]!));
    bench.runTo(200);
    expect(reports.map(({ status }) => status)).toEqual([DmaStatus.ok]);
  });

  it('PCIe 7.5.1: end with a separate status when bus mastering is off', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 2);
    bench.pcieFunction.isMaster = false;
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 4096, 0, 1);
      bench.reads.request(1, 0, 8, 0, 2);
    });
    bench.runTo(100);
    expect(bench.link.reads).toHaveLength(0);
    expect(reports).toEqual([
      { requester: 0, cookie: 1, status: DmaStatus.busMasterDisabled, cycle: 2 },
      { requester: 1, cookie: 2, status: DmaStatus.busMasterDisabled, cycle: 3 },
    ]);
    expect(bench.reads.isIdle).toBe(true);
  });
});

describe('reset of the read engine', () => {
  it('PCIe 6.6.2: drops every request, keeps tags in flight reserved, and leaks nothing', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat({ max: 1 }), fc.integer({ min: 1, max: 3000 })), {
          minLength: 1,
          maxLength: 10,
        }),
        fc.integer({ min: 2, max: 60 }),
        fc.nat({ max: 4 }),
        (requests, resetCycle, answered) => {
          const bench = new DmaBench({ tagCount: 4 });
          bench.pcieFunction.completionTimeoutPs = 1_000_000;
          const reports = withRequesters(bench, 2, 10);
          bench.atCycle(1, () => {
            for (const [requester, bytes] of requests) bench.reads.request(requester, 0, bytes, 0, 0);
          });
          bench.atCycle(resetCycle, () => bench.reads.reset(resetCycle));
          bench.runTo(resetCycle + 1);
          const notified = reports.length;
          const before = [...bench.link.reads];
          bench.sram.fill(0xee);
          // Some late answers arrive, the others never.
          before.slice(0, answered).forEach((read, index) => {
            bench.atPs((resetCycle + 20 + index) * 1000, () => bench.link.answer(read));
          });
          bench.runTo(resetCycle + 100);
          expect(bench.reads.pendingTagCount).toBe(before.length - Math.min(answered, before.length));
          expect(bench.pcieFunction.reported).toEqual([]);
          bench.runTo(resetCycle + 1100);
          expect(reports).toHaveLength(notified);
          expect(bench.sram.every((byte) => byte === 0xee)).toBe(true);
          expect(bench.reads.pendingTagCount).toBe(0);
          expect(bench.reads.isIdle).toBe(true);
          expect(bench.link.heldRecords).toBe(0);
          // It works as after a new start.
          bench.answerAll(10_000);
          bench.atCycle(resetCycle + 1100, () => bench.reads.request(1, 0x40, 600, 16, 9));
          bench.runTo(resetCycle + 1200);
          expect(reports.at(-1)).toMatchObject({ requester: 1, cookie: 9, status: DmaStatus.ok });
          expect(bench.sram.subarray(16, 616)).toEqual(bench.link.memory.slice(0x40, 0x40 + 600));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('counts a completion of the same edge as late only if the reset is first at that edge', () => {
    const lateCompletions = (resetsFirst: boolean, returnsCompletionCredits: boolean) => {
      const bench = new DmaBench({}, returnsCompletionCredits, (domain) => {
        const stage = domain.addStage((cycle) => bench.reads.reset(cycle));
        if (resetsFirst) domain.wake(stage, 103);
      });
      withRequesters(bench, 1);
      bench.atCycle(1, () => bench.reads.request(0, 0, 512, 0, 0));
      // Arrives at 102,500 ps, with half of the requested bytes.
      bench.atPs(102_500, () => bench.link.answer(bench.link.reads[0]!, 256, FLAG_PLACED_EARLY));
      if (!resetsFirst) bench.atCycle(103, () => bench.reads.reset(103));
      bench.runTo(200);
      return bench.reads.lateCompletions;
    };
    expect(lateCompletions(true, false)).toBe(1);
    expect(lateCompletions(true, true)).toBe(1);
    expect(lateCompletions(false, false)).toBe(0);
    expect(lateCompletions(false, true)).toBe(0);
  });
});
