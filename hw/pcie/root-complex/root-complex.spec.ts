import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import { configRequest } from '../function/function-bench.ts';
import { answer, memoryRead, memoryWrite } from '../link/link-bench.ts';
import { linkParameters, rootPortParameters } from '../link/link-parameters.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_PLACED_EARLY,
  FLAG_POISONED,
  MEMORY_READ,
  MEMORY_WRITE,
  STATUS_ABORT,
  STATUS_UNSUPPORTED_REQUEST,
  tagOf,
} from '../tlp/tlp.ts';
import { type AtDevice, type RootComplexBenchOptions, rootComplexBench } from './root-complex-bench.ts';
import { READ_LOST, READ_POISONED, type ReadFaults } from './root-complex-interfaces.ts';
import { checkRootComplexConfig, rootComplexParameters } from './root-complex-parameters.ts';
import type { LinkTap } from './root-complex-tap.ts';

const pattern = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => (at * 7 + 3) & 0xff);

/** Faults that answer reads in order, then no more. */
const answering = (answers: readonly number[]): ReadFaults => {
  const left = [...answers];
  return { answerTo: () => left.shift() ?? 0 };
};

describe('the root complex, to a device', () => {
  it('answers an idle 64 byte read after exactly link, read latency and link', () => {
    const bench = rootComplexBench();
    bench.memory.bytes.set(pattern(64), 0x1000);
    memoryRead(bench.device, {
      address: 0x1000,
      trafficClass: 4,
      lengthBytes: 64,
      tag: 9,
      requesterId: 0x100,
    });
    bench.run(2_000_000);
    // Request: 12 B header + 8 B framing = 20 B × 127.29717 ps = 2,545.9 -> 2,546; + 125,000 = 127,546.
    // First edge after: 128,000; + 170 cycles: 298,000. Completion: 12 + 64 + 8 = 84 B = 10,693; + 125,000.
    expect(bench.atDevice).toHaveLength(1);
    expect(bench.atDevice[0]).toMatchObject({
      kind: COMPLETION_DATA,
      timePs: 298_000 + 10_693 + 125_000,
      tag: 9,
      byteCount: 64,
      trafficClass: 4,
      bytes: [...pattern(64)],
    });
    // measurements.csv I-002a: 436.2 ns on a Gen3 x8 link; 2 % either way.
    expect(Math.abs(bench.atDevice[0]!.timePs / 1000 / 436.2 - 1)).toBeLessThan(0.02);
  });

  it('PCIe 6.1.4: applies writes in order after the write latency, and interrupt messages after them', () => {
    const bench = rootComplexBench();
    memoryWrite(bench.device, { address: 0x2000, trafficClass: 5, source: pattern(64), lengthBytes: 64 });
    memoryWrite(bench.device, {
      address: 0xfee0_1004,
      trafficClass: 11,
      source: Uint8Array.of(0x21, 0x40, 0, 0),
      lengthBytes: 4,
    });
    bench.run(1_000_000);
    // Write: 84 B = 10,693 ps, padded to 96 B; message 12 + 4 + 8 = 24 B ends at 120 B × 127.29717 = 15,275.7.
    // 15,276 + 125,000 = 140,276; first edge after 141,000; + 80 cycles.
    expect(bench.interrupts).toEqual(['221000 fee01004 16417']);
    expect([...bench.memory.bytes.subarray(0x2000, 0x2040)]).toEqual([...pattern(64)]);
  });

  it('PCIe 2.4.1: lets a read with a known address see an earlier write whose address is being translated', () => {
    const bench = rootComplexBench();
    const walkPs = 5_000_000;
    let walks = 0;
    Object.assign(bench.memory, { translationPs: () => (walks++ === 0 ? walkPs : 0) });
    memoryWrite(bench.device, { address: 0x2000, trafficClass: 4, source: pattern(64), lengthBytes: 64 });
    memoryRead(bench.device, {
      address: 0x2000,
      trafficClass: 4,
      lengthBytes: 64,
      tag: 1,
      requesterId: 0x100,
    });
    bench.run(8_000_000);
    expect(bench.atDevice.map(({ bytes }) => bytes)).toEqual([[...pattern(64)]]);
    expect(bench.atDevice[0]!.timePs).toBeGreaterThan(walkPs);
  });

  it('answers a read later by what the last-level cache lacks', () => {
    const answeredPs = (missPs: number): number => {
      const bench = rootComplexBench();
      Object.assign(bench.memory, { missPs: (address: number) => (address === 0x2000 ? missPs : 0) });
      const read = { trafficClass: 4, lengthBytes: 64, requesterId: 0x100 };
      memoryRead(bench.device, { ...read, address: 0x2000, tag: 1 });
      bench.run(2_000_000);
      return bench.atDevice[0]!.timePs;
    };
    expect(answeredPs(70_000) - answeredPs(0)).toBe(70_000);
  });

  it('PCIe 2.4.1: lets a read see the earlier write', () => {
    const bench = rootComplexBench({ rootComplex: { readLatencyPs: 80_000, writeLatencyPs: 80_000 } });
    memoryWrite(bench.device, { address: 0x2000, trafficClass: 5, source: pattern(64), lengthBytes: 64 });
    memoryRead(bench.device, {
      address: 0x2000,
      trafficClass: 4,
      lengthBytes: 64,
      tag: 1,
      requesterId: 0x100,
    });
    bench.run(1_000_000);
    expect(bench.atDevice[0]!.bytes).toEqual([...pattern(64)]);
  });

  it('PCIe 2.3.1.1: splits completions at the read completion boundary and counts bytes down', () => {
    const bench = rootComplexBench({ rootComplex: { completionCombineBytes: 64 } });
    bench.memory.bytes.set(pattern(4096), 0);
    memoryRead(bench.device, {
      address: 0x7d,
      trafficClass: 4,
      lengthBytes: 200,
      tag: 1,
      requesterId: 0x100,
    });
    bench.run(2_000_000);
    const seen = bench.atDevice.map(({ address, lengthBytes, byteCount }) => [
      address,
      lengthBytes,
      byteCount,
    ]);
    // 0x7d … 0x144: 3 bytes up to 0x80, then 64 at a time.
    expect(seen).toEqual([
      [0x7d, 3, 200],
      [0x00, 64, 197],
      [0x40, 64, 133],
      [0x00, 64, 69],
      [0x40, 5, 5],
    ]);
    expect(bench.atDevice.flatMap(({ bytes }) => bytes)).toEqual([
      ...pattern(4096).subarray(0x7d, 0x7d + 200),
    ]);
  });

  it('returns every byte of any read, at every length and around a 4 KiB edge', () => {
    const bench = rootComplexBench();
    const data = pattern(3 * 4096);
    bench.memory.bytes.set(data, 0);
    let endPs = 0;
    for (let length = 1; length <= 4096; length += length < 300 ? 1 : 61) {
      const address = 8192 - length - (length % 3 === 0 && length < 4000 ? length % 67 : 0);
      if (Math.floor(address / 4096) !== Math.floor((address + length - 1) / 4096)) continue;
      bench.atDevice.length = 0;
      memoryRead(bench.device, { address, trafficClass: 4, lengthBytes: length, tag: 1, requesterId: 0x100 });
      endPs += 3_000_000;
      bench.run(endPs);
      expect(bench.atDevice.flatMap(({ bytes }) => bytes)).toEqual([
        ...data.subarray(address, address + length),
      ]);
      let left = length;
      for (const { lengthBytes, byteCount, address: lower } of bench.atDevice) {
        expect(byteCount).toBe(left);
        expect(lower).toBe((address + length - left) % 128);
        left -= lengthBytes;
        if (left > 0) expect((address + length - left) % 64).toBe(0);
      }
    }
  });

  it('rejects reads of memory holes when the bytes are due', () => {
    const bench = rootComplexBench({ rootComplex: { completionCombineBytes: 64 } });
    // Bytes 0x1080 to 0x10bf are a hole.
    Object.assign(bench.memory, {
      canRead: (address: number, lengthBytes: number) => address + lengthBytes <= 0x1080 || address >= 0x10c0,
    });
    memoryRead(bench.device, {
      address: 0x1040,
      trafficClass: 4,
      lengthBytes: 192,
      tag: 1,
      requesterId: 0x100,
    });
    memoryRead(bench.device, {
      address: 0x10c0,
      trafficClass: 4,
      lengthBytes: 64,
      tag: 2,
      requesterId: 0x100,
    });
    bench.run(2_000_000);
    const seen = bench.atDevice.map(({ kind, tag, status, lengthBytes }) => [kind, tag, status, lengthBytes]);
    expect(seen).toEqual([
      [COMPLETION_DATA, 1, 0, 64],
      [COMPLETION, 1, STATUS_UNSUPPORTED_REQUEST, 0],
      [COMPLETION_DATA, 2, 0, 64],
    ]);
    expect(bench.rootComplex.log.counts.readOutsideMemory).toBe(1);
  });

  it('PCIe 2.3.1: answers reads outside memory, of the message window and of configuration with Unsupported Request', () => {
    const bench = rootComplexBench();
    memoryRead(bench.device, {
      address: 1 << 20,
      trafficClass: 4,
      lengthBytes: 8,
      tag: 1,
      requesterId: 0x100,
    });
    memoryRead(bench.device, {
      address: 0xfee0_0000,
      trafficClass: 4,
      lengthBytes: 4,
      tag: 2,
      requesterId: 0x100,
    });
    bench.device.sendConfigRead({ ...configRequest(3), requesterId: 0x100 });
    bench.run(2_000_000);
    expect(bench.atDevice.map(({ kind, status, tag }) => [kind, status, tag])).toEqual([
      [COMPLETION, STATUS_UNSUPPORTED_REQUEST, 1],
      [COMPLETION, STATUS_UNSUPPORTED_REQUEST, 2],
      [COMPLETION, STATUS_UNSUPPORTED_REQUEST, 3],
    ]);
    expect(bench.rootComplex.log.counts).toMatchObject({ readOutsideMemory: 2, unsupportedRequest: 1 });
  });

  it('PCIe 2.2.7: discards a read across 4 KiB, so that its requester times out', () => {
    const bench = rootComplexBench();
    memoryRead(bench.device, { address: 4092, trafficClass: 4, lengthBytes: 8, tag: 1, requesterId: 0x100 });
    bench.run(2_000_000);
    expect(bench.atDevice).toEqual([]);
    expect(bench.rootComplex.log.counts.malformed).toBe(1);
    expect(bench.host.receiver.heldCount).toBe(0);
  });

  it('PCIe 2.3.1: drops and logs writes that are outside memory, poisoned, or across 4 KiB', () => {
    const bench = rootComplexBench();
    const before = [...bench.memory.bytes];
    memoryWrite(bench.device, { address: 1 << 20, trafficClass: 5, source: pattern(4), lengthBytes: 4 });
    memoryWrite(bench.device, { address: 0, trafficClass: 5, source: pattern(4), lengthBytes: 4, flags: 1 });
    memoryWrite(bench.device, { address: 4094, trafficClass: 5, source: pattern(4), lengthBytes: 4 });
    bench.run(1_000_000);
    expect(bench.rootComplex.log.counts).toMatchObject({
      writeOutsideMemory: 1,
      poisonedWrite: 1,
      malformed: 1,
    });
    expect(bench.rootComplex.log.entries[0]).toMatchObject({ fault: 'writeOutsideMemory', address: 1 << 20 });
    expect([...bench.memory.bytes]).toEqual(before);
  });

  it('PCIe 2.2.8.1: turns INTx messages into wires', () => {
    const bench = rootComplexBench();
    bench.device.sendMessage(0x21, 14, 0x100);
    bench.device.sendMessage(0x25, 14, 0x100);
    bench.run(1_000_000);
    expect(bench.interrupts.map((line) => line.split(' ').slice(1).join(' '))).toEqual([
      'INTB true',
      'INTB false',
    ]);
  });

  it('PCIe 2.2.8.1: lowers the wires that are asserted when it resets the slot, each once', () => {
    const bench = rootComplexBench();
    bench.device.sendMessage(0x21, 14, 0x100);
    bench.run(1_000_000);
    bench.rootComplex.setReset(true);
    bench.rootComplex.setReset(true);
    bench.run(2_000_000);
    expect(bench.interrupts.map((line) => line.split(' ').slice(1).join(' '))).toEqual([
      'INTB true',
      'INTB false',
    ]);
  });

  it('answers the chosen read with the chosen status', () => {
    const bench = rootComplexBench();
    bench.rootComplex.reads.faults = answering([0, STATUS_ABORT]);
    for (const tag of [1, 2, 3])
      memoryRead(bench.device, {
        address: 0x1000,
        trafficClass: 4,
        lengthBytes: 64,
        tag,
        requesterId: 0x100,
      });
    bench.run(2_000_000);
    expect(bench.atDevice.map(({ tag, status }) => [tag, status])).toEqual([
      [1, 0],
      [2, STATUS_ABORT],
      [3, 0],
    ]);
  });

  it('answers several chosen reads, each with its own status', () => {
    const bench = rootComplexBench();
    bench.rootComplex.reads.faults = answering([
      STATUS_UNSUPPORTED_REQUEST,
      0,
      STATUS_ABORT,
      STATUS_UNSUPPORTED_REQUEST,
    ]);
    for (const tag of [1, 2, 3, 4])
      memoryRead(bench.device, {
        address: 0x1000,
        trafficClass: 4,
        lengthBytes: 64,
        tag,
        requesterId: 0x100,
      });
    bench.run(2_000_000);
    expect(bench.atDevice.map(({ status }) => status)).toEqual([1, 0, STATUS_ABORT, 1]);
  });

  it('leaves the chosen read without an answer, or poisons it', () => {
    const bench = rootComplexBench();
    bench.rootComplex.reads.faults = answering([0, READ_LOST, READ_POISONED]);
    for (const tag of [1, 2, 3])
      memoryRead(bench.device, {
        address: 0x1000,
        trafficClass: 4,
        lengthBytes: 64,
        tag,
        requesterId: 0x100,
      });
    bench.run(2_000_000);
    expect(bench.atDevice.map(({ tag, flags }) => [tag, flags & 1])).toEqual([
      [1, 0],
      [3, 1],
    ]);
    expect(bench.rootComplex.reads.lostCount).toBe(1);
  });

  it('PCIe 2.3.1.1: answers different reads out of order when configured to, and each one in order', () => {
    const bench = rootComplexBench({ rootComplex: { completionOrder: 'shuffled', seed: 5 } });
    bench.memory.bytes.set(pattern(4096), 0);
    for (let tag = 0; tag < 16; tag++)
      memoryRead(bench.device, {
        address: (tag >> 1) * 512,
        trafficClass: 4,
        lengthBytes: 256 + (tag & 1) * 256,
        tag,
        requesterId: 0x100,
      });
    bench.run(5_000_000);
    const firsts = [...new Set(bench.atDevice.map(({ tag }) => tag))];
    expect(firsts).toHaveLength(16);
    expect(firsts).not.toEqual([...firsts].sort((a, b) => a - b));
    for (let tag = 0; tag < 16; tag++) {
      const counts = bench.atDevice.filter((tlp) => tlp.tag === tag).map(({ byteCount }) => byteCount);
      expect(counts).toEqual((tag & 1) === 0 ? [256] : [512, 256]);
    }
  });

  it('does not block the channel while it processes a read', () => {
    // A ring of 8 KiB: 64 records of 128 bytes. The read takes 20 µs; 400 writes pass it meanwhile.
    const bench = rootComplexBench({ capacityBytes: 8192, rootComplex: { readLatencyPs: 20_000_000 } });
    memoryRead(bench.device, {
      address: 0x1000,
      trafficClass: 4,
      lengthBytes: 64,
      tag: 1,
      requesterId: 0x100,
    });
    for (let write = 0; write < 400; write++) {
      memoryWrite(bench.device, { address: 0x2000, trafficClass: 5, source: pattern(64), lengthBytes: 64 });
      bench.run((write + 1) * 40_000);
    }
    bench.run(30_000_000);
    expect(bench.rootComplex.writes.writeCount).toBe(400);
    expect(bench.atDevice).toHaveLength(1);
  });

  it('processes a bounded number of reads and starts the next when one has ended', () => {
    const bench = rootComplexBench({ rootComplex: { outstandingReadCount: 1 } });
    memoryRead(bench.device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: 1, requesterId: 0x100 });
    memoryRead(bench.device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: 2, requesterId: 0x100 });
    bench.run(2_000_000);
    // The second is ready 170 cycles after the edge that follows the end of the first: 171,000 ps later.
    expect(bench.atDevice[1]!.timePs - bench.atDevice[0]!.timePs).toBe(171_000);
  });
});

describe('a device that offers the destinations of its reads', () => {
  const PLACE = 0x80;

  /** Two reads of 512 bytes, the second of which is placed early. */
  function benchOf(options: RootComplexBenchOptions, isJoined = true) {
    const placed = new Uint8Array(1024);
    const placeOf = (descriptor: number, byteCount: number) =>
      tagOf(descriptor) === 2 ? PLACE + 512 - byteCount : -1;
    const shared = isJoined ? { earlyPlaces: { memory: placed, placeOf } } : {};
    const bench = rootComplexBench({ ...options, shared });
    bench.memory.bytes.set(pattern(4096), 0);
    memoryRead(bench.device, { address: 1, trafficClass: 4, lengthBytes: 512, tag: 1, requesterId: 0x100 });
    memoryRead(bench.device, {
      address: 1024,
      trafficClass: 4,
      lengthBytes: 512,
      tag: 2,
      requesterId: 0x100,
    });
    return { bench, placed };
  }

  // With a transmit buffer of one TLP, most of them wait in the fifo.
  it.each([1, 16])(
    'gets the bytes there, and the same TLPs without them (transmit buffer: %d)',
    (transmitBufferTlps) => {
      const options = { rootPort: { transmitBufferTlps } };
      const { bench, placed } = benchOf(options);
      const { bench: alone } = benchOf(options, false);
      bench.run(5_000_000);
      expect(placed.every((byte) => byte === 0)).toBe(false);
      alone.run(5_000_000);
      expect([...placed.subarray(PLACE, PLACE + 512)]).toEqual([...pattern(4096).subarray(1024, 1536)]);
      const isPlacedEarly = ({ flags }: AtDevice) => (flags & FLAG_PLACED_EARLY) !== 0;
      expect(new Set(bench.atDevice.filter(isPlacedEarly).map(({ tag }) => tag))).toEqual(new Set([2]));
      expect(bench.atDevice.filter((tlp) => !isPlacedEarly(tlp))).toEqual(
        alone.atDevice.filter(({ tag }) => tag === 1),
      );
      const withoutBytes = (tlp: AtDevice) => ({ ...tlp, bytes: [], flags: tlp.flags & ~FLAG_PLACED_EARLY });
      expect(bench.atDevice.map(withoutBytes)).toEqual(alone.atDevice.map(withoutBytes));
      expect(bench.atDevice.filter(isPlacedEarly).every(({ bytes }) => bytes.length === 0)).toBe(true);
      expect(bench.host.transmitter.payloadBytes).toEqual(alone.host.transmitter.payloadBytes);
    },
  );

  it('finds zeros there when memory fails, and nothing when the data is poisoned', () => {
    const { bench, placed } = benchOf({});
    placed.fill(0xee);
    bench.memory.readInto = () => false;
    bench.run(5_000_000);
    expect(placed.subarray(PLACE, PLACE + 512).every((byte) => byte === 0)).toBe(true);
    const { bench: poisoned, placed: untouched } = benchOf({});
    poisoned.rootComplex.reads.faults = answering([0, READ_POISONED]);
    poisoned.run(5_000_000);
    expect(untouched.every((byte) => byte === 0)).toBe(true);
    const flags = poisoned.atDevice
      .filter(({ tag }) => tag === 2)
      .map((tlp) => tlp.flags & (FLAG_PLACED_EARLY | FLAG_POISONED));
    expect(new Set(flags)).toEqual(new Set([FLAG_POISONED]));
  });

  it('receives consecutive completions in a run, at the same instants as others', () => {
    const { bench } = benchOf({});
    const { bench: alone } = benchOf({}, false);
    const placeAt = vi.spyOn(bench.host, 'placeAt');
    bench.run(5_000_000);
    alone.run(5_000_000);
    expect(placeAt.mock.results.filter(({ value }) => value >= 0).length).toBeGreaterThanOrEqual(2);
    expect(bench.atDevice.map(({ timePs }) => timePs)).toEqual(alone.atDevice.map(({ timePs }) => timePs));
  });

  it('receives an error for memory that has vanished when its bytes are due', () => {
    const { bench } = benchOf({});
    Object.assign(bench.memory, { canRead: (address: number) => address < 1280 });
    bench.run(5_000_000);
    const ofSecond = bench.atDevice.filter(({ tag }) => tag === 2);
    expect(ofSecond.map(({ status, byteCount }) => [status, byteCount])).toEqual([
      [0, 512],
      [1, 256],
    ]);
  });

  it('has its bytes seen by a tap', () => {
    const seen: number[] = [];
    const { bench } = benchOf({});
    const tap: Pick<LinkTap, 'deviceRead'> = {
      deviceRead: ({ tag, source, offset, lengthBytes }) => {
        if (tag === 2) seen.push(...source.subarray(offset, offset + lengthBytes));
      },
    };
    bench.rootComplex.reads.tap = tap as LinkTap;
    bench.run(5_000_000);
    expect(seen).toEqual([...pattern(4096).subarray(1024, 1536)]);
  });
});

describe('the configuration of a root complex', () => {
  it.each([
    ['reads overtake writes', { rootComplex: { readLatencyPs: 79_999 } }, /readLatencyPs is 79999/],
    [
      'a completion is smaller than the boundary',
      { rootComplex: { completionCombineBytes: 64, readCompletionBoundaryBytes: 128 } },
      /completionCombineBytes is 64/,
    ],
    ['requests have infinite credits', { rootPort: { nonPostedHeaders: 0 } }, /nonPostedHeaders is 0/],
  ])('is rejected when %s', (_, options, message) => {
    expect(() => rootComplexBench(options)).toThrow(ConfigurationError);
    expect(() => rootComplexBench(options)).toThrow(message);
  });

  it('is rejected by its own check if its end has infinite request credits', () => {
    const link = defaultsOf(linkParameters);
    const end = { ...defaultsOf(rootPortParameters), postedHeaders: 0 };
    expect(() => checkRootComplexConfig(defaultsOf(rootComplexParameters), link, end)).toThrow(
      /postedHeaders/,
    );
  });
});

describe('the root complex, to a core', () => {
  it('sends a store after the store latency and keeps a load after it', () => {
    const bench = rootComplexBench();
    bench.rootComplex.cpuStore(0, 0x8000_0000, pattern(64), 0, 64, 1);
    bench.rootComplex.cpuLoad(0, 0x8000_0040, 4, () => {});
    bench.run(1_000_000);
    expect(bench.atDevice.map(({ kind, address }) => [kind, address])).toEqual([
      [MEMORY_WRITE, 0x8000_0000],
      [MEMORY_READ, 0x8000_0040],
    ]);
    // First edge after 0 is 1,000; + 50 cycles = 51,000; 84 B = 10,693; + 125,000.
    expect(bench.atDevice[0]!.timePs).toBe(51_000 + 10_693 + 125_000);
    expect(bench.atDevice[0]!.bytes).toEqual([...pattern(64)]);
  });

  it('gives a load its little-endian value, later by the return latency', () => {
    const bench = rootComplexBench();
    const seen: number[] = [];
    bench.rootComplex.cpuLoad(1, 0x8000_0000, 4, (status, value) =>
      seen.push(status, value, bench.hostLp.nowPs),
    );
    bench.run(300_000);
    const request = bench.atDevice[0]!;
    const data = Uint8Array.of(0x78, 0x56, 0x34, 0xf2);
    answer(bench.device, { tag: request.tag, trafficClass: 12, data, address: 0x8000_0000 });
    const sentPs = bench.deviceLp.nowPs;
    bench.run(1_000_000);
    // 12 + 4 + 8 = 24 B = 3,055.1 -> 3,056 ps.
    expect(seen).toEqual([0, 0xf234_5678, sentPs + 3_056 + 125_000 + 50_000]);
  });

  it('PCIe 2.4.1: returns a load’s value no sooner than earlier writes of the device are in memory', () => {
    // PCIe Base 3.1, table 2-39: a completion does not pass a posted request.
    const bench = rootComplexBench({ rootComplex: { writeLatencyPs: 5_000_000, readLatencyPs: 5_000_000 } });
    const seen: number[][] = [];
    bench.rootComplex.cpuLoad(1, 0x8000_0000, 4, () =>
      seen.push([...bench.memory.bytes.subarray(0x2000, 0x2040)]),
    );
    bench.run(300_000);
    memoryWrite(bench.device, { address: 0x2000, trafficClass: 5, source: pattern(64), lengthBytes: 64 });
    answer(bench.device, {
      tag: bench.atDevice[0]!.tag,
      trafficClass: 12,
      data: pattern(4),
      address: 0x8000_0000,
    });
    bench.run(8_000_000);
    expect(seen).toEqual([[...pattern(64)]]);
  });

  it('PCIe 2.3.2: reads all ones when the device refuses, poisons, or does not answer in time', () => {
    const bench = rootComplexBench({ rootComplex: { completionTimeoutPs: 50_000_000 } });
    const seen: string[] = [];
    const note = (status: number, value: number) => seen.push(`${status} ${value.toString(16)}`);
    for (let load = 0; load < 3; load++) bench.rootComplex.cpuLoad(0, 0x8000_0000, 4, note);
    bench.run(400_000);
    const [refused, poisoned, ignored] = bench.atDevice.map(({ tag }) => tag);
    answer(bench.device, { tag: refused!, trafficClass: 12, status: STATUS_UNSUPPORTED_REQUEST });
    answer(bench.device, { tag: poisoned!, trafficClass: 12, data: pattern(4), flags: FLAG_POISONED });
    bench.run(80_000_000);
    expect(seen).toEqual(['1 ffffffff', '9 ffffffff', '8 ffffffff']);
    answer(bench.device, { tag: ignored!, trafficClass: 12, data: pattern(4) });
    bench.run(90_000_000);
    expect(seen).toHaveLength(3);
    expect(bench.rootComplex.log.counts.unexpectedCompletion).toBe(1);
  });

  it('sends configuration requests to the device below it and answers for absent ones itself', () => {
    const bench = rootComplexBench();
    const seen: number[] = [];
    bench.rootComplex.configRead(0, 0x100, 0x10, (status, value) => seen.push(status, value));
    bench.rootComplex.configRead(0, 0x108, 0x10, (status, value) => seen.push(status, value));
    bench.run(400_000);
    expect(seen).toEqual([STATUS_UNSUPPORTED_REQUEST, 0xffff_ffff]);
    expect(bench.atDevice).toHaveLength(1);
    expect(bench.atDevice[0]).toMatchObject({ kind: CONFIG_READ, address: 0x10, trafficClass: 13 });
  });

  it('PCIe 2.2.7: writes only the given bytes of a configuration dword', () => {
    const bench = rootComplexBench();
    bench.rootComplex.configWrite(0, 0x100, 0x05, 0x4, () => {}, 1);
    bench.run(400_000);
    expect(bench.atDevice[0]).toMatchObject({ kind: CONFIG_WRITE, address: 0x05, lengthBytes: 1 });
  });

  it('pushes back when a core sends more than its fifo holds, and calls it when room is free', () => {
    const bench = rootComplexBench({ rootComplex: { cpuEgressTlps: 2 } });
    let calls = 0;
    bench.rootComplex.connectCore(0, { storeSpace: () => calls++ });
    for (let store = 0; store < 2; store++) {
      expect(bench.rootComplex.canStore(0)).toBe(true);
      bench.rootComplex.cpuStore(0, 0x8000_0000, pattern(8), 0, 8, 0);
    }
    expect(bench.rootComplex.canStore(0)).toBe(false);
    expect(bench.rootComplex.canStore(1)).toBe(true);
    bench.run(1_000_000);
    expect(calls).toBe(1);
    expect(bench.rootComplex.canStore(0)).toBe(true);
  });
});
