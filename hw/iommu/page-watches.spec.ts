/** Words that a device monitors, in memory reached through an IOMMU: without side effects, for any mapping. */
import { describe, expect, it } from 'vitest';
import { entryOffsetOf, setEntry } from '../../abi/iommu-tables.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { psPerUs } from '../../base/units.ts';
import { rootComplexBench } from '../pcie/root-complex/root-complex-bench.ts';
import { SIDEBAND_WORD_CHANGED } from '../pcie/tlp/index.ts';
import { Iommu } from './iommu.ts';
import { iommuParameters } from './parameters.ts';

const ROOT = 0x1000;
const READ_WRITE = 3;
const DEVICE_PAGE = 0x7_0000_5000;
const ADDRESS = DEVICE_PAGE + 0x340;
const FRAMES = [0x8000, 0xa000] as const;

/** A root complex with an IOMMU whose tables of level 4 to 1 are at 0x1000, 0x2000, 0x3000 and 0x4000. */
function monitorBench() {
  let iommu: Iommu | undefined;
  const bench = rootComplexBench({
    memoryOf: (memory, lp) => {
      iommu = new Iommu({
        lp,
        memory,
        config: { ...defaultsOf(iommuParameters), iotlbEntries: 1, iotlbWays: 1 },
      });
      return iommu;
    },
  });
  iommu!.connect({ processor: { faultRecorded: () => {} } });
  iommu!.setRoot(ROOT);
  const view = new DataView(bench.memory.bytes.buffer);
  const enter = (table: number, level: number, address: number, rights: number): void => {
    setEntry(view, table + entryOffsetOf(DEVICE_PAGE, level), address, rights);
    bench.memory.written(table);
  };
  let nowPs = 0;
  return {
    ...bench,
    iommu: iommu!,
    /** Maps the page to a frame: the entries of all upper levels exist from then on. */
    map(frame: number, rights = READ_WRITE): void {
      for (let level = 4; level > 1; level--)
        enter((5 - level) * 0x1000, level, (6 - level) * 0x1000, READ_WRITE);
      enter(0x4000, 1, frame, rights);
    },
    store(address: number, value: number): void {
      view.setUint32(address, value);
      bench.memory.written(address);
    },
    run(): void {
      nowPs += 2 * psPerUs;
      bench.run(nowPs);
    },
    reports: () => bench.atDevice.filter(({ kind }) => kind === SIDEBAND_WORD_CHANGED).length,
  };
}

describe('a word monitored through an IOMMU', () => {
  it('is compared without an entry of the IOTLB, a count, a walk or a fault, mapped or not', () => {
    for (const isMapped of [true, false]) {
      const { iommu, device, map, store, run, reports } = monitorBench();
      map(FRAMES[0], isMapped ? READ_WRITE : 0);
      const before = JSON.stringify(iommu.inspect());
      device.monitor(7, ADDRESS, 0);
      run();
      store(FRAMES[0] + 0x344, 5);
      run();
      store(FRAMES[0] + 0x340, 5);
      run();
      const { walker, iotlb, faultLog } = iommu.blocks;
      expect(JSON.stringify(iommu.inspect())).toBe(before);
      expect([walker.walkCount, iotlb.hits, iotlb.misses, faultLog.faultCount]).toEqual([0, 0, 0, 0]);
      expect(reports()).toBe(isMapped ? 1 : 0);
    }
  });

  it.each([
    ['by an entry of the last level', false],
    ['by entries of all levels', true],
  ])('is watched once its page is mapped, %s', (_, isAllNew) => {
    const { device, map, store, run, reports } = monitorBench();
    if (!isAllNew) map(0, 0);
    device.monitor(7, ADDRESS, 9);
    run();
    store(FRAMES[0] + 0x340, 9);
    map(FRAMES[0]);
    run();
    expect(reports()).toBe(0);
    store(FRAMES[0] + 0x340, 10);
    run();
    expect(reports()).toBe(1);
  });

  it('is watched where its page is mapped now, and no longer at its old frame', () => {
    const { memory, device, map, store, run, reports } = monitorBench();
    map(FRAMES[0]);
    device.monitor(7, ADDRESS, 0);
    run();
    map(FRAMES[1]);
    run();
    store(FRAMES[0] + 0x340, 5);
    run();
    expect([reports(), [...memory.watchedPages].includes(FRAMES[0] / 0x1000)]).toEqual([0, false]);
    store(FRAMES[1] + 0x340, 5);
    run();
    expect([reports(), memory.watchedPages]).toEqual([1, []]);
  });

  it('is compared again when the IOMMU gets another root table', () => {
    const { iommu, device, map, store, run, reports } = monitorBench();
    map(FRAMES[0]);
    store(FRAMES[0] + 0x340, 5);
    iommu.setRoot(-1);
    device.monitor(7, ADDRESS, 0);
    run();
    expect(reports()).toBe(0);
    iommu.setRoot(ROOT);
    run();
    expect(reports()).toBe(1);
  });
});
