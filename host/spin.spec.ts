import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CoreThread } from './core-thread.ts';
import { at, newTestHost } from './testing.ts';

const cyclePs = 400;
const page = 0x20_0000;
const one = Uint8Array.of(1);

type Wait = (cpu: CoreThread, roundCycles: number, isReady: () => boolean) => Promise<void>;

const spin: Wait = (cpu, roundCycles, isReady) => cpu.spin(page, roundCycles, isReady);

/** The loop that spin promises to equal. */
const pollingLoop: Wait = async (cpu, roundCycles, isReady) => {
  if (isReady()) return;
  await cpu.settle();
  while (!isReady()) {
    cpu.charge('poll', roundCycles);
    await cpu.settle();
  }
};

/** Two pages; the condition depends on the second. */
const spinOver: Wait = (cpu, roundCycles, isReady) => cpu.spinOver([page + 8192, page], roundCycles, isReady);

const spinThen: Wait = (cpu, roundCycles, isReady) => cpu.spinThen(page, roundCycles, isReady, () => {});

/** The loop that spinThen promises to equal. */
const settledLoop: Wait = async (cpu, roundCycles, isReady) => {
  await cpu.settle();
  await pollingLoop(cpu, roundCycles, isReady);
};

interface Scenario {
  readonly clockMHz: number;
  readonly before: readonly number[];
  readonly roundCycles: number;
  /** Instants of the device's writes in picoseconds; the program waits for that many. */
  readonly writes: readonly number[];
  readonly interrupts: readonly number[];
  readonly kernelThreads: readonly number[];
}

async function run(scenario: Scenario, wait: Wait) {
  const { clockMHz, before, roundCycles, writes } = scenario;
  const { host, process, ports, runToEnd } = newTestHost({
    core: { clockMHz },
    cost: { contextSwitch: 30 },
    interrupt: { deliveryNs: 1, entryCycles: 20, exitCycles: 7 },
  });
  writes.forEach((atPs) => {
    at(process, atPs, () => {
      host.memory.write(page, 1, Uint8Array.of(host.memory.bytes[page]! + 1), 0);
    });
  });
  host.interrupts.attach(2, async (cpu) => {
    cpu.charge('interrupt', 5);
    cpu.mmioWrite32(0x8000_0000, 1);
    await cpu.settle();
  });
  const { address, data } = host.interrupts.messageFor(2);
  for (const atPs of scenario.interrupts) at(process, atPs, () => host.interrupts.message(address, data));
  for (const atPs of scenario.kernelThreads) {
    at(process, atPs, () => host.spawn('work', async (cpu) => cpu.charge('driver', 11)));
  }
  const ends: number[] = [];
  host.runProgram('p', 0, async ({ cpu }) => {
    for (const cycles of before) {
      cpu.pushDeviceStore(0x8000_0010, 4, 'uncached');
      cpu.commit('post', cycles);
    }
    for (let count = 1; count <= writes.length; count++) {
      await wait(cpu, roundCycles, () => host.memory.bytes[page]! >= count);
      ends.push(cpu.localPs);
      cpu.charge('application', 13);
    }
  });
  await runToEnd();
  const report = host.cores[0]!.report();
  return { ends, stores: ports[0]!.stores, cycles: report.cycles, isBalanced: report.isBalanced, process };
}

describe('spin', () => {
  const instant = fc.integer({ min: 0, max: 200_000 });
  const scenario = fc.record({
    clockMHz: fc.constantFrom(2500, 2300, 1000),
    before: fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 4 }),
    roundCycles: fc.integer({ min: 1, max: 40 }),
    writes: fc.array(instant, { minLength: 1, maxLength: 6 }),
    interrupts: fc.array(instant, { maxLength: 4 }),
    kernelThreads: fc.array(instant, { maxLength: 2 }),
  });

  it('ends at the same cycle, with the same account, as the polling loop that it replaces', async () => {
    const property = fc.asyncProperty(scenario, async (given) => {
      const { process: _spun, ...spun } = await run(given, spin);
      const { process: _polled, ...polled } = await run(given, pollingLoop);
      expect(spun).toEqual(polled);
      expect(spun.isBalanced).toBe(true);
    });
    await fc.assert(property, { numRuns: 300, seed: 1 });
  });

  it('over several pages ends as the polling loop, too', async () => {
    const property = fc.asyncProperty(scenario, async (given) => {
      const { process: _spun, ...spun } = await run(given, spinOver);
      const { process: _polled, ...polled } = await run(given, pollingLoop);
      expect(spun).toEqual(polled);
    });
    await fc.assert(property, { numRuns: 200, seed: 1 });
  });

  it('over several pages watches each of them, until it ends', async () => {
    const { host, process, runToEnd } = newTestHost();
    const other = page + 3 * 4096;
    at(process, 100_000, () => host.memory.write(other, 1, one, 0));
    host.runProgram('p', 0, async ({ cpu }) => {
      const spun = cpu.spinOver([page, other], 10, () => host.memory.bytes[other] === 1);
      expect(host.memory.watchCount).toBe(2);
      await spun;
      // Cycle 250, at which a round ends.
      expect(cpu.localPs).toBe(100_000);
      expect(host.memory.watchCount).toBe(0);
      await cpu.spin(page, 10, () => host.memory.bytes[other] === 1);
      expect(() => cpu.spinOver([], 10, () => false)).toThrow('pages is 0, expected at least one address');
    });
    await runToEnd();
  });

  it('settled first, ends as the loop that settles, too', async () => {
    const property = fc.asyncProperty(scenario, async (given) => {
      const { process: _spun, ...spun } = await run(given, spinThen);
      const { process: _polled, ...polled } = await run(given, settledLoop);
      expect(spun).toEqual(polled);
    });
    await fc.assert(property, { numRuns: 300, seed: 1 });
  });

  it('with a deadline, ends as the loop that checks the clock in each round, too', async () => {
    const timed = fc.tuple(scenario, fc.integer({ min: 1, max: 60_000 }));
    const property = fc.asyncProperty(timed, async ([given, timeoutPs]) => {
      const ends: [number[], number[]] = [[], []];
      const { process: _spun, ...spun } = await run(given, async (cpu, roundCycles, isReady) => {
        while (!isReady()) {
          await cpu.spinThen(page, roundCycles, isReady, () => ends[0].push(cpu.ownPs), timeoutPs);
          // Work of the program before it waits again.
          cpu.charge('application', 3);
        }
      });
      const { process: _polled, ...polled } = await run(given, async (cpu, roundCycles, isReady) => {
        while (!isReady()) {
          const endPs = cpu.ownPs + timeoutPs;
          await cpu.settle();
          while (!isReady() && cpu.ownPs < endPs) {
            cpu.charge('poll', roundCycles);
            await cpu.settle();
          }
          ends[1].push(cpu.ownPs);
          cpu.charge('application', 3);
        }
      });
      expect(ends[0]).toEqual(ends[1]);
      expect(spun).toEqual(polled);
      expect(spun.isBalanced).toBe(true);
    });
    await fc.assert(property, { numRuns: 300, seed: 1 });
  });

  it('returns the result of take at the instant at which the condition holds, or its error', async () => {
    const { host, process, runToEnd } = newTestHost();
    at(process, 1_000_000, () => host.memory.write(page, 1, one, 0));
    host.runProgram('p', 0, async ({ cpu }) => {
      const isWritten = () => host.memory.bytes[page] === 1;
      const again = () => cpu.spinThen(page, 10, isWritten, () => process.nowPs);
      expect(await cpu.spinThen(page, 10, isWritten, again)).toBe(1_000_000);
      cpu.charge('application', 5);
      expect(await cpu.spinThen(page, 10, isWritten, () => process.nowPs)).toBe(1_000_000 + 5 * cyclePs);
      const failed = cpu.spinThen(page, 10, isWritten, () => {
        throw new RangeError('not what was expected');
      });
      await expect(failed).rejects.toThrow('not what was expected');
    });
    await runToEnd();
  });

  it('charges polling in whole rounds', async () => {
    const { ends, cycles } = await run(
      { clockMHz: 2500, before: [10], roundCycles: 30, writes: [20_000], interrupts: [], kernelThreads: [] },
      spin,
    );
    // Begins at cycle 10; the write at cycle 50 is seen at the end of the second round, 10 + 2 * 30.
    expect(ends).toEqual([70 * cyclePs]);
    expect(cycles).toMatchObject({ post: 10, poll: 60, application: 13 });
  });

  it('returns at once, without waiting, when the condition holds', async () => {
    const { host, process, runToEnd } = newTestHost();
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 10);
      await cpu.spin(page, 30, () => true);
      expect(process.nowPs).toBe(0);
    });
    await runToEnd();
  });

  it('costs one event for each write to the page, and none for others or for rounds', async () => {
    const { host, process, runToEnd } = newTestHost();
    let evaluations = 0;
    for (let write = 1; write <= 10; write++) {
      at(process, write * 1_000_000, () => host.memory.write(page + write, 1, one, 0));
      at(process, write * 1_000_000 + 500_000, () => host.memory.write(page + 4096, 1, one, 0));
    }
    host.runProgram('p', 0, async ({ cpu }) => {
      await cpu.spin(page, 25, () => {
        evaluations++;
        return host.memory.bytes[page + 10] === 1;
      });
    });
    await runToEnd();
    // Once at the call and once for each of ten writes.
    expect(evaluations).toBe(11);
    // 19 writes before the end, 10 evaluations, 2 events to start the program and 1 to end it.
    expect(process.queue.firedCount).toBe(32);
    expect(host.memory.watchCount).toBe(0);
  });

  it('sees a store of another core', async () => {
    const { host, runToEnd } = newTestHost();
    host.runProgram('waits', 0, async ({ cpu }) => {
      await cpu.spin(page, 10, () => host.memory.bytes[page] === 1);
      // Stored at cycle 105 and seen at the end of the eleventh round.
      expect(cpu.localPs).toBe(110 * cyclePs);
    });
    host.runProgram('stores', 1, async ({ cpu }) => {
      cpu.storeBytes[cpu.pushMemoryStore(page, 1)] = 1;
      cpu.commit('application', 105);
    });
    await runToEnd();
  });
});
