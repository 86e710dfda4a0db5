import { describe, expect, it } from 'vitest';
import { NicDmaError } from '../../abi/nic/index.ts';
import { DmaBench } from '../dma/dma-bench.ts';
import { STATUS_UNSUPPORTED_REQUEST } from '../pcie/tlp/tlp.ts';
import { BusMaster } from './bus-master.ts';
import { ReadBursts } from './bus-master-ports.ts';

/** A bus master that reads, over a DMA engine and a link that answers after 100 cycles of 1 ns. */
function bench({ burstBytes = 64, depth = 4, answers = true } = {}) {
  const dma = new DmaBench();
  const ends: [error: number, cycle: number][] = [];
  const port = new ReadBursts(dma.reads, depth);
  const engine = new BusMaster({ name: 'engine', domain: dma.domain, port, burstBytes });
  engine.connect({ engine: { moved: (error, cycle) => ends.push([error, cycle]) } });
  if (answers) dma.answerAll(99_500);
  return { dma, engine, ends };
}

describe('a bus-master engine', () => {
  it('requests a burst per cycle, which end at multiples of their size', () => {
    const { dma, engine, ends } = bench();
    dma.atCycle(9, () => engine.start(0x1030, 150, 0x200, 10));
    dma.runTo(1000);
    expect(dma.link.reads.map(({ timePs, address, bytes }) => [timePs / 1000, address, bytes])).toEqual([
      [11, 0x1030, 16],
      [12, 0x1040, 64],
      [13, 0x1080, 64],
      [14, 0x10c0, 6],
    ]);
    // The last completion arrives at 113.5, and is taken at 114 or when earlier bytes have moved (64 bytes are two cycles).
    expect(ends).toEqual([[NicDmaError.NONE, 116]]);
    expect([...dma.sram.subarray(0x200, 0x200 + 150)]).toEqual([
      ...dma.link.memory.subarray(0x1030, 0x1030 + 150),
    ]);
    expect(engine).toMatchObject({
      address: 0x1030 + 150,
      place: 0x200 + 150,
      wordsLeft: 0,
      wordsMoved: 38,
      isBusy: false,
    });
  });

  it('counts words and address with every burst that has moved', () => {
    const { dma, engine } = bench({ depth: 1 });
    dma.atCycle(9, () => engine.start(0x1000, 200, 0, 10));
    const seen: number[][] = [];
    for (let cycle = 0; cycle < 600; cycle += 10) {
      dma.runTo(cycle);
      if (engine.isBusy) seen.push([engine.address - 0x1000, engine.wordsLeft]);
    }
    expect([...new Set(seen.map(String))]).toEqual(['0,50', '64,34', '128,18', '192,2']);
  });

  it('accounts for every cycle: requesting, waiting for room, waiting for data', () => {
    const { dma, engine } = bench({ depth: 2 });
    dma.atCycle(9, () => engine.start(0x1000, 256, 0, 10));
    dma.runTo(1000);
    engine.account.close(1000);
    const { busyCycles, stalledCycles, idleCycles, overlapCount } = engine.account;
    expect(busyCycles).toBe(4);
    expect(stalledCycles[0]).toBeGreaterThan(90);
    expect(stalledCycles[1]).toBeGreaterThan(90);
    expect(busyCycles + idleCycles + stalledCycles[0]! + stalledCycles[1]!).toBe(1000);
    expect(overlapCount).toBe(0);
  });

  it('stops at the first failure, and ends when outstanding bursts have ended', () => {
    const { dma, engine, ends } = bench({ depth: 2, answers: false });
    dma.atCycle(9, () => engine.start(0x1000, 640, 0, 10));
    dma.atPs(100_500, () => dma.link.refuse(dma.link.reads[0]!, STATUS_UNSUPPORTED_REQUEST));
    dma.atPs(300_500, () => dma.link.answer(dma.link.reads[1]!));
    dma.runTo(1000);
    expect(dma.link.reads).toHaveLength(2);
    expect(ends).toHaveLength(1);
    expect(ends[0]![0]).toBe(NicDmaError.UNSUPPORTED_REQUEST);
    expect(ends[0]![1]).toBeGreaterThan(300);
    expect(engine).toMatchObject({ address: 0x1000, wordsLeft: 160, isBusy: false });
  });
});
