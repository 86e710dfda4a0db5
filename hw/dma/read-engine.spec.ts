import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesEqual } from '../../base/bytes.ts';
import { Random } from '../../sim/random.ts';
import { COMPLETION_DATA, descriptorOf, FLAG_LANDED } from '../pcie/tlp.ts';
import { DmaBench, type SentRead } from './dma-bench.ts';
import { DmaRequestError, DmaStatus } from './errors.ts';

interface Report {
  readonly requester: number;
  readonly cookie: number;
  readonly status: number;
  readonly cycle: number;
}

function withRequesters(bench: DmaBench, count: number, fifoDepth = 8, weights: readonly number[] = []) {
  const reports: Report[] = [];
  for (let requester = 0; requester < count; requester++) {
    const options = {
      name: `r${requester}`,
      trafficClass: 3 + requester,
      fifoDepth,
      weight: weights[requester] ?? 1,
    };
    bench.reads.addRequester(options, (cookie, status, cycle) =>
      reports.push({ requester, cookie, status, cycle }),
    );
  }
  return reports;
}

const piecesOf = (reads: readonly SentRead[]) => reads.map(({ address, bytes }) => [address, bytes]);

describe('the DMA read engine', () => {
  it('takes an exact number of cycles for one read', () => {
    const bench = new DmaBench({ dataPathBytes: 32 });
    const reports = withRequesters(bench, 1);
    bench.answerAll(100_500);
    bench.atCycle(10, () => bench.reads.request(0, 0x1000, 64, 0x200, 77));
    bench.runTo(1000);
    // Requested at edge 10, seen and sent at 11; answered at 111,500 ps, taken at edge 112; 64 bytes land in cycles 112 and 113.
    expect(bench.link.reads).toMatchObject([
      { timePs: 11_000, address: 0x1000, bytes: 64, trafficClass: 3, requesterId: 0x0100 },
    ]);
    expect(reports).toEqual([{ requester: 0, cookie: 77, status: DmaStatus.ok, cycle: 113 }]);
    expect(bench.sram.subarray(0x200, 0x240)).toEqual(bench.link.memory.slice(0x1000, 0x1040));
    expect(bench.link.heldRecords).toBe(0);
    expect(bench.reads.isIdle).toBe(true);
  });

  it('takes a completion that arrives on an edge at the next one', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 1);
    bench.answerAll(100_000);
    bench.atCycle(10, () => bench.reads.request(0, 0x1000, 8, 0, 1));
    bench.runTo(1000);
    expect(reports[0]!.cycle).toBe(112);
  });

  it('splits at the read request size and at 4 KiB, counting dwords that are touched in part', () => {
    const cases: [number, number, number[][]][] = [
      [0x0, 512, [[0x0, 512]]],
      [
        0x1,
        512,
        [
          [0x1, 511],
          [0x200, 1],
        ],
      ], // 512 bytes at offset 1 touch 129 dwords
      [
        0x3,
        1025,
        [
          [0x3, 509],
          [0x200, 512],
          [0x400, 4],
        ],
      ],
      [
        0xfff,
        2,
        [
          [0xfff, 1],
          [0x1000, 1],
        ],
      ],
      [
        0xf00,
        512,
        [
          [0xf00, 256],
          [0x1000, 256],
        ],
      ],
    ];
    for (const [address, bytes, expected] of cases) {
      const bench = new DmaBench();
      withRequesters(bench, 1);
      bench.atCycle(1, () => bench.reads.request(0, address, bytes, 0, 0));
      bench.runTo(100);
      expect(piecesOf(bench.link.reads)).toEqual(expected);
    }
  });

  it('sends one memory read per issueCycles, several in flight', () => {
    const bench = new DmaBench({ readIssueCycles: 3 });
    withRequesters(bench, 1);
    bench.atCycle(1, () => bench.reads.request(0, 0, 2048, 0, 0));
    bench.runTo(100);
    expect(bench.link.reads.map(({ timePs }) => timePs)).toEqual([2000, 5000, 8000, 11_000]);
    expect(new Set(bench.link.reads.map(({ tag }) => tag)).size).toBe(4);
  });

  it('puts every byte where it belongs, for every offset, length, split and order of answers', () => {
    const request = fc.record({
      requester: fc.nat({ max: 2 }),
      address: fc.oneof(fc.integer({ min: 0, max: 60_000 }), fc.integer({ min: 4090, max: 4102 })),
      bytes: fc.oneof(
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 500, max: 520 }),
      ),
      sramShift: fc.nat({ max: 7 }),
    });
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(128, 256, 512, 4096),
        fc.integer({ min: 1, max: 8 }),
        fc.infiniteStream(fc.nat({ max: 1000 })),
        (requests, maxReadRequest, tagCount, choices) => {
          const bench = new DmaBench({ tagCount });
          bench.pcieFunction.maxReadRequest = maxReadRequest;
          const reports = withRequesters(bench, 3, 12);
          const choose = (below: number): number => (choices.next().value as number) % below;
          let at = 0;
          const places = requests.map(({ bytes, sramShift }) => {
            const place = at + sramShift;
            at = place + bytes + 1;
            return place;
          });
          bench.atCycle(1, () =>
            requests.forEach(({ requester, address, bytes }, index) => {
              bench.reads.request(requester, address, bytes, places[index]!, index);
            }),
          );
          // Answers go on in any order over the reads in flight, each split at any multiple of 64.
          const pending: SentRead[] = [];
          bench.link.onRead = (read) => pending.push(read);
          let cycle = 50;
          for (; !bench.reads.isIdle || cycle === 50; cycle += 5) {
            bench.runTo(cycle);
            if (pending.length === 0) continue;
            const index = choose(pending.length);
            const read = pending[index]!;
            const remaining = read.bytes - read.answeredBytes;
            const untilBoundary = 64 - ((read.address + read.answeredBytes) & 63);
            const bytes = Math.min(remaining, untilBoundary + 64 * choose(1 + (remaining >> 6)));
            bench.atPs(cycle * 1000 + choose(4000), () => bench.link.answer(read, bytes));
            if (bytes === remaining) pending.splice(index, 1);
            bench.runTo(cycle + 5);
          }
          const expected = new Uint8Array(bench.sram.length);
          requests.forEach(({ address, bytes }, index) => {
            expected.set(bench.link.memory.subarray(address, address + bytes), places[index]!);
          });
          expect(bytesEqual(bench.sram, expected)).toBe(true);
          for (let requester = 0; requester < 3; requester++) {
            const asked = requests.flatMap((request, index) =>
              request.requester === requester ? [index] : [],
            );
            const told = reports.filter((report) => report.requester === requester);
            expect(told.map(({ cookie }) => cookie)).toEqual(asked);
            expect(told.every(({ status }) => status === DmaStatus.ok)).toBe(true);
          }
          // One report per cycle.
          for (let index = 1; index < reports.length; index++) {
            expect(reports[index]!.cycle).toBeGreaterThan(reports[index - 1]!.cycle);
          }
          expect(bench.link.heldRecords).toBe(0);
          for (const { address, bytes } of bench.link.reads) {
            expect(Math.floor(address / 4096)).toBe(Math.floor((address + bytes - 1) / 4096));
            expect((address & 3) + bytes).toBeLessThanOrEqual(maxReadRequest);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('takes completions that end no request without an edge of their own, and is none the faster for it', () => {
    const run = (returnsCompletionCredits: boolean) => {
      const bench = new DmaBench({ tagCount: 6 }, returnsCompletionCredits);
      const reports = withRequesters(bench, 2);
      const random = new Random(1, 'completions');
      bench.link.onRead = (read) => {
        let delayPs = 50_000 + random.below(20_000);
        for (let bytes = 128; bytes <= read.bytes; bytes += 128) {
          delayPs += random.below(40) * 1000 + random.below(2) * 500;
          bench.atPs(bench.lp.nowPs + delayPs, () => bench.link.answer(read, 128));
        }
      };
      for (let index = 0; index < 8; index++)
        bench.atCycle(10 + 3 * index, () =>
          bench.reads.request(index & 1, 0x1000 + index * 4096, 4096, index * 4096, index),
        );
      bench.runTo(5000);
      bench.reads.returnAccount.close(5000);
      const { busyCycles, idleCycles } = bench.reads.returnAccount;
      const edges = bench.domain.activeEdgeCount;
      return {
        edges,
        results: { reports, reads: bench.link.reads, busyCycles, idleCycles, sram: bench.sram },
      };
    };
    const quick = run(false);
    const slow = run(true);
    expect(quick.results.reports).toHaveLength(8);
    expect(quick.results).toEqual(slow.results);
    expect(quick.edges).toBeLessThan(slow.edges - 50);
  });

  it('waits for a tag, and uses one in the very cycle in which it comes free', () => {
    const bench = new DmaBench({ tagCount: 2 });
    const reports = withRequesters(bench, 1);
    bench.answerAll(100_000);
    bench.atCycle(1, () => {
      for (let index = 0; index < 3; index++) bench.reads.request(0, index * 64, 8, index * 64, index);
    });
    bench.runTo(1000);
    // Sent at 2 and 3; the first answer comes at 102,000 ps and is taken at edge 103.
    expect(bench.link.reads.map(({ timePs }) => timePs)).toEqual([2000, 3000, 103_000]);
    expect(reports.map(({ cycle }) => cycle)).toEqual([103, 104, 204]);
    bench.reads.account.close(300);
    // Busy 3; stalled for tags from 4 to 103; idle 2 + (300 - 104).
    expect(bench.reads.account.busyCycles).toBe(3);
    expect([...bench.reads.account.stalledCycles]).toEqual([0, 99]);
    expect(bench.reads.account.idleCycles).toBe(198);
    expect(bench.reads.tagHighWater).toBe(2);
    const { counters } = bench.reads.requesters[0]!;
    expect(counters).toMatchObject({ requests: 3, bytes: 24, tlps: 3, waitTagCycles: 99, waitLinkCycles: 0 });
  });

  it('uses only tags that the function allows', () => {
    const bench = new DmaBench({ tagCount: 6 });
    const reports = withRequesters(bench, 1);
    bench.pcieFunction.tagCountMax = 2;
    bench.answerAll(20_000);
    bench.atCycle(1, () => bench.reads.request(0, 0, 8 * 512, 0, 0));
    bench.runTo(200);
    expect(bench.link.reads.map(({ tag }) => tag)).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    bench.pcieFunction.tagCountMax = 32;
    bench.atCycle(200, () => bench.reads.request(0, 0, 8 * 512, 0, 0));
    bench.runTo(400);
    expect(bench.link.reads.slice(8, 14).map(({ tag }) => tag)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(reports).toHaveLength(2);
  });

  it('waits for the link, and goes on at the edge behind the instant at which it has room', () => {
    const bench = new DmaBench();
    withRequesters(bench, 1);
    bench.link.room[1] = 1;
    bench.atCycle(1, () => bench.reads.request(0, 0, 1024, 0, 0));
    bench.atPs(50_000, () => bench.link.makeRoom(1, 1));
    bench.runTo(100);
    expect(bench.link.reads.map(({ timePs }) => timePs)).toEqual([2000, 51_000]);
    expect(bench.reads.requesters[0]!.counters).toMatchObject({ waitLinkCycles: 48, waitTagCycles: 0 });
    bench.reads.account.close(100);
    expect([...bench.reads.account.stalledCycles]).toEqual([48, 0]);
  });

  it('pushes back when a fifo is full, and tells when it has room', () => {
    const bench = new DmaBench();
    withRequesters(bench, 2, 2);
    const space: number[] = [];
    bench.reads.onSpace(0, () => space.push(bench.domain.cycle));
    bench.answerAll(10_000);
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 8, 0, 0);
      expect(bench.reads.canRequest(0)).toBe(true);
      bench.reads.request(0, 8, 8, 8, 1);
      expect(bench.reads.canRequest(0)).toBe(false);
      expect(bench.reads.canRequest(1)).toBe(true);
      expect(() => bench.reads.request(0, 16, 8, 16, 2)).toThrow(DmaRequestError);
    });
    bench.runTo(100);
    // Taken at edge 13: only the first of the two reports finds the fifo full.
    expect(space).toEqual([13]);
  });

  it('refuses an empty request and one outside the memory', () => {
    const bench = new DmaBench();
    withRequesters(bench, 1);
    bench.atCycle(1, () => {
      expect(() => bench.reads.request(0, 0, 0, 0, 0)).toThrow(DmaRequestError);
      expect(() => bench.reads.request(0, 0, 2, bench.sram.length - 1, 0)).toThrow(DmaRequestError);
      expect(() => bench.reads.request(0, 0, 2, -1, 0)).toThrow(DmaRequestError);
    });
    bench.runTo(10);
  });

  it('arbitrates in turn, by priority, or by weight', () => {
    const orderUnder = (readArbitration: 'roundRobin' | 'strictPriority' | 'weighted'): string => {
      const bench = new DmaBench({ readArbitration });
      withRequesters(bench, 3, 8, [1, 3, 2]);
      bench.atCycle(1, () => {
        for (const requester of [2, 1, 0]) bench.reads.request(requester, requester << 12, 4 * 512, 0, 0);
      });
      bench.runTo(100);
      return bench.link.reads.map(({ address }) => address >> 12).join('');
    };
    expect(orderUnder('roundRobin')).toBe('012012012012');
    expect(orderUnder('strictPriority')).toBe('000011112222');
    expect(orderUnder('weighted')).toBe('011122012200');
  });

  it('sees a request only in the cycle after the one in which it was made', () => {
    const bench = new DmaBench({ tagCount: 1 });
    withRequesters(bench, 1);
    // Asks requester 1 for more inside the engine's own stage, in the cycle in which a tag comes free.
    const chaining = { name: 'chaining', trafficClass: 3, fifoDepth: 2, weight: 1 };
    bench.reads.addRequester(chaining, () => {});
    bench.reads.addRequester(chaining, () => bench.reads.request(1, 0x1000, 8, 0, 0));
    bench.answerAll(20_000);
    bench.atCycle(1, () => bench.reads.request(2, 0x2000, 8, 0, 0));
    bench.atCycle(2, () => bench.reads.request(2, 0x3000, 8, 0, 0));
    bench.runTo(100);
    // Behind requester 2 it would be requester 1's turn; but at edge 23 its request cannot be seen yet.
    expect(piecesOf(bench.link.reads).map(([address]) => address)).toEqual([0x2000, 0x3000, 0x1000, 0x1000]);
    expect(bench.link.reads[1]!.timePs).toBe(23_000);
  });

  it('accounts each wait once: tags, link and other requesters sum to the time from ready to sent', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat({ max: 2 }), fc.integer({ min: 1, max: 40 })), {
          minLength: 1,
          maxLength: 20,
        }),
        fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 20 }),
        (requests, roomCycles) => {
          const bench = new DmaBench({ tagCount: 2 });
          withRequesters(bench, 3, 20);
          bench.answerAll(30_000);
          bench.link.room[1] = 3;
          let cycle = 1;
          for (const [requester, gap] of requests) {
            bench.atCycle(cycle, () => bench.reads.request(requester, 0, 4, 0, 0));
            cycle += gap;
          }
          for (const at of roomCycles) bench.atPs(at * 1000 + 500, () => bench.link.makeRoom(1, 1));
          bench.atPs(2_000_000, () => bench.link.makeRoom(1, 100));
          bench.runTo(5000);
          bench.reads.account.close(5000);
          const { account } = bench.reads;
          const stalled = account.stalledCycles[0]! + account.stalledCycles[1]!;
          expect(account.busyCycles + account.idleCycles + stalled).toBe(5000);
          expect(account.overlapCount).toBe(0);
          expect(account.busyCycles).toBe(requests.length);
          for (const { counters } of bench.reads.requesters) {
            expect(counters.waitArbitrationCycles).toBeGreaterThanOrEqual(0);
            expect(counters.waitLinkCycles).toBeGreaterThanOrEqual(0);
            expect(counters.waitTagCycles).toBeGreaterThanOrEqual(0);
          }
        },
      ),
    );
  });
});

describe('reads that fail', () => {
  it('report the completer status once all their reads have ended, and land nothing afterwards', () => {
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

  it('rest when the failed request was all there was to wait for', () => {
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

  it('report poisoned data and do not let it land', () => {
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

  it('time out, ignore what comes late, and use the tag again only then', () => {
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
    // The late answer gave the tag back at edge 1501.
    expect(bench.link.reads[1]!.timePs).toBe(1_501_000);
    bench.atPs(1_600_000, () => bench.link.answer(bench.link.reads[1]!));
    bench.runTo(1700);
    expect(reports.at(-1)).toMatchObject({ cookie: 6, status: DmaStatus.ok });
    expect(bench.reads.isIdle).toBe(true);
  });

  it('give a tag back after a second timeout when nothing ever comes', () => {
    const bench = new DmaBench({ tagCount: 2 });
    bench.pcieFunction.completionTimeoutPs = 1_000_000;
    withRequesters(bench, 1);
    bench.atCycle(1, () => bench.reads.request(0, 0, 8, 0, 5));
    bench.runTo(2002);
    expect(bench.reads.pendingTagCount).toBe(1);
    bench.runTo(2003);
    expect(bench.reads.pendingTagCount).toBe(0);
  });

  it('never time out while software has switched the timeout off, and keep to a changed one', () => {
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
    // Sent at 21 and timed out 1000 cycles later; reported behind the others.
    expect(bench.reads.timeouts).toBe(1);
    bench.runTo(100_000);
    expect(bench.reads.timeouts).toBe(2);
    expect(reports).toEqual([]);
    bench.atPs(100_000_000, () => bench.link.answer(bench.link.reads[0]!));
    bench.runTo(100_100);
    expect(reports.map(({ status }) => status)).toEqual([DmaStatus.ok, DmaStatus.timeout, DmaStatus.timeout]);
  });

  it('ignore completions that belong to no read or do not continue one', () => {
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

  it('end with a status of their own when bus mastering is off', () => {
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
  it('drops every request, keeps the tags in flight from use, and leaks nothing', () => {
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
          const told = reports.length;
          const before = [...bench.link.reads];
          bench.sram.fill(0xee);
          // Some late answers come, the others never.
          before.slice(0, answered).forEach((read, index) => {
            bench.atPs((resetCycle + 20 + index) * 1000, () => bench.link.answer(read));
          });
          bench.runTo(resetCycle + 100);
          expect(bench.reads.pendingTagCount).toBe(before.length - Math.min(answered, before.length));
          expect(bench.pcieFunction.reported).toEqual([]);
          bench.runTo(resetCycle + 1100);
          expect(reports).toHaveLength(told);
          expect(bench.sram.every((byte) => byte === 0xee)).toBe(true);
          expect(bench.reads.pendingTagCount).toBe(0);
          expect(bench.reads.isIdle).toBe(true);
          expect(bench.link.heldRecords).toBe(0);
          // It works as if new.
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

  it('counts a completion of the very edge of the reset as late only when the reset comes first at that edge', () => {
    const lateCompletions = (resetsFirst: boolean, returnsCompletionCredits: boolean) => {
      const bench = new DmaBench({}, returnsCompletionCredits, (domain) => {
        const stage = domain.addStage((cycle) => bench.reads.reset(cycle));
        if (resetsFirst) domain.wake(stage, 103);
      });
      withRequesters(bench, 1);
      bench.atCycle(1, () => bench.reads.request(0, 0, 512, 0, 0));
      // Arrives at 102,500 ps, and is half of what was asked for.
      bench.atPs(102_500, () => bench.link.answer(bench.link.reads[0]!, 256));
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

describe('bytes that land ahead of their completions', () => {
  const PLACE = 0x200;
  const NOWHERE = -1;
  const landing = { name: 'payload', trafficClass: 4, fifoDepth: 8, weight: 1, landsAhead: true };

  /** A bench of one tag with a requester that lets bytes land ahead. */
  function benchOf(tagCount = 1) {
    const bench = new DmaBench({ tagCount });
    bench.pcieFunction.completionTimeoutPs = 1_000_000;
    const reports: Report[] = [];
    const requester = bench.reads.addRequester(landing, (cookie, status, cycle) =>
      reports.push({ requester, cookie, status, cycle }),
    );
    const placeOf = (tag: number, byteCount: number) =>
      bench.reads.placeOf(descriptorOf(0x100, tag, 4), byteCount);
    /** What a root complex does: bytes go to their place, and the record says so; what lies in the record is something else. */
    const land = (byte: number, byteCount: number, bytes: number) =>
      bench.sram.fill(byte, placeOf(0, byteCount), placeOf(0, byteCount) + bytes);
    return { bench, reports, placeOf, land };
  }

  it('have a place as soon as their read is sent, whatever is still to come before them', () => {
    const { bench, placeOf } = benchOf(2);
    bench.atCycle(1, () => bench.reads.request(0, 0, 600, PLACE, 5));
    bench.runTo(10);
    expect([placeOf(0, 512), placeOf(0, 256), placeOf(1, 88)]).toEqual([PLACE, PLACE + 256, PLACE + 512]);
    bench.atPs(20_000, () => bench.link.answer(bench.link.reads[0]!, 128));
    bench.runTo(30);
    expect([placeOf(0, 384), placeOf(0, 256)]).toEqual([PLACE + 128, PLACE + 256]);
  });

  it('stay where they are when their completion comes, which takes as long as any', () => {
    const run = (flags: number) => {
      const { bench, reports, land } = benchOf();
      bench.atCycle(1, () => bench.reads.request(0, 0, 512, PLACE, 5));
      bench.runTo(10);
      for (const [at, bytes] of [
        [20_500, 256],
        [30_500, 128],
        [30_600, 128],
      ] as const) {
        const byteCount = 512 - bench.link.reads[0]!.answeredBytes;
        if (flags !== 0) land((byteCount & 0xff) | 1, byteCount, bytes);
        bench.atPs(at, () => bench.link.answer(bench.link.reads[0]!, bytes, flags));
        bench.runTo(at / 1000 + 1);
      }
      bench.runTo(100);
      return { reports, bytes: bench.sram.slice(PLACE, PLACE + 512), isIdle: bench.reads.isIdle };
    };
    const ahead = run(FLAG_LANDED);
    expect(ahead.reports).toEqual(run(0).reports);
    expect(ahead.isIdle).toBe(true);
    expect([0, 255, 256, 383, 384, 511].map((at) => ahead.bytes[at])).toEqual([1, 1, 1, 1, 129, 129]);
  });

  it('have none for a requester that may look there early, nor beyond the read, nor without a read', () => {
    const { bench, placeOf } = benchOf(3);
    bench.reads.addRequester({ ...landing, landsAhead: false }, () => {});
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 64, PLACE, 5);
      bench.reads.request(1, 0, 64, PLACE + 64, 6);
    });
    bench.runTo(10);
    expect([placeOf(0, 64), placeOf(0, 65), placeOf(1, 64)]).toEqual([PLACE, NOWHERE, NOWHERE]);
    expect([placeOf(2, 64), placeOf(200, 64)]).toEqual([NOWHERE, NOWHERE]);
    bench.atPs(20_000, () => bench.link.answer(bench.link.reads[0]!));
    bench.runTo(30);
    expect(placeOf(0, 64)).toBe(NOWHERE);
  });

  it('have none any more under the tag of a read that was given up, whose completions may come later than its timeout', () => {
    const givenUp = [
      (bench: DmaBench) => bench.runTo(1100),
      (bench: DmaBench) => bench.reads.reset(10),
      (bench: DmaBench) => bench.reads.detachLandings(),
    ];
    for (const giveUp of givenUp) {
      const { bench, placeOf } = benchOf();
      bench.atCycle(1, () => bench.reads.request(0, 0, 64, PLACE, 5));
      bench.runTo(10);
      giveUp(bench);
      expect(placeOf(0, 64)).toBe(NOWHERE);
      bench.atCycle(3000, () => bench.reads.request(0, 0, 64, PLACE, 6));
      bench.runTo(3010);
      expect(bench.link.reads).toHaveLength(2);
      expect(placeOf(0, 64)).toBe(NOWHERE);
    }
  });

  it('and whose completion is taken for one of the next read of its tag, land there then, and nowhere before', () => {
    const { bench, reports, land } = benchOf();
    bench.atCycle(1, () => bench.reads.request(0, 0, 128, PLACE, 5));
    bench.runTo(10);
    land(0xaa, 128, 64);
    land(0xbb, 64, 64);
    // Timed out twice: the tag is free, and so is the place.
    bench.runTo(2500);
    bench.sram.fill(0, PLACE, PLACE + 128);
    bench.atCycle(2500, () => bench.reads.request(0, 0x1000, 128, 0x400, 6));
    bench.runTo(2600);
    bench.link.answer(bench.link.reads[0]!, 64, FLAG_LANDED);
    bench.runTo(2610);
    bench.link.answer(bench.link.reads[0]!, 64, FLAG_LANDED);
    bench.runTo(2700);
    expect(reports.map(({ cookie, status }) => [cookie, status])).toEqual([
      [5, DmaStatus.timeout],
      [6, DmaStatus.ok],
    ]);
    expect([0, 63, 64, 127].map((at) => bench.sram[0x400 + at])).toEqual([0xaa, 0xaa, 0xbb, 0xbb]);
    expect(bench.sram.subarray(PLACE, PLACE + 128).every((byte) => byte === 0)).toBe(true);
  });

  it('land again with their completion when the place was used for something else meanwhile', () => {
    const { bench, reports, land } = benchOf();
    bench.atCycle(1, () => bench.reads.request(0, 0, 64, PLACE, 5));
    bench.runTo(10);
    land(0xaa, 64, 64);
    bench.reads.detachLandings();
    bench.sram.fill(0, PLACE, PLACE + 64);
    bench.link.answer(bench.link.reads[0]!, 64, FLAG_LANDED);
    bench.runTo(100);
    expect(reports).toMatchObject([{ cookie: 5, status: DmaStatus.ok }]);
    expect(bench.sram.subarray(PLACE, PLACE + 64).every((byte) => byte === 0xaa)).toBe(true);
  });
});
