import { describe, expect, it } from 'vitest';
import { ConfigurationError, defaultsOf } from '../../base/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { type AccessFault, AccessFaults } from './access-faults.ts';
import { coreCode } from './core-code.ts';
import { ecamAddress, hcaDevice, windowAddress } from './memory-map.ts';
import { pcParameters } from './parameters.ts';
import type { Pc } from './pc.ts';
import { PcMachine } from './pc-machine.ts';
import { code, kernelOf } from './testing/machine-code.ts';

const identity = ecamAddress + hcaDevice * 2 ** 15;
const enable = [...code.set(6), ...code.store(identity + 4)];
/** BAR0's first dwords: no register of the model, which reads 0. */
const place = windowAddress;

async function executed(program: readonly number[], faults: readonly AccessFault[]): Promise<Pc> {
  const machine = await PcMachine.make({
    coreCode: coreCode(),
    config: configurationOf({ profile: 'connectx3-mps512' }),
    ...{ pc: { ...defaultsOf(pcParameters), memoryMib: 128 }, pcCount: 1, cabling: 'loopback' },
    ...{ faults: [], analysis: undefined, seed: 1 },
  });
  const pc = machine.pcs[0]!;
  for (const fault of faults) pc.function.faults.inject(fault);
  machine.load([kernelOf([...enable, ...program, ...code.halt])]);
  for (let steps = 0; !machine.isOver; steps++) {
    if (steps > 1_000_000) throw new Error(`no halt after ${steps} steps`);
    machine.step();
  }
  return pc;
}

const writesOf = (pc: Pc): number =>
  Object.values(pc.function.slot.accesses.registers()).reduce((sum, { writes }) => sum + writes, 0);
const readsOf = (pc: Pc): number =>
  Object.values(pc.function.slot.accesses.registers()).reduce((sum, { reads }) => sum + reads, 0);

describe('a fault of a load', () => {
  const twoLoads = [...code.load(place), ...code.keep, ...code.load(place)];

  it('reads all ones, at that load alone (PCIe 2.3.2)', async () => {
    const pc = await executed(twoLoads, [{ kind: 'load-ones', nth: 1 }]);
    expect([pc.registers.ebx, pc.registers.eax, readsOf(pc)]).toEqual([0xffff_ffff, 0, 1]);
    const later = await executed(twoLoads, [{ kind: 'load-ones', nth: 2 }]);
    expect([later.registers.ebx, later.registers.eax]).toEqual([0, 0xffff_ffff]);
  });

  it('takes that much longer, and has its value', async () => {
    const plain = await executed(twoLoads, []);
    const late = await executed(twoLoads, [{ kind: 'load-late', nth: 1, delayPs: 3_000_000 }]);
    expect([late.registers.ebx, readsOf(late)]).toEqual([0, 2]);
    expect(late.clock.account.loadsPs - plain.clock.account.loadsPs).toBe(3_000_000);
  });

  it('ends by the completion timeout of 50 ms (PCIe 7.5.3.16)', async () => {
    const pc = await executed(twoLoads, [{ kind: 'load-timeout', nth: 2 }]);
    expect([pc.registers.ebx, pc.registers.eax]).toEqual([0, 0xffff_ffff]);
    expect(pc.clock.account.loadsPs).toBeGreaterThanOrEqual(50e9);
  });
});

describe('a fault of a store', () => {
  const twoStores = [...code.store(place), ...code.store(place + 4), ...code.countDown(5000)];

  it('loses it, or repeats it', async () => {
    expect(writesOf(await executed(twoStores, []))).toBe(2);
    expect(writesOf(await executed(twoStores, [{ kind: 'store-lost', nth: 2 }]))).toBe(1);
    expect(writesOf(await executed(twoStores, [{ kind: 'store-twice', nth: 1 }]))).toBe(3);
  });

  it('holds it and those after it, until a load pushes them (PCIe 2.4.1)', async () => {
    const fault = { kind: 'store-late', nth: 1, delayPs: 1e12 } as const;
    expect(writesOf(await executed(twoStores, [fault]))).toBe(0);
    expect(writesOf(await executed([...twoStores, ...code.load(place)], [fault]))).toBe(2);
    // 10,000 instructions of 400 ps pass the delay.
    expect(writesOf(await executed(twoStores, [{ ...fault, delayPs: 1_000_000 }]))).toBe(2);
  });
});

it('a removed function reads ones, has no effect and keeps what it had received', async () => {
  const program = [...code.store(place), ...code.load(place), ...code.keep, ...code.store(place)];
  const pc = await executed([...program, ...code.load(identity)], [{ kind: 'removal', nth: 2 }]);
  expect([pc.registers.ebx, pc.registers.eax]).toEqual([0xffff_ffff, 0xffff_ffff]);
  expect([readsOf(pc), writesOf(pc), pc.function.faults.isRemoved]).toEqual([0, 1, true]);
});

it('a fault is counted from its injection, and happens once', () => {
  const faults = new AccessFaults();
  faults.atLoad();
  faults.inject({ kind: 'load-ones', nth: 2 });
  expect([faults.atLoad(), faults.atStore(), faults.atLoad()?.kind, faults.atLoad()]).toEqual([
    ...[undefined, undefined, 'load-ones', undefined],
  ]);
  expect([faults.happenedCount, faults.pendingCount]).toEqual([1, 0]);
});

it('refuses faults that cannot happen', () => {
  const faults = new AccessFaults();
  for (const wrong of [
    { kind: 'load-ones', nth: 0 },
    { kind: 'load-late', nth: 1 },
    { kind: 'load-late', nth: 1, delayPs: 1 },
    { kind: 'store-lost', nth: 1, delayPs: 1000 },
  ] as const)
    expect(() => faults.inject(wrong)).toThrow(ConfigurationError);
  for (let count = 0; count < 1024; count++) faults.inject({ kind: 'removal', nth: 1 });
  expect(() => faults.inject({ kind: 'removal', nth: 1 })).toThrow(/at most 1024/);
});
