/**
 * Fabrics of Ethernet at 40 Gb/s whose cards have DCQCN or none: claims of Zhu et al., SIGCOMM 2015, about fairness, victims and pauses,
 * and that a run is the same in all partitions.
 */
import { describe, expect, it, vi } from 'vitest';
import runFabric, { type FabricRow } from '../experiments/runs/fabric-run.ts';
import runPerf from '../experiments/runs/perf-run.ts';
import { fabricDefaults } from '../experiments/workloads/fabric-plan.ts';
import { parsedWorkload, perfArgsOf } from '../experiments/workloads/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { parsedTopology } from '../machine/topology/index.ts';
import { bytesOf, eachPartition, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 300_000 });

type Algorithm = 'none' | 'dcqcn' | 'timely';

const marking = {
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': 'v2',
  'ethernet.gigabitsPerSecond': 40,
  'switch.ethernet.marksCongestion': true,
} as const;

interface Traffic {
  readonly pattern: 'incast' | 'victim';
  readonly topology: string;
  readonly hostCount: number;
  readonly messages: number;
}

function trafficOf({ topology, ...traffic }: Traffic, algorithm: Algorithm, more: MachineOptions = {}) {
  const set = { ...marking, 'hca.congestion.algorithm': algorithm, ...more.set };
  const machine = { ...more, topology: parsedTopology(topology), set };
  return runFabric({ machine, args: { ...fabricDefaults, ...traffic } });
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** Pauses of all switches, the longest queue of an output, and counters of all cards. */
function figuresOf({ report, fairness }: FabricRow) {
  const ports = report.switches!.flatMap((device) => device.ports);
  const ofCards = (pick: 'npEcnMarkedRocePackets' | 'npCnpSent' | 'rpCnpHandled' | 'rpCnpIgnored') =>
    sumOf(
      report.nodes.map(({ hca: { congestion } }) =>
        congestion !== undefined && 'npCnpSent' in congestion ? congestion[pick] : 0,
      ),
    );
  return {
    fairness,
    pauses: sumOf(ports.map(({ flowControl }) => flowControl!['sentTransitions'] ?? 0)),
    queueBytes: Math.max(...ports.map(({ output }) => output!.queuedBytesMax)),
    marked: [sumOf(ports.map(({ output }) => output!.markedFrames)), ofCards('npEcnMarkedRocePackets')],
    cnps: [ofCards('npCnpSent'), ofCards('rpCnpHandled'), ofCards('rpCnpIgnored')],
  };
}

describe('an incast with DCQCN', () => {
  const incast = { pattern: 'incast', topology: 'star:5', hostCount: 5, messages: 30 } as const;

  it('DCQCN: is shared fairly, in shorter queues, and without the pauses that it has without', async () => {
    const [paused, controlled] = [await trafficOf(incast, 'none'), await trafficOf(incast, 'dcqcn')];
    const [before, after] = [figuresOf(paused), figuresOf(controlled)];
    expect(before.pauses).toBeGreaterThan(3);
    expect(after.pauses).toBe(0);
    expect(after.queueBytes).toBeLessThan(before.queueBytes / 2);
    expect(after.fairness).toBeGreaterThan(0.99);
    // Every mark arrives, and every CNP: nothing is lost.
    expect(before.marked).toEqual([0, 0]);
    expect(after.marked[0]).toBeGreaterThan(100);
    expect(after.marked[1]).toBe(after.marked[0]);
    const [sent, handled, ignored] = after.cnps;
    expect([handled, ignored, controlled.cnps]).toEqual([sent, 0, sent]);
    // At most one to each of four senders in 50 us.
    expect(sent).toBeGreaterThan(8);
    expect(sent).toBeLessThanOrEqual(4 * (1 + controlled.durationPs / 50e6));
  });

  it('has the waits for the rate as a stage of operations and as a stall of the requester', async () => {
    const { report } = await trafficOf(incast, 'dcqcn');
    expect(report.operations['WRITE']!.milestonesPs['rateLimit']).toBeGreaterThan(1e9);
    expect(report.nodes[1]!.hca.blocks['requester']!.stalledCycles['rateLimit']).toBeGreaterThan(1e5);
    expect(report.checks.balanced).toBe(true);
    const plain = await trafficOf({ ...incast, messages: 2 }, 'none');
    expect(plain.report.operations['WRITE']!.milestonesPs).not.toHaveProperty('rateLimit');
    expect(plain.report.nodes[1]!.hca.blocks['requester']!.stalledCycles).not.toHaveProperty('rateLimit');
    expect(plain.report.nodes[1]!.hca).not.toHaveProperty('congestion');
  });

  it.each(eachPartition)(
    'is the same to the byte in partition %s, and in any order of an instant',
    async (partition) => {
      const few = { ...incast, topology: 'star:3', hostCount: 3, messages: 8 };
      const { report } = await trafficOf(few, 'dcqcn', { partition });
      expect(figuresOf(await trafficOf(few, 'dcqcn')).cnps[0]).toBeGreaterThan(3);
      const other = await trafficOf(few, 'dcqcn', partition === 'single' ? { shuffleSeed: 5 } : {});
      expect(bytesOf(report)).toBe(bytesOf(other.report));
    },
  );
});

describe('a flow with TIMELY', () => {
  it('slows down by its round trips, and sends packets that no switch marks', async () => {
    const incast = { pattern: 'incast', topology: 'star:3', hostCount: 3, messages: 20 } as const;
    const [plain, timely] = [await trafficOf(incast, 'none'), await trafficOf(incast, 'timely')];
    expect(figuresOf(timely)).toMatchObject({ marked: [0, 0], cnps: [0, 0, 0] });
    expect(timely.report.operations['WRITE']!.milestonesPs['rateLimit']).toBeGreaterThan(1e9);
    expect(timely.durationPs).toBeGreaterThan(plain.durationPs);
  });
});

describe('a flow that shares its sender with an incast', () => {
  it('DCQCN: is not paused with the incast, whose near and far senders are equals', async () => {
    const victim = { pattern: 'victim', topology: 'dumbbell:8', hostCount: 8, messages: 30 } as const;
    const [paused, controlled] = [await trafficOf(victim, 'none'), await trafficOf(victim, 'dcqcn')];
    const rateOf = ({ flows }: FabricRow, from: number, to: number) =>
      flows.find((flow) => flow.from === from && flow.to === to)!.bytesPerSecond;
    expect(rateOf(controlled, 1, 7)).toBeGreaterThan(2 * rateOf(paused, 1, 7));
    // Host 1 is at the receiver's switch; hosts 4 to 6 reach it over one cable.
    expect(rateOf(paused, 1, 0)).toBeGreaterThan(1.3 * rateOf(paused, 6, 0));
    expect(rateOf(controlled, 1, 0) / rateOf(controlled, 6, 0)).toBeCloseTo(1, 1);
  });
});

describe('congestion control', () => {
  it('needs RoCE v2, and limits of TIMELY in their order', async () => {
    const rejected = (set: NonNullable<MachineOptions['set']>) =>
      expect(smallMachine({ set: { ...marking, ...set } })).rejects;
    await rejected({ 'hca.congestion.algorithm': 'dcqcn', 'hca.capability.roce': 'v1' }).toThrow(
      /hca\.congestion\.algorithm is "dcqcn", expected none/,
    );
    await rejected({ 'hca.congestion.timely.highUs': 40 }).toThrow(/hca\.congestion\.timely\.highUs is 40/);
    await expect(smallMachine({ set: { 'hca.congestion.algorithm': 'timely' } })).rejects.toThrow(
      /hca\.congestion\.algorithm is "timely"/,
    );
  });
});

describe('a marked packet', () => {
  it.each(['RC', 'UC', 'XRC'] as const)('of %s is counted and answered by a CNP', async (connection) => {
    const order = {
      machine: {
        set: { ...marking, 'switch.ethernet.marksCongestion': false, 'hca.congestion.algorithm': 'dcqcn' },
        faults: [{ packet: 'congested', nth: 50 }] as const,
      },
      args: perfArgsOf(parsedWorkload(`write-bw,size=4096,iters=100,connection=${connection}`)),
      isReported: true,
    };
    const { report } = await runPerf(order);
    const counters = report!.nodes.map(({ hca }) => hca.congestion!);
    expect(counters[1]).toMatchObject({ npEcnMarkedRocePackets: 1, npCnpSent: 1 });
    expect(counters[0]).toMatchObject({ rpCnpHandled: 1, rpCnpIgnored: 0 });
  });
});
