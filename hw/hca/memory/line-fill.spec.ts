import { describe, expect, it } from 'vitest';
import { LogicalProcess } from '../../../sim/index.ts';
import { SetAssociativeDirectory } from '../objects/index.ts';
import { MemoryDma, SparseMemory } from '../testing/memory-dma.ts';
import { FILL_FAILED, FILL_MPT, FILL_MTT, FILL_PENDING, LineFill } from './line-fill.ts';

const LATENCY_CYCLES = 10;
const MISS_CYCLES = 6;
const PORTS = 3;
const BYTES = 64;

function bench(readDepth = 2) {
  const lp = new LogicalProcess('hca');
  const domain = lp.addClockDomain(1000);
  const memory = new SparseMemory();
  const sram = new Uint8Array(2 * PORTS * BYTES);
  const dmaRead = new MemoryDma(memory, domain, sram, LATENCY_CYCLES);
  const fill = new LineFill({
    domain,
    dmaRead,
    missCycles: MISS_CYCLES,
    portCount: PORTS,
    readDepth,
    sram,
    sramOffset: 0,
  });
  const woken: [port: number, cycle: number][] = [];
  fill.connect(
    Array.from({ length: PORTS }, (_, port) => ({ wake: (cycle) => void woken.push([port, cycle]) })),
  );
  const settle = (): void => {
    lp.advance(lp.nowPs + 1_000_000);
  };
  return { memory, fill, woken, settle };
}

/** A cache that records the first byte of each line it receives. */
function cacheOf(lines: number) {
  const loaded: number[] = [];
  return {
    loaded,
    directory: new SetAssociativeDirectory(lines, lines, 'lru'),
    load: (line: number, view: DataView, offset: number) => {
      loaded[line] = view.getUint8(offset);
    },
  };
}

describe('LineFill', () => {
  it('reads an entry into the buffer of its port and kind, and wakes the user after the miss penalty', () => {
    const { memory, fill, woken, settle } = bench();
    memory.write(0x4000, new Uint8Array(BYTES).fill(7));
    memory.write(0x8000, new Uint8Array(BYTES).fill(9));
    expect(fill.request(1, FILL_MTT, 5, 0x4000, BYTES)).toBe(FILL_PENDING);
    expect(fill.heldCount).toBe(1);
    settle();
    // 10 cycles of the read from cycle 0, one to the next edge, 6 of penalty.
    expect(woken).toEqual([[1, 17]]);
    fill.request(1, FILL_MPT, 5, 0x8000, BYTES);
    settle();
    expect([fill.holds(1, FILL_MTT, 5), fill.holds(1, FILL_MPT, 5), fill.holds(0, FILL_MTT, 5)]).toEqual([
      true,
      true,
      false,
    ]);
    const cache = cacheOf(2);
    const first = fill.take(1, FILL_MTT, 5, cache);
    expect([cache.loaded[first], cache.directory.find(5), fill.holds(1, FILL_MTT, 5)]).toEqual([
      7,
      first,
      false,
    ]);
    expect(cache.loaded[fill.take(1, FILL_MPT, 6, cache)]).toBe(9);
  });

  it('has one read of a port under way at most', () => {
    const { fill, woken, settle } = bench();
    fill.request(0, FILL_MPT, 1, 0x4000, BYTES);
    expect(fill.request(0, FILL_MTT, 2, 0x8000, BYTES)).toBe(FILL_PENDING);
    settle();
    expect([woken.length, fill.holds(0, FILL_MPT, 1), fill.holds(0, FILL_MTT, 2)]).toEqual([1, true, false]);
  });

  it('wakes a port that found no room when another read ends', () => {
    const { fill, woken, settle } = bench(1);
    fill.request(0, FILL_MPT, 1, 0x4000, BYTES);
    fill.request(2, FILL_MPT, 2, 0x8000, BYTES);
    expect(fill.deferred).toBe(0b100);
    settle();
    expect(woken.map(([port]) => port)).toContain(2);
    expect([fill.deferred, fill.holds(2, FILL_MPT, 2)]).toEqual([0, false]);
  });

  it('reports a failed read once, and reads again after that', () => {
    const { memory, fill, settle } = bench();
    memory.limit = 0x4000;
    expect(fill.request(0, FILL_MPT, 1, -1, BYTES)).toBe(FILL_FAILED);
    fill.request(0, FILL_MPT, 1, 0x4000, BYTES);
    settle();
    expect(fill.request(0, FILL_MPT, 1, 0x4000, BYTES)).toBe(FILL_FAILED);
    expect(fill.request(0, FILL_MPT, 1, 0x4000, BYTES)).toBe(FILL_PENDING);
    settle();
    // A request for another entry of the port forgets the failure.
    expect(fill.request(0, FILL_MTT, 1, 0x4000, BYTES)).toBe(FILL_PENDING);
  });

  it('discards what was read, failed or is being read when entries are forgotten', () => {
    const { fill, woken, settle } = bench();
    fill.request(0, FILL_MPT, 1, 0x4000, BYTES);
    settle();
    fill.request(1, FILL_MPT, 2, 0x8000, BYTES);
    fill.forgetAll();
    settle();
    expect([fill.holds(0, FILL_MPT, 1), fill.holds(1, FILL_MPT, 2), woken.length]).toEqual([false, false, 2]);
  });

  it('drops the entries that it is told to, of one kind', () => {
    const { fill, settle } = bench();
    for (const [kind, tag] of [
      [FILL_MPT, 4],
      [FILL_MTT, 4],
    ] as const) {
      fill.request(0, kind, tag, 0x4000, BYTES);
      settle();
    }
    fill.request(1, FILL_MTT, 4, 0x4000, BYTES);
    fill.request(2, FILL_MTT, 5, 0x4000, BYTES);
    fill.drop(FILL_MTT, (tag) => tag === 4);
    settle();
    const held = [fill.holds(0, FILL_MPT, 4), fill.holds(0, FILL_MTT, 4), fill.holds(1, FILL_MTT, 4)];
    expect([...held, fill.holds(2, FILL_MTT, 5)]).toEqual([true, false, false, true]);
  });

  it('ignores the end of a read from before a reset', () => {
    const { fill, woken, settle } = bench();
    fill.request(0, FILL_MPT, 1, 0x4000, BYTES);
    fill.reset();
    settle();
    expect([woken, fill.heldCount, fill.holds(0, FILL_MPT, 1)]).toEqual([[], 0, false]);
  });
});
