import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../sim/index.ts';
import { answer, linkPair, memoryRead, memoryWrite, onReceive, onSendSpace } from '../link/link-bench.ts';
import { linkChannelBytes } from '../link/link-parameters.ts';
import { COMPLETION_DATA, NON_POSTED, POSTED, WORD_BYTE_COUNT, WORD_LENGTH } from '../tlp/tlp.ts';
import { type RootComplexBenchOptions, rootComplexBench } from './root-complex-bench.ts';
import type { LinkTap } from './root-complex-tap.ts';

type Step = {
  readonly isWrite: boolean;
  readonly page: number;
  readonly length: number;
  readonly gap: number;
};

/** A device writes and reads, two cores store and load, all at once; returns all observations. */
function play(script: readonly Step[], options: RootComplexBenchOptions): string {
  const bench = rootComplexBench({ coreCount: 2, ...options });
  const { device, deviceLp, hostLp, rootComplex } = bench;
  const trace: string[] = [];
  const domain = deviceLp.addClockDomain(500);
  let next = 0;
  const stage = domain.addStage((cycle) => {
    if (next === script.length) return;
    const { isWrite, page, length, gap } = script[next]!;
    if (!device.canSend(isWrite ? POSTED : NON_POSTED)) return;
    const payload = new Uint8Array(length).fill(next + 1);
    if (isWrite)
      memoryWrite(device, {
        address: page * 4096 + 4096 - length,
        trafficClass: 5,
        source: payload,
        lengthBytes: length,
      });
    else
      memoryRead(device, {
        address: page * 4096 + 4096 - length,
        trafficClass: 4,
        lengthBytes: length,
        tag: next,
        requesterId: 0x100,
      });
    next++;
    domain.wake(stage, cycle + 1 + gap);
  });
  for (const flow of [POSTED, NON_POSTED]) {
    onSendSpace(device, flow, () => domain.wakeAfter(stage, deviceLp.nowPs));
  }
  domain.wake(stage, 1);
  for (let core = 0; core < 2; core++) {
    for (let store = 0; store < 4; store++) {
      rootComplex.cpuStore(core, 0x8000_0000 + store * 64, new Uint8Array(64).fill(core), 0, 64, core);
    }
    rootComplex.cpuLoad(core, 0x9000_0000, 4, (status, value) => {
      trace.push(`core ${core} ${status} ${value} ${hostLp.nowPs}`);
    });
  }
  bench.run(3_000_000);
  for (const { kind, tag } of bench.atDevice) {
    if (kind === 2) answer(device, { tag, trafficClass: 12, data: Uint8Array.of(tag, 0, 0, 1) });
  }
  bench.run(20_000_000);
  for (const { timePs, kind, tag, byteCount, bytes } of bench.atDevice) {
    trace.push(`${timePs} ${kind} ${tag} ${byteCount} ${bytes.join()}`);
  }
  expect(bench.host.receiver.heldCount).toBe(0);
  expect(bench.host.receiver.overflowCount + bench.device.receiver.overflowCount).toBe(0);
  const completed = bench.atDevice.filter(({ kind }) => kind === COMPLETION_DATA);
  const asked = script.filter(({ isWrite }) => !isWrite).reduce((sum, { length }) => sum + length, 0);
  expect(completed.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0)).toBe(asked);
  return trace.concat([...bench.memory.bytes.subarray(0, 8 * 4096)].join()).join('\n');
}

const stepArbitrary = fc.record({
  isWrite: fc.boolean(),
  page: fc.integer({ min: 0, max: 7 }),
  length: fc.integer({ min: 1, max: 256 }),
  gap: fc.integer({ min: 0, max: 20 }),
});

describe('a root complex under traffic from both sides', () => {
  it('PCIe 2.6.1: completes everything under tiny credits and gives one trace for any order within an instant', () => {
    fc.assert(
      fc.property(
        fc.array(stepArbitrary, { minLength: 4, maxLength: 24 }),
        fc.record({
          postedHeaders: fc.integer({ min: 1, max: 4 }),
          nonPostedHeaders: fc.integer({ min: 1, max: 4 }),
          postedData: fc.integer({ min: 17, max: 40 }),
          completionFifoTlps: fc.integer({ min: 1, max: 2 }),
          transmitBufferTlps: fc.integer({ min: 1, max: 4 }),
        }),
        fc.constantFrom('inOrder' as const, 'shuffled' as const),
        fc.integer({ min: 1, max: 1_000_000 }),
        (script, rootPort, completionOrder, seed) => {
          const rootComplex = { completionOrder, outstandingReadCount: 3, clockMHz: 10_000 };
          const options = { rootPort, rootComplex, memoryBytes: 8 * 4096 };
          const plain = play(script, options);
          expect(play(script, { ...options, shuffle: new Random(seed).unit })).toBe(plain);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('carries reads of 512 bytes at the payload rate of Gen3 x8, and never beats the closed form', () => {
    const bench = rootComplexBench();
    const { device, deviceLp } = bench;
    const domain = deviceLp.addClockDomain(427);
    const count = 2_000;
    let sent = 0;
    let received = 0;
    let firstPs = 0;
    const stage = domain.addStage(() => {
      while (sent < count && sent - received < 32 && device.canSend(NON_POSTED)) {
        memoryRead(device, {
          address: (sent % 1024) * 512,
          trafficClass: 4,
          lengthBytes: 512,
          tag: sent % 32,
          requesterId: 0x100,
        });
        sent++;
      }
    });
    onReceive(device, (offset) => {
      const { words } = device.reader;
      const isLast = words[(offset >> 2) + WORD_LENGTH] === words[(offset >> 2) + WORD_BYTE_COUNT];
      device.consume(offset);
      if (!isLast) return;
      if (received === 0) firstPs = deviceLp.nowPs;
      received++;
      lastPs = deviceLp.nowPs;
      domain.wakeAfter(stage, deviceLp.nowPs);
    });
    let lastPs = 0;
    onSendSpace(device, NON_POSTED, () => domain.wakeAfter(stage, deviceLp.nowPs));
    domain.wake(stage, 1);
    bench.run(300_000_000);
    expect(received).toBe(count);
    // A completion: 12 B header + 256 + 8 B framing = 276, aligned to 288; Acks and UpdateFCs ride in the gaps.
    const bound = (64 * (128 / 130) * (369 / 370) * 256) / 288;
    const gigabits = (8_000 * 512 * (count - 1)) / (lastPs - firstPs);
    expect(gigabits).toBeLessThanOrEqual(bound * 1.000_001);
    // measurements.csv J-001 … J-003: 55.86, 55.97, 55.88; I-025: 55.7.
    expect(gigabits).toBeGreaterThan(55.3);
  });

  it('fits the channels that linkChannelBytes sizes, saturated in both directions', () => {
    const options = { link: {}, rootPort: {}, endpoint: {} };
    const sizes = linkPair(options);
    // 48 reads of 512 bytes outstanding at the device, in completions of 64.
    const toDevice = linkChannelBytes(sizes.link, sizes.endpoint, 48 * 9, 48 * 512);
    const toHost = linkChannelBytes(sizes.link, sizes.rootPort, 32, 32 * 64);
    const bench = rootComplexBench({
      ...options,
      capacityBytes: Math.min(toDevice, toHost),
      rootComplex: { completionCombineBytes: 64 },
    });
    const { device, deviceLp, rootComplex } = bench;
    const domain = deviceLp.addClockDomain(427);
    let outstanding = 0;
    const stage = domain.addStage((cycle) => {
      if (device.canSend(POSTED))
        memoryWrite(device, {
          address: 0,
          trafficClass: 5,
          source: new Uint8Array(256),
          lengthBytes: 1 + (cycle % 256),
        });
      if (outstanding < 48 && device.canSend(NON_POSTED)) {
        memoryRead(device, {
          address: 0,
          trafficClass: 4,
          lengthBytes: 512,
          tag: outstanding++,
          requesterId: 0x100,
        });
      }
      domain.wake(stage, cycle + 1);
    });
    onReceive(device, (offset) => {
      const { words } = device.reader;
      if (words[(offset >> 2) + WORD_LENGTH] === words[(offset >> 2) + WORD_BYTE_COUNT]) outstanding--;
      device.consume(offset);
    });
    domain.wake(stage, 1);
    for (let endPs = 1_000_000; endPs <= 40_000_000; endPs += 1_000_000) {
      while (rootComplex.canStore(0)) rootComplex.cpuStore(0, 0x8000_0000, new Uint8Array(64), 0, 64, 1);
      expect(() => bench.run(endPs)).not.toThrow();
    }
    expect(rootComplex.reads.readCount).toBeGreaterThan(300);
    expect(rootComplex.writes.writeCount).toBeGreaterThan(300);
  });

  it('takes turns with completions that leave in a run as with those that leave one by one', () => {
    const READ_BYTES = 4096;
    const observer = new Proxy({}, { get: () => () => {} }) as LinkTap;
    /** TLPs that reach the device if the second core's store becomes visible this long after the first one's. */
    const arrivals = (delayPs: number, isWatched: boolean): string[] => {
      const placed = new Uint8Array(READ_BYTES);
      const placeOf = (_: number, byteCount: number) => READ_BYTES - byteCount;
      const shared = { earlyPlaces: { memory: placed, placeOf } };
      const bench = rootComplexBench({ coreCount: 2, rootComplex: { cpuStoreLatencyPs: 0 }, shared });
      const { hostLp, rootComplex } = bench;
      if (isWatched) rootComplex.reads.tap = observer;
      memoryRead(bench.device, {
        address: 0,
        trafficClass: 4,
        lengthBytes: READ_BYTES,
        tag: 1,
        requesterId: 0x100,
      });
      const store = hostLp.queue.addHandler((core) =>
        rootComplex.cpuStore(core, 0x8000_0000, placed, 0, 8, core),
      );
      // The first completion leaves at edge 298.
      hostLp.queue.schedule(297_500, store, 0);
      hostLp.queue.schedule(297_500 + delayPs, store, 1);
      bench.run(3_000_000);
      return bench.atDevice.map(({ kind, timePs }) => `${timePs} ${kind}`);
    };
    for (let delayPs = 0; delayPs < 16_000; delayPs += 1000) {
      expect(arrivals(delayPs, false)).toEqual(arrivals(delayPs, true));
    }
    // A completion was the last to leave when the second store becomes visible at edge 302, so the store leaves first.
    const kinds = arrivals(4000, false).map((arrival) => Number(arrival.split(' ')[1]));
    expect(kinds.slice(0, 7)).toEqual([3, 1, 3, 3, 1, 3, 3]);
  });
});
