/**
 * The paths side by side: each delivers the same bytes, with the costs of its mechanism. The ledger of the passive host's cores
 * at start and end shows that a one-sided operation costs it nothing.
 */
import { describe, expect, it, vi } from 'vitest';
import runCompare, { type CompareRow } from '../experiments/runs/compare-run.ts';
import {
  type CompareArgs,
  type ComparePath,
  comparePaths,
  machineOf,
  type SideResult,
} from '../experiments/workloads/compare-plan.ts';
import type { Machine, MachineOptions } from '../machine/machine.ts';
import { hasCard, profileListing } from '../machine/profile/index.ts';
import { smallMachine, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

const argsOf = (path: ComparePath, messages = 4): CompareArgs => ({
  path,
  sizeBytes: 2048,
  totalBytes: 2048 * messages,
  latencyRounds: 2,
  file: null,
});

const rowOf = (path: ComparePath, messages?: number, machine: MachineOptions = {}): Promise<CompareRow> =>
  runCompare({
    machine: { ...machine, set: { ...smallMemory, ...machine.set } },
    args: argsOf(path, messages),
  });

describe('the same bytes', () => {
  it.each(comparePaths)('arrive by %s, and the ledgers balance', async (path) => {
    const row = await rowOf(path);
    expect(row).toMatchObject({ isEqual: true, isBalanced: true, messages: 4, totalBytes: 8192 });
    expect(row.latencyPs).toBeGreaterThan(0);
    expect(row.durationPs).toBeGreaterThan(0);
  });

  it.each(['pio', 'dma'] as const)('arrive by %s even if the cable loses frames', async (path) => {
    const row = await rowOf(path, 8, { set: { 'ethernet.lossPerMillion': 150_000 }, seed: 3 });
    expect(row).toMatchObject({ isEqual: true, isBalanced: true });
  });
});

describe('a shipped profile', () => {
  const profiles = profileListing()
    .profiles.filter(hasCard)
    .map(({ name }) => name);
  it.each(profiles)('%s carries messages longer than its frames by each path', async (profile) => {
    for (const path of comparePaths) {
      const args = { ...argsOf(path), sizeBytes: 6000, totalBytes: 12_000 };
      const row = await runCompare({ machine: { profile, set: smallMemory }, args });
      expect(row, path).toMatchObject({ isEqual: true, isBalanced: true, messages: 2 });
    }
  });

  it.each([1500, 1501, 9000])('or an MTU of %i sends frames that are full by hand', async (mtuBytes) => {
    for (const path of ['pio', 'dma'] as const) {
      const args = { ...argsOf(path), sizeBytes: 9000, totalBytes: 18_000 };
      const row = await runCompare({
        machine: { set: { ...smallMemory, 'ethernet.mtuBytes': mtuBytes } },
        args,
      });
      expect(row, path).toMatchObject({ isEqual: true, isBalanced: true });
    }
  });
});

describe('the cost of a path', () => {
  it('by programmed I/O is a TLP for each word, and the cores of both hosts all the time', async () => {
    const { hosts, totalBytes, durationPs } = await rowOf('pio');
    const words = totalBytes / 4;
    for (const { tlps, cyclesTotal, cycles, interrupts, copiedBytes } of hosts) {
      expect(tlps).toBeGreaterThan(words);
      expect(cyclesTotal).toBeGreaterThan((0.95 * durationPs) / 400);
      expect(cycles.programmedIo).toBeGreaterThan(0.9 * cyclesTotal);
      expect({ interrupts, copiedBytes }).toEqual({ interrupts: 0, copiedBytes: totalBytes });
    }
  });

  it('by a DMA controller is no copy by the cores, but interrupts and switches', async () => {
    const { hosts, totalBytes } = await rowOf('dma');
    for (const { copiedBytes, interrupts, contextSwitches, memory } of hosts) {
      expect(copiedBytes).toBe(0);
      expect(memory.systemDma).toBe(totalBytes);
      // Two frames a message, each moved by the controller and answered by a frame.
      expect(interrupts).toBeGreaterThanOrEqual(8);
      expect(contextSwitches).toBeGreaterThanOrEqual(8);
    }
  });

  it('by sockets is a copy on each side, and three bytes over the memory bus for one', async () => {
    const { hosts, totalBytes } = await rowOf('sockets', 16);
    for (const { copiedBytes, memory, systemCalls } of hosts) {
      expect(copiedBytes).toBe(totalBytes);
      expect(memory.total).toBeGreaterThanOrEqual(3 * totalBytes);
      expect(memory.total).toBeLessThan(3.5 * totalBytes);
      expect(systemCalls).toBe(16);
    }
    expect(hosts[0].interrupts).toBeGreaterThan(0);
    expect(hosts[1].contextSwitches).toBeGreaterThan(0);
  });

  it.each(['send', 'write', 'read'] as const)(
    'by %s is no copy, no interrupt, no system call, and one byte over the bus for one',
    async (path) => {
      const { hosts, totalBytes } = await rowOf(path, 16);
      for (const { copies, interrupts, systemCalls, contextSwitches, memory } of hosts) {
        expect({ copies, interrupts, systemCalls, contextSwitches }).toEqual({
          copies: 0,
          interrupts: 0,
          systemCalls: 0,
          contextSwitches: 0,
        });
        expect(memory.total).toBeLessThan(1.2 * totalBytes);
      }
    },
  );
});

/** A comparison's two programs on a separate machine, before they run. */
async function loaded(path: ComparePath, options: MachineOptions): Promise<Machine> {
  const machine = await smallMachine({ ...options, set: { ...options.set, ...machineOf(path) } });
  for (const [node, exportName] of ['compareSender', 'compareReceiver'].entries()) {
    const run = { url: new URL('../experiments/workloads/compare-sides.ts', import.meta.url), exportName };
    await machine.load({ node, name: exportName, run, args: argsOf(path) });
  }
  return machine;
}

/** Cycles of a host's cores that were not idle, so far. */
async function workedCycles(machine: Machine, node: number): Promise<number> {
  const { hosts } = await machine.ledgers();
  return hosts
    .find((host) => host.node === node)!
    .cores.reduce((sum, { cycles, aheadCycles, totalCycles }) => {
      expect(aheadCycles).toBe(0);
      return sum + totalCycles - cycles.idle;
    }, 0);
}

describe('the passive side of a machine', () => {
  it.each([
    ['write', 1, 'single'],
    ['read', 0, 'single'],
    ['read', 0, 'per-device'],
  ] as const)(
    'of a one-sided %s is host %i, which it costs not one cycle by the ledger of its cores: %s',
    async (path, passive, partition) => {
      let times: readonly [number, number];
      {
        await using machine = await loaded(path, { partition });
        await machine.run();
        const results = await machine.results<SideResult[]>();
        const active = results[1 - passive]!.stream;
        expect(results[passive]!.stream).toMatchObject({
          isActive: false,
          spent: { cyclesTotal: 0, cycles: {} },
        });
        expect(active.spent.cyclesTotal).toBeGreaterThan(1000);
        times = [active.startPs, active.endPs];
      }
      // The same run again, stopped at start and end to inspect the cores.
      await using machine = await loaded(path, { partition });
      await machine.runTo(times[0]);
      const before = await workedCycles(machine, passive);
      await machine.runTo(times[1]);
      expect(await workedCycles(machine, passive)).toBe(before);
      expect(before).toBeGreaterThan(0);
      await machine.run();
      expect((await machine.report()).checks.balanced).toBe(true);
    },
  );
});
