import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { indexFormOfKey } from '../../../abi/keys.ts';
import { MptStatus, mpt } from '../../../abi/mpt.ts';
import type { Initial } from '../../../base/index.ts';
import { LogicalProcess } from '../../../sim/index.ts';
import { IcmMap, type IcmTablePlace, icmTableNames } from '../connectx3/icm-map.ts';
import { mptFormat } from '../connectx3/mpt-entry.ts';
import { mttFormat } from '../connectx3/mtt-entry.ts';
import { QueuePair } from '../objects/index.ts';
import { MemoryDma, SparseMemory } from '../testing/memory-dma.ts';
import {
  BAD_KEY,
  BAD_PAGE,
  BAD_PD,
  MISSING_RIGHT,
  OUT_OF_BOUNDS,
  PAGE_FAULT,
  PENDING,
  TRANSLATED,
} from './translation.ts';
import { MptCache, MttCache } from './translation-cache.ts';
import { Translator } from './translator.ts';

/** Whose accesses they are. */
const pair = new QueuePair();

const LATENCY_CYCLES = 10;
const MISS_CYCLES = 6;
const ICM_HOST = 0x100_0000;
const MTT_ICM = 0x40_0000;
const PORTS = 3;
const ALL_RIGHTS = 31;
const LOWER_MASK = (1n << 52n) - 1n;
/** Key, protection domain, address, bytes and rights. */
type AccessOf = readonly [number, number, number | bigint, number, number];

const place = (base: number, entryBytes: number, logEntries: number): IcmTablePlace => ({
  base,
  entryBytes,
  logEntries,
});

/** A translator over a sparse memory; every access is repeated until it answers. */
function bench(lines = 8, ways = 2) {
  const lp = new LogicalProcess('hca');
  const domain = lp.addClockDomain(1000);
  const memory = new SparseMemory();
  const sram = new Uint8Array(2 * PORTS * 64);
  const dma = new MemoryDma(memory, domain, sram, LATENCY_CYCLES);
  const icm = new IcmMap();
  icm.placeTables({
    ...(Object.fromEntries(icmTableNames.map((name) => [name, place(0, 64, 1)])) as Record<
      (typeof icmTableNames)[number],
      IcmTablePlace
    >),
    dmpt: place(0, 64, 8),
    mtt: place(MTT_ICM, 8, 16),
  });
  icm.map(0, ICM_HOST, 0x800);
  const woken: { port: number; cycle: number }[] = [];
  const mptCache = new MptCache(lines, ways, 'lru', mptFormat);
  const mttCache = new MttCache(lines, ways, 'lru', mttFormat);
  const translator = new Translator({
    mptCache,
    mttCache,
    missCycles: MISS_CYCLES,
    portCount: PORTS,
    domain,
    contextMemory: icm,
    dmaRead: dma,
    readDepth: 2,
    sram,
    sramOffset: 0,
  });
  const userAt = (port: number) => ({ wake: (cycle: number) => void woken.push({ port, cycle }) });
  translator.connect({
    wqeFetch: userAt(0),
    requester: userAt(1),
    receiver: userAt(2),
    response: userAt(3),
    receiveFetch: userAt(4),
    completion: userAt(5),
  });
  const writeMpt = (index: number, fields: Initial<typeof mpt>): void =>
    memory.write(ICM_HOST + index * 64, mpt.encode(fields));
  const writeMtt = (mttOffset: number, pages: readonly bigint[]): void => {
    pages.forEach((page, entry) => {
      const bytes = new Uint8Array(8);
      if (page >= 0n) new DataView(bytes.buffer).setBigUint64(0, page | 1n);
      memory.write(ICM_HOST + MTT_ICM + mttOffset + entry * 8, bytes);
    });
  };
  const settle = (): void => {
    lp.advance(lp.nowPs + 1_000_000);
  };
  /** Requests a translation once. */
  const ask = (port: number, ...[key, pd, address, bytes, rights]: AccessOf): number =>
    translator
      .port(port)
      .translate(
        key,
        pd,
        Number(BigInt(address) & LOWER_MASK),
        Number(BigInt(address) >> 52n),
        bytes,
        rights,
        pair,
      );
  const access = (port: number, ...of: AccessOf): number => {
    for (let turn = 0; turn < 4; turn++) {
      const answer = ask(port, ...of);
      if (answer !== PENDING) return answer;
      settle();
    }
    return PENDING;
  };
  return {
    lp,
    domain,
    memory,
    dma,
    contextMemory: icm,
    mptCache,
    mttCache,
    translator,
    woken,
    writeMpt,
    writeMtt,
    settle,
    ask,
    access,
  };
}

const region = (key: number, fields: Initial<typeof mpt>): Initial<typeof mpt> => ({
  status: MptStatus.VALID,
  keyIndexForm: indexFormOfKey(key),
  isRegion: 1,
  localReadEnabled: 1,
  localWriteEnabled: 1,
  remoteReadEnabled: 1,
  remoteWriteEnabled: 1,
  atomicEnabled: 1,
  pd: 7,
  ...fields,
});

describe('Translator', () => {
  it('reads the MPT entry, then the MTT line, and wakes the port behind each with the miss penalty', () => {
    const { ask, translator, woken, writeMpt, writeMtt, settle, dma } = bench();
    writeMpt(
      3,
      region(0x312, { startAddress: 0x5000n, lengthBytes: 0x2000n, mttAddress: 0x40, logPageSize: 12 }),
    );
    writeMtt(0x40, [0x9000n, 0x4_2000_7000n]);
    expect(ask(1, 0x312, 7, 0x5ff0, 0x20, 1)).toBe(PENDING);
    settle();
    // The read takes 10 cycles from cycle 0; the port may retry one cycle and 6 of penalty later: 10 + 1 + 6.
    expect(woken).toEqual([{ port: 1, cycle: 17 }]);
    expect(ask(1, 0x312, 7, 0x5ff0, 0x20, 1)).toBe(PENDING);
    settle();
    expect(ask(1, 0x312, 7, 0x5ff0, 0x20, 1)).toBe(TRANSLATED);
    // The first page ends 16 bytes on.
    expect([translator.physicalAddress, translator.contiguousBytes]).toEqual([0x9ff0, 0x10]);
    expect(ask(1, 0x312, 7, 0x6000, 0x10, 1)).toBe(TRANSLATED);
    expect([translator.physicalAddress, translator.contiguousBytes]).toEqual([0x4_2000_7000, 0x10]);
    expect(dma.writeLog).toEqual([]);
  });

  it('counts what had to be waited for once, and what was made use of as often as the user reports', () => {
    const { translator, writeMpt, writeMtt, access } = bench();
    writeMpt(1, region(0x100, { lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    writeMtt(0, [0x9000n]);
    const counts = () => {
      const { mptUses, mptMisses, mttUses, mttMisses } = translator.port(0);
      return [mptUses, mptMisses, mttUses, mttMisses];
    };
    // Requested three times for one work, as when the DMA engine accepts nothing: that is one use.
    for (let turn = 0; turn < 3; turn++) access(0, 0x100, 7, 0, 8, 1);
    translator.port(0).used();
    expect(counts()).toEqual([1, 1, 1, 1]);
    access(0, 0x100, 7, 16, 8, 1);
    translator.port(0).used();
    expect(counts()).toEqual([2, 1, 2, 1]);
    expect(translator.port(1).mttMisses).toBe(0);
  });

  it('IBTA 10.6: answers by the first rule that is broken: entry, key, protection domain, bounds, right, page', () => {
    const { access, writeMpt, writeMtt } = bench();
    const good = { startAddress: 0x5000n, lengthBytes: 0x1000n, mttAddress: 0, logPageSize: 12 };
    writeMtt(0, [0x9000n, -1n]);
    writeMpt(1, region(0x1aa, good));
    writeMpt(2, region(0x200, { ...good, status: MptStatus.FREE }));
    writeMpt(3, region(0x300, { ...good, status: MptStatus.SOFTWARE }));
    writeMpt(4, region(0x400, { ...good, isRegion: 0 }));
    writeMpt(5, region(0x500, { ...good, remoteWriteEnabled: 0 }));
    writeMpt(6, region(0x600, { ...good, lengthBytes: 0x2000n }));
    expect(access(0, 0x1aa, 7, 0x5000, 1, ALL_RIGHTS)).toBe(TRANSLATED);
    expect(access(0, 0x1ab, 8, 0, 1, 1)).toBe(BAD_KEY);
    expect(access(0, 0x200, 7, 0x5000, 1, 1)).toBe(BAD_KEY);
    expect(access(0, 0x300, 7, 0x5000, 1, 1)).toBe(BAD_KEY);
    expect(access(0, 0x400, 7, 0x5000, 1, 1)).toBe(BAD_KEY);
    expect(access(0, 0x700, 7, 0x5000, 1, 1)).toBe(BAD_KEY);
    expect(access(0, 0x1aa, 8, 0, 1, 1)).toBe(BAD_PD);
    expect(access(0, 0x500, 7, 0x4fff, 1, 8)).toBe(OUT_OF_BOUNDS);
    expect(access(0, 0x500, 7, 0x5fff, 2, 8)).toBe(OUT_OF_BOUNDS);
    expect(access(0, 0x500, 7, 0x5fff, 1, 8)).toBe(MISSING_RIGHT);
    expect(access(0, 0x500, 7, 0x5fff, 1, 1 + 8)).toBe(MISSING_RIGHT);
    expect(access(0, 0x600, 7, 0x6000, 1, 8)).toBe(BAD_PAGE);
  });

  it('takes addresses of a physical region as they are', () => {
    const { access, translator, writeMpt } = bench();
    writeMpt(1, region(0x100, { isPhysical: 1, lengthBytes: 2n ** 64n - 1n }));
    expect(access(0, 0x100, 7, 0x12_3456_789a, 5000, 1)).toBe(TRANSLATED);
    expect([translator.physicalAddress, translator.contiguousBytes]).toEqual([0x12_3456_789a, 5000]);
  });

  it('refuses what ICM does not hold or what cannot be read, and reads it again the next time', () => {
    const { access, writeMpt, writeMtt, memory, contextMemory: icm } = bench();
    writeMpt(1, region(0x100, { lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    writeMtt(0, [0x9000n]);
    memory.limit = ICM_HOST;
    expect(access(0, 0x100, 7, 0, 1, 1)).toBe(BAD_KEY);
    memory.limit = ICM_HOST + MTT_ICM;
    expect(access(0, 0x100, 7, 0, 1, 1)).toBe(BAD_PAGE);
    memory.limit = 2 ** 52;
    expect(access(0, 0x100, 7, 0, 1, 1)).toBe(TRANSLATED);
    icm.unmap(0, 0x800);
    expect(access(0, 0x200, 7, 0, 1, 1)).toBe(BAD_KEY);
  });

  it('keeps no failure for an access that comes after what it read for has ended', () => {
    const { ask, access, writeMpt, writeMtt, memory, translator, settle } = bench();
    writeMpt(1, region(0x100, { lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    writeMpt(2, region(0x200, { lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    writeMtt(0, [0x9000n]);
    for (const forget of [() => translator.forgetMtt(), () => access(0, 0x200, 7, 0, 1, 1)]) {
      translator.forgetAll();
      // The read fails, and no user retries: the QP that requested it was destroyed.
      memory.limit = ICM_HOST;
      expect(ask(0, 0x100, 7, 0, 1, 1)).toBe(PENDING);
      settle();
      memory.limit = 2 ** 52;
      forget();
      expect(access(0, 0x100, 7, 0, 1, 1)).toBe(TRANSLATED);
    }
  });

  it('sheet 3.15: sees a changed entry after mptChanged, and a rewritten MTT range with it', () => {
    const { access, translator, writeMpt, writeMtt } = bench();
    writeMpt(1, region(0x100, { lengthBytes: 4096n, mttAddress: 0x200, logPageSize: 12 }));
    writeMtt(0x200, [0x9000n]);
    expect(access(0, 0x100, 7, 0, 1, 1)).toBe(TRANSLATED);
    // Another region gets the range of the MTT, as from the driver's allocator: no command reports it.
    writeMpt(1, region(0x100, { status: MptStatus.SOFTWARE }));
    translator.forgetMpt(1);
    writeMtt(0x200, [0xa000n]);
    writeMpt(2, region(0x200, { lengthBytes: 4096n, mttAddress: 0x200, logPageSize: 12 }));
    translator.forgetMpt(2);
    expect(access(0, 0x100, 7, 0, 1, 1)).toBe(BAD_KEY);
    expect(access(0, 0x200, 7, 0, 1, 1)).toBe(TRANSLATED);
    expect(translator.physicalAddress).toBe(0xa000);
  });

  it('throws away a read that was under way when the entry changed', () => {
    const { ask, access, translator, writeMpt, writeMtt, settle } = bench();
    writeMtt(0, [0x9000n]);
    writeMpt(1, region(0x100, { pd: 6, lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    expect(ask(0, 0x100, 7, 0, 1, 1)).toBe(PENDING);
    settle();
    // Read, and not yet used: as old as the reads in flight.
    writeMpt(1, region(0x100, { pd: 7, lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    translator.forgetMpt(1);
    expect(access(0, 0x100, 7, 0, 1, 1)).toBe(TRANSLATED);
  });

  it('throws away a read that has failed, or is about to, when the entries change', () => {
    for (const isDone of [true, false]) {
      const { ask, translator, access, writeMpt, writeMtt, memory, settle } = bench();
      writeMpt(1, region(0x100, { lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
      writeMpt(2, region(0x200, { lengthBytes: 4096n, mttAddress: 64, logPageSize: 12 }));
      writeMtt(0, [0x9000n]);
      writeMtt(64, [0x7000n]);
      expect(access(0, 0x200, 7, 0, 1, 1)).toBe(TRANSLATED);
      memory.limit = ICM_HOST + MTT_ICM;
      expect(ask(0, 0x100, 7, 0, 1, 1)).toBe(PENDING);
      settle();
      expect(ask(0, 0x100, 7, 0, 1, 1)).toBe(PENDING);
      if (isDone) settle();
      translator.forgetMtt();
      if (!isDone) settle();
      memory.limit = 2 ** 52;
      expect(access(0, 0x100, 7, 0, 1, 1)).toBe(TRANSLATED);
    }
  });

  it('sheet 7.1: finds the entry of a key whose upper bits lie beyond the table', () => {
    const { access, writeMpt, writeMtt } = bench();
    writeMtt(0, [0x9000n]);
    // 256 entries: index 0x101 is place 1, in its second generation.
    writeMpt(1, region(0x1_0177, { lengthBytes: 4096n, mttAddress: 0, logPageSize: 12 }));
    expect(access(0, 0x1_0177, 7, 0, 1, 1)).toBe(TRANSLATED);
    expect(access(0, 0x0_0177, 7, 0, 1, 1)).toBe(BAD_KEY);
  });

  it('lets ports that share a single line come through one after the other', () => {
    const { ask, translator, writeMpt, writeMtt, settle } = bench(1, 1);
    for (let port = 0; port < PORTS; port++) {
      const mttAddress = port * 0x100;
      writeMpt(port, region(port << 8, { lengthBytes: 4096n, mttAddress, logPageSize: 12 }));
      writeMtt(mttAddress, [BigInt(0x10_0000 + port * 0x1000)]);
    }
    const done = new Set<number>();
    for (let turn = 0; turn < 8 && done.size < PORTS; turn++) {
      for (let port = 0; port < PORTS; port++) {
        const answer = ask(port, port << 8, 7, 0, 1, 1);
        if (answer === TRANSLATED && translator.physicalAddress === 0x10_0000 + port * 0x1000) done.add(port);
      }
      settle();
    }
    expect([...done].sort()).toEqual([0, 1, 2]);
  });

  it('sheet 4.4: agrees with a page table for any region, page size, alignment and length', () => {
    const anyRegion = fc.record({
      logPageBytes: fc.integer({ min: 12, max: 31 }),
      pageCount: fc.integer({ min: 1, max: 20 }),
      mttEntry: fc.nat(1000),
      pageOffset: fc.nat(2 ** 31 - 1),
      trimmedBytes: fc.nat(4095),
      virtualPage: fc.nat(2 ** 15),
      holes: fc.array(fc.nat(19), { maxLength: 2 }),
      accesses: fc.array(
        fc.record({
          port: fc.nat(PORTS - 1),
          at: fc.double({ min: -0.1, max: 1, noNaN: true }),
          bytes: fc.integer({ min: 1, max: 10_000 }),
        }),
        {
          minLength: 1,
          maxLength: 12,
        },
      ),
      logLines: fc.nat(4),
      ways: fc.constantFrom(1, 2, 4),
    });
    fc.assert(
      fc.property(anyRegion, (given) => {
        const { access, translator, writeMpt, writeMtt } = bench(2 ** given.logLines, given.ways);
        const pageBytes = 2 ** given.logPageBytes;
        const pageOffset = given.pageOffset % pageBytes;
        const start = given.virtualPage * pageBytes + pageOffset;
        const length = Math.max(1, given.pageCount * pageBytes - pageOffset - given.trimmedBytes);
        const pages = Array.from({ length: given.pageCount }, (_, page) =>
          given.holes.includes(page) ? -1 : (given.pageCount * 3 - page * 2 + 1) * pageBytes,
        );
        writeMtt(given.mttEntry * 8, pages.map(BigInt));
        writeMpt(
          9,
          region(0x9f3, {
            startAddress: BigInt(start),
            lengthBytes: BigInt(length),
            mttAddress: given.mttEntry * 8,
            logPageSize: given.logPageBytes,
          }),
        );
        for (const { port, at, bytes } of given.accesses) {
          const offset = Math.floor(at * length);
          const answer = access(port, 0x9f3, 7, start + offset, bytes, ALL_RIGHTS);
          if (offset < 0 || offset + bytes > length) {
            expect(answer).toBe(OUT_OF_BOUNDS);
            continue;
          }
          const page = Math.floor((pageOffset + offset) / pageBytes);
          const within = (pageOffset + offset) % pageBytes;
          expect(answer).toBe(pages[page]! < 0 ? BAD_PAGE : TRANSLATED);
          if (answer !== TRANSLATED) continue;
          expect(translator.physicalAddress).toBe(pages[page]! + within);
          expect(translator.contiguousBytes).toBe(Math.min(bytes, pageBytes - within));
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** 64-bit addresses, mostly near a multiple of 2^52; the largest multiple is the end of the address space. */
const anyAddress = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc
    .tuple(fc.bigInt({ min: 0n, max: 4096n }), fc.bigInt({ min: -(2n ** 33n), max: 2n ** 33n }))
    .map(([top, by]) => BigInt.asUintN(64, (top << 52n) + by)),
);
const anyLength = fc.oneof(fc.bigInt({ min: 1n, max: 2n ** 16n }), fc.bigInt({ min: 1n, max: 2n ** 33n }));

/** Near the ends of the region or anywhere; as it is or with other top bits. */
const anyPlace = fc.record({
  port: fc.nat(PORTS - 1),
  from: fc.constantFrom('start', 'end', 'anywhere'),
  by: fc.integer({ min: -10_000, max: 10_000 }),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
  otherTop: fc.oneof({ weight: 3, arbitrary: fc.constant(0n) }, fc.bigInt({ min: 1n, max: 4095n })),
  /** The carry of an offset within a message into the lower part. */
  carried: fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 2n ** 32n })),
  bytes: fc.integer({ min: 1, max: 10_000 }),
});
type Place = typeof anyPlace extends fc.Arbitrary<infer T> ? T : never;

describe('an address of 64 bits', () => {
  const END = 2n ** 64n;
  const addressOf = ({ from, by, part, otherTop }: Place, start: bigint, lengthBytes: bigint): bigint => {
    const into =
      from === 'start' ? 0n : from === 'end' ? lengthBytes : BigInt(Math.floor(part * 2 ** 33)) % lengthBytes;
    return BigInt.asUintN(64, (start + into + BigInt(by)) ^ (otherTop << 52n));
  };
  /** The two numbers of an address to which `carried` was added after it was taken from a WQE or a packet. */
  const numbersOf = (address: bigint, carried: bigint): readonly [number, number] => {
    const before = address < carried ? address : address - carried;
    return [Number((before & LOWER_MASK) + address - before), Number(before >> 52n)];
  };
  const askAt = (
    { translator, settle }: ReturnType<typeof bench>,
    { port, carried, bytes }: Place,
    address: bigint,
  ): number => {
    const numbers = numbersOf(address, carried);
    for (let turn = 0; turn < 4; turn++) {
      const answer = translator.port(port).translate(0x9f3, 7, ...numbers, bytes, ALL_RIGHTS, pair);
      if (answer !== PENDING) return answer;
      settle();
    }
    return PENDING;
  };

  it('reaches the byte of a region that whole numbers say, and nothing outside it', () => {
    fc.assert(
      fc.property(
        anyAddress,
        anyLength,
        fc.integer({ min: 12, max: 31 }),
        fc.array(anyPlace, { minLength: 1, maxLength: 20 }),
        (start, lengthBytes, logPageSize, places) => {
          const made = bench();
          const { translator, writeMpt, writeMtt } = made;
          const pageBytes = 2n ** BigInt(logPageSize);
          const inPage = start % pageBytes;
          const end = start + lengthBytes < END ? start + lengthBytes : END;
          const pageOf = (page: bigint): bigint => (3n + ((page * 5n) % 64n)) << BigInt(logPageSize);
          const pageCount = (inPage + lengthBytes + pageBytes - 1n) / pageBytes;
          fc.pre(pageCount < 0xf000n);
          writeMtt(
            0,
            Array.from({ length: Number(pageCount) }, (_, page) => pageOf(BigInt(page))),
          );
          writeMpt(9, region(0x9f3, { startAddress: start, lengthBytes, mttAddress: 0, logPageSize }));
          for (const place of places) {
            const address = addressOf(place, start, lengthBytes);
            const answer = askAt(made, place, address);
            const isInside = address >= start && address + BigInt(place.bytes) <= end;
            expect(answer).toBe(isInside ? TRANSLATED : OUT_OF_BOUNDS);
            if (!isInside) continue;
            const byte = inPage + address - start;
            const within = byte % pageBytes;
            expect(BigInt(translator.physicalAddress)).toBe(pageOf(byte / pageBytes) + within);
            expect(translator.contiguousBytes).toBe(Math.min(place.bytes, Number(pageBytes - within)));
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is that on the bus in a region of physical addresses', () => {
    fc.assert(
      fc.property(
        anyAddress,
        anyLength,
        fc.array(anyPlace, { minLength: 1 }),
        (start, lengthBytes, places) => {
          const made = bench();
          const { translator, writeMpt } = made;
          fc.pre(start + lengthBytes <= END);
          writeMpt(9, region(0x9f3, { startAddress: start, lengthBytes, isPhysical: 1 }));
          for (const place of places) {
            const address = addressOf(place, start, lengthBytes);
            const isInside = address >= start && address + BigInt(place.bytes) <= start + lengthBytes;
            expect(askAt(made, place, address)).toBe(isInside ? TRANSLATED : OUT_OF_BOUNDS);
            if (!isInside) continue;
            // Beyond 2^53, where no memory answers, numbers are not exact.
            const distance = BigInt(translator.physicalAddress) - address;
            expect(Math.abs(Number(distance))).toBeLessThanOrEqual(address < 2n ** 53n ? 0 : 2048);
          }
        },
      ),
    );
  });

  it('is exact below 2^53 in such a region after an access beyond', () => {
    const { ask, settle, translator, writeMpt } = bench();
    const startAddress = 2n ** 53n - 8n;
    writeMpt(9, region(0x9f3, { startAddress, lengthBytes: 64n, isPhysical: 1 }));
    ask(0, 0x9f3, 7, startAddress, 1, 1);
    settle();
    // A work request may leave it so: the lower part exceeds its 52 bits. No double represents 2^53 + 1.
    expect(translator.port(0).translate(0x9f3, 7, 2 ** 52 + 1, 1, 1, 1, pair)).toBe(TRANSLATED);
    expect(translator.port(0).translate(0x9f3, 7, 2 ** 52 - 3, 1, 1, 1, pair)).toBe(TRANSLATED);
    expect(translator.physicalAddress).toBe(2 ** 53 - 3);
  });

  it('has its place in a page larger than 2^52 bytes, too', () => {
    const { access, translator, writeMpt, writeMtt } = bench();
    writeMtt(0, [0n]);
    const startAddress = (5n << 52n) + 0x3000n;
    writeMpt(9, region(0x9f3, { startAddress, lengthBytes: 8192n, mttAddress: 0, logPageSize: 54 }));
    expect(access(0, 0x9f3, 7, startAddress, 8, 1)).toBe(TRANSLATED);
    // 5 × 2^52 is 2^54 + 2^52.
    expect(translator.physicalAddress).toBe(2 ** 52 + 0x3000);
  });
});

describe('a page of an on-demand region that is absent', () => {
  const access = [0x100, 7, 0x2000, 8, 1] as const;
  /** Two pages in one line of the MTT: of the region in question, and of another one that is pinned. */
  const given = () => {
    const made = bench();
    const { writeMpt, writeMtt } = made;
    const one = { lengthBytes: 0x1000n, logPageSize: 12 };
    writeMpt(1, region(0x100, { ...one, startAddress: 0x2000n, mttAddress: 0, isOnDemand: 1 }));
    writeMpt(2, region(0x200, { ...one, startAddress: 0x3000n, mttAddress: 8 }));
    writeMtt(0, [-1n, 0x7000n]);
    return made;
  };

  it('is a page fault, by a line read for the access', () => {
    const { access: ask } = given();
    expect(ask(1, ...access)).toBe(PAGE_FAULT);
    expect(ask(1, ...access)).toBe(PAGE_FAULT);
  });

  it('is a page fault when another port has placed the line while this one read it', () => {
    const { ask: askOnce, settle, access: ask } = given();
    for (const port of [1, 2]) expect(ask(port, 0x200, 7, 0x3000, 8, 1)).toBe(TRANSLATED);
    expect(ask(1, ...access)).toBe(PAGE_FAULT);
    expect(askOnce(1, ...access)).toBe(PENDING);
    expect(askOnce(2, ...access)).toBe(PENDING);
    settle();
    expect(askOnce(2, ...access)).toBe(PAGE_FAULT);
    expect(askOnce(0, 0x200, 7, 0x3000, 8, 1)).toBe(PENDING);
    settle();
    expect(ask(0, 0x200, 7, 0x3000, 8, 1)).toBe(TRANSLATED);
    // The line on chip belongs to port 0; port 1's own read waits in its buffer.
    expect(askOnce(1, ...access)).toBe(PAGE_FAULT);
  });

  it('is there when its entry has come since the line was read', () => {
    const { writeMtt, translator, access: ask } = given();
    expect(ask(1, 0x200, 7, 0x3000, 8, 1)).toBe(TRANSLATED);
    writeMtt(0, [0x9000n, 0x7000n]);
    expect(ask(1, ...access)).toBe(TRANSLATED);
    expect(translator.physicalAddress).toBe(0x9000);
  });

  it('is a bad page when the line cannot be read', () => {
    const { memory, access: ask } = given();
    memory.limit = ICM_HOST + MTT_ICM;
    expect(ask(1, ...access)).toBe(BAD_PAGE);
  });
});

describe('what a port remembers of its last translation', () => {
  const good = { startAddress: 0x5000n, lengthBytes: 0x1800n, mttAddress: 0, logPageSize: 12 };

  it('is held to every rule, and to the page', () => {
    const { access, translator, writeMpt, writeMtt } = bench();
    writeMpt(1, region(0x1aa, { ...good, remoteWriteEnabled: 0 }));
    writeMtt(0, [0x9000n, 0x4_2000_7000n]);
    const accesses: [Parameters<typeof access>, number][] = [
      [[0, 0x1ab, 7, 0x5100, 8, 1], BAD_KEY],
      [[0, 0x1aa, 8, 0x5100, 8, 1], BAD_PD],
      [[0, 0x1aa, 7, 0x4fff, 8, 1], OUT_OF_BOUNDS],
      [[0, 0x1aa, 7, 0x5100, 0x1701, 1], OUT_OF_BOUNDS],
      [[0, 0x1aa, 7, 0x5100, 8, 8], MISSING_RIGHT],
    ];
    for (const [wrong, answer] of accesses) {
      expect(access(0, 0x1aa, 7, 0x5000, 8, 1)).toBe(TRANSLATED);
      expect(access(...wrong)).toBe(answer);
    }
    expect(access(0, 0x1aa, 7, 0x5fff, 0x100, 1)).toBe(TRANSLATED);
    expect([translator.physicalAddress, translator.contiguousBytes]).toEqual([0x9fff, 1]);
    expect(access(0, 0x1aa, 7, 0x6000, 0x100, 1)).toBe(TRANSLATED);
    expect([translator.physicalAddress, translator.contiguousBytes]).toEqual([0x4_2000_7000, 0x100]);
  });

  it('is gone when the region or its pages have changed', () => {
    const { access, translator, writeMpt, writeMtt } = bench();
    writeMpt(1, region(0x1aa, good));
    writeMtt(0, [0x9000n, 0xa000n]);
    expect(access(0, 0x1aa, 7, 0x5010, 8, 1)).toBe(TRANSLATED);
    writeMtt(0, [0xb000n, 0xa000n]);
    translator.forgetMtt();
    expect(access(0, 0x1aa, 7, 0x5010, 8, 1)).toBe(TRANSLATED);
    expect(translator.physicalAddress).toBe(0xb010);
    writeMpt(1, region(0x1aa, { ...good, status: MptStatus.FREE }));
    translator.forgetMpt(1);
    expect(access(0, 0x1aa, 7, 0x5010, 8, 1)).toBe(BAD_KEY);
  });

  it('keeps its lines recently used, and is gone with them', () => {
    const { access, translator, writeMpt, writeMtt } = bench(2, 2);
    for (const index of [1, 2, 3]) writeMpt(index, region(index << 8, good));
    writeMtt(0, [0x9000n, 0xa000n]);
    const use = (port: number, index: number): number => {
      const before = translator.port(port).mptMisses;
      access(port, index << 8, 7, 0x5000, 8, 1);
      return translator.port(port).mptMisses - before;
    };
    // Port 0's second access, from its remembered translation, leaves port 1's line the older one: the third region
    // replaces that.
    expect([use(0, 1), use(1, 2), use(0, 1), use(2, 3), use(0, 1), use(1, 2)]).toEqual([1, 1, 0, 1, 0, 1]);
    expect([use(2, 3), use(0, 1)]).toEqual([1, 1]);
  });
});
