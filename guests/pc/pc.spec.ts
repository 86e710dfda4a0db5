import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { coreCode } from './core-code.ts';
import { ecamAddress, hcaDevice, windowAddress } from './memory-map.ts';
import { pcParameters } from './parameters.ts';
import type { Pc } from './pc.ts';
import { PcMachine } from './pc-machine.ts';
import { code, codeAddress, kernelOf } from './testing/machine-code.ts';

const pcConfig = { ...defaultsOf(pcParameters), memoryMib: 128 };

async function machineWith(seed = 1): Promise<{ machine: PcMachine; pc: Pc }> {
  const machine = await PcMachine.make({
    coreCode: coreCode(),
    ...{ config: configurationOf({ profile: 'connectx3-mps512' }), pc: pcConfig, pcCount: 1 },
    ...{ cabling: 'loopback', faults: [], analysis: undefined, seed },
  });
  return { machine, pc: machine.pcs[0]! };
}

/** A PC that has executed these instructions up to a halt. */
async function executed(instructions: readonly (readonly number[])[], seed = 1): Promise<Pc> {
  const { machine, pc } = await machineWith(seed);
  machine.load([kernelOf([...instructions.flat(), ...code.halt])]);
  for (let steps = 0; !machine.isOver; steps++) {
    if (steps > 100_000) throw new Error(`no halt after ${steps} steps, at ${pc.registers.eip.toString(16)}`);
    machine.step();
  }
  return pc;
}

const psOfInstruction = 400;
const config = (offset: number): number => ecamAddress + hcaDevice * 2 ** 15 + offset;
/** Vendor 15b3, device 1003: a ConnectX-3 (pci.ids). */
const identity = 0x1003_15b3;

describe('the clock of a PC', () => {
  it('advances by each instruction at its cost, and by nothing else while none is due', async () => {
    // One mov, 5000 times dec and jnz, one hlt.
    const pc = await executed([code.countDown(5000)]);
    expect(pc.clock.instructionCount).toBe(1 + 2 * 5000 + 1);
    expect(pc.clock.account).toEqual({
      executingPs: 10_002 * psOfInstruction,
      ...{ loadsPs: expect.any(Number), storesPs: 0, interruptsPs: 0, wakingPs: 0, chancePs: 0, idlePs: 0 },
    });
  });

  it('is the sum of its account', async () => {
    const pc = await executed([code.load(config(0)), code.countDown(100), code.load(config(4))]);
    const { account, nowPs } = pc.clock;
    expect(Object.values(account).reduce((sum, ps) => sum + ps, 0)).toBe(nowPs);
  });

  it('is what the processor reads by rdtsc, at 1 GHz', async () => {
    const early = await executed([code.readClock]);
    const late = await executed([code.countDown(1_000_000), code.readClock]);
    const differenceNs = late.registers.eax - early.registers.eax;
    // Within compiled code the clock is read at the beginning of a quantum, which idle devices let grow to 50,000 instructions.
    expect(differenceNs).toBeGreaterThan(800_000 - 20_000);
    expect(differenceNs).toBeLessThanOrEqual(800_000);
  });

  it('charges a load with the time until its completion arrives, the devices then being at the same instant', async () => {
    const { machine, pc } = await machineWith();
    machine.load([kernelOf([...code.load(config(0)), ...code.forever])]);
    const before = pc.clock.account.loadsPs;
    machine.step();
    const { account, nowPs } = pc.clock;
    expect(pc.registers.eax).toBe(identity);
    // A configuration read crosses the link twice: hundreds of nanoseconds, not microseconds.
    expect(account.loadsPs - before).toBeGreaterThan(200_000);
    expect(account.loadsPs - before).toBeLessThan(2_000_000);
    expect(machine.time.instantPs).toBe(nowPs);
  });
});

describe('a quantum', () => {
  it('takes at most twice as many instructions as asked for, interpreted or compiled', async () => {
    const { machine, pc } = await machineWith();
    machine.load([kernelOf([...code.countDown(2 ** 31 - 1), ...code.halt])]);
    let longest = 0;
    for (let quantum = 0; quantum < 1500; quantum++) {
      const before = pc.clock.instructionCount;
      pc.runQuantum(500);
      longest = Math.max(longest, pc.clock.instructionCount - before);
    }
    expect(pc.clock.instructionCount).toBeGreaterThan(700_000);
    expect(longest).toBeGreaterThanOrEqual(500);
    expect(longest).toBeLessThanOrEqual(1000);
  });

  it('ends soon after a store to the device', async () => {
    const { machine, pc } = await machineWith();
    const enable = [...code.set(6), ...code.store(config(4))];
    machine.load([kernelOf([...enable, ...code.store(windowAddress), ...code.countDown(1_000_000)])]);
    pc.runQuantum(50_000);
    expect(pc.cutQuantumCount).toBe(1);
    expect(pc.function.storeCount).toBe(1);
    expect(pc.clock.instructionCount).toBeLessThan(100);
  });
});

describe('the function in the slot of a PC', () => {
  it('is found by the ports 0xcf8 and 0xcfc as by memory accesses of its configuration space', async () => {
    const address = 2 ** 31 + hcaDevice * 2 ** 11;
    const ports = await executed([code.set(address), code.portStore(0xcf8), code.portLoad(0xcfc)]);
    expect(ports.registers.eax).toBe(identity);
    const memory = await executed([code.load(config(0))]);
    expect(memory.registers.eax).toBe(identity);
  });

  it('answers no memory access before its command register allows it, and the same one after that', async () => {
    const bar0 = windowAddress;
    const pc = await executed([
      ...[code.load(bar0), code.keep],
      ...[code.set(6), code.store(config(4)), code.load(bar0)],
    ]);
    expect(pc.registers.ebx).toBe(0xffff_ffff);
    expect(pc.registers.eax).not.toBe(0xffff_ffff);
  });

  it('has BARs that firmware has placed at multiples of their sizes', async () => {
    const pc = await executed([code.load(config(0x10)), code.keep, code.load(config(0x18))]);
    expect(pc.registers.ebx & ~0xf).toBe(windowAddress | 0);
    // 8 MiB: the device's UAR pages, and as many BlueFlame pages.
    expect(((pc.registers.eax & ~0xf) >>> 0) % 2 ** 23).toBe(0);
  });

  it('is absent on the numbers of the bus that no device has', async () => {
    const pc = await executed([code.load(ecamAddress + 20 * 2 ** 15)]);
    expect(pc.registers.eax).toBe(0xffff_ffff);
  });
});

describe('a PC', () => {
  it('repeats a run to the picosecond, with the random numbers of its seed', async () => {
    const program = [code.random, code.keep, code.load(config(0)), code.countDown(300_000)];
    const [first, second, other] = [
      await executed(program),
      await executed(program),
      await executed(program, 2),
    ];
    expect(second.clock.account).toEqual(first.clock.account);
    expect(second.registers).toEqual(first.registers);
    expect(other.registers.ebx).not.toBe(first.registers.ebx);
  });

  it('continues from a snapshot as if it had not been interrupted', async () => {
    const program = kernelOf([...code.countDown(400_000), ...code.load(config(0)), ...code.halt]);
    const { machine, pc } = await machineWith();
    machine.load([program]);
    while (pc.clock.instructionCount < 200_000) machine.step();
    const snapshot = await pc.snapshot();
    const { machine: later, pc: continued } = await machineWith();
    await later.restore(snapshot);
    expect(continued.clock.nowPs).toBe(pc.clock.nowPs);
    while (!later.isOver) later.step();
    while (!machine.isOver) machine.step();
    expect(continued.registers).toEqual(pc.registers);
    expect(continued.clock.instructionCount).toBe(pc.clock.instructionCount);
    expect(continued.registers.eax).toBe(identity);
  });

  it('refuses a kernel that is not for its processor, and one that does not fit', async () => {
    const { machine } = await machineWith();
    const files = kernelOf(code.halt);
    const foreign = { ...files, vmlinux: Uint8Array.from(files.vmlinux).fill(62, 18, 19) };
    expect(() => machine.load([foreign])).toThrow(/a 32-bit ELF file for i386/);
    const initramfs = new Uint8Array(128 * 2 ** 20);
    expect(() => machine.load([{ ...files, initramfs }])).toThrow(
      /initial file system is 134217728, expected at most/,
    );
  });

  it('gives its memory in copies, and refuses addresses beyond it', async () => {
    const pc = await executed([code.countDown(1)]);
    expect([...pc.readMemory(codeAddress, 1)]).toEqual([0xb9]);
    expect(() => pc.readMemory(128 * 2 ** 20 - 1, 2)).toThrow(/address/);
  });
});

describe('a guest that ends its PC', () => {
  it('switches it off by the sleep type of its ACPI tables', async () => {
    const { machine, pc } = await machineWith();
    // mov dx, 0xb004; mov ax, SLP_EN and type 5; out dx, ax
    const off = [0x66, 0xba, 0x04, 0xb0, 0x66, 0xb8, 0x00, 0x34, 0x66, 0xef];
    machine.load([kernelOf([...off, ...code.forever])]);
    machine.step();
    expect([pc.end, machine.isOver]).toEqual(['off', true]);
    const { instructionCount } = pc.clock;
    machine.step();
    expect(pc.clock.instructionCount).toBe(instructionCount);
  });

  it('resets it by the controller of its keyboard', async () => {
    const { machine, pc } = await machineWith();
    // mov al, 0xfe; out 0x64, al
    machine.load([kernelOf([0xb0, 0xfe, 0xe6, 0x64, ...code.forever])]);
    machine.step();
    expect(pc.end).toBe('reset');
  });
});
