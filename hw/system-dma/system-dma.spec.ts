import { describe, expect, it } from 'vitest';
import { NicBar, nicBits, SystemDmaMode, SystemDmaTransfer, systemDmaBits } from '../../abi/nic/index.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { fieldOf, withField } from '../../base/registers.ts';
import { frameBetween, NicBench, type NicMachine, US } from '../nic/testing/nic-bench.ts';
import { MemoryBus } from './memory-bus.ts';
import { systemDmaParameters } from './parameters.ts';
import { SystemDma } from './system-dma.ts';
import { channelPort, commonPort, order, systemDmaBench } from './testing/system-dma-bench.ts';

const { status: STATUS } = systemDmaBits;

describe('a system DMA controller', () => {
  it('8237A data sheet: moves a block, holding the bus from the first word to the last', () => {
    const { dma, runTo, stores, holds, interrupts, memory } = systemDmaBench();
    runTo(10);
    order(dma, 1, { address: 0x100, device: 0x8000, words: 4 });
    runTo(100);
    // Chosen at 11, the bus after 2 cycles, 4 cycles for the first word and 3 for each other word.
    expect(stores).toEqual([
      [17, 0x8000, [...memory.bytes.subarray(0x100, 0x104)]],
      [20, 0x8004, [...memory.bytes.subarray(0x104, 0x108)]],
      [23, 0x8008, [...memory.bytes.subarray(0x108, 0x10c)]],
      [26, 0x800c, [...memory.bytes.subarray(0x10c, 0x110)]],
    ]);
    expect(holds).toEqual([[13, 26]]);
    expect(interrupts).toEqual([[1, 26]]);
  });

  it('8237A data sheet: steals single cycles: the bus is released after every word', () => {
    const { dma, runTo, stores, holds, bus } = systemDmaBench();
    runTo(10);
    order(dma, 0, { mode: SystemDmaMode.SINGLE, address: 0, device: 0x8000, words: 3 });
    runTo(100);
    // 4 cycles with the bus, then 1 without it and 2 to get it again.
    expect(holds).toEqual([
      [13, 17],
      [20, 24],
      [27, 31],
    ]);
    expect(stores.map(([cycle]) => cycle)).toEqual([17, 24, 31]);
    expect(bus.heldPsAt(1_000_000)).toBe(12 * 10_000);
    expect(bus.takenCount).toBe(3);
  });

  it('counts address and words where software can read them while it runs', () => {
    const { dma, runTo } = systemDmaBench();
    order(dma, 2, { address: 0x200, device: 0x1_0000_8000, words: 5 });
    const seen: number[][] = [];
    for (let cycle = 1; cycle < 40; cycle++) {
      runTo(cycle);
      const read = (name: keyof typeof channelPort): number => dma.portRead(0x40 + channelPort[name].offset);
      seen.push([read('count'), read('addressLow'), read('deviceLow'), read('deviceHigh')]);
    }
    const distinct = [...new Set(seen.map(String))];
    expect(distinct).toEqual(
      [5, 4, 3, 2, 1, 0].map((left) => `${left},${0x200 + (5 - left) * 4},${0x8000 + (5 - left) * 4},1`),
    );
  });

  it('moves words from a device into memory, waiting with the bus for each', () => {
    const { dma, runTo, memory, device, holds, interrupts } = systemDmaBench();
    runTo(10);
    order(dma, 0, { transfer: SystemDmaTransfer.WRITE, address: 0x300, device: 0x9000, words: 2 });
    runTo(200);
    expect(device.loads).toEqual([0x9000, 0x9004]);
    expect([...memory.bytes.subarray(0x300, 0x308)]).toEqual([0, 0, 0xb0, 0xa0, 1, 0, 0xb0, 0xa0]);
    // Requested at 13; its answer after 40 cycles is taken at the next edge, 54; the second likewise.
    expect(holds).toEqual([[13, 95]]);
    expect(interrupts).toEqual([[0, 95]]);
  });

  it('waits with the bus while the device accepts no store', () => {
    const { lp, dma, runTo, stores, device, holds } = systemDmaBench();
    device.room = 1;
    order(dma, 0, { address: 0, device: 0x8000, words: 2 });
    runTo(50);
    expect(stores).toHaveLength(1);
    device.room = 5;
    device.stores.storeSpace();
    runTo(60);
    expect(stores.map(([cycle]) => cycle)).toEqual([7, 51]);
    expect(holds).toEqual([[3, 51]]);
    expect(lp.nowPs).toBe(600_000);
    dma.account.close(60);
    expect(dma.account.stalledCycles[1]).toBe(51 - 10);
    expect(dma.account.overlapCount).toBe(0);
  });

  it('8237A data sheet: restarts at terminal count with auto-initialize, else masks itself', () => {
    const { dma, runTo } = systemDmaBench();
    order(dma, 0, { address: 0x10, device: 0x8000, words: 2, flags: 1 << 4 });
    order(dma, 1, { address: 0x10, device: 0x8000, words: 2 });
    runTo(100);
    expect([dma.portRead(0x08), dma.portRead(0x28)]).toEqual([2, 0]);
    expect(dma.portRead(commonPort.mask.offset)).toBe(0b1110);
    const status = dma.portRead(commonPort.status.offset);
    expect(fieldOf(status, STATUS.terminalCount)).toBe(0b11);
    expect(dma.portRead(commonPort.status.offset)).toBe(0);
    dma.portWrite(commonPort.request.offset, 1);
    runTo(200);
    expect(dma.channels[0]!.wordsMoved).toBe(4);
  });

  it('counts down, or keeps the device’s address, as programmed', () => {
    const { dma, runTo, stores, memory } = systemDmaBench();
    order(dma, 0, { address: 0x108, device: 0x8000, words: 3, flags: (1 << 5) | (1 << 8) });
    runTo(100);
    expect(stores.map(([, address]) => address)).toEqual([0x8000, 0x8000, 0x8000]);
    expect(stores.map(([, , bytes]) => bytes[0])).toEqual(
      [0x108, 0x104, 0x100].map((at) => memory.bytes[at]),
    );
  });

  it.each([
    ['fixed', [0, 0, 0, 3, 3, 3]],
    ['rotating', [0, 3, 0, 3, 0, 3]],
  ] as const)('8237A data sheet: gives the bus to channels by %s priority', (priority, order_) => {
    const { dma, runTo, stores } = systemDmaBench({ priority });
    for (const channel of [3, 0]) {
      order(dma, channel, { mode: SystemDmaMode.SINGLE, address: 0, device: channel * 0x1000, words: 3 });
    }
    runTo(200);
    expect(stores.map(([, address]) => address >> 12)).toEqual([...order_]);
  });

  it.each([
    ['a memory address outside of memory', { address: 0x1000, device: 0x8000, words: 4 }],
    ['an unaligned address', { address: 2, device: 0x8000, words: 4 }],
    ['no words', { address: 0, device: 0x8000, words: 0 }],
    ['a mode that is none', { mode: 3, address: 0, device: 0x8000, words: 4 }],
    ['a transfer that is none', { transfer: 0, address: 0, device: 0x8000, words: 4 }],
  ])('stops a channel with %s, with an error and an interrupt, and others continue', (_, bad) => {
    const { dma, runTo, stores, interrupts, bus } = systemDmaBench();
    order(dma, 0, bad);
    order(dma, 1, { address: 0, device: 0x8000, words: 2 });
    runTo(100);
    expect(fieldOf(dma.portRead(commonPort.status.offset), STATUS.error)).toBe(1);
    expect(interrupts.map(([channel]) => channel)).toEqual([0, 1]);
    expect(stores).toHaveLength(2);
    expect(bus.isHeld).toBe(false);
  });

  it('stops a channel whose load fails, and does not change memory', () => {
    const { dma, runTo, device, memory, bus } = systemDmaBench();
    device.loadStatus = 1;
    const before = [...memory.bytes.subarray(0, 8)];
    order(dma, 0, { transfer: SystemDmaTransfer.WRITE, address: 0, device: 0x9000, words: 2 });
    runTo(200);
    expect([...memory.bytes.subarray(0, 8)]).toEqual(before);
    expect(device.loads).toHaveLength(1);
    expect(dma.channels[0]).toMatchObject({ failures: 1, count: 2 });
    expect(bus.isHeld).toBe(false);
  });

  it('stops after the word in progress when it is masked, and continues where it was', () => {
    const { dma, runTo, stores, bus } = systemDmaBench();
    order(dma, 0, { address: 0, device: 0x8000, words: 10 });
    runTo(12);
    dma.portWrite(commonPort.mask.offset, 0xf);
    runTo(100);
    const moved = stores.length;
    expect(moved).toBeLessThan(4);
    expect(bus.isHeld).toBe(false);
    dma.portWrite(commonPort.mask.offset, 0xe);
    runTo(200);
    expect(stores.map(([, address]) => address)).toEqual(
      Array.from({ length: 10 }, (_, index) => 0x8000 + index * 4),
    );
  });

  it('8237A data sheet: abandons the word in progress at a master clear', () => {
    const { dma, runTo, stores, bus, device } = systemDmaBench();
    order(dma, 0, { address: 0x100, device: 0x8000, words: 10 });
    runTo(5);
    dma.portWrite(commonPort.masterClear.offset, 0);
    runTo(100);
    expect(stores).toEqual([]);
    expect(bus.isHeld).toBe(false);
    order(dma, 0, { transfer: SystemDmaTransfer.WRITE, address: 0x100, device: 0x8000, words: 1 });
    runTo(110);
    dma.portWrite(commonPort.masterClear.offset, 0);
    runTo(300);
    expect(device.loads).toHaveLength(1);
    expect([dma.isIdle, bus.isHeld, dma.portRead(0x08)]).toEqual([true, false, 0]);
  });

  it('reads all ones at nonexistent ports', () => {
    const { dma } = systemDmaBench();
    expect([dma.portRead(0x18), dma.portRead(0x9c)]).toEqual([0xffff_ffff, 0xffff_ffff]);
    dma.portWrite(0x18, 1);
    dma.portWrite(0x9c, 1);
  });
});

/** The third-party controller of a machine, at the second core port of its root complex. */
function controllerOf(machine: NicMachine, interrupts: number[]): { dma: SystemDma; bus: MemoryBus } {
  const bus = new MemoryBus();
  const dma = new SystemDma({
    lp: machine.hostLp,
    config: defaultsOf(systemDmaParameters),
    memory: machine.memory,
    bus,
    trafficClass: 12,
  });
  dma.connect({
    rootComplex: machine.rootComplex.corePort(1),
    interrupts: { raise: (channel) => interrupts.push(channel) },
  });
  return { dma, bus };
}

describe('a frame moved by third-party DMA', () => {
  it('goes from memory into the card’s buffer, over the cable, and out of the other card’s buffer', async () => {
    const made = new NicBench();
    const interrupts: number[] = [];
    const [there, back] = [made.a, made.b].map((machine) => controllerOf(machine, interrupts));
    for (const machine of [made.a, made.b]) {
      await machine.enumerate();
      await machine.write('pbmode', 3);
      await machine.write('tctl', 0xa);
      await machine.write('rctl', 0x8002);
      await machine.write('ctrl', 1 << 6);
    }
    await made.run(20 * US);
    const frame = frameBetween(0, 1, 600, 9);
    made.a.memory.bytes.set(frame, 0x5000);
    order(there!.dma, 0, { address: 0x5000, device: made.a.barAddress[NicBar.PACKET_BUFFER]!, words: 150 });
    await made.run(20 * US);
    expect(interrupts).toEqual([0]);
    const { length, go } = nicBits.piotx;
    await made.a.write('piotx', withField(withField(0, length, 600), go, 1));
    await made.run(5 * US);
    const shown = await made.b.read('piorx');
    const place = fieldOf(shown, nicBits.piorx.offset) * 4;
    expect(fieldOf(shown, nicBits.piorx.length)).toBe(600);
    const device = made.b.barAddress[NicBar.PACKET_BUFFER]! + place;
    order(back!.dma, 2, { transfer: SystemDmaTransfer.WRITE, address: 0x6000, device, words: 150 });
    await made.run(200 * US);
    expect(interrupts).toEqual([0, 2]);
    expect([...made.b.memory.bytes.subarray(0x6000, 0x6000 + 600)]).toEqual([...frame]);
    expect(back!.bus.heldPsAt(made.nowPs)).toBeGreaterThan(150 * 400_000);
  });
});
