import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesEqual } from '../../base/bytes.ts';
import { Random } from '../../sim/random.ts';
import { FLAG_PLACED_EARLY } from '../pcie/tlp/tlp.ts';
import { DmaBench, type SentRead } from './dma-bench.ts';
import { DmaRequestError, DmaStatus } from './errors.ts';
import type { DmaConfig } from './parameters.ts';
import { withRequesters } from './read-bench.ts';

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

  it('PCIe 2.2.7: splits at the read request size and at 4 KiB, counting partly touched dwords', () => {
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

  it('PCIe 2.3.1.1: stores every byte at its offset, for every offset, length, split and order of answers', () => {
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
          // Answers the reads in flight in any order, each split at any multiple of 64.
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
            const notified = reports.filter((report) => report.requester === requester);
            expect(notified.map(({ cookie }) => cookie)).toEqual(asked);
            expect(notified.every(({ status }) => status === DmaStatus.ok)).toBe(true);
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

  it('takes completions of early-placed bytes that end no request without an edge of their own, at the same simulated times', () => {
    const run = (returnsCompletionCredits: boolean) => {
      const bench = new DmaBench({ tagCount: 6 }, returnsCompletionCredits);
      const reports = withRequesters(bench, 2);
      const random = new Random(1, 'completions');
      bench.link.onRead = (read) => {
        let delayPs = 50_000 + random.below(20_000);
        for (let bytes = 128; bytes <= read.bytes; bytes += 128) {
          delayPs += random.below(40) * 1000 + random.below(2) * 500;
          bench.atPs(bench.lp.nowPs + delayPs, () => bench.link.answer(read, 128, FLAG_PLACED_EARLY));
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
        results: { reports, reads: bench.link.reads, busyCycles, idleCycles },
      };
    };
    const quick = run(false);
    const slow = run(true);
    expect(quick.results.reports).toHaveLength(8);
    expect(quick.results).toEqual(slow.results);
    expect(quick.edges).toBeLessThan(slow.edges - 50);
  });

  it('waits for a tag, and uses one in the same cycle in which it becomes free', () => {
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

  it('PCIe 2.2.6.2: uses only tags that the function allows', () => {
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

  it('waits for the link, and continues at the edge after the instant at which it has room', () => {
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

  it('pushes back when a fifo is full, and calls the requester when room is free', () => {
    const bench = new DmaBench();
    const space: number[] = [];
    withRequesters(bench, 2, 2, [], [space]);
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

  it('arbitrates in turn, by priority, by weight, or by whole requests', () => {
    const orderUnder = (readArbitration: DmaConfig['readArbitration']): string => {
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
    expect(orderUnder('wholeRequest')).toBe('000011112222');
  });

  it('serves other requesters between two whole requests of one', () => {
    const bench = new DmaBench({ readArbitration: 'wholeRequest' });
    withRequesters(bench, 2, 8);
    bench.atCycle(1, () => {
      for (const address of [0x1000, 0x2000]) bench.reads.request(0, address, 2 * 512, 0, 0);
      bench.reads.request(1, 0x3000, 2 * 512, 0, 0);
    });
    bench.runTo(100);
    expect(bench.link.reads.map(({ address }) => address >> 12)).toEqual([1, 1, 3, 3, 2, 2]);
  });

  it('sees a request only in the cycle after the one in which it was made', () => {
    const bench = new DmaBench({ tagCount: 1 });
    withRequesters(bench, 1);
    // Requests more for requester 1 inside the engine's own stage, in the cycle in which a tag becomes free.
    const chaining = { name: 'chaining', trafficClass: 3, fifoDepth: 2, weight: 1 };
    bench.reads.addRequester(chaining, { done: () => {} });
    bench.reads.addRequester(chaining, { done: () => bench.reads.request(1, 0x1000, 8, 0, 0) });
    bench.answerAll(20_000);
    bench.atCycle(1, () => bench.reads.request(2, 0x2000, 8, 0, 0));
    bench.atCycle(2, () => bench.reads.request(2, 0x3000, 8, 0, 0));
    bench.runTo(100);
    // After requester 2 it would be requester 1's turn; but at edge 23 its request is not visible yet.
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
