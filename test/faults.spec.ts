/**
 * Faults of the fault plan: for everything that is lost, damaged or injected, requests end in order and at most once, with the
 * specified status or event; successful requests have their bytes in place; the peer is unaffected; and the ledgers balance.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { CommandStatus } from '../abi/command-status.ts';
import { renderReport } from '../explain/text/render.ts';
import type { FaultPlan } from '../machine/faults/index.ts';
import type { Machine } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, type Outcome, programOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

interface SenderResult {
  readonly statuses: readonly string[];
  readonly isInOrder: boolean;
  readonly surplus: readonly string[];
  /** Instant at which it began to post. */
  readonly fromPs: number;
  readonly tookUs: number;
  readonly isRead: boolean;
  readonly state: string;
  readonly events: readonly string[];
}

interface ReceiverResult {
  readonly written: readonly [boolean, boolean];
  readonly received: readonly string[];
  readonly isReceived: boolean;
  readonly state: string;
  readonly events: readonly string[];
}

const traffic = (args: Record<string, number> = {}): ProgramOptions[] => [
  programOf('faulty', 'sender', 0, { args }),
  programOf('faulty', 'receiver', 1),
];
const waiting = (): ProgramOptions[] => [programOf('faulty', 'waiter', 0), programOf('faulty', 'idler', 1)];

/** Counts of node 0 at its program's quiet time: faults are numbered from there. */
interface Quiet {
  readonly atPs: number;
  /** Reads of the device. */
  readonly reads: number;
  /** Packets sent by node 0 and by node 1. */
  readonly packets: readonly number[];
  readonly interrupts: number;
}

async function quietOf(programs: readonly ProgramOptions[]): Promise<Quiet> {
  await using machine = await smallMachine();
  for (const program of programs) await machine.load(program);
  await untilQuiet(machine);
  const { wire } = await machine.report();
  const { hosts } = await machine.ledgers();
  return {
    atPs: machine.nowPs,
    reads: hosts[0]!.reads.taken,
    packets: wire.map(({ packets }) => packets),
    interrupts: hosts[0]!.messages.arrived,
  };
}

const untilQuiet = (machine: Machine): Promise<boolean> =>
  machine.runUntil(() => machine.progressOf(0).done > 0, 5e6);

let quiet: Quiet;
/** An instant in mid-traffic, which lasts twelve microseconds from the sender's first post. */
let busyPs: number;
beforeAll(async () => {
  quiet = await quietOf(traffic());
  busyPs = (await runTraffic([])).sender.fromPs + 4e6;
});

async function runTraffic(faults: FaultPlan, args: Record<string, number> = {}) {
  const outcome = await runPrograms(traffic(args), { faults });
  expectBalanced(outcome.report);
  const [sender, receiver] = outcome.results as [SenderResult, ReceiverResult];
  return { outcome, sender, receiver };
}

/** Nothing was lost: all requests succeed, all bytes are in place. */
function expectDone(sender: SenderResult, receiver: ReceiverResult): void {
  expect(sender).toMatchObject({
    statuses: allWell,
    isInOrder: true,
    surplus: [],
    isRead: true,
    state: 'RTS',
  });
  expect(receiver).toMatchObject({
    written: [true, true],
    received: ['SUCCESS'],
    isReceived: true,
    state: 'RTS',
  });
}

const allWell = ['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS'];

/**
 * A fault of the sender's own PCIe link. The requests end in order: some successfully, then one with a local error, the rest
 * flushed; or, if the queue itself cannot be read, "work queue catastrophic error" without a promise of completions.
 */
function expectLocalEnding(sender: SenderResult, receiver: ReceiverResult): void {
  const { statuses, events, state } = sender;
  expect(sender).toMatchObject({ isInOrder: true, surplus: [] });
  expect(receiver).toMatchObject({ state: 'RTS', events: [] });
  const good = statuses.filter((status) => status === 'SUCCESS').length;
  const rest = statuses.slice(good);
  if (events.length > 0) {
    expect(events).toEqual(['QP_FATAL']);
    expect(rest.every((status) => status === 'WR_FLUSH_ERR')).toBe(true);
  } else if (rest.length > 0) {
    expect(rest).toEqual(['LOC_PROT_ERR', ...rest.slice(1).fill('WR_FLUSH_ERR')]);
    expect(statuses.length).toBe(4);
  } else {
    expect(good).toBe(4);
  }
  expect(state).toBe(good === 4 ? 'RTS' : 'ERR');
  // Successful requests have their bytes in place; a SEND that did not arrive is not received.
  if (good >= 1) expect(receiver.written[0]).toBe(true);
  if (good >= 2) expect(receiver.written[1]).toBe(true);
  if (good >= 3) expect(sender.isRead).toBe(true);
  expect(receiver.isReceived).toBe(good === 4);
}

describe('faults of PCIe', () => {
  it('the traffic succeeds without any', async () => {
    const { sender, receiver } = await runTraffic([]);
    expectDone(sender, receiver);
    expect(sender.tookUs).toBeLessThan(20);
  });

  it('a missing completion ends in PCIe’s timeout, and in an error of the request that needed it', async () => {
    const endings = new Set<string>();
    // Contexts, translations, WQEs and payload, in the order in which they are fetched.
    for (const place of [1, 2, 3, 5, 7, 8, 10, 13, 15]) {
      // With an ACK timeout of 33 ms (code 13) the completion timeout of 10 ms expires first.
      const faults = [{ read: 'any', nth: quiet.reads + place, answer: 'lost' }];
      const { sender, receiver } = await runTraffic(faults, { timeoutCode: 13 });
      expectLocalEnding(sender, receiver);
      const hasFailed = sender.state === 'ERR';
      if (hasFailed) expect(sender.tookUs).toBeGreaterThan(10_000);
      endings.add(
        hasFailed ? (sender.events[0] ?? sender.statuses.find((status) => status !== 'SUCCESS')!) : 'well',
      );
    }
    expect([...endings].toSorted()).toEqual(expect.arrayContaining(['LOC_PROT_ERR', 'QP_FATAL']));
  });

  it('poisoned data are never used', async () => {
    const endings = new Set<string>();
    for (let place = 1; place <= 15; place += 1) {
      const faults = [{ read: 'any', nth: quiet.reads + place, answer: 'poisoned' }];
      const { sender, receiver } = await runTraffic(faults);
      expectLocalEnding(sender, receiver);
      expect(sender.tookUs).toBeLessThan(20_000);
      if (sender.state === 'ERR') endings.add(sender.events[0] ?? 'LOC_PROT_ERR');
    }
    expect([...endings].toSorted()).toEqual(['LOC_PROT_ERR', 'QP_FATAL']);
  });

  it('a read that the host refuses (UR) fails its user: a command with EIO, or a work request', async () => {
    const endings = new Set<string>();
    // The faults begin before the quiet time, when commands still run.
    for (let nth = quiet.reads - 8; nth <= quiet.reads + 14; nth += 2) {
      await using machine = await smallMachine({
        faults: [{ read: 'any', nth, answer: 'unsupportedRequest' }],
      });
      for (const program of traffic()) await machine.load(program);
      const error: unknown = await machine.run().catch((caught: unknown) => caught);
      expectBalanced(await machine.report());
      if (error instanceof Error) {
        expect(error.message).toMatch(/EIO|INTERNAL_ERR/);
        endings.add('command');
      } else {
        const [sender, receiver] = await machine.results<[SenderResult, ReceiverResult]>();
        expectLocalEnding(sender, receiver);
        if (sender.state === 'ERR') endings.add('work');
      }
    }
    expect([...endings].toSorted()).toEqual(['command', 'work']);
  });
});

describe('faults of the cable', () => {
  // About nine request packets in one direction, ACKs and READ responses in the other.
  it.each([0, 1])('a corrupted packet of node %i is retransmitted', async (node) => {
    for (let place = 1; place <= 4; place++) {
      const faults = [{ packet: 'corrupted', node, nth: quiet.packets[node]! + place }];
      const { outcome, sender, receiver } = await runTraffic(faults);
      expectDone(sender, receiver);
      expect(outcome.report.wire[node]!.corrupted).toBe(1);
    }
  });

  it('packets corrupted repeatedly are retransmitted repeatedly', async () => {
    const places = [1, 2, 4, 6, 7, 9];
    const { outcome, sender, receiver } = await runTraffic(
      places.map((place) => ({ packet: 'corrupted', nth: quiet.packets[0]! + place })),
    );
    expectDone(sender, receiver);
    expect(outcome.report.wire[0]!.corrupted).toBe(6);
    const again = Object.values(outcome.report.wire[0]!.retransmitted).map(({ packets }) => packets);
    expect(again.reduce((sum, packets) => sum + packets, 0)).toBeGreaterThanOrEqual(6);
  });

  it('retries are exhausted when every packet is lost', async () => {
    // The first try and two retries of the oldest packet: all 100 packets from the first on are lost.
    const first = quiet.packets[0]! + 1;
    const faults = [{ packet: 'corrupted', nth: `${first}-${first + 99}` }];
    const { sender, receiver } = await runTraffic(faults, { timeoutCode: 4, retryCount: 2 });
    expect(sender).toMatchObject({
      statuses: ['RETRY_EXC_ERR', 'WR_FLUSH_ERR', 'WR_FLUSH_ERR', 'WR_FLUSH_ERR'],
      state: 'ERR',
      events: [],
    });
    // Three timeouts of 65.5 µs (code 4) at least, of four times as much at most (IBTA 9.7.6.1.3).
    expect(sender.tookUs).toBeGreaterThan(3 * 65.5);
    expect(sender.tookUs).toBeLessThan(3 * 4 * 65.5 + 100);
    expect(receiver).toMatchObject({ written: [false, false], received: [], state: 'RTS' });
  });

  it.each([0, 1])(
    'each packet of node %i lost, duplicated or reordered: retransmitted or not carried out again',
    async (node) => {
      for (const what of [
        { packet: 'lost' },
        { packet: 'duplicated', delay: '1us' },
        { packet: 'duplicated', delay: '40us' },
        { packet: 'reordered', by: 1, delay: '3us' },
        { packet: 'reordered', by: 2, delay: '120us' },
      ]) {
        const faults = [{ ...what, node, nth: `${quiet.packets[node]! + 1}-${quiet.packets[node]! + 6}` }];
        const { outcome, sender, receiver } = await runTraffic(faults, { timeoutCode: 4 });
        expectDone(sender, receiver);
        expect(outcome.report.faults?.[0]?.fired).toBeGreaterThan(0);
      }
    },
  );

  it.each([0, 1])('a late packet of node %i delays, and nothing else', async (node) => {
    const delayPs = 150e6;
    const { outcome, sender, receiver } = await runTraffic([
      { packet: 'late', node, nth: quiet.packets[node]! + 2, delay: delayPs },
    ]);
    expectDone(sender, receiver);
    expect(sender.tookUs).toBeGreaterThan(150);
    expect(sender.tookUs).toBeLessThan(200);
    expect(outcome.report.wire.map(({ retransmitted }) => retransmitted)).toEqual([{}, {}]);
  });

  it('a cable pulled out and plugged in again: events at both ends, and the QP recovers', async () => {
    const faults = [{ cable: 'pulled', at: busyPs, for: '196us' }];
    const { sender, receiver } = await runTraffic(faults, { timeoutCode: 4, lingerUs: 1000 });
    expectDone(sender, receiver);
    for (const { events } of [sender, receiver]) {
      expect(events[0]).toBe('PORT_ERR');
      expect(events.at(-1)).toBe('PORT_ACTIVE');
    }
    expect(sender.tookUs).toBeGreaterThan(190);
  });

  it('a cable that stays out exhausts the retries', async () => {
    const faults = [{ port: 'down', at: busyPs }];
    const { sender, receiver } = await runTraffic(faults, { timeoutCode: 4, retryCount: 3, lingerUs: 100 });
    expect(sender.statuses).toContain('RETRY_EXC_ERR');
    expect(sender).toMatchObject({ isInOrder: true, state: 'ERR', events: ['PORT_ERR'] });
    expect(receiver).toMatchObject({ state: 'RTS', events: ['PORT_ERR'] });
  });
});

describe('faults of interrupts', () => {
  const woken = { isWoken: true, statuses: ['SUCCESS'] };
  const runWaiting = async (faults: FaultPlan): Promise<Outcome> => {
    const outcome = await runPrograms(waiting(), { faults });
    expectBalanced(outcome.report);
    return outcome;
  };

  it('a completion wakes its waiting thread', async () => {
    expect((await runWaiting([])).results[0]).toEqual(woken);
  });

  it('a lost interrupt wakes no program, but the completion is present', async () => {
    const { interrupts } = await quietOf(waiting());
    const { results } = await runWaiting([{ interrupt: 'lost', nth: interrupts + 1 }]);
    expect(results[0]).toEqual({ isWoken: false, statuses: ['SUCCESS'] });
  });

  it('a spurious interrupt is served, delivers nothing, and harms nothing', async () => {
    const { atPs } = await quietOf(waiting());
    const spurious = [0, 1, 2, 31].map((vector, index) => ({
      interrupt: 'spurious',
      vector,
      at: atPs + (50 + index) * 1e6,
    }));
    const { results, report } = await runWaiting(spurious);
    expect(results[0]).toEqual(woken);
    const plain = (await runWaiting([])).report;
    const delivered = ({ nodes }: typeof report): number =>
      nodes[0]!.interrupts.reduce((sum, row) => sum + row.delivered, 0);
    expect(delivered(report)).toBe(delivered(plain) + 4);
  });
});

describe('a command that the device fails', () => {
  const { EXCEED_LIM, INTERNAL_ERR, BAD_PARAM, BAD_QP_STATE } = CommandStatus;
  const failures = [
    // The program first creates its own CQ.
    ['regMr', 'SW2HW_MPT', 1, EXCEED_LIM, 'ENOMEM'],
    ['createCq', 'SW2HW_CQ', 2, INTERNAL_ERR, 'EIO'],
    ['createSrq', 'SW2HW_SRQ', 1, BAD_PARAM, 'EINVAL'],
    ['toInit', 'RST2INIT_QP', 1, BAD_QP_STATE, 'EINVAL'],
  ] as const;
  let results: Record<string, unknown>;
  beforeAll(async () => {
    const faults = failures.map(([, command, nth, status]) => ({ command, nth, status }));
    const outcome = await runPrograms([programOf('faulty', 'maker', 0)], { faults });
    expectBalanced(outcome.report);
    results = outcome.results[0] as Record<string, unknown>;
  });

  it.each(failures)(
    '%s (%s) is refused, changes nothing, and can be repeated',
    (name, _command, _nth, _status, code) => {
      expect(results[name]).toEqual({ first: code, isGivenBack: true, second: 'ok' });
    },
  );
});

it('faults select the same events in every partition', async () => {
  const faults = [
    { read: 'any', nth: quiet.reads + 6, answer: 'poisoned' },
    { packet: 'corrupted', node: 1, nth: quiet.packets[1]! + 1 },
    { packet: 'late', nth: quiet.packets[0]! + 2, delay: '5us' },
    { packet: 'reordered', nth: quiet.packets[0]! + 3, delay: '7us' },
    { packet: 'duplicated', nth: `${quiet.packets[0]! + 1}-${quiet.packets[0]! + 4}`, delay: '2us' },
    { packet: 'lost', node: 1, nth: quiet.packets[1]! + 2 },
    { port: 'down', node: 1, at: busyPs + 1e6, for: '95us' },
  ];
  const runs = [];
  for (const partition of ['single', 'per-device'] as const)
    runs.push(await runPrograms(traffic(), { faults, partition }));
  expect(runs[1]!.results).toEqual(runs[0]!.results);
  expect(bytesOf(runs[1]!.report)).toBe(bytesOf(runs[0]!.report));
});

describe('a report', () => {
  it('counts every fault, and lists those that never occurred', async () => {
    const { packets, reads } = quiet;
    const faults: FaultPlan = [
      { packet: 'corrupted', nth: `${packets[0]! + 1}-${packets[0]! + 2}` },
      { packet: 'late', node: 1, nth: 'every', delay: '1ns' },
      { packet: 'late', nth: 1_000_000_000, delay: '1us' },
      { read: 'any', nth: reads + 1_000_000, answer: 'poisoned' },
      { command: 'QUERY_FW', nth: 99, status: 'BAD_OP' },
      { interrupt: 'spurious', vector: 3, at: '2ms' },
      { interrupt: 'lost', vector: 77 },
      { semaphore: 'held', for: '20us' },
    ];
    const { outcome } = await runTraffic(faults);
    const { report } = outcome;
    expect(report.faults!.map(({ fired }) => fired)).toEqual([2, report.wire[1]!.packets, 0, 0, 0, 1, 0, 1]);
    expect(report.wire[0]!.corrupted).toBe(2);
    expect(report.configHash).not.toBe((await runPrograms(traffic())).report.configHash);
    const lines = renderReport(report).split('\n');
    expect(lines).toContain(
      `Fault packet=corrupted,nth=${packets[0]! + 1}-${packets[0]! + 2},node=0: happened 2 times`,
    );
    expect(lines.filter((line) => line.includes('NEVER'))).toHaveLength(4);
  });

  it('does not hold back a late interrupt beyond the end of the run', async () => {
    const faults: FaultPlan = [{ interrupt: 'late', nth: 'every', delay: '100s' }];
    const { report } = await runPrograms(waiting(), { faults, set: { 'driver.healthIntervalUs': 1000 } });
    expect(report.elapsedPs).toBeLessThan(100e12);
    expect(report.faults![0]!.fired).toBeGreaterThan(0);
    expectBalanced(report);
  });
});

it('of PAUSE frames is rejected on an InfiniBand cable, which has none', async () => {
  const faults: FaultPlan = [{ packet: 'lost', only: 'pauses', node: 0 }];
  await expect(runPrograms(traffic(), { faults })).rejects.toThrow(
    /only is "pauses", expected packets of another kind on a cable of InfiniBand/,
  );
});
