/**
 * Contracts of every block of a host's hardware: a new block is checked by adding it to the list. The processor is never reset
 * while the model runs, so a block must be empty after it has finished all its work.
 */
import { describe, expect, it } from 'vitest';
import { mib } from '../base/units.ts';
import type { BlockState } from '../sim/block.ts';
import { Clock } from '../sim/clock.ts';
import { LogicalProcess } from '../sim/logical-process.ts';
import { Random } from '../sim/random.ts';
import type { Host } from './host.ts';
import { PhysicalMemory } from './physical-memory.ts';
import { StoreBuffer, storeToMemory, storeUncached, storeWriteCombining } from './store-buffer.ts';
import { at, newTestHost, RecordingPort, type TestHost } from './testing.ts';
import { WriteCombiningBuffers } from './write-combining-buffers.ts';

const DEVICE = 0x8000_0000;
const RANGE_BYTES = 1024;
const CYCLE_PS = 400;

/** A single block, before a device that accepts stores at random. */
interface Subject {
  inspect(): BlockState;
  /** One random action on it. @returns false if it could not continue */
  step(random: Random): boolean;
  /** Lets it finish, with the device accepting everything. */
  finish(): void;
  readonly port: RecordingPort;
  /** Contents of the device at the end, if nothing was lost. */
  readonly wanted: Uint8Array;
}

const anyBusMap = { trafficClassAt: () => 0 };

function newTarget() {
  const port = new RecordingPort(new LogicalProcess('host'), 0);
  const writeCombining = new WriteCombiningBuffers(port, anyBusMap, { bufferCount: 4, chunkBytes: 8 });
  return { port, writeCombining, memory: new PhysicalMemory(mib(64)), busMap: anyBusMap };
}

function writeCombiningSubject(): Subject {
  const { port, writeCombining } = newTarget();
  const wanted = new Uint8Array(RANGE_BYTES);
  let rest: { at: number; bytes: Uint8Array } | undefined;
  const goOn = (): boolean => {
    if (rest === undefined) return true;
    const { at: place, bytes } = rest;
    const taken = writeCombining.store(DEVICE + place, bytes, 0, bytes.length);
    rest = taken === bytes.length ? undefined : { at: place + taken, bytes: bytes.subarray(taken) };
    return rest === undefined;
  };
  return {
    port,
    wanted,
    inspect: () => writeCombining.inspect(),
    step(random) {
      if (!goOn()) return false;
      if (random.chance(0.1)) return writeCombining.flush();
      const length = 1 + random.below(100);
      const place = random.below(RANGE_BYTES - length);
      const bytes = new Uint8Array(length).fill(1 + random.below(255));
      wanted.set(bytes, place);
      rest = { at: place, bytes };
      return goOn();
    },
    finish() {
      goOn();
      writeCombining.flush();
    },
  };
}

function storeBufferSubject(): Subject {
  const target = newTarget();
  const store = new StoreBuffer(target, 4096);
  const wanted = new Uint8Array(RANGE_BYTES);
  let cycle = 0;
  return {
    port: target.port,
    wanted,
    inspect: () => ({ store: store.inspect(), writeCombining: target.writeCombining.inspect() }),
    step(random) {
      // Like a core, it accepts no more than its space holds.
      if (!store.drain(cycle) && store.overflowCycle(56) < Number.POSITIVE_INFINITY) return false;
      const kind = [storeToMemory, storeUncached, storeWriteCombining][random.below(3)]!;
      const length = kind === storeUncached ? 4 : 1 + random.below(64);
      const place = random.below(RANGE_BYTES - length);
      const value = 1 + random.below(255);
      const offset = store.push(kind, kind === storeToMemory ? place : DEVICE + place, length);
      store.bytes.fill(value, offset, offset + length);
      if (kind !== storeToMemory) wanted.fill(value, place, place + length);
      store.commit(++cycle, 0);
      return store.drain(cycle);
    },
    finish: () => void store.drain(cycle),
  };
}

const blocksAlone = { 'write-combining buffers': writeCombiningSubject, 'store buffer': storeBufferSubject };

describe.each(Object.entries(blocksAlone))('%s', (_, make) => {
  it('stop when the bus accepts no more, lose nothing, and hold nothing when all has left', () => {
    const fresh = make().inspect();
    let stoppedCount = 0;
    let changedCount = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const [random, subject] = [new Random(seed), make()];
      const { port, wanted } = subject;
      for (let step = 0; step < 60; step++) {
        port.room = random.chance(0.3) ? random.below(3) : 100;
        if (!subject.step(random)) stoppedCount++;
        if (JSON.stringify(subject.inspect()) !== JSON.stringify(fresh)) changedCount++;
      }
      port.room = Number.POSITIVE_INFINITY;
      subject.finish();
      expect(subject.inspect(), `seed ${seed}`).toEqual(fresh);
      const held = new Uint8Array(RANGE_BYTES);
      for (const { address, bytes } of port.stores) held.set(bytes, address - DEVICE);
      expect(held, `seed ${seed}`).toEqual(wanted);
    }
    expect(stoppedCount).toBeGreaterThan(20);
    expect(changedCount).toBeGreaterThan(100);
  });
});

interface Played extends TestHost {
  readonly states: Set<string>;
}

const stateOf = (host: Host): string => JSON.stringify(host.inspect(), null, 1);

/** Two cores with programs that compute, store, load and sleep, interrupted by a device that does not always accept stores. */
async function playedHost(seed: number): Promise<Played> {
  const random = new Random(seed);
  const test = newTestHost({ core: { storeBufferEntries: 4 }, interrupt: { deliveryNs: 100 } });
  const { host, process, ports } = test;
  const states = new Set<string>();
  for (const core of [0, 1]) {
    host.interrupts.attach(core, async (cpu) => cpu.charge('driver', random.below(200)));
    for (let index = 0; index < 5; index++) {
      const { address, data } = host.interrupts.messageFor(core);
      at(process, random.below(4_000_000), () => host.interrupts.message(address, data));
    }
    for (let index = 0; index < 10; index++)
      at(process, random.below(8_000_000), () => ports[core]!.open(random.below(4)));
    at(process, 8_000_000, () => ports[core]!.open());
    host.runProgram(`p${core}`, core, async ({ cpu }) => {
      for (let turn = 0; turn < 15; turn++) {
        cpu.pushDeviceStore(DEVICE + turn * 64, 8, random.chance(0.5) ? 'uncached' : 'writeCombining');
        cpu.commit('post', random.below(200));
        cpu.charge('application', random.below(300));
        const wait = random.below(3);
        if (wait === 0) await cpu.mmioRead32(DEVICE);
        else if (wait === 1) await cpu.sleep(random.below(200_000));
        else await cpu.settle();
      }
    });
  }
  for (let atPs = 500_000; atPs < 8_000_000; atPs += 700_001) {
    await test.runTo(atPs);
    states.add(stateOf(host));
    const { cores, isBalanced } = host.report();
    const elapsed = new Clock(2500).cyclesElapsed(process.nowPs);
    expect([isBalanced, ...cores.map(({ totalCycles }) => totalCycles)]).toEqual([true, elapsed, elapsed]);
  }
  await test.runTo(40_000_000);
  return { ...test, states };
}

describe('the blocks of a host', () => {
  it('are in their initial state, except for handlers, after all programs have ended', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const fresh = newTestHost();
      for (const vector of [0, 1]) fresh.host.interrupts.attach(vector, async () => {});
      const { host, states, ports } = await playedHost(seed);
      expect(states.size, `seed ${seed}`).toBeGreaterThan(5);
      expect(stateOf(host), `seed ${seed}`).toBe(stateOf(fresh.host));
      expect(ports.map(({ stores }) => stores.length)).toEqual([15, 15]);
      expect(host.report().isBalanced).toBe(true);
    }
  });

  it('make a core stall for a device that accepts no stores, and charge the stall to the stored operation', async () => {
    const closedPs = 2_000_000;
    const test = newTestHost({ core: { storeBufferEntries: 4 } });
    const { host, process, ports } = test;
    ports[0]!.room = 0;
    at(process, closedPs, () => ports[0]!.open());
    host.runProgram('p', 0, async ({ cpu }) => {
      for (let index = 0; index < 10; index++) {
        cpu.pushDeviceStore(DEVICE + index * 64, 8, 'uncached');
        cpu.commit('post', 10);
      }
      cpu.charge('application', 50);
      await cpu.settle();
    });
    await test.runToEnd();
    expect(ports[0]!.stores.map(({ address }) => (address - DEVICE) / 64)).toEqual([...Array(10).keys()]);
    const { cycles, isBalanced } = host.cores[0]!.report();
    // It stalled from the fifth commit, at cycle 50, with which more than four entries wait, until the device accepted stores.
    expect(cycles.post).toBe(10 * 10 + closedPs / CYCLE_PS - 50);
    expect([cycles.application, isBalanced]).toEqual([50, true]);
  });
});
