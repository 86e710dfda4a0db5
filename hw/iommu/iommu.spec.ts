import { describe, expect, it } from 'vitest';
import { entryOffsetOf, setEntry } from '../../abi/iommu-tables.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Iommu } from './iommu.ts';
import { iommuParameters } from './parameters.ts';

/** A memory of 1 MiB with hand-written tables: the root at 0x1000, then one table per level from 0x2000 on. */
function newIommu(parts: Partial<ReturnType<typeof defaultsOf<typeof iommuParameters>>> = {}) {
  const bytes = new Uint8Array(2 ** 20);
  const view = new DataView(bytes.buffer);
  const memory = {
    sizeBytes: bytes.length,
    readInto(address: number, length: number, target: Uint8Array, offset: number): boolean {
      if (address + length > bytes.length) return false;
      target.set(bytes.subarray(address, address + length), offset);
      return true;
    },
    write(address: number, length: number, source: Uint8Array, offset: number): boolean {
      if (address + length > bytes.length) return false;
      bytes.set(source.subarray(offset, offset + length), address);
      return true;
    },
  };
  const config = { ...defaultsOf(iommuParameters), ...parts };
  const iommu = new Iommu({ lp: { instantPs: 77 }, memory, config });
  let interruptCount = 0;
  iommu.connect({ processor: { faultRecorded: () => interruptCount++ } });
  iommu.setRoot(0x1000);
  const map = (device: number, physical: number, rights: number): void => {
    for (let level = 4; level > 1; level--)
      setEntry(view, (5 - level) * 0x1000 + entryOffsetOf(device, level), (6 - level) * 0x1000, 3);
    setEntry(view, 0x4000 + entryOffsetOf(device, 1), physical, rights);
  };
  return { bytes, iommu, map, memory, interrupts: () => interruptCount };
}

const eight = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);

describe('the IOMMU', () => {
  it('VT-d: reads entries with nine bits a level, rights in bits 0 and 1', () => {
    // 0x12_3456_7000: level 4 index 0, level 3 index 0x48, level 2 index 0x1a2, level 1 index 0x167.
    expect([4, 3, 2, 1].map((level) => entryOffsetOf(0x12_3456_7000, level))).toEqual([
      0,
      0x48 * 8,
      0x1a2 * 8,
      0x167 * 8,
    ]);
    const view = new DataView(new ArrayBuffer(8));
    setEntry(view, 0, 0x9_8765_4000, 3);
    expect(view.getBigUint64(0, true)).toBe(0x9_8765_4003n);
  });

  it('maps an access to the frame of its page, by walking once and then by the IOTLB', () => {
    const { bytes, iommu, map } = newIommu();
    map(0x7_0000_5000, 0x8000, 3);
    expect(iommu.translationPs(0x7_0000_5010, 0)).toBe(4 * 50_000);
    expect(iommu.write(0x7_0000_5010, 8, eight, 0)).toBe(true);
    expect([...bytes.subarray(0x8010, 0x8018)]).toEqual([...eight]);
    expect(iommu.translationPs(0x7_0000_5ff0, 0)).toBe(0);
    const back = new Uint8Array(8);
    expect(iommu.canRead(0x7_0000_5010, 8) && iommu.readInto(0x7_0000_5010, 8, back, 0)).toBe(true);
    expect(back).toEqual(eight);
    const { walker, iotlb, faultLog } = iommu.blocks;
    expect([walker.walkCount, iotlb.hits, iotlb.misses, faultLog.faultCount]).toEqual([1, 1, 1, 0]);
  });

  it('rejects unmapped or forbidden accesses, records them, and interrupts once until the log is read', () => {
    const { bytes, iommu, map, interrupts } = newIommu({ faultLogEntries: 2 });
    const { faultLog } = iommu.blocks;
    map(0x5000, 0x8000, 1);
    expect(iommu.write(0x5000, 8, eight, 0)).toBe(false);
    expect(iommu.canRead(0x9000, 8)).toBe(false);
    expect(iommu.canRead(0x5000, 8)).toBe(true);
    expect(bytes[0x8000]).toBe(0);
    expect(iommu.write(0x9000, 8, eight, 0)).toBe(false);
    expect([interrupts(), faultLog.faultCount, faultLog.lostFaultCount]).toEqual([1, 3, 1]);
    expect(iommu.takeFaults()).toEqual([
      { address: 0x5000, reason: 'writeNotAllowed', atPs: 77 },
      { address: 0x9000, reason: 'notPresent', atPs: 77 },
    ]);
    iommu.write(0x9000, 8, eight, 0);
    expect(interrupts()).toBe(2);
  });

  it('VT-d: keeps using a changed translation until it is invalidated', () => {
    const { bytes, iommu, map } = newIommu();
    map(0x5000, 0x8000, 3);
    iommu.write(0x5000, 8, eight, 0);
    map(0x5000, 0xa000, 3);
    iommu.write(0x5000, 1, Uint8Array.of(9), 0);
    expect([bytes[0x8000], bytes[0xa000]]).toEqual([9, 0]);
    iommu.invalidate(0x5000);
    iommu.write(0x5000, 1, Uint8Array.of(7), 0);
    expect([bytes[0x8000], bytes[0xa000]]).toEqual([9, 7]);
  });

  it('walks for four misses at a time: the fifth waits for the first', () => {
    const { iommu, map } = newIommu();
    for (const page of [1, 2, 3, 4, 5]) map(page * 0x1000 + 0x10000, 0x8000, 3);
    const waitsPs = [1, 2, 3, 4, 5].map((page) => iommu.translationPs(page * 0x1000 + 0x10000, 1000 * page));
    // 200 ns each; the first ends at 201 ns, of which 5 ns have passed.
    expect(waitsPs).toEqual([200_000, 200_000, 200_000, 200_000, 196_000 + 200_000]);
  });

  it('tells how much longer a read of the mapped frame takes, without a record of its own', () => {
    const { iommu, map, memory } = newIommu();
    map(0x5000, 0x8000, 1);
    expect(iommu.missPs(0x5010, 64)).toBe(0);
    Object.assign(memory, { missPs: (address: number, lengthBytes: number) => address + lengthBytes });
    expect([iommu.missPs(0x5010, 64), iommu.missPs(0x9000, 64)]).toEqual([0x8010 + 64, 0]);
    expect([iommu.iotlb.misses, iommu.blocks.faultLog.faultCount]).toEqual([0, 0]);
  });

  it('holds as many translations as it has entries, and does not keep absent ones', () => {
    const { iommu, map } = newIommu({ iotlbEntries: 2, iotlbWays: 2 });
    for (const page of [1, 2, 3]) map(page * 0x1000 + 0x10000, 0x8000, 3);
    for (const page of [1, 2, 1, 3, 1, 2]) iommu.translationPs(page * 0x1000 + 0x10000, 0);
    // 2 is replaced by 3, since 1 was used later; then 3 by 2.
    expect([iommu.iotlb.hits, iommu.iotlb.misses]).toEqual([2, 4]);
    iommu.translationPs(0x9_0000, 0);
    map(0x9_0000, 0x8000, 3);
    expect(iommu.canRead(0x9_0000, 8)).toBe(true);
  });
});
