import { describe, expect, it } from 'vitest';
import { type RootComplexBenchOptions, rootComplexBench } from '../root-complex/root-complex-bench.ts';
import { FLAG_POISONED, FLAG_REFERENCE, MEMORY_WRITE, WORD_FLAGS } from '../tlp/tlp.ts';
import { memoryRead, memoryWrite, onReceive } from './link-bench.ts';
import { PayloadReferences } from './payload-references.ts';
import { ZeroCopyWriter } from './zero-copy-writer.ts';

const CARRIED_RECORD_BYTES = 64 + 256;
const REFERENCE_RECORD_BYTES = 64;
const WINDOW = 0xfee0_0000;

const pattern = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => (at * 7 + 3) & 0xff);

/** A device whose payload the root complex reads by reference from 4 KiB of memory. */
function referenceBench(options: RootComplexBenchOptions = {}, isReferencing = true) {
  const memory = pattern(4096);
  const references = new PayloadReferences(memory);
  const bench = rootComplexBench({ ...options, shared: { references } });
  const writer = isReferencing ? new ZeroCopyWriter(bench.device, references) : bench.device;
  const send = (address: number, from = 0, lengthBytes = 256, flags = 0): void =>
    memoryWrite(writer, { address, trafficClass: 5, source: memory, sourceOffset: from, lengthBytes, flags });
  /** Whether `length` bytes at `address` equal those in the device from `from` on. */
  const hasWritten = (address: number, from = 0, length = 256): boolean =>
    bench.memory.bytes
      .subarray(address, address + length)
      .every((byte, at) => byte === ((from + at) * 7 + 3) % 256);
  return { ...bench, hostMemory: bench.memory, memory, references, writer, send, hasWritten };
}

/** Bytes of channel that one write takes. */
function recordBytesOf(bench: ReturnType<typeof referenceBench>, send: () => void): number {
  let recordBytes = -1;
  const { receiveTlp } = bench.rootComplex;
  onReceive(bench.host, (offset, kind) => {
    if (kind === MEMORY_WRITE) recordBytes = bench.host.reader.words[(offset >> 2) + 2]!;
    receiveTlp.call(bench.rootComplex, offset, kind);
  });
  send();
  bench.run(1_000_000);
  return recordBytes;
}

describe('zero-copy payload', () => {
  it('is not in the record, and is written from its memory', () => {
    const bench = referenceBench();
    expect(recordBytesOf(bench, () => bench.send(0x2001, 77))).toBe(REFERENCE_RECORD_BYTES);
    expect(bench.hasWritten(0x2001, 77)).toBe(true);
    expect([bench.references.referenceCount, bench.references.releasedCount]).toEqual([1, 1]);
  });

  it('is carried if it is short, in another memory, or not shared with the other end', () => {
    const short = referenceBench();
    expect(recordBytesOf(short, () => short.send(0x2000, 0, 127))).toBe(64 + 128);
    const other = referenceBench();
    const send = () =>
      memoryWrite(other.writer, { address: 0x2000, trafficClass: 5, source: pattern(256), lengthBytes: 256 });
    expect(recordBytesOf(other, send)).toBe(CARRIED_RECORD_BYTES);
    const unwired = referenceBench({}, false);
    expect(recordBytesOf(unwired, () => unwired.send(0x2000))).toBe(CARRIED_RECORD_BYTES);
    for (const bench of [short, other, unwired]) {
      expect(bench.references.referenceCount).toBe(0);
      expect(bench.hasWritten(0x2000, 0, 127)).toBe(true);
    }
  });

  it('changes no size, credit, time or count, even if TLPs wait in the transmit fifo', () => {
    const options = {
      endpoint: { transmitBufferTlps: 2, postedFifoTlps: 16 },
      rootPort: { postedHeaders: 2, postedData: 40 },
    };
    const seen = [true, false].map((isReferencing) => {
      const bench = referenceBench(options, isReferencing);
      for (let tlp = 0; tlp < 12; tlp++) bench.send(0x2000 + tlp * 256, tlp * 256);
      expect(bench.device.transmitter.waitingCount).toBeGreaterThan(8);
      const times: number[] = [];
      for (let ps = 100_000; ps < 6_000_000; ps += 100_000) {
        bench.run(ps);
        times.push(bench.rootComplex.writes.writtenBytes);
      }
      expect(bench.hasWritten(0x2000, 0, 12 * 256)).toBe(true);
      expect(bench.references.releasedCount).toBe(isReferencing ? 12 : 0);
      const { transmitter } = bench.device;
      const { received } = bench.host.receiver;
      return JSON.stringify([times, transmitter.linkBytes, [...transmitter.stallPs], received]);
    });
    expect(seen[0]).toBe(seen[1]);
  });

  it('is released by a rejected write: poisoned, malformed, or outside memory', () => {
    const cases = [
      ['poisonedWrite', 0x2000, FLAG_POISONED],
      ['malformed', 0x2f80, 0],
      ['writeOutsideMemory', 2 ** 31, 0],
    ] as const;
    for (const [fault, address, flags] of cases) {
      const bench = referenceBench();
      bench.send(address, 0, 256, flags);
      expect(bench.references.releasedCount).toBe(0);
      bench.run(1_000_000);
      expect(bench.rootComplex.log.counts[fault], fault).toBe(1);
      expect(bench.references.releasedCount, fault).toBe(1);
      expect(bench.hostMemory.bytes.every((byte) => byte === 0)).toBe(true);
    }
  });

  it('is read in place by an interrupt message, and released', () => {
    const bench = referenceBench();
    bench.send(WINDOW + 0x1000, 1);
    bench.run(1_000_000);
    const data = new DataView(bench.memory.buffer).getUint32(1, true);
    expect(bench.interrupts[0]).toMatch(new RegExp(` fee01000 ${data}$`));
    expect(bench.references.releasedCount).toBe(1);
  });

  it('of a TLP that is dropped on arrival is released with the next, and no reference early', () => {
    // 128 TLPs fit the fifo of the root complex; their latency is long enough for all to be present at once.
    const bench = referenceBench({
      endpoint: { postedFifoTlps: 200, transmitBufferTlps: 64 },
      rootPort: { postedHeaders: 127, postedData: 2047 },
      rootComplex: { writeLatencyPs: 50_000_000, readLatencyPs: 50_000_000 },
    });
    // A device that violates the credits.
    bench.device.transmitter.posted.credits.deficit = () => 0;
    for (let tlp = 0; tlp < 130; tlp++) bench.send(0x2000 + tlp * 128, 0, 128);
    bench.run(30_000_000);
    expect(bench.rootComplex.log.counts.overflow).toBe(2);
    expect(bench.references.releasedCount).toBe(0);
    bench.run(100_000_000);
    expect(bench.references.releasedCount).toBe(128);
    bench.send(0x2000, 0, 128);
    bench.run(200_000_000);
    expect(bench.references.releasedCount).toBe(131);
  });

  it('is read from a copy after a snapshot, and no reference is issued until all of that was read', () => {
    const bench = referenceBench();
    const { references } = bench;
    references.snapshot();
    expect(references.canReference(bench.memory, 256)).toBe(true);
    bench.send(0x2000, 0);
    bench.send(0x2100, 256);
    references.snapshot();
    expect([references.referenceCount, references.releasedCount]).toEqual([2, 2]);
    bench.memory.fill(0xee);
    bench.send(0x4000, 512);
    expect(references.referenceCount).toBe(2);
    bench.run(300_000);
    bench.send(0x5000, 512);
    bench.run(1_000_000);
    expect(bench.hasWritten(0x2000, 0, 512)).toBe(true);
    expect([...bench.hostMemory.bytes.subarray(0x4000, 0x4100)]).toEqual(new Array(256).fill(0xee));
    bench.memory.set(pattern(4096));
    bench.send(0x6000, 512);
    bench.run(2_000_000);
    expect(bench.hasWritten(0x6000, 512)).toBe(true);
    expect([references.referenceCount, references.releasedCount]).toEqual([4, 4]);
  });

  it('is counted past 2^32 by names of 32 bits', () => {
    const references = new PayloadReferences(new Uint8Array(256));
    references.referenceCount = 2 ** 32 - 2;
    references.releasedCount = 2 ** 32 - 2;
    const names = Array.from({ length: 4 }, () => references.issue());
    expect(names).toEqual([-1, 0, 1, 2]);
    for (const name of names.slice(0, 3)) references.release(name);
    expect(references.releasedCount).toBe(2 ** 32 + 1);
    references.snapshot();
    references.release(names[3]!);
    expect(references.canReference(references.source, 256)).toBe(true);
  });

  it('is marked by a flag that no other TLP has', () => {
    const bench = referenceBench();
    const flags: number[] = [];
    onReceive(bench.host, (offset) => {
      flags.push(bench.host.reader.words[(offset >> 2) + WORD_FLAGS]! & FLAG_REFERENCE);
      bench.host.consume(offset);
    });
    bench.send(0x2000);
    memoryRead(bench.device, {
      address: 0x2000,
      trafficClass: 4,
      lengthBytes: 256,
      tag: 1,
      requesterId: 0x100,
    });
    bench.device.sendMessage(0x20, 5, 0x100);
    bench.run(1_000_000);
    expect(flags).toEqual([FLAG_REFERENCE, 0, 0]);
  });
});
