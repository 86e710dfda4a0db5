import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at, newTestHost } from './testing.ts';

interface Scenario {
  readonly entries: number;
  /** Cycles of each post of one 8-byte store. */
  readonly posts: readonly number[];
  /** Cycles at which the bus has room for one store. */
  readonly openings: readonly number[];
}

/** A bounded store buffer stepped cycle by cycle: the reference for the events. */
function stepped({ entries, posts, openings }: Scenario): { left: number[]; endCycle: number } {
  const dueAt = posts.map((_, index) => posts.slice(0, index + 1).reduce((sum, cycles) => sum + cycles, 0));
  const left: number[] = [];
  let waiting = 0;
  let posted = 0;
  let room = 0;
  let own = 0;
  for (let cycle = 0; ; cycle++) {
    if (openings.includes(cycle)) room = 1;
    for (let isDone = false; !isDone; ) {
      isDone = true;
      if (posted < posts.length && dueAt[posted] === own) {
        posted++;
        waiting++;
        isDone = false;
      }
      if (waiting > 0 && room > 0) {
        room--;
        waiting--;
        left.push(cycle);
        isDone = false;
      }
    }
    if (posted === posts.length && waiting === 0) return { left, endCycle: cycle };
    if (waiting <= entries) own++;
  }
}

describe('a store buffer before a slow bus', () => {
  it('sends stores and stalls the core like a buffer stepped cycle by cycle', async () => {
    const scenario = fc
      .record({
        entries: fc.integer({ min: 1, max: 5 }),
        posts: fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 25 }),
        openings: fc.uniqueArray(fc.integer({ min: 0, max: 600 }), { maxLength: 30 }),
      })
      .map((given) => ({
        ...given,
        // Enough room in the end: intervals of room exceed those of posts.
        openings: [...given.openings, ...Array.from({ length: 60 }, (_, index) => 1000 + index * 40)],
      }));
    const property = fc.asyncProperty(scenario, async (given) => {
      const { host, process, ports, runToEnd } = newTestHost({
        core: { clockMHz: 1000, storeBufferEntries: given.entries },
      });
      const port = ports[0]!;
      port.room = 0;
      for (const cycle of given.openings) at(process, cycle * 1000, () => port.open(1));
      const program = host.runProgram('p', 0, async ({ cpu }) => {
        for (const cycles of given.posts) {
          cpu.pushDeviceStore(0x8000_0000, 8, 'uncached');
          cpu.commit('post', cycles);
        }
      });
      await runToEnd();
      const expected = stepped(given);
      expect(port.stores.map(({ atPs }) => atPs / 1000)).toEqual(expected.left);
      expect(program.endedPs).toBe(expected.endCycle * 1000);
      expect(host.report().isBalanced).toBe(true);
    });
    await fc.assert(property, { numRuns: 300, seed: 1 });
  });

  it('is the same for any order within one instant', async () => {
    const scenario = fc.record({
      entries: fc.integer({ min: 1, max: 20 }),
      buffers: fc.integer({ min: 1, max: 4 }),
      posts: fc.array(
        fc.record({
          cycles: fc.integer({ min: 1, max: 30 }),
          /** Words of 16 bytes to write-combining memory; none: one uncached store. */
          words: fc.integer({ min: 0, max: 12 }),
          wait: fc.constantFrom('none', 'settle', 'sleep'),
        }),
        { minLength: 1, maxLength: 12 },
      ),
      openings: fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { maxLength: 40 }),
    });
    type Given = typeof scenario extends fc.Arbitrary<infer Value> ? Value : never;
    const notified = async ({ entries, buffers, posts, openings }: Given, seed: number): Promise<unknown> => {
      let state = seed;
      const shuffle = (): number => {
        state = (state * 48_271) % 2_147_483_647;
        return state / 2_147_483_647;
      };
      const { host, process, ports, runToEnd } = newTestHost(
        {
          core: { clockMHz: 1000, storeBufferEntries: entries, writeCombiningBuffers: buffers },
          cost: { contextSwitch: 3 },
        },
        seed === 0 ? {} : { shuffle },
      );
      const port = ports[0]!;
      port.room = 0;
      const later = Array.from({ length: 200 }, (_, index) => 300 + index * 10);
      for (const cycle of [...openings, ...later]) at(process, cycle * 1000, () => port.open(1));
      const instants: number[] = [];
      host.runProgram('p', 0, async ({ cpu }) => {
        for (const { cycles, words, wait } of posts) {
          if (words === 0) cpu.pushDeviceStore(0x8000_0000, 8, 'uncached');
          for (let word = 0; word < words; word++)
            cpu.pushDeviceStore(0x9000_0000 + word * 16, 16, 'writeCombining');
          cpu.commit('post', cycles);
          if (wait === 'settle') await cpu.settle();
          if (wait === 'sleep') await cpu.sleep(cycles * 1000);
          instants.push(cpu.localPs);
        }
      });
      await runToEnd();
      return { stores: port.stores, instants, report: host.report() };
    };
    const property = fc.asyncProperty(scenario, async (given) => {
      const first = await notified(given, 0);
      for (const seed of [1, 2, 3]) expect(await notified(given, seed)).toEqual(first);
    });
    await fc.assert(property, { numRuns: 150, seed: 5 });
  });

  it('delays an interrupt until it has sent the due stores', async () => {
    const { host, process, ports, runToEnd } = newTestHost({
      interrupt: { deliveryNs: 1, entryCycles: 10, exitCycles: 0 },
    });
    ports[0]!.room = 0;
    host.interrupts.attach(0, async (cpu) => cpu.mmioWrite32(0x8000_0008, 2));
    const { address, data } = host.interrupts.messageFor(0);
    at(process, 100_000, () => host.interrupts.message(address, data));
    at(process, 300_000, () => ports[0]!.open());
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.pushDeviceStore(0x8000_0000, 4, 'uncached');
      cpu.commit('post', 10);
      cpu.charge('application', 1990);
      await cpu.settle();
    });
    await runToEnd();
    expect(ports[0]!.stores.map(({ atPs, address: to }) => [atPs, to])).toEqual([
      [300_000, 0x8000_0000],
      // 10 cycles to enter and 60 cycles of the store, of 400 ps each.
      [300_000 + 28_000, 0x8000_0008],
    ]);
  });
});
