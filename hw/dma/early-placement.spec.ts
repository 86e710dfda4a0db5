import { describe, expect, it } from 'vitest';
import { descriptorOf, FLAG_PLACED_EARLY } from '../pcie/tlp/tlp.ts';
import { DmaBench } from './dma-bench.ts';
import { DmaStatus } from './errors.ts';
import type { Report } from './read-bench.ts';

describe('bytes that are placed before their completions arrive', () => {
  const PLACE = 0x200;
  const NOWHERE = -1;
  const placement = { name: 'payload', trafficClass: 4, fifoDepth: 8, weight: 1, placesEarly: true };

  /** A bench of one tag with a requester that allows early placement. */
  function benchOf(tagCount = 1) {
    const bench = new DmaBench({ tagCount });
    bench.pcieFunction.completionTimeoutPs = 1_000_000;
    const reports: Report[] = [];
    const requester = bench.reads.addRequester(placement, {
      done: (cookie, status, cycle) => reports.push({ requester, cookie, status, cycle }),
    });
    const placeOf = (tag: number, byteCount: number) =>
      bench.reads.earlyPlaces!.placeOf(descriptorOf(0x100, tag, 4), byteCount);
    /** Actions of a root complex: it stores bytes at their destination, and marks the record; the record itself holds other bytes. */
    const placeData = (byte: number, byteCount: number, bytes: number) =>
      bench.sram.fill(byte, placeOf(0, byteCount), placeOf(0, byteCount) + bytes);
    return { bench, reports, placeOf, placeData };
  }

  it('have a destination as soon as their read is sent, for any outstanding completions before them', () => {
    const { bench, placeOf } = benchOf(2);
    bench.atCycle(1, () => bench.reads.request(0, 0, 600, PLACE, 5));
    bench.runTo(10);
    expect([placeOf(0, 512), placeOf(0, 256), placeOf(1, 88)]).toEqual([PLACE, PLACE + 256, PLACE + 512]);
    bench.atPs(20_000, () => bench.link.answer(bench.link.reads[0]!, 128));
    bench.runTo(30);
    expect([placeOf(0, 384), placeOf(0, 256)]).toEqual([PLACE + 128, PLACE + 256]);
  });

  it('are unchanged when their completion arrives, which takes as long as any', () => {
    const run = (flags: number) => {
      const { bench, reports, placeData } = benchOf();
      bench.atCycle(1, () => bench.reads.request(0, 0, 512, PLACE, 5));
      bench.runTo(10);
      for (const [at, bytes] of [
        [20_500, 256],
        [30_500, 128],
        [30_600, 128],
      ] as const) {
        bench.atPs(at, () => {
          const byteCount = 512 - bench.link.reads[0]!.answeredBytes;
          if (flags !== 0) placeData((byteCount & 0xff) | 1, byteCount, bytes);
          bench.link.answer(bench.link.reads[0]!, bytes, flags);
        });
      }
      bench.runTo(100);
      return { reports, bytes: bench.sram.slice(PLACE, PLACE + 512), isIdle: bench.reads.isIdle };
    };
    const ahead = run(FLAG_PLACED_EARLY);
    expect(ahead.reports).toEqual(run(0).reports);
    expect(ahead.isIdle).toBe(true);
    expect([0, 255, 256, 383, 384, 511].map((at) => ahead.bytes[at])).toEqual([1, 1, 1, 1, 129, 129]);
  });

  it('have none for a requester that may read early, nor beyond the read, nor without a read', () => {
    const { bench, placeOf } = benchOf(3);
    bench.reads.addRequester({ ...placement, placesEarly: false }, { done: () => {} });
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 64, PLACE, 5);
      bench.reads.request(1, 0, 64, PLACE + 64, 6);
    });
    bench.runTo(10);
    expect([placeOf(0, 64), placeOf(0, 65), placeOf(1, 64)]).toEqual([PLACE, NOWHERE, NOWHERE]);
    expect([placeOf(2, 64), placeOf(200, 64)]).toEqual([NOWHERE, NOWHERE]);
    bench.atPs(20_000, () => bench.link.answer(bench.link.reads[0]!));
    bench.runTo(30);
    expect(placeOf(0, 64)).toBe(NOWHERE);
  });

  it('PCIe 2.8: have no destination any more under the tag of an abandoned read, whose completions may arrive after its timeout', () => {
    const aborted = [
      (bench: DmaBench) => bench.runTo(1100),
      (bench: DmaBench) => bench.reads.reset(10),
      (bench: DmaBench) => bench.reads.withdrawPlaces(),
    ];
    for (const giveUp of aborted) {
      const { bench, placeOf } = benchOf();
      bench.atCycle(1, () => bench.reads.request(0, 0, 64, PLACE, 5));
      bench.runTo(10);
      giveUp(bench);
      expect(placeOf(0, 64)).toBe(NOWHERE);
      bench.atCycle(3000, () => bench.reads.request(0, 0, 64, PLACE, 6));
      bench.runTo(3010);
      expect(bench.link.reads).toHaveLength(2);
      expect(placeOf(0, 64)).toBe(NOWHERE);
    }
  });

  it('are stored then, and nowhere earlier, if their completion is taken for one of the tag’s next read', () => {
    const { bench, reports, placeData } = benchOf();
    bench.atCycle(1, () => bench.reads.request(0, 0, 128, PLACE, 5));
    bench.runTo(10);
    placeData(0xaa, 128, 64);
    placeData(0xbb, 64, 64);
    // Timed out twice: the tag is free, and so is its memory.
    bench.runTo(2500);
    bench.sram.fill(0, PLACE, PLACE + 128);
    bench.atCycle(2500, () => bench.reads.request(0, 0x1000, 128, 0x400, 6));
    bench.runTo(2600);
    bench.link.answer(bench.link.reads[0]!, 64, FLAG_PLACED_EARLY);
    bench.runTo(2610);
    bench.link.answer(bench.link.reads[0]!, 64, FLAG_PLACED_EARLY);
    bench.runTo(2700);
    expect(reports.map(({ cookie, status }) => [cookie, status])).toEqual([
      [5, DmaStatus.timeout],
      [6, DmaStatus.ok],
    ]);
    expect([0, 63, 64, 127].map((at) => bench.sram[0x400 + at])).toEqual([0xaa, 0xaa, 0xbb, 0xbb]);
    expect(bench.sram.subarray(PLACE, PLACE + 128).every((byte) => byte === 0)).toBe(true);
  });

  it('are stored again with their completion if the destination was reused meanwhile', () => {
    const { bench, reports, placeData } = benchOf();
    bench.atCycle(1, () => bench.reads.request(0, 0, 64, PLACE, 5));
    bench.runTo(10);
    placeData(0xaa, 64, 64);
    bench.reads.withdrawPlaces();
    bench.sram.fill(0, PLACE, PLACE + 64);
    bench.link.answer(bench.link.reads[0]!, 64, FLAG_PLACED_EARLY);
    bench.runTo(100);
    expect(reports).toMatchObject([{ cookie: 5, status: DmaStatus.ok }]);
    expect(bench.sram.subarray(PLACE, PLACE + 64).every((byte) => byte === 0xaa)).toBe(true);
  });
});
