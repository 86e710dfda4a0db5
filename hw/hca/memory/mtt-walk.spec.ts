import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IcmMap, type IcmTablePlace, icmTableNames } from '../connectx3/icm-map.ts';
import { mttFormat } from '../connectx3/mtt-entry.ts';
import { FILL_FAILED, FILL_PENDING, type FillAnswer } from './line-fill.ts';
import { MttWalk } from './mtt-walk.ts';
import { BAD_PAGE, PENDING, TRANSLATED } from './translation.ts';
import { MttCache } from './translation-cache.ts';

const TABLE = 0x100_0000;
const ABSENT = -1;

/** A walk over a table in memory: `pages[n]` is the address that entry n holds. Lines of `lines` have been read for port 0. */
function bench(pages: readonly number[]) {
  const icm = new IcmMap();
  const nowhere: IcmTablePlace = { base: 0, entryBytes: 8, logEntries: 1 };
  const places = Object.fromEntries(icmTableNames.map((name) => [name, nowhere]));
  icm.placeTables({
    ...(places as Record<(typeof icmTableNames)[number], IcmTablePlace>),
    mtt: { base: 0, entryBytes: 8, logEntries: 9 },
  });
  icm.map(0, TABLE, 1);
  const lines = new Set<number>();
  const requests: number[] = [];
  const state = { answer: FILL_PENDING as FillAnswer, forgotten: 0 };
  const port = { mttMisses: 0, forget: () => void state.forgotten++ };
  const mttCache = new MttCache(4, 2, 'lru', mttFormat);
  const walk = new MttWalk({
    mttCache,
    contextMemory: icm,
    ports: [port],
    fill: {
      holds: (_port, _kind, tag) => lines.has(tag),
      take: (_port, _kind, tag, { directory }) => {
        const line = directory.victimFor(tag);
        directory.place(line, tag);
        const view = new DataView(new ArrayBuffer(64));
        for (let entry = 0; entry < 8; entry++) {
          const page = pages[tag * 8 + entry] ?? ABSENT;
          if (page !== ABSENT) view.setBigUint64(entry * 8, BigInt(page) | 1n);
        }
        mttCache.load(line, view, 0);
        lines.delete(tag);
        return line;
      },
      request: (_port, _kind, tag, address) => {
        requests.push(address);
        if (state.answer === FILL_PENDING) lines.add(tag);
        return state.answer;
      },
      drop: (_kind, isDropped) => {
        for (const tag of lines) if (isDropped(tag)) lines.delete(tag);
      },
    },
  });
  return { walk, lines, requests, state, port };
}

describe('MttWalk', () => {
  it('requests the line of the entry, then answers with the page', () => {
    const { walk, requests, port, state } = bench([0x9000, 0x4_2000_7000]);
    expect(walk.translate(0, 0, 4096, 0x1ff0, 0x20)).toBe(PENDING);
    expect([requests, port.mttMisses]).toEqual([[TABLE], 1]);
    expect(walk.translate(0, 0, 4096, 0x1ff0, 0x20)).toBe(TRANSLATED);
    // The second page ends 16 bytes later.
    expect([walk.physicalAddress, walk.contiguousBytes, walk.inPage]).toEqual([0x4_2000_7ff0, 0x10, 0xff0]);
    expect(state.forgotten).toBe(1);
    expect(walk.translate(0, 0, 4096, 0, 8)).toBe(TRANSLATED);
    expect([walk.physicalAddress, port.mttMisses]).toEqual([0x9000, 1]);
  });

  it('agrees with the table for any page size, first entry and place', () => {
    const entryCount = 64;
    fc.assert(
      fc.property(
        fc.integer({ min: 12, max: 31 }),
        fc.nat(entryCount - 1),
        fc.nat(),
        (logPage, first, at) => {
          const pageBytes = 2 ** logPage;
          // Each page has an address that no other entry could yield.
          const pages = Array.from({ length: entryCount }, (_, entry) => (entry * 7 + 3) * pageBytes);
          const { walk } = bench(pages);
          const byte = at % ((entryCount - first) * pageBytes);
          walk.translate(0, first * 8, pageBytes, byte, 1);
          expect(walk.translate(0, first * 8, pageBytes, byte, pageBytes)).toBe(TRANSLATED);
          const page = Math.floor(byte / pageBytes);
          expect(walk.physicalAddress).toBe(pages[first + page]! + (byte % pageBytes));
          expect(walk.contiguousBytes).toBe(pageBytes - (byte % pageBytes));
        },
      ),
    );
  });

  it('tells an absent page from a line that cannot be read', () => {
    const { walk, state } = bench([ABSENT]);
    walk.translate(0, 0, 4096, 0, 8);
    expect([walk.translate(0, 0, 4096, 0, 8), walk.isPageAbsent]).toEqual([BAD_PAGE, true]);
    state.answer = FILL_FAILED;
    expect([walk.translate(0, 64, 4096, 0, 8), walk.isPageAbsent]).toEqual([BAD_PAGE, false]);
  });

  it('tells whether the line of an absent page had just been read, and forgets the line', () => {
    const { walk } = bench([ABSENT]);
    walk.translate(0, 0, 4096, 0, 8);
    walk.translate(0, 0, 4096, 0, 8);
    expect(walk.forgetAbsent()).toBe(true);
    expect(walk.translate(0, 0, 4096, 0, 8)).toBe(PENDING);
    walk.translate(0, 0, 4096, 0, 8);
    walk.translate(0, 0, 4096, 0, 8);
    expect(walk.forgetAbsent()).toBe(false);
  });

  it('forgets the lines of a written range, on chip and being read, and no other', () => {
    const { walk, lines } = bench(Array.from({ length: 32 }, (_, entry) => (entry + 1) * 4096));
    const touch = (line: number): number => walk.translate(0, line * 64, 4096, 0, 8);
    for (const line of [0, 1, 2]) {
      touch(line);
      touch(line);
    }
    touch(3);
    // The last byte of line 1 and the first bytes of lines 2 and 3.
    walk.forgetRange(127, 72);
    expect([lines.has(3), touch(0), touch(1), touch(2)]).toEqual([false, TRANSLATED, PENDING, PENDING]);
    walk.forgetAll();
    expect(touch(0)).toBe(PENDING);
  });
});
