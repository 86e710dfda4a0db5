import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IcmMap, type IcmTable, type IcmTablePlace, icmTableNames } from './icm-map.ts';

const placesAt = (base: number): Record<IcmTable, IcmTablePlace> =>
  Object.fromEntries(
    icmTableNames.map((name, index) => [
      name,
      { base: base + index * 2 ** 20, entryBytes: 64, logEntries: 4 },
    ]),
  ) as Record<IcmTable, IcmTablePlace>;

describe('the ICM map', () => {
  it('sheet 4.1: finds a byte in the host page its ICM page was mapped to', () => {
    const icm = new IcmMap();
    icm.map(0x1_0000_0000, 0x7000, 2);
    expect(icm.physicalOf(0x1_0000_0000)).toBe(0x7000);
    expect(icm.physicalOf(0x1_0000_1fff)).toBe(0x8fff); // second page, last byte
    expect(icm.physicalOf(0x1_0000_2000)).toBe(-1);
    expect(icm.physicalOf(0xffff_ffff)).toBe(-1);
  });

  it('counts mapped pages, and unmaps what is mapped of a range', () => {
    const icm = new IcmMap();
    icm.map(0, 0x10_0000, 16);
    icm.unmap(0, 64);
    expect(icm.mappedPageCount).toBe(0);
    icm.unmap(0, 64);
    expect(icm.mappedPageCount).toBe(0);
  });

  it('has no table before INIT_HCA', () => {
    const icm = new IcmMap();
    icm.map(0, 0x10_0000, 16);
    expect([icm.contextAddress('qpc', 0), icm.keyAddress(0), icm.translationAddress(0)]).toEqual([
      -1, -1, -1,
    ]);
  });

  it('sheet 4.1: masks object numbers to the table', () => {
    const icm = new IcmMap();
    icm.placeTables(placesAt(0));
    icm.map(0, 0x10_0000, 1);
    // 16 entries of 64 bytes: number 0x35 is entry 5.
    expect(icm.contextAddress('qpc', 0x35)).toBe(0x10_0000 + 5 * 64);
  });

  it('agrees with a plain map over any sequence of maps and unmaps', () => {
    const operation = fc.record({
      isMap: fc.boolean(),
      page: fc.integer({ min: 0, max: 3000 }),
      count: fc.integer({ min: 1, max: 70 }),
      host: fc.integer({ min: 0, max: 2 ** 36 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        const icm = new IcmMap();
        const model = new Map<number, number>();
        for (const { isMap, page, count, host } of operations) {
          const pages = Array.from({ length: count }, (_, index) => page + index);
          if (isMap && pages.every((at) => !model.has(at))) {
            icm.map(page * 4096, host * 4096, count);
            pages.forEach((at, index) => {
              model.set(at, (host + index) * 4096);
            });
          } else if (!isMap) {
            icm.unmap(page * 4096, count);
            for (const at of pages) model.delete(at);
          }
          expect(icm.mappedPageCount).toBe(model.size);
          for (const at of pages)
            expect(icm.physicalOf(at * 4096 + 9)).toBe(model.has(at) ? model.get(at)! + 9 : -1);
        }
      }),
    );
  });
});
