/**
 * Single faults and single pressures on the traditional path, each through the whole machine and each with its figure: a frame
 * lost or late, the port down or the cable out at a certain point of the software, no memory for the driver, a storm with and
 * without a budget, an occupied bus.
 */
import { describe, expect, it, vi } from 'vitest';
import { type CompareArgs, machineOf } from '../experiments/workloads/compare-plan.ts';
import type { FaultPlan } from '../machine/faults/index.ts';
import type { ProgramOptions } from '../machine/program.ts';
import { expectBalanced } from './expectations.ts';
import { type Outcome, programOf, runPrograms, smallMachine } from './machines.ts';
import type { StreamArgs } from './programs/traditional.ts';

vi.setConfig({ testTimeout: 120_000 });

const nic = { 'machine.adapter': 'nic' };
/** Retransmission after a millisecond, not 200. */
const quick = { ...nic, 'net.stack.retransmitMinUs': 1_000 };

const small: StreamArgs = { bytes: 60_000, port: 80, callBytes: 8_192, from: 0 };

const streamOf = (args: StreamArgs, core?: number): ProgramOptions[] =>
  [0, 1].map((node) =>
    programOf('traditional', 'stream', node, {
      name: `stream${args.port}`,
      args: { ...args },
      ...(core === undefined ? {} : { core }),
    }),
  );

interface Streamed {
  readonly hash: string;
  readonly endedPs: number;
}

/** A stream under these faults: complete, with balanced ledgers. */
async function streamUnder(faults: FaultPlan): Promise<Outcome & { readonly endedPs: number }> {
  const outcome = await runPrograms(streamOf(small), { set: quick, faults });
  const [sent, received] = outcome.results as readonly [Streamed, Streamed];
  expect(received.hash).toBe(sent.hash);
  expectBalanced(outcome.report);
  return { ...outcome, endedPs: received.endedPs };
}

const retransmissionsOf = ({ report }: Outcome): number =>
  report.nodes[0]!.nic!.kernel['retransmissions'] ?? 0;

describe('a fault of the plan, on a NIC', () => {
  it('that loses one frame on the cable costs one retransmission, and no byte', async () => {
    const plain = await streamUnder([]);
    expect(retransmissionsOf(plain)).toBe(0);
    const outcome = await streamUnder([{ packet: 'corrupted', node: 0, nth: 5 }]);
    // Its frame check sequence is wrong: the receiving NIC drops it.
    expect(outcome.report.wire[0]!.corrupted).toBe(1);
    expect(retransmissionsOf(outcome)).toBe(1);
    expect(outcome.endedPs).toBeGreaterThan(plain.endedPs);
  });

  it('that holds a frame back delays, without a retransmission', async () => {
    const plain = await streamUnder([]);
    const outcome = await streamUnder([{ packet: 'late', node: 0, nth: 5, delay: '500us' }]);
    expect(retransmissionsOf(outcome)).toBe(0);
    expect(outcome.endedPs - plain.endedPs).toBeGreaterThan(400e6);
    expect(outcome.endedPs - plain.endedPs).toBeLessThan(600e6);
  });

  it.each([
    ['are damaged in a switch, under a right frame check sequence', { packet: 'corrupted', crc: 'icrc' }],
    ['come twice', { packet: 'duplicated', delay: '20us' }],
    ['are passed by two others', { packet: 'reordered', by: 2, delay: '50us' }],
    ['are lost', { packet: 'lost' }],
  ])(
    'by which frames %s, a tenth of them in both directions, leaves every byte right',
    async (_name, what) => {
      const faults = [0, 1].map((node) => ({ ...what, chance: '10%', node }));
      const { report } = await streamUnder(faults);
      for (const { fired } of report.faults!) expect(fired).toBeGreaterThan(0);
    },
  );

  it('by which a frame is still held back when programs have ended leaves balanced ledgers', async () => {
    const { report } = await streamUnder([{ packet: 'reordered', node: 0, nth: 5, by: 250, delay: '30s' }]);
    expect(report.faults![0]!.fired).toBe(1);
  });

  it('that names InfiniBand headers is rejected, and so is a congestion mark', async () => {
    const refused = (fault: FaultPlan[number]) =>
      expect(runPrograms([], { set: nic, faults: [fault] })).rejects;
    await refused({ packet: 'lost', qpn: 3 }).toThrow(
      /qpn is .*, expected left out with machine.adapter=nic/,
    );
    await refused({ packet: 'congested' }).toThrow(
      /packet is "congested", expected another effect on a cable/,
    );
    await refused({ packet: 'lost', only: 'pauses' }).toThrow(/only is .*, expected/);
  });

  it.each([
    ['the port goes down', { port: 'down' }],
    ['the cable is pulled', { cable: 'pulled' }],
  ])(
    'by which %s after a number of accesses by software stops the stream until the link is back',
    async (_name, what) => {
      const fault = { ...what, node: 0, after: 'access', nth: 80, delay: '1us', for: '300us' };
      const outcome = await streamUnder([fault]);
      expect(retransmissionsOf(outcome)).toBeGreaterThan(0);
      const plain = await streamUnder([]);
      expect(outcome.endedPs - plain.endedPs).toBeGreaterThan(300e6);
      // The drivers of both ends were notified of the link, and checked it.
      const readsOf = ({ report }: Outcome): number[] =>
        report.nodes.map(({ nic: books }) => books!.device['registerReads']!);
      for (const [node, reads] of readsOf(outcome).entries())
        expect(reads).toBeGreaterThan(readsOf(plain)[node]!);
      // Later than the last access, it changes nothing.
      const never = await streamUnder([{ ...fault, nth: 100_000 }]);
      expect(never.endedPs).toBe(plain.endedPs);
    },
  );

  it('that waits for a command is rejected: a NIC has none', async () => {
    const plan = [{ port: 'down', after: 'INIT_HCA' }];
    await expect(runPrograms([], { set: nic, faults: plan })).rejects.toThrow(
      /after is "INIT_HCA", expected access, or at, with machine.adapter=nic/,
    );
  });
});

describe("the NIC's driver", () => {
  it.each([
    ['a descriptor ring', 64, {}],
    ['receive buffers', 1024, { 'net.driver.receiveRing': 4096 }],
  ])('that finds no memory for %s ends the run with ENOMEM', async (_what, freeKib, more) => {
    const reserved = { 'host.memory.reservedKib': 65_536 - freeKib, 'host.swap.sizeMib': 0 };
    await using machine = await smallMachine({ set: { ...nic, ...reserved, ...more } });
    await expect(machine.run()).rejects.toThrow(/program boot failed at \d+ ps: NetError: ENOMEM: no memory/);
  });
});

describe('a storm of frames at the core of a program that works for 3 ms', () => {
  const rounds = 3_000;
  const alonePs = rounds * 1e6;

  /** Three senders of tiny segments, and no moderation. */
  async function stormed(set: Readonly<Record<string, number>>) {
    const streams = [1, 2, 3].flatMap((core) =>
      streamOf({ bytes: 60_000, port: 80 + core, callBytes: 64, from: 0 }, core),
    );
    const outcome = await runPrograms(
      [programOf('traditional', 'works', 1, { core: 0, args: { rounds } }), ...streams],
      {
        set: {
          ...quick,
          'net.driver.interruptIntervalNs': 0,
          'net.stack.isDelayed': false as unknown as number,
          ...set,
        },
      },
    );
    expectBalanced(outcome.report);
    const { tookPs, longestPs } = outcome.results[0] as { tookPs: number; longestPs: number };
    return { tookPs, longestPs, kernel: outcome.report.nodes[1]!.nic!.kernel };
  }

  it('uses half of the core with the polling budget, and all of it, to its end, without', async () => {
    const budgeted = await stormed({});
    const unbounded = await stormed({
      'net.driver.softirqBudget': 10_000,
      'net.driver.softirqTimeUs': 100_000,
    });
    // net.driver.softirqSharePercent: 3 ms of work take 6 ms, in pieces; without it, no work is done while the storm lasts.
    expect(budgeted.tookPs).toBeGreaterThan(1.8 * alonePs);
    expect(budgeted.tookPs).toBeLessThan(2.2 * alonePs);
    expect(budgeted.longestPs).toBeLessThan(1e9);
    expect(budgeted.kernel['pollRests']).toBeGreaterThan(5);
    expect(unbounded.longestPs).toBeGreaterThan(4e9);
    expect(unbounded.tookPs).toBeGreaterThan(budgeted.tookPs + 1e9);
    expect(unbounded.kernel['pollRests']).toBeUndefined();
    // The saving does not come from less work: both have received all frames.
    expect(budgeted.kernel['framesReceived']).toBe(unbounded.kernel['framesReceived']);
  });
});

describe('a system DMA controller at work', () => {
  it('makes the cores wait for the bus: a program is delayed by exactly the cycles that its core reports as busWait', async () => {
    const args: CompareArgs = {
      path: 'dma',
      sizeBytes: 4096,
      totalBytes: 8192,
      latencyRounds: 0,
      file: null,
    };
    const sides = ['compareSender', 'compareReceiver'].map((exportName, node) => ({
      node,
      name: exportName,
      run: { url: new URL('../experiments/workloads/compare-sides.ts', import.meta.url), exportName },
      args,
    }));
    const works = programOf('traditional', 'works', 0, { core: 1, args: { rounds: 3_000 } });
    const { results, report } = await runPrograms([...sides, works], { set: machineOf('dma') });
    expectBalanced(report);
    const { cores } = report.nodes[0]!.cpu;
    const { busWait, application } = cores[1]!.cycles;
    const { tookPs } = results[2] as { readonly tookPs: number };
    expect(application).toBe(3_000 * 2_500);
    expect(busWait).toBeGreaterThan(1_000);
    // 400 ps a cycle.
    expect(tookPs).toBe((application + busWait) * 400);
    expect(report.nodes[0]!.memoryBus.systemDma).toBe(args.totalBytes);
    // With an HCA no master takes the bus from a core.
    const rdma = await runPrograms([programOf('traditional', 'works', 0, { args: { rounds: 100 } })]);
    expect(rdma.report.nodes[0]!.cpu.cores[0]!.cycles.busWait).toBe(0);
  });
});
