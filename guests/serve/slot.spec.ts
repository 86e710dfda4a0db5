import { describe, expect, it } from 'vitest';
import { bar0 } from '../../abi/bar-map.ts';
import { INTERRUPT_INTX, INTERRUPT_MSIX } from '../slot/device.ts';
import { BAR0, BAR2, CONFIG, SlotBench } from './testing/slot-bench.ts';

const { owner, semaphore, msixTable, clock } = bar0.registers;
const COMMAND = 0x04;
const DEVICE_CONTROL = 0x68;
const POWER_CONTROL = 0x44;
const MSIX_CONTROL = 0x9e;
const ALL_ONES = 0xffff_ffff;

describe('configuration space of a slot', () => {
  it('equals the function of the interface sheet, at any width and alignment', () => {
    const bench = new SlotBench();
    bench.connect();
    expect(bench.read(CONFIG, 0, 4)).toBe(0x1003_15b3);
    expect(bench.read(CONFIG, 2, 2)).toBe(0x1003);
    expect(bench.read(CONFIG, 1, 1)).toBe(0x15);
    const whole = new Uint8Array(4096);
    expect(bench.slot().regionRead(CONFIG, 0, whole)).toBe(true);
    // Class code 02 80 00 after revision 0, as lspci shows it: Network controller [0280].
    expect([...whole.subarray(8, 12)]).toEqual([0, 0, 0x80, 0x02]);
    const across = new Uint8Array(6);
    bench.slot().regionRead(CONFIG, 7, across);
    expect(across).toEqual(whole.subarray(7, 13));
  });

  it('shows the size of a BAR when all ones are written', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.write(CONFIG, 0x10, ALL_ONES);
    bench.write(CONFIG, 0x18, ALL_ONES);
    // 1 MiB, 64-bit; 8 MiB, 64-bit, prefetchable.
    expect(bench.read(CONFIG, 0x10)).toBe(0xfff0_0004);
    expect(bench.read(CONFIG, 0x18)).toBe(0xff80_000c);
  });

  it('writes only the enabled bytes', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.write(CONFIG, 0x3c, 0x0b, 1);
    bench.write(CONFIG, COMMAND, 0x06, 1);
    bench.write(CONFIG, COMMAND + 1, 0x04, 1);
    expect(bench.read(CONFIG, COMMAND, 2)).toBe(0x0406);
    expect(bench.read(CONFIG, 0x3c, 2)).toBe(0x010b);
  });

  it('leaves the read request size that firmware was configured with, until the guest changes it', () => {
    const bench = new SlotBench({ set: { 'pcie.enumeration.maxReadRequestBytes': 4096 } });
    bench.connect();
    const { pcieFunction } = bench.emulation.hcas[0]!.hca;
    expect(pcieFunction.maxReadRequestBytes()).toBe(4096);
    bench.write(CONFIG, DEVICE_CONTROL, 0x2000, 2);
    expect(pcieFunction.maxReadRequestBytes()).toBe(512);
    bench.slot().clientDisconnected();
    expect(pcieFunction.maxReadRequestBytes()).toBe(4096);
  });

  it('keeps the largest payload the platform chose, and lets the guest read back its own choice', () => {
    const bench = new SlotBench();
    bench.connect();
    // MPS 4096 (code 5) and MRRS 1024 (code 3).
    bench.write(CONFIG, DEVICE_CONTROL, 0x30a0 | 0x0810, 2);
    expect(bench.read(CONFIG, DEVICE_CONTROL, 2)).toBe(0x38b0);
    const { space } = bench.emulation.hcas[0]!.hca.pcieFunction;
    expect(space.maxPayloadBytes).toBe(bench.emulation.options.config.pcie.enumeration.maxPayloadBytes);
    expect(space.maxReadRequestBytes).toBe(1024);
  });
});

describe('BARs of a slot', () => {
  it('reach the registers at any addresses assigned by the guest', () => {
    const bench = new SlotBench();
    bench.connect();
    for (const address of [0xfe00_0000, 0x4000_0000]) {
      bench.enable(0, address);
      expect(bench.readRegister(semaphore.offset)).toBe(0);
      expect(bench.readRegister(semaphore.offset)).not.toBe(0);
      bench.writeRegister(semaphore.offset, 0);
    }
    bench.write(CONFIG, 0x14, 0x38);
    expect(bench.readRegister(owner.offset)).toBe(0);
    expect(bench.emulation.hcas[0]!.hca.pcieFunction.space.barAddress(0)).toBe(0x38_4000_0000);
  });

  it('read all ones and drop writes while memory decoding is off', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.write(CONFIG, COMMAND, 0, 2);
    expect(bench.readRegister(owner.offset)).toBe(ALL_ONES);
    bench.writeRegister(owner.offset, 0);
    bench.write(CONFIG, COMMAND, 2, 2);
    expect(bench.readRegister(owner.offset)).toBe(0);
  });

  it('read all ones at an address that no TLP can carry exactly', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.write(CONFIG, 0x14, ALL_ONES);
    expect(bench.readRegister(owner.offset)).toBe(ALL_ONES);
    bench.writeRegister(owner.offset, 0);
    bench.write(CONFIG, 0x14, 0);
    expect(bench.readRegister(owner.offset)).toBe(0);
  });

  it('split long and odd accesses, and reject accesses that no processor makes', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    const slot = bench.slot();
    const into = new Uint8Array(13);
    expect(slot.regionRead(BAR0, clock.offset - 3, into)).toBe(true);
    expect(slot.regionWrite(BAR2, 0x13, new Uint8Array(200))).toBe(true);
    expect(slot.regionRead(BAR0, 0, new Uint8Array(4097))).toBe(false);
    expect(slot.regionWrite(BAR0, 0, new Uint8Array(4097))).toBe(false);
    expect(slot.regionRead(1, 0, into)).toBe(false);
    expect(bench.emulation.defects).toEqual([]);
  });

  it('post doorbells: they take effect when time passes, in order, and before a later read returns', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    for (let index = 0; index < 100; index++) bench.write(BAR2, 128 * 4096 + 0x14, index << 8, 4);
    bench.readRegister(owner.offset);
    const { sendCount } = bench.emulation.hcas[0]!.hca.dataPath.blocks.doorbells;
    expect(sendCount).toBe(100);
  });

  it('combine the stores of a BlueFlame post', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    const uarAreaBytes = 2 ** bench.emulation.options.config.hca.capability.logUarAreaMib * 2 ** 20;
    for (let at = 0; at < 64; at += 8) bench.write(BAR2, uarAreaBytes + at, 0, 4);
    const bytes = new Uint8Array(8);
    for (let at = 0; at < 64; at += 8) {
      bench.slot().regionWrite(BAR2, uarAreaBytes + 4096 + at, bytes);
      // Regardless of the loop's work in between, within the buffer's patience.
      bench.wallMs += 0.04;
      bench.emulation.work(1);
    }
    bench.work();
    // The eight stores of 4 bytes do not combine: 4 bytes are missing between any two.
    expect(bench.emulation.ledgers()[0]!.hca.pcie.received['blueFlame']!.tlps).toBe(8 + 1);
  });
});

describe('a BlueFlame post that is never completed', () => {
  it('leaves in pieces if it has not grown for a while, and asks to be checked until then', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.work();
    const uarAreaBytes = 2 ** bench.emulation.options.config.hca.capability.logUarAreaMib * 2 ** 20;
    const piecesOf = () => bench.emulation.ledgers()[0]!.hca.pcie.received['blueFlame']!.tlps;
    for (const at of [0, 8, 16]) bench.slot().regionWrite(BAR2, uarAreaBytes + at, new Uint8Array(8));
    expect(bench.work()).toBeCloseTo(0.05, 6);
    bench.wallMs += 0.03;
    expect(bench.work()).toBeCloseTo(0.02, 6);
    expect(piecesOf()).toBe(0);
    bench.wallMs += 0.03;
    expect(bench.work()).toBe(Number.POSITIVE_INFINITY);
    expect(piecesOf()).toBe(3);
  });
});

describe('interrupts of a slot', () => {
  it('make the device send messages of the platform to the vectors with a listener', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 5, 42);
    expect(bench.read(CONFIG, MSIX_CONTROL, 2) & 0xc000).toBe(0x8000);
    // Address fee00000, data 5, not masked.
    expect(bench.read(BAR0, msixTable.offset + 5 * 16, 4)).toBe(0xfee0_0000);
    expect(bench.read(BAR0, msixTable.offset + 5 * 16 + 8, 4)).toBe(5);
    expect(bench.read(BAR0, msixTable.offset + 5 * 16 + 12, 4)).toBe(0);
    bench.slot().setInterrupt(INTERRUPT_MSIX, 5, -1);
    expect(bench.read(BAR0, msixTable.offset + 5 * 16 + 12, 4)).toBe(1);
    expect(bench.read(CONFIG, MSIX_CONTROL, 2) & 0x8000).toBe(0);
  });

  it('are arranged even if the guest has memory decoding off, and do not change that', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 0, 42);
    expect(bench.read(CONFIG, COMMAND, 2)).toBe(0);
    expect(bench.read(CONFIG, 0x10)).toBe(0x0000_0004);
    bench.enable();
    expect(bench.read(BAR0, msixTable.offset + 12, 4)).toBe(0);
  });

  it("keep the guest's stores out of the platform's table", () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 0, 42);
    bench.write(BAR0, msixTable.offset, 0x1234);
    expect(bench.read(BAR0, msixTable.offset, 4)).toBe(0xfee0_0000);
    expect(bench.slot().tableWriteCount).toBe(1);
  });

  it('mask and unmask a vector at the device', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 3, 42);
    bench.slot().maskInterrupt(INTERRUPT_MSIX, 3, true);
    expect(bench.read(BAR0, msixTable.offset + 3 * 16 + 12, 4)).toBe(1);
    bench.slot().maskInterrupt(INTERRUPT_MSIX, 3, false);
    expect(bench.read(BAR0, msixTable.offset + 3 * 16 + 12, 4)).toBe(0);
  });

  it('raise INTx as a level with automasking', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.slot().setInterrupt(INTERRUPT_INTX, 0, 7);
    const { hca } = bench.emulation.hcas[0]!;
    const setLevel = (isAsserted: boolean): void => {
      hca.pcieFunction.setIntx(isAsserted, hca.domain.clock.cycleAfter(hca.lp.nowPs));
      bench.emulation.time.touched();
      bench.work();
    };
    setLevel(true);
    expect(bench.raised).toEqual([7]);
    bench.slot().maskInterrupt(INTERRUPT_INTX, 0, false);
    expect(bench.raised).toEqual([7, 7]);
    setLevel(false);
    bench.slot().maskInterrupt(INTERRUPT_INTX, 0, false);
    expect(bench.raised).toEqual([7, 7]);
  });
});

describe('resets of a slot', () => {
  /** Whether the device was reset: a reset releases its owner word. */
  const wasReset = (bench: SlotBench): boolean => bench.readRegister(owner.offset) === 0;

  it('restore after a function-level reset the registers on which the guest’s machine relies', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 9, 42);
    bench.readRegister(owner.offset);
    bench.write(CONFIG, DEVICE_CONTROL, 0xa810, 2);
    expect(wasReset(bench)).toBe(true);
    expect(bench.read(CONFIG, 0x10)).toBe(0xfe00_0004);
    expect(bench.read(CONFIG, COMMAND, 2)).toBe(6);
    expect(bench.read(BAR0, msixTable.offset + 9 * 16 + 12, 4)).toBe(0);
    expect(bench.read(CONFIG, MSIX_CONTROL, 2) & 0x8000).toBe(0x8000);
    expect(bench.emulation.hcas[0]!.hca.pcieFunction.counters.resets).toBe(1);
  });

  it('do the same for a reset by the machine’s message, and for a return from D3hot', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.readRegister(owner.offset);
    bench.slot().reset();
    expect(wasReset(bench)).toBe(true);
    expect(bench.slot().resetCount).toBe(1);
    bench.write(CONFIG, POWER_CONTROL, 3, 2);
    expect(bench.readRegister(owner.offset)).toBe(ALL_ONES);
    bench.write(CONFIG, POWER_CONTROL, 0, 2);
    expect(wasReset(bench)).toBe(true);
    expect(bench.read(CONFIG, 0x10)).toBe(0xfe00_0004);
  });

  it('give the next guest a device in its initial state', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 9, 42);
    bench.readRegister(owner.offset);
    bench.write(CONFIG, DEVICE_CONTROL, 0x30a0, 2);
    const fresh = new SlotBench();
    fresh.connect();
    bench.slot().setInterrupt(INTERRUPT_MSIX, 9, -1);
    bench.slot().clientDisconnected();
    bench.connect();
    const [before, after] = [new Uint8Array(4096), new Uint8Array(4096)];
    fresh.slot().regionRead(CONFIG, 0, before);
    bench.slot().regionRead(CONFIG, 0, after);
    expect(after).toEqual(before);
    bench.enable();
    expect(wasReset(bench)).toBe(true);
    expect(bench.slot().sessionCount).toBe(2);
    expect(bench.emulation.ledgers()[0]!.accesses.failedLoads).toBe(0);
  });
});
