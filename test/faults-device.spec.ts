/**
 * Faults of the whole device, with our own driver: their causes, the events that programs receive, the released resources, and
 * the recovery where hardware would recover.
 */
import { describe, expect, it, vi } from 'vitest';
import { checkedFaults, type FaultPlan } from '../machine/faults/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { MachinePart } from '../machine/partition/machine-part.ts';
import { planMachine } from '../machine/plan.ts';
import { configurationOf } from '../machine/profile/index.ts';
import { expectBalanced, noResources } from './expectations.ts';
import { bothPartitions, bytesOf, programOf, runPrograms, smallMemory } from './machines.ts';
import type { SurvivorArgs, SurvivorResult } from './programs/survivor.ts';

vi.setConfig({ testTimeout: 120_000 });

async function survive(faults: FaultPlan, args: SurvivorArgs = {}, options: MachineOptions = {}) {
  const program = programOf('survivor', 'survivor', 0, { args: { ...args } });
  const outcome = await runPrograms([program], { ...options, faults });
  expectBalanced(outcome.report);
  return { ...outcome, lives: outcome.results[0] as readonly SurvivorResult[] };
}

const well = { done: 5, ended: 'ok' };
/** Events of a program whose device dies and returns. */
const bereaved = {
  event: 'DEVICE_FATAL',
  isWoken: true,
  after: 'EIO',
  farewell: ['ok', 'ok', 'ok', 'ok'],
  pinnedBytes: 0,
  workedAgain: well,
};

describe('a device that dies under its programs', () => {
  it('does not die without a fault', async () => {
    const { lives } = await survive([], { patienceMs: 10 });
    expect(lives).toMatchObject([{ worked: well, event: null, after: 'ok', away: 'ok', workedAgain: well }]);
  });

  it('by a catastrophic error: the health timer finds the code within a second, and probes it again', async () => {
    const faults = [{ catastrophic: 0xdead, after: 'SW2HW_MPT', nth: 3 }];
    const { lives, report } = await survive(faults);
    expect(lives).toMatchObject([{ ...bereaved, worked: { done: 2, ended: 'EIO' } }]);
    expect(report.elapsedPs).toBeGreaterThan(1e12);
    expect(report.elapsedPs).toBeLessThan(1.1e12);
    // An EQ waiting for an event that never occurs would interrupt for the whole second.
    const { interrupts } = report.nodes[0]!;
    expect(interrupts.reduce((sum, { delivered }) => sum + delivered, 0)).toBeLessThan(500);
  });

  it('by a command that never ends: the time limit of 60 s, then the same', async () => {
    const { lives, report } = await survive([{ command: 'SW2HW_MPT', nth: 3, status: 'none' }], {
      patienceMs: 100_000,
    });
    expect(lives).toMatchObject([{ ...bereaved, worked: { done: 1, ended: 'ETIMEDOUT' } }]);
    expect(report.elapsedPs).toBeGreaterThan(60e12);
  });

  it('by a closing command that fails, at once; the call itself has succeeded', async () => {
    const { lives, report } = await survive([{ command: 'HW2SW_MPT', nth: 2, status: 'INTERNAL_ERR' }]);
    expect(lives).toMatchObject([{ ...bereaved, worked: { done: 2, ended: 'EIO' } }]);
    expect(report.elapsedPs).toBeLessThan(0.1e12);
  });

  it('by leaving its slot: all ones are not a register value, and it has no state left until it returns', async () => {
    const gone = { device: 'gone', after: 'SW2HW_MPT', nth: 3 };
    const worked = { done: 1, ended: 'EIO' };
    const forEver = await survive([gone], { patienceMs: 3000 });
    expect(forEver.lives).toMatchObject([{ ...bereaved, worked, away: 'ENODEV', workedAgain: null }]);
    const back = await survive([{ ...gone, for: '2.5s' }]);
    expect(back.lives).toMatchObject([{ ...bereaved, worked, away: 'ENODEV', workedAgain: well }]);
    const soonBack = await survive([{ ...gone, for: '100us' }]);
    expect(soonBack.lives).toMatchObject([{ ...bereaved, worked, workedAgain: well }]);
  });

  it('is listed only while it can be opened', async () => {
    const there = await survive([], { patienceMs: 10 });
    expect(there.lives).toMatchObject([{ listed: 1 }]);
    const dead = await survive([{ catastrophic: 0xdead, after: 'SW2HW_MPT', nth: 3 }]);
    expect(dead.lives).toMatchObject([{ listed: 0, workedAgain: well }]);
  });

  it('is checked again when a program wants it, however long it was away', async () => {
    const gone = { device: 'gone', after: 'SW2HW_MPT', nth: 3, for: '1s' };
    const { lives } = await survive([gone], {}, { set: { ...smallMemory, 'driver.healthIntervalUs': 1000 } });
    expect(lives).toMatchObject([{ away: 'ENODEV', workedAgain: well }]);
  });

  it('when a register is touched for the nth time', async () => {
    const { lives } = await survive([{ device: 'gone', after: 'access', nth: 1350, for: '10ms' }]);
    expect(lives).toMatchObject([{ event: 'DEVICE_FATAL', workedAgain: well }]);
  });

  it('twice, and no frame is lost the second time', async () => {
    const faults = [
      { catastrophic: 1, after: 'SW2HW_MPT', nth: 3 },
      { catastrophic: 2, after: 'SW2HW_MPT', nth: 12 },
    ];
    const { lives } = await survive(faults, { lives: 2 });
    expect(lives).toMatchObject([bereaved, bereaved]);
    expect(lives[1]!.usedFrames).toBe(lives[0]!.usedFrames);
  });

  it('the same in every partition', async () => {
    const faults = [{ catastrophic: 0xdead, after: 'SW2HW_MPT', nth: 3 }];
    const runs = [];
    for (const partition of bothPartitions) runs.push(await survive(faults, {}, { partition }));
    expect(bytesOf(runs[1]!.report)).toBe(bytesOf(runs[0]!.report));
    expect(runs[1]!.lives).toEqual(runs[0]!.lives);
  });
});

describe('a missing interrupt', () => {
  it('delays a command until the check of the event queue, and kills nothing', async () => {
    const plain = await survive([], { patienceMs: 10 });
    for (const fault of [
      { interrupt: 'lost', nth: 8 },
      { interrupt: 'lost', vector: 0, nth: '20-22' },
    ]) {
      const { lives, report } = await survive([fault], { patienceMs: 10 });
      expect(lives).toMatchObject([{ worked: well, event: null, workedAgain: well }]);
      const latePs = report.elapsedPs - plain.report.elapsedPs;
      expect(latePs).toBeGreaterThan(0.09e12);
      expect(latePs).toBeLessThan(0.35e12);
    }
  });

  it('in time, delays by the same amount', async () => {
    const plain = await survive([], { patienceMs: 10 });
    const late = await survive([{ interrupt: 'late', nth: 8, delay: '3ms' }], { patienceMs: 10 });
    expect(late.lives).toMatchObject([{ worked: well, event: null }]);
    expect(late.report.elapsedPs - plain.report.elapsedPs).toBeGreaterThan(2.9e9);
    expect(late.report.elapsedPs - plain.report.elapsedPs).toBeLessThan(3.1e9);
  });

  it('in time, delivers no event of a CQ to the next one with its number', async () => {
    const { results, report } = await runPrograms(
      [programOf('faulty', 'successor', 0), programOf('faulty', 'predecessor', 1)],
      { faults: [{ interrupt: 'late', vector: 1, nth: 1, delay: '400us' }] },
    );
    expect(results[0]).toEqual({ isSameNumber: true, found: [1, 1, 1] });
    expectBalanced(report);
  });

  it('for a completion, is repaired by the health timer within two checks', async () => {
    const programs = [
      programOf('faulty', 'waiter', 0, { args: { patienceUs: 5e6 } }),
      programOf('faulty', 'idler', 1),
    ];
    // Completion events are on vectors from 1 on: the first one is awaited.
    const { results, report } = await runPrograms(programs, { faults: [{ interrupt: 'lost', vector: 1 }] });
    expectBalanced(report);
    expect(results[0]).toEqual({ isWoken: true, statuses: ['SUCCESS'] });
    expect(report.elapsedPs).toBeGreaterThan(1e12);
    expect(report.elapsedPs).toBeLessThan(2.1e12);
  });
});

describe('a probe', () => {
  /** Starts a machine with faults; returns the error that ended it, and the resources still held on host 0. */
  async function started(faults: FaultPlan) {
    const plan = planMachine({
      config: configurationOf({ set: smallMemory }),
      faults: checkedFaults(faults, 2),
      partition: 'single',
      shuffleSeed: undefined,
      analysis: undefined,
    });
    const part = new MachinePart(plan, 0);
    const error: unknown = await part
      .runUntilEnded(1, Number.POSITIVE_INFINITY)
      .catch((thrown: unknown) => thrown);
    const host = part.hosts[0]!;
    return {
      message: error instanceof Error ? error.message : 'ok',
      usedFrames: host.host.mm.frames.usedCount,
      counts: host.driver?.resourceCounts() ?? noResources,
    };
  }

  it('waits for a long reset, and for a semaphore that becomes free', async () => {
    for (const fault of [
      { reset: 'stuck', for: '500ms' },
      { semaphore: 'held', for: '20ms' },
    ])
      expect(await started([fault])).toMatchObject({ message: 'ok' });
  });

  it.each<[FaultPlan[number], string]>([
    [{ reset: 'stuck' }, 'ENODEV: the device does not answer configuration reads after its reset'],
    [{ semaphore: 'held' }, 'ENODEV: the hardware semaphore stays taken'],
    [{ owner: 'taken' }, 'ENODEV: another driver owns the device'],
    [{ device: 'gone', at: '1ns' }, 'no function answers'],
    [{ device: 'gone', after: 'MAP_ICM', nth: 5 }, 'EIO'],
    [{ catastrophic: 1, after: 'MAP_ICM', nth: 5 }, 'ETIMEDOUT'],
    [
      { command: 'QUERY_DEV_CAP', status: 'none' },
      'ETIMEDOUT: QUERY_DEV_CAP: the command register stays busy',
    ],
    [{ command: 'INIT_HCA', status: 'BAD_SYS_STATE' }, 'ENXIO: INIT_HCA ended with status BAD_SYS_STATE'],
    [{ command: 'SW2HW_EQ', nth: 2, status: 'EXCEED_LIM' }, 'ENOMEM: SW2HW_EQ'],
    [{ command: 'CONF_SPECIAL_QP', status: 'INTERNAL_ERR' }, 'EIO: CONF_SPECIAL_QP'],
    [{ read: 'command', nth: 3, answer: 'completerAbort' }, 'INTERNAL_ERR'],
  ])('that fails by %j gives everything back', async (fault, reason) => {
    const { message, usedFrames, counts } = await started([fault]);
    expect(message).toContain(reason);
    expect(usedFrames).toBe(0);
    expect(counts).toMatchObject(noResources);
  });
});
