import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesEqual } from '../../base/bytes.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Random } from '../../sim/random.ts';
import { rootComplexBench } from '../pcie/root-complex/root-complex-bench.ts';
import { COMPLETION, COMPLETION_DATA } from '../pcie/tlp/tlp.ts';
import { FakeFunction } from './dma-bench.ts';
import { DmaReadEngine } from './dma-read-engine.ts';
import { DmaWriteEngine } from './dma-write-engine.ts';
import { DmaStatus } from './errors.ts';
import { dmaParameters } from './parameters.ts';

const SLOT_BYTES = 5120;

interface Copy {
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

/** A card that copies memory to memory: each finished read is written out, in order. */
function copier(copies: readonly Copy[], tagCount: number, shuffle?: () => number) {
  const bench = rootComplexBench({ memoryBytes: 1 << 16, ...(shuffle === undefined ? {} : { shuffle }) });
  const lp = bench.deviceLp;
  const domain = lp.addClockDomain(427);
  const link = bench.device;
  const config = { ...defaultsOf(dmaParameters), tagCount };
  const pcieFunction = new FakeFunction();
  const sram = new Uint8Array(SLOT_BYTES * copies.length);
  const writes = new DmaWriteEngine({ lp, domain, link, config });
  const reads = new DmaReadEngine({ lp, domain, link, config, sram });
  for (const engine of [writes, reads]) engine.connect({ pcieFunction });
  const receiveTlp = (offset: number, kind: number): void => {
    if (kind === COMPLETION_DATA || kind === COMPLETION) reads.receiveCompletion(offset);
    else link.consume(offset);
  };
  link.connect({
    receiver: { receiveTlp },
    completionRuns: reads.completionRuns,
    posted: [writes],
    nonPosted: [reads],
    completion: [],
  });
  const arrived: number[] = [];
  const statuses: number[] = [];
  const written: number[] = [];
  const writtenCycles: number[] = [];
  let asked = 0;
  const done = (index: number, status: number, cycle: number): void => {
    arrived.push(index);
    statuses.push(status);
    domain.wake(stage, cycle + 1);
  };
  const reader = reads.addRequester({ name: 'r', trafficClass: 4, fifoDepth: 4, weight: 1 }, { done });
  const writer = writes.addRequester(
    { name: 'w', trafficClass: 5, fifoDepth: 4 },
    {
      done: (index, cycle) => {
        written.push(index);
        writtenCycles.push(cycle);
      },
    },
  );
  const stage = domain.addStage((cycle) => {
    while (asked < copies.length && reads.canRequest(reader)) {
      reads.request(reader, copies[asked]!.from, copies[asked]!.bytes, asked * SLOT_BYTES, asked);
      asked++;
    }
    while (arrived.length > 0 && writes.canRequest(writer)) {
      const index = arrived.shift()!;
      writes.request(writer, copies[index]!.to, copies[index]!.bytes, sram, index * SLOT_BYTES, index);
    }
    if (asked < copies.length || arrived.length > 0) domain.wake(stage, cycle + 1);
  });
  domain.wake(stage, 1);
  return { ...bench, reads, writes, pcieFunction, written, writtenCycles, statuses };
}

describe('the DMA engines on a real link with a root complex', () => {
  it('copy memory to memory, byte for byte, for any offsets, lengths and tags', () => {
    const copy = fc.record({
      from: fc.nat({ max: 27_000 }),
      to: fc.integer({ min: 32_768, max: 60_000 }),
      bytes: fc.integer({ min: 1, max: 5000 }),
    });
    fc.assert(
      fc.property(
        fc.array(copy, { minLength: 1, maxLength: 16 }),
        fc.integer({ min: 1, max: 32 }),
        (copies, tags) => {
          const { memory, reads, writes, pcieFunction, written, statuses, run } = copier(copies, tags);
          for (let index = 0; index < 32_768; index++)
            memory.bytes[index] = (index * 11 + (index >> 8)) & 0xff;
          const expected = Uint8Array.from(memory.bytes);
          for (const { from, to, bytes } of copies) expected.set(expected.slice(from, from + bytes), to);
          run(1_000_000_000);
          expect(bytesEqual(memory.bytes, expected)).toBe(true);
          expect(written).toEqual([...copies.keys()]);
          expect(statuses.every((status) => status === DmaStatus.ok)).toBe(true);
          expect(reads.isIdle && writes.isIdle).toBe(true);
          expect(pcieFunction.reported).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('take the same cycles for any order within one instant', () => {
    const copies = Array.from({ length: 40 }, (_, index) => ({
      from: index * 601,
      to: 32_768 + index * 97,
      bytes: 1 + ((index * 379) % 2500),
    }));
    const cyclesOf = (shuffle?: () => number): number[] => {
      const { writtenCycles, run } = copier(copies, 3, shuffle);
      run(1_000_000_000);
      return writtenCycles;
    };
    const expected = cyclesOf();
    expect(expected).toHaveLength(40);
    for (const seed of [1, 2, 3, 4]) {
      const random = new Random(seed);
      expect(cyclesOf(() => random.uint32() / 2 ** 32)).toEqual(expected);
    }
  });

  it('PCIe 2.3.1: receive an error from the root complex for an absent address', () => {
    const { statuses, reads, run } = copier([{ from: 1 << 30, to: 0, bytes: 700 }], 4);
    run(1_000_000_000);
    expect(statuses).toEqual([DmaStatus.unsupportedRequest]);
    expect(reads.isIdle).toBe(true);
  });
});
