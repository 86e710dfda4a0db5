import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { coreCode } from './core-code.ts';
import { ecamAddress, hcaDevice, windowAddress } from './memory-map.ts';
import { pcParameters } from './parameters.ts';
import type { Pc } from './pc.ts';
import { PcMachine } from './pc-machine.ts';
import { type PcProfileOptions, UNTIL_HALT } from './pc-profile.ts';
import { code, codeAddress, kernelOf } from './testing/machine-code.ts';

const config = configurationOf({ profile: 'connectx3-mps512' });
/** An access of it reaches the PC, and not the device: it takes no simulated time. */
const vectorTable = windowAddress + config.pcie.function.msixTableOffset;
const identity = ecamAddress + hcaDevice * 2 ** 15;
const commandRegister = identity + 4;

async function executed(program: readonly number[], profile?: PcProfileOptions): Promise<Pc> {
  const machine = await PcMachine.make({
    coreCode: coreCode(),
    ...{ config, pc: { ...defaultsOf(pcParameters), memoryMib: 128 }, pcCount: 1, cabling: 'loopback' },
    ...{ faults: [], analysis: undefined, seed: 1, profile },
  });
  machine.load([kernelOf(program)]);
  for (let steps = 0; !machine.isOver; steps++) {
    if (steps > 1_000_000) throw new Error(`no halt after ${steps} steps`);
    machine.step();
  }
  return machine.pcs[0]!;
}

const dword = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
const enable = [...code.set(6), ...code.store(commandRegister)];
const psOfInstruction = 400;

describe('the instructions of a profile', () => {
  it('are those of the clock, each charged once', async () => {
    // mov, then dec and jnz in each round; twice; hlt.
    const pc = await executed([...code.countDown(300_000), ...code.countDown(100_000), ...code.halt], {});
    const { instructions, instructionCount, account, halts } = pc.profile!;
    expect(instructionCount).toBe(1 + 2 * 300_000 + 1 + 2 * 100_000 + 1);
    expect(instructionCount).toBe(pc.clock.instructionCount);
    expect(instructions.reduce((sum, each) => sum + each.instructions, 0)).toBe(instructionCount);
    expect(instructionCount * psOfInstruction).toBe(account.executingPs);
    expect(halts).toBe(1);
  });

  it('are charged to the address at which their quantum ended, or to the halt that ended it', async () => {
    const pc = await executed([...code.countDown(300_000), ...code.countDown(100_000), ...code.halt], {
      quantumInstructions: 1000,
    });
    const rows = pc.profile!.instructions;
    expect(rows.every(({ mode }) => mode === 'kernel')).toBe(true);
    const within = (from: number, to: number): number =>
      rows
        .filter(({ address }) => address >= codeAddress + from && address < codeAddress + to)
        .reduce((sum, each) => sum + each.instructions, 0);
    const untilHalt = rows.filter(({ address }) => address === UNTIL_HALT);
    // A quantum of up to twice 1000 may lie across the border of the loops; the last one ends by the halt.
    expect(Math.abs(within(0, 8) - 600_001)).toBeLessThan(2000);
    expect(Math.abs(within(8, 16) - 200_001)).toBeLessThan(4000);
    expect(untilHalt).toHaveLength(1);
    expect(untilHalt[0]!.samples).toBe(1);
    expect(untilHalt[0]!.instructions).toBeLessThanOrEqual(2000);
  });

  it('are named by the program in whose page tables they ran', async () => {
    const pc = await executed([...code.countDown(2000), ...code.halt], { programOf: () => 'all' });
    expect(new Set(pc.profile!.instructions.map(({ program }) => program))).toEqual(new Set(['all']));
  });

  it('are only those since the profile began', async () => {
    const pc = await executed([...code.countDown(2000), ...code.halt], {});
    pc.beginProfile();
    expect(pc.profile).toEqual({
      ...{ instructions: [], accesses: [], instructionCount: 0, halts: 0, contexts: undefined },
      interrupts: { messages: 0, pins: 0 },
      account: {
        executingPs: 0,
        loadsPs: 0,
        storesPs: 0,
        interruptsPs: 0,
        wakingPs: 0,
        chancePs: 0,
        idlePs: 0,
      },
    });
  });
});

describe('the accesses of a profile', () => {
  it('are counted at the instruction that makes them, interpreted and compiled', async () => {
    const rounds = 60_000;
    const parts = {
      load: [0xa1, ...dword(vectorTable)],
      // Two instructions between them, so that an address of the block or of the one before would differ.
      between: [0x90, 0x90],
      loadByte: [0x8a, 0x1d, ...dword(vectorTable + 1)],
      store: [0xa3, ...dword(vectorTable + 8)],
      // or dword [vectorTable + 12], 0: loads and stores.
      both: [0x83, 0x0d, ...dword(vectorTable + 12), 0],
      // mov esi, table; mov edi, memory; mov edx, ecx; mov ecx, 4
      prepare: [0xbe, ...dword(vectorTable), 0xbf, ...dword(0x30_0000), 0x89, 0xca, 0xb9, ...dword(4)],
      // rep movsd, four loads; mov ecx, edx; dec ecx
      copy: [0xf3, 0xa5],
      restore: [0x89, 0xd1, 0x49],
    };
    const body = Object.values(parts).flat();
    const before = [...enable, 0xb9, ...dword(rounds)];
    const jump = [0x0f, 0x85, ...dword(-(body.length + 6))];
    const pc = await executed([...before, ...body, ...jump, ...code.halt], {});
    const addresses = new Map<string, number>();
    let at = codeAddress + before.length;
    for (const [name, bytes] of Object.entries(parts)) {
      addresses.set(name, at);
      at += bytes.length;
    }
    const countsOf = (kind: string, address: number | undefined): number | undefined =>
      pc.profile!.accesses.find((each) => each.kind === kind && each.address === address)?.count;
    expect(countsOf('load', addresses.get('load'))).toBe(rounds);
    expect(countsOf('load', addresses.get('loadByte'))).toBe(rounds);
    expect(countsOf('store', addresses.get('store'))).toBe(rounds);
    expect(countsOf('load', addresses.get('both'))).toBe(rounds);
    expect(countsOf('store', addresses.get('both'))).toBe(rounds);
    expect(countsOf('load', addresses.get('copy'))).toBe(4 * rounds);
    expect(countsOf('configuration', codeAddress + 5)).toBe(1);
    expect(pc.profile!.accesses).toHaveLength(7);
    expect(pc.function.loadCount).toBe(7 * rounds);
    expect(pc.function.storeCount).toBe(2 * rounds);
  });

  it('have the times of the clock, and those of ports are at the instruction too', async () => {
    const address = 2 ** 31 + hcaDevice * 2 ** 11;
    const program = [
      ...[...enable, ...code.load(windowAddress), ...code.store(windowAddress + 16)],
      ...[...code.set(address), ...code.portStore(0xcf8), ...code.portLoad(0xcfc), ...code.halt],
    ];
    const pc = await executed(program, {});
    const { accesses, account } = pc.profile!;
    const durationOf = (kind: string): number =>
      accesses.filter((each) => each.kind === kind).reduce((sum, each) => sum + each.durationPs, 0);
    expect(durationOf('store')).toBe(account.storesPs);
    // 10 cycles of 400 ps.
    expect(account.storesPs).toBe(4000);
    expect(durationOf('load') + durationOf('configuration')).toBe(account.loadsPs);
    // v86 reads the register when its address is stored, by `out dx, eax` before the five bytes of the load and the halt.
    const outAddress = codeAddress + program.length - 7;
    expect(accesses.find((each) => each.address === outAddress)?.kind).toBe('configuration');
  });
});

describe('a profile', () => {
  it('changes nothing that happens', async () => {
    const program = [...enable, ...code.countDown(200_000), ...code.load(windowAddress), ...code.halt];
    const [plain, profiled] = [await executed(program), await executed(program, {})];
    expect(profiled.clock.account).toEqual(plain.clock.account);
    expect(profiled.registers).toEqual(plain.registers);
    expect(profiled.quantumCount).toBe(plain.quantumCount);
    expect(plain.profile).toBeUndefined();
  });

  it('refuses quanta that a PC cannot have', async () => {
    for (const quantumInstructions of [49, 50_001, 100.5])
      await expect(executed(code.halt, { quantumInstructions })).rejects.toThrow(
        /quantumInstructions.*50 to 50000/,
      );
  });

  it('is equal in two runs', async () => {
    const program = [...enable, ...code.countDown(200_000), ...code.load(windowAddress), ...code.halt];
    const options = { quantumInstructions: 500 };
    expect((await executed(program, options)).profile).toEqual((await executed(program, options)).profile);
  });
});
