import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesEqual } from '../../base/bytes.ts';
import { DmaBench, MEMORY_BYTES } from './dma-bench.ts';
import { DmaMessageSender } from './dma-message-sender.ts';
import { DmaRequestError } from './errors.ts';
import { TrafficClass } from './traffic-class.ts';

/** @param spaceCycles by requester, receives the cycles at which it had room again; left out: not recorded */
function withRequesters(bench: DmaBench, count: number, fifoDepth = 8, spaceCycles: number[][] = []) {
  const reports: { requester: number; cookie: number; cycle: number }[] = [];
  for (let requester = 0; requester < count; requester++) {
    bench.writes.addRequester(
      { name: `w${requester}`, trafficClass: 5 + requester, fifoDepth },
      {
        done: (cookie, cycle) => reports.push({ requester, cookie, cycle }),
        space: () => spaceCycles[requester]?.push(bench.domain.cycle),
      },
    );
  }
  return reports;
}

const source = Uint8Array.from({ length: 8192 }, (_, index) => (index * 13) & 0xff);

describe('the DMA write engine', () => {
  it('takes an exact number of cycles for one write', () => {
    const bench = new DmaBench({ dataPathBytes: 32 });
    const reports = withRequesters(bench, 1);
    bench.atCycle(10, () => bench.writes.request(0, 0x1000, 300, source, 5, 42));
    bench.runTo(100);
    // Seen at edge 11: 256 bytes take 8 cycles of 32; the other 44 leave at edge 19.
    expect(bench.link.writes).toEqual([
      { timePs: 11_000, address: 0x1000, bytes: 256, trafficClass: 5 },
      { timePs: 19_000, address: 0x1100, bytes: 44, trafficClass: 5 },
    ]);
    expect(reports).toEqual([{ requester: 0, cookie: 42, cycle: 19 }]);
    expect(bench.link.memory.slice(0x1000, 0x1000 + 300)).toEqual(source.slice(5, 305));
    bench.writes.account.close(100);
    // 8 cycles and 2 busy.
    expect([bench.writes.account.busyCycles, bench.writes.account.idleCycles]).toEqual([10, 90]);
  });

  it('PCIe 2.2.2, 2.2.7: splits at the payload size and at 4 KiB, counting partly touched dwords', () => {
    const cases: [number, number, number[][]][] = [
      [0x0, 256, [[0x0, 256]]],
      [
        0x2,
        256,
        [
          [0x2, 254],
          [0x100, 2],
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
        0xf80,
        512,
        [
          [0xf80, 128],
          [0x1000, 256],
          [0x1100, 128],
        ],
      ],
    ];
    for (const [address, bytes, expected] of cases) {
      const bench = new DmaBench();
      withRequesters(bench, 1);
      bench.atCycle(1, () => bench.writes.request(0, address, bytes, source, 0, 0));
      bench.runTo(200);
      expect(bench.link.writes.map((write) => [write.address, write.bytes])).toEqual(expected);
    }
  });

  it('writes every byte at every offset and length, in the order of the requests, through stalls on each side', () => {
    const request = fc.record({
      requester: fc.nat({ max: 2 }),
      address: fc.oneof(fc.integer({ min: 0, max: 50_000 }), fc.integer({ min: 4090, max: 4102 })),
      bytes: fc.oneof(fc.integer({ min: 1, max: 16 }), fc.integer({ min: 1, max: 5000 })),
      sourceOffset: fc.nat({ max: 3000 }),
      gap: fc.nat({ max: 5 }),
    });
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 20 }),
        fc.constantFrom(128, 256, 512),
        fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 30 }),
        (requests, maxPayload, roomCycles) => {
          const bench = new DmaBench();
          bench.pcieFunction.maxPayload = maxPayload;
          bench.link.room[0] = 2;
          const reports = withRequesters(bench, 3, 4);
          const expected = Uint8Array.from(bench.link.memory);
          const asked: { requester: number; cookie: number }[] = [];
          const waiting = [...requests.keys()];
          // Each request is made when its requester has room, after the previous one.
          let notBefore = 1;
          bench.everyCycle(1, () => {
            const index = waiting[0];
            if (index === undefined) return false;
            const { requester, address, bytes, sourceOffset, gap } = requests[index]!;
            if (bench.domain.cycle < notBefore || !bench.writes.canRequest(requester)) return true;
            waiting.shift();
            notBefore = bench.domain.cycle + gap;
            bench.writes.request(requester, address, bytes, source, sourceOffset, index);
            asked.push({ requester, cookie: index });
            expected.set(source.subarray(sourceOffset, sourceOffset + bytes), address % MEMORY_BYTES);
            return true;
          });
          for (const at of roomCycles) bench.atPs(at * 1000 + 250, () => bench.link.makeRoom(0, 1));
          bench.atPs(600_000, () => bench.link.makeRoom(0, 10_000));
          bench.runTo(20_000);
          expect(reports.map(({ requester, cookie }) => ({ requester, cookie }))).toEqual(asked);
          expect(asked).toHaveLength(requests.length);
          expect(bytesEqual(bench.link.memory, expected)).toBe(true);
          for (const { address, bytes } of bench.link.writes) {
            expect(Math.floor(address / 4096)).toBe(Math.floor((address + bytes - 1) / 4096));
            expect((address & 3) + bytes).toBeLessThanOrEqual(maxPayload);
          }
          const { account } = bench.writes;
          account.close(20_000);
          expect(account.busyCycles + account.idleCycles + account.stalledCycles[0]!).toBe(20_000);
          expect(account.overlapCount).toBe(0);
          const tlps = bench.writes.requesters.reduce((sum, { counters }) => sum + counters.tlps, 0);
          expect(tlps).toBe(bench.link.writes.length);
          expect(bench.writes.isIdle).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('waits for the link, and counts how long and after which requester', () => {
    const bench = new DmaBench();
    withRequesters(bench, 2);
    bench.link.room[0] = 1;
    bench.atCycle(1, () => {
      bench.writes.request(0, 0, 8, source, 0, 0);
      bench.writes.request(0, 8, 8, source, 0, 1);
      bench.writes.request(1, 16, 8, source, 0, 2);
    });
    bench.atPs(50_000, () => bench.link.makeRoom(0, 5));
    bench.runTo(100);
    expect(bench.link.writes.map(({ timePs }) => timePs)).toEqual([2000, 51_000, 52_000]);
    // Ready at 2; the second waited 1 cycle for the first and 48 for the link, the third 2 and 48.
    expect(bench.writes.requesters[0]!.counters).toMatchObject({
      waitLinkCycles: 48,
      waitArbitrationCycles: 1,
    });
    expect(bench.writes.requesters[1]!.counters).toMatchObject({
      waitLinkCycles: 48,
      waitArbitrationCycles: 2,
    });
    bench.writes.account.close(100);
    expect([...bench.writes.account.stalledCycles]).toEqual([48]);
  });

  it('pushes back to each requester by its own limit', () => {
    const bench = new DmaBench();
    const space: number[] = [];
    withRequesters(bench, 2, 2, [space]);
    bench.link.room[0] = 0;
    bench.atCycle(1, () => {
      bench.writes.request(0, 0, 8, source, 0, 0);
      bench.writes.request(0, 8, 8, source, 0, 1);
      expect(bench.writes.canRequest(0)).toBe(false);
      expect(bench.writes.canRequest(1)).toBe(true);
      expect(() => bench.writes.request(0, 16, 8, source, 0, 2)).toThrow(DmaRequestError);
      expect(() => bench.writes.request(1, 16, 0, source, 0, 2)).toThrow(DmaRequestError);
      expect(() => bench.writes.request(1, 16, 8, source, source.length - 7, 2)).toThrow(DmaRequestError);
    });
    bench.atPs(20_000, () => bench.link.makeRoom(0, 2));
    bench.runTo(100);
    expect(space).toEqual([21]);
  });

  it('PCIe 6.1.4: sends interrupt messages after every write requested earlier', () => {
    const bench = new DmaBench();
    withRequesters(bench, 1);
    const messages = new DmaMessageSender(bench.writes, 2);
    bench.atCycle(1, () => {
      bench.writes.request(0, 0x1000, 600, source, 0, 0);
      messages.sendMessage(0x4000, 0x1122_3344, 1);
      bench.writes.request(0, 0x2000, 8, source, 0, 1);
      messages.sendMessage(0x4004, 0x5566_7788, 1);
      expect(messages.canSend()).toBe(false);
    });
    bench.runTo(100);
    expect(bench.link.writes.map(({ address }) => address)).toEqual([
      0x1000, 0x1100, 0x1200, 0x4000, 0x2000, 0x4004,
    ]);
    expect(bench.link.writes[3]!.trafficClass).toBe(TrafficClass.msix);
    expect([...bench.link.memory.subarray(0x4000, 0x4008)]).toEqual([
      0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55,
    ]);
    expect(messages.canSend()).toBe(true);
  });

  it('PCIe 7.5.1: drops and counts writes while bus mastering is off, and reports them done', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 1);
    bench.pcieFunction.isMaster = false;
    bench.atCycle(1, () => {
      bench.writes.request(0, 0, 1000, source, 0, 1);
      bench.writes.request(0, 0, 24, source, 0, 2);
    });
    bench.runTo(100);
    expect(bench.link.writes).toEqual([]);
    expect(reports.map(({ cookie, cycle }) => [cookie, cycle])).toEqual([
      [1, 2],
      [2, 3],
    ]);
    expect(bench.writes.droppedBytes).toBe(1024);
    expect(bench.writes.requesters[0]!.counters.failedRequests).toBe(2);
  });

  it('forgets everything at a reset', () => {
    const bench = new DmaBench();
    const reports = withRequesters(bench, 1);
    bench.link.room[0] = 1;
    bench.atCycle(1, () => {
      for (let index = 0; index < 8; index++) bench.writes.request(0, index * 600, 600, source, 0, index);
    });
    bench.atCycle(20, () => bench.writes.reset(20));
    bench.atPs(30_000, () => bench.link.makeRoom(0, 100));
    bench.runTo(100);
    expect(bench.link.writes).toHaveLength(1);
    expect(reports).toEqual([]);
    expect([bench.writes.isIdle, bench.writes.canRequest(0)]).toEqual([true, true]);
    bench.atCycle(100, () => bench.writes.request(0, 0, 8, source, 0, 9));
    bench.runTo(200);
    expect(reports).toEqual([{ requester: 0, cookie: 9, cycle: 101 }]);
    bench.writes.account.close(200);
    // Busy 8 + 1; stalled from 10 to the reset at 20.
    expect(bench.writes.account.busyCycles).toBe(9);
    expect([...bench.writes.account.stalledCycles]).toEqual([10]);
  });
});
