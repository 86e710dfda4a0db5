import { describe, expect, it } from 'vitest';
import type { DriverPlatform, ProcessMemory as DriverProcessMemory } from '../driver/platform.ts';
import type { CorePort, InterruptSink, HostMemory as RootComplexMemory } from '../hw/pcie/index.ts';
import type { UserCpu, VerbsPlatform } from '../userlib/platform.ts';
import type { CoreThread } from './core-thread.ts';
import { driverCostsOf, verbsCostsOf } from './costs.ts';
import type { DevicePort } from './device-port.ts';
import type { ProgramContext } from './host.ts';
import { type CostConfig, costParameters, hostParameters } from './host-parameters.ts';
import type { InterruptController } from './interrupt-controller.ts';
import { driverPlatformOf } from './kernel.ts';
import { pageBytes } from './mm/page.ts';
import type { PhysicalMemory } from './physical-memory.ts';
import { at, newTestHost } from './testing.ts';

describe('the host fits its neighbours', () => {
  it('by structure, as the type checker finds', () => {
    const fits = {
      memory: (memory: PhysicalMemory): RootComplexMemory => memory,
      interrupts: (controller: InterruptController): InterruptSink => controller,
      port: (port: CorePort): DevicePort => port,
      cpu: (cpu: CoreThread): UserCpu => cpu,
      // The driver provides its devices.
      verbs: (context: ProgramContext): Omit<VerbsPlatform, 'devices'> => context,
      process: (context: ProgramContext): DriverProcessMemory => context.memory,
    };
    expect(Object.keys(fits)).toHaveLength(6);
  });

  it('gives the driver all of its platform except random bits, which belong to the machine', async () => {
    const { host, runToEnd } = newTestHost({ cost: { systemCallEntry: 100, systemCallExit: 50 } });
    const platform: Omit<DriverPlatform, 'randomBits'> = driverPlatformOf(host, 0x100, [
      { address: 2 ** 35, sizeBytes: 1 << 20 },
    ]);
    host.runProgram('p', 0, async ({ cpu, process }) => {
      expect(await platform.pci.readConfig32(cpu, 0x10)).toBe(0x100 * 4096 + 0x10);
      platform.systemCallEntered?.(cpu, 'create_cq', 'control');
      platform.systemCallEntered?.(cpu, 'create_qp', 'control');
      expect(process.systemCalls).toMatchObject({ control: 2, dataPath: 0 });
      const address = platform.memory.allocateFrames(4);
      expect(address % pageBytes).toBe(0);
      expect(host.frames.usedCount).toBe(4);
      platform.memory.freeFrames(address, 4);
    });
    await runToEnd();
    expect(host.report()).toMatchObject({ systemCalls: { control: 2, dataPath: 0 }, isBalanced: true });
    // Twice in and out.
    expect(host.cores[0]!.report().cycles.systemCall).toBe(300);
    expect(host.frames.usedCount).toBe(0);
  });

  it('derives the costs of driver and library from one profile', () => {
    const names = Object.keys(costParameters);
    const cost: Partial<CostConfig> = Object.fromEntries(names.map((name, index) => [name, index + 1]));
    const { host } = newTestHost({ cost });
    expect(Object.values(driverCostsOf(host.config.cost)).every((cycles) => cycles > 0)).toBe(true);
    expect(verbsCostsOf(host.config.cost).mmioStore).toBe(cost.mmioStore);
  });

  it('names unit, range and source of every parameter', () => {
    for (const table of Object.values(hostParameters)) {
      for (const parameter of Object.values(table)) {
        expect(parameter.source.length).toBeGreaterThan(5);
        expect(parameter.doc.length).toBeGreaterThan(5);
        if (parameter.kind !== 'number') continue;
        expect(parameter.default).toBeGreaterThanOrEqual(parameter.min);
        expect(parameter.default).toBeLessThanOrEqual(parameter.max);
      }
    }
  });
});

describe('a process', () => {
  it('ends with its last program: exit hooks, the latest first, then its memory', async () => {
    const { host, runToEnd } = newTestHost();
    const process = host.newProcess('two threads');
    const order: string[] = [];
    const address = process.memory.map(3 * pageBytes);
    process.memory.space.write(address, new Uint8Array(3 * pageBytes));
    process.onExit(async (cpu) => {
      await cpu.sleep(1000);
      order.push(`driver, ${host.frames.usedCount} frames`);
    });
    process.onExit(async () => {
      order.push('library');
    });
    process.onExit(async () => {
      order.push('taken back');
    })();
    host.runProgram(
      'first',
      0,
      async ({ cpu }) => {
        await cpu.sleep(1_000_000);
        order.push('first');
      },
      process,
    );
    host.runProgram(
      'second',
      1,
      async ({ cpu }) => {
        await cpu.sleep(2_000_000);
        order.push('second');
      },
      process,
    );
    await runToEnd();
    expect(order).toEqual(['first', 'second', 'library', 'driver, 3 frames']);
    expect([process.isEnded, host.frames.usedCount, process.memory.physicalAddress(address)]).toEqual([
      true,
      0,
      -1,
    ]);
  });

  it('pays for its pins, and keeps pinned frames past its end until they are released', async () => {
    const { host, runToEnd } = newTestHost({ cost: { pinPerPage: 100, unpinPerPage: 10 } });
    host.runProgram('p', 0, async ({ cpu, memory, process }) => {
      const pinned = memory.pin(cpu, memory.map(4 * pageBytes), 4 * pageBytes);
      if (typeof pinned === 'string') throw new Error(pinned);
      process.onExit(async (exitCpu) => {
        await exitCpu.settle();
        expect(host.frames.usedCount).toBe(4);
        memory.unpin(exitCpu, pinned);
      });
      memory.unmap(pinned.address, 4 * pageBytes);
    });
    await runToEnd();
    expect(host.cores[0]!.report().cycles.pin).toBe(440);
    expect(host.frames.usedCount).toBe(0);
  });

  it('may lock as much as its limit allows', async () => {
    const { host, runToEnd } = newTestHost({ memory: { memlockLimitKib: 8 } });
    host.runProgram('p', 0, async ({ cpu, memory }) => {
      const address = memory.map(3 * pageBytes);
      expect(memory.pin(cpu, address, 3 * pageBytes)).toBe('ENOMEM');
      expect(typeof memory.pin(cpu, address, 2 * pageBytes)).toBe('object');
    });
    await runToEnd();
  });
});

describe('kernel threads', () => {
  it('preempt the program of their core and return it', async () => {
    const { host, process, runToEnd } = newTestHost({ cost: { contextSwitch: 40 } });
    const order: string[] = [];
    at(process, 40_000, () => {
      host.spawn('work', async (cpu) => {
        cpu.charge('driver', 60);
        await cpu.settle();
        order.push(`work ${process.nowPs / 400}`);
      });
    });
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 200);
      await cpu.settle();
      order.push(`program ${process.nowPs / 400}`);
    });
    await runToEnd();
    // Preempted at cycle 100; a switch and 60 cycles; a switch back and the remaining 100 cycles.
    expect(order).toEqual(['work 200', 'program 340']);
    expect(host.cores[0]!).toMatchObject({ contextSwitchCount: 2 });
    expect(host.cores[0]!.report()).toMatchObject({ cycles: { contextSwitch: 80 }, isBalanced: true });
  });

  it('let the program run while they wait', async () => {
    const { host, process, runToEnd } = newTestHost({ cost: { contextSwitch: 0 } });
    const signal = host.newSignal();
    host.spawn('work', async (cpu) => {
      expect(await signal.wait(cpu)).toBe(true);
      cpu.charge('driver', 10);
    });
    const program = host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 100);
      signal.raise();
      cpu.charge('application', 100);
      await cpu.settle();
    });
    await runToEnd();
    expect(program.endedPs).toBe(210 * 400);
    expect(process.runningProgramCount).toBe(0);
  });
});

describe('the order of one instant', () => {
  it('does not matter: shuffled, the host gives the same report', async () => {
    const runOnce = async (seed: number) => {
      let state = seed;
      const shuffle = () => {
        state = (state * 48_271) % 2_147_483_647;
        return state / 2_147_483_647;
      };
      const { host, process, ports, runToEnd } = newTestHost({}, seed === 0 ? {} : { shuffle });
      const signal = host.newSignal();
      for (const vector of [0, 2, 4]) {
        host.interrupts.attach(vector, async (cpu) => {
          cpu.charge('interrupt', vector + 3);
          cpu.mmioWrite32(0x8000_0000, vector);
          signal.raise();
          await cpu.settle();
        });
        const { address, data } = host.interrupts.messageFor(vector);
        // All at the instant when the program's time is reached and its stores leave.
        for (const atPs of [200_000, 400_000])
          at(process, atPs, () => host.interrupts.message(address, data));
      }
      at(process, 400_000, () => host.spawn('a', async (cpu) => cpu.charge('driver', 100)));
      at(process, 800_000, () => {
        host.memory.write(0x20_0000, 1, Uint8Array.of(1), 0);
      });
      const ends: number[] = [];
      for (const core of [0, 1]) {
        host.runProgram(`p${core}`, core, async ({ cpu }) => {
          for (let step = 0; step < 20; step++) {
            cpu.pushDeviceStore(0x8000_0000, 4, 'uncached');
            cpu.commit('post', 250);
            await cpu.settle();
          }
          await cpu.spin(0x20_0000, 25, () => host.memory.bytes[0x20_0000] === 1);
          ends.push(cpu.localPs);
          await signal.wait(cpu, 1_000_000);
        });
      }
      await runToEnd();
      return JSON.stringify([host.report(), ends.sort(), ports.map(({ stores }) => stores)]);
    };
    const reference = await runOnce(0);
    for (let seed = 1; seed <= 20; seed++) expect(await runOnce(seed)).toBe(reference);
  });
});
