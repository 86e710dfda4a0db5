import { describe, expect, it } from 'vitest';
import { LogicalProcess } from '../../../sim/index.ts';
import { ContextTable } from '../objects/context-table.ts';
import { MemoryDma, SparseMemory } from '../testing/memory-dma.ts';
import { ContextCache, type ContextCacheSetup, RESPONDER_HALF } from './context-cache.ts';

const LATENCY_CYCLES = 10;
const MISS_CYCLES = 6;
const CONTEXT_BYTES = 64;
const ICM = 0x8000;

/** Each slot's live state is one byte, the slot number plus one. */
class SyncedTable extends ContextTable {
  readonly synced: number[] = [];

  override sync(slot: number): void {
    this.synced.push(slot);
    this.bytes[this.offsetOf(slot)] = slot + 1;
  }
}

function bench(
  entries: number,
  ways = entries,
  ports = 3,
  { ownEntries, readsInFlight }: Pick<ContextCacheSetup<string>, 'ownEntries' | 'readsInFlight'> = {},
) {
  const lp = new LogicalProcess('hca');
  const domain = lp.addClockDomain(1000);
  const memory = new SparseMemory();
  const sram = new Uint8Array(4096);
  const dma = new MemoryDma(memory, domain, sram, LATENCY_CYCLES);
  const table = new SyncedTable(CONTEXT_BYTES, 16);
  for (let slot = 0; slot < 16; slot++) table.allocate(100 + slot);
  const cache = new ContextCache({
    entries,
    ways,
    policy: 'lru',
    missCycles: MISS_CYCLES,
    portCount: ports,
    users: { first: 0, second: 1, third: 2 },
    table,
    kind: 'qpc',
    contextMemory: { contextAddress: (_kind, objectNumber) => ICM + objectNumber * CONTEXT_BYTES },
    domain,
    dmaRead: dma,
    dmaWrite: dma,
    sram,
    sramOffset: 0,
    writeDepth: 2,
    ownEntries,
    readsInFlight,
  });
  const woken: string[] = [];
  const fetched: string[] = [];
  const userAt = (port: number) => ({
    wake: (cycle: number) => void woken.push(`${port}@${cycle}`),
    contextFetched: (slot: number, cycle: number) => void fetched.push(`${slot}@${cycle}`),
  });
  cache.connect({ first: userAt(0), second: userAt(1), third: userAt(2) });
  const settle = (): void => {
    lp.advance(lp.nowPs + 1_000_000);
  };
  /** Retries until the context is on chip, and returns the number of attempts. */
  const use = (port: number, slot: number, dirties = false): number => {
    for (let turn = 0; turn < 5; turn++) {
      if (cache.access(port, slot, dirties)) return turn;
      settle();
    }
    throw new Error('never on chip');
  };
  return { cache, dma, memory, table, woken, fetched, settle, use };
}

describe('ContextCache', () => {
  it('reads a context that is not on chip, and wakes the port behind the read and the penalty', () => {
    const { cache, woken, settle } = bench(4);
    expect(cache.access(1, 5, false)).toBe(false);
    settle();
    // 10 cycles of the read, one to be seen, 6 of penalty.
    expect(woken).toEqual(['1@17']);
    expect(cache.access(1, 5, false)).toBe(true);
    expect(cache.access(1, 5, false)).toBe(true);
    expect(cache.port(1).missCount).toBe(1);
  });

  it('shares one read among ports that miss on one context', () => {
    const { cache, woken, settle, dma } = bench(4);
    for (const port of [0, 1, 2]) expect(cache.access(port, 5, false)).toBe(false);
    settle();
    expect(woken).toEqual(['0@17', '1@17', '2@17']);
    for (const port of [0, 1, 2]) expect(cache.access(port, 5, false)).toBe(true);
    expect(cache.users.map(({ missCount }) => missCount)).toEqual([1, 1, 1]);
    expect(dma.writeLog).toEqual([]);
  });

  it('writes a changed context back to its place in ICM when it is abandoned, and others not', () => {
    const { cache, use, settle, dma, memory, table } = bench(2);
    use(0, 1, true);
    use(0, 2, false);
    use(0, 3);
    use(0, 4);
    settle();
    expect(table.synced).toEqual([1]);
    expect(cache.writeBackCount).toBe(1);
    expect(dma.writeLog.map(({ address, bytes }) => [address, bytes.length, bytes[0]])).toEqual([
      [ICM + 101 * CONTEXT_BYTES, CONTEXT_BYTES, 2],
    ]);
    expect(memory.read(ICM + 101 * CONTEXT_BYTES, 1)).toEqual(Uint8Array.of(2));
    expect(cache.directory.evictionCount).toBe(2);
  });

  it('takes repeated accesses of a port for hits that keep the line recently used, until another context has it', () => {
    const { cache, use } = bench(2);
    expect([use(0, 1), use(1, 2), use(0, 1)]).toEqual([1, 1, 0]);
    // Port 0 has used its line again: the third context takes port 1's.
    expect([use(2, 3), use(0, 1), use(1, 2), use(2, 4)]).toEqual([1, 0, 1, 1]);
    expect(use(0, 1)).toBe(1);
    expect(cache.users.map(({ missCount }) => missCount)).toEqual([2, 2, 2]);
  });

  it('writes a context back that only a repeated access has changed', () => {
    const { cache, use, settle } = bench(1);
    use(0, 1, false);
    use(0, 1, true);
    use(0, 2);
    settle();
    expect(cache.writeBackCount).toBe(1);
  });

  it('writes nothing back of a context that was forgotten', () => {
    const { cache, use, settle, dma } = bench(1);
    use(0, 1, true);
    cache.forget(1);
    use(0, 2);
    settle();
    expect(dma.writeLog).toEqual([]);
  });

  it('lets ports that take a single line from each other come through, each in turn', () => {
    const { cache, settle } = bench(1);
    const done = [0, 0, 0];
    for (let turn = 0; turn < 30; turn++) {
      for (const step of [0, 1, 2]) {
        const port = (turn + step) % 3;
        if (cache.access(port, 4 + port, true)) done[port] = done[port]! + 1;
      }
      settle();
    }
    for (const count of done) expect(count).toBeGreaterThanOrEqual(5);
  });

  it('turns a port away while no line or no room for a write-back is free, and wakes it when there is', () => {
    const { cache, woken, settle } = bench(1);
    expect(cache.access(0, 1, false)).toBe(false);
    expect(cache.access(1, 2, false)).toBe(false);
    settle();
    expect(woken).toEqual(['0@17', '1@17']);
    expect(cache.access(0, 1, false)).toBe(true);
    expect(cache.access(1, 2, false)).toBe(false);
    settle();
    expect(cache.access(1, 2, false)).toBe(true);
  });

  it('is empty after a reset, and what was under way means nothing', () => {
    const { cache, woken, settle, use } = bench(2);
    cache.access(0, 1, true);
    cache.reset();
    settle();
    expect(woken).toEqual([]);
    expect(use(0, 1)).toBe(1);
    expect([...cache.directory.tags].filter((tag) => tag !== -1)).toEqual([1]);
  });

  it('reads several contexts at once for a port that goes on meanwhile, up to its limit, and says which has come', () => {
    const { cache, woken, fetched, settle } = bench(8, 8, 3, { readsInFlight: { first: 2 } });
    const port = cache.port(0);
    const access = (slot: number): readonly [boolean, boolean] => [
      port.access(slot, true),
      port.isTurnedAway,
    ];
    expect([1, 2, 3].map(access)).toEqual([
      [false, false],
      [false, false],
      [false, true],
    ]);
    // A context requested again while it is being read does not count as another one.
    expect(access(1)).toEqual([false, false]);
    expect(port.awaitedCount).toBe(2);
    settle();
    expect([port.awaitedCount, port.missCount]).toEqual([0, 3]);
    expect(fetched.map((text) => text.split('@')[0])).toEqual(['1', '2']);
    expect(woken.length).toBeGreaterThan(0);
    expect([1, 2].map(access)).toEqual([
      [true, false],
      [true, false],
    ]);
    expect(access(3)).toEqual([false, false]);
  });

  it('lets who goes on use a context that was read for it once, though another has its line', () => {
    const { cache, fetched, settle, dma } = bench(1, 1, 3, { readsInFlight: { first: 4 } });
    const port = cache.port(0);
    port.access(1, true);
    settle();
    port.access(2, true);
    settle();
    expect(fetched.map((text) => text.split('@')[0])).toEqual(['1', '2']);
    const reads = dma.readLog.length;
    expect([port.access(1, true, true), port.access(2, true, true)]).toEqual([true, true]);
    expect(dma.readLog.length).toBe(reads);
    expect(port.access(1, true)).toBe(false);
  });

  it('has a line for each half of a context, forgets both, and writes the context of either back to one place', () => {
    const { cache, use, settle, dma } = bench(4);
    expect([
      use(0, 1, true),
      use(1, 1 + RESPONDER_HALF, true),
      use(0, 1),
      use(1, 1 + RESPONDER_HALF),
    ]).toEqual([1, 1, 0, 0]);
    expect(dma.readLog.map(({ address }) => address)).toEqual([1, 1].map(() => ICM + 101 * CONTEXT_BYTES));
    for (const slot of [2, 3, 4, 5]) use(2, slot);
    settle();
    expect(dma.writeLog.map(({ address }) => address)).toEqual([1, 1].map(() => ICM + 101 * CONTEXT_BYTES));
    expect([use(0, 6), use(1, 6 + RESPONDER_HALF)]).toEqual([1, 1]);
    cache.forget(6);
    expect([use(0, 6), use(1, 6 + RESPONDER_HALF)]).toEqual([1, 1]);
  });

  it('keeps lines of one user apart from those of the others: each evicts and writes back its own', () => {
    const { cache, use, settle, dma } = bench(1, 1, 3, { ownEntries: { first: 3 } });
    expect([use(0, 1, true), use(0, 2), use(0, 3), use(1, 1, true), use(1, 4)]).toEqual([1, 1, 1, 1, 1]);
    // The others' only line has lost its context; the first part has kept all three.
    expect([use(0, 1), use(0, 2), use(0, 3), use(1, 1)]).toEqual([0, 0, 0, 1]);
    settle();
    expect([cache.evictionCount, cache.writeBackCount, dma.writeLog.length]).toEqual([2, 1, 1]);
    // The part evicts its own least recently used context.
    expect([use(0, 5), use(0, 1)]).toEqual([1, 1]);
    cache.forget(5);
    expect([use(0, 5), use(0, 1), use(1, 1)]).toEqual([1, 0, 0]);
    cache.reset();
    expect([use(0, 1), use(1, 1)]).toEqual([1, 1]);
  });
});
