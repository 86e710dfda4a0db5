/**
 * Fabrics of InfiniBand whose switches mark packets with FECN and whose cards have the congestion control table (IBTA vol 1, annex A10): a
 * victim of a congestion tree gets its throughput back, as Gran et al., IPDPS 2010, found with hardware, and a run is the same in all
 * partitions.
 */
import { describe, expect, it, vi } from 'vitest';
import runFabric, { type FabricRow } from '../experiments/runs/fabric-run.ts';
import { fabricDefaults } from '../experiments/workloads/fabric-plan.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { parsedTopology } from '../machine/topology/index.ts';
import { bytesOf, eachPartition, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 300_000 });

const annex = { 'hca.congestion.algorithm': 'cct', 'switch.congestion.threshold': 15 } as const;

interface Traffic {
  readonly pattern: 'incast' | 'victim';
  readonly topology: string;
  readonly hostCount: number;
  readonly messages: number;
}

const run = ({ topology, ...traffic }: Traffic, set: MachineOptions['set'] = {}, more: MachineOptions = {}) =>
  runFabric({
    machine: { ...more, topology: parsedTopology(topology), set },
    args: { ...fabricDefaults, ...traffic },
  });

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** Counters of all cards. */
function countersOf({ report }: FabricRow) {
  const ledgers = report.nodes.map(({ hca: { congestion } }) => {
    if (congestion === undefined || !('pktRcvFecn' in congestion)) throw new Error('no counters');
    return congestion;
  });
  const of = (pick: (ledger: (typeof ledgers)[number]) => number): number => sumOf(ledgers.map(pick));
  return {
    fecns: of(({ pktRcvFecn }) => pktRcvFecn),
    sent: of(({ cnpSent, becnSent }) => cnpSent + becnSent),
    received: of(({ pktRcvBecn, becnIgnored }) => pktRcvBecn + becnIgnored),
  };
}

const marksOf = ({ report }: FabricRow): number =>
  sumOf(report.switches!.flatMap(({ ports }) => ports.map(({ markedPackets }) => markedPackets ?? 0)));

const rateOf = ({ flows }: FabricRow, from: number, to: number): number =>
  flows.find((flow) => flow.from === from && flow.to === to)!.bytesPerSecond;

describe('a flow that shares its sender with an incast', () => {
  const victim = { pattern: 'victim', topology: 'dumbbell:8', hostCount: 8, messages: 50 } as const;

  it('gets its throughput back, and the port of the incast stays busy', async () => {
    const [plain, controlled] = [await run(victim), await run(victim, annex)];
    expect(rateOf(controlled, 1, 7)).toBeGreaterThan(2.5 * rateOf(plain, 1, 7));
    const ofIncast = ({ flows, durationPs }: FabricRow): number =>
      sumOf(flows.filter(({ to }) => to === 0).map(() => 50 * 65_536)) / (durationPs / 1e12);
    expect(ofIncast(controlled)).toBeGreaterThan(0.9 * ofIncast(plain));
    expect(controlled.isEqual && controlled.isBalanced).toBe(true);
  });
});

describe('an incast', () => {
  const incast = { pattern: 'incast', topology: 'star:5', hostCount: 5, messages: 20 } as const;

  it('annex A10: has each mark arrive, at most one notification for it, and each notification arrive', async () => {
    const row = await run(incast, annex);
    const { fecns, sent, received } = countersOf(row);
    expect(fecns).toBe(marksOf(row));
    expect(sent).toBeGreaterThan(20);
    expect(sent).toBeLessThanOrEqual(fecns);
    expect(received).toBe(sent);
    expect(row.cnps).toBe(sent);
    // Only the port of the congestion marks.
    expect(row.report.switches![0]!.ports.map(({ markedPackets }) => markedPackets! > 0)).toEqual([
      true,
      ...[false, false, false, false],
    ]);
  });

  it('has the waits for the rate as a stage of operations and as a stall of the requester', async () => {
    const { report } = await run(incast, annex);
    expect(report.operations['WRITE']!.milestonesPs['rateLimit']).toBeGreaterThan(1e8);
    expect(report.nodes[1]!.hca.blocks['requester']!.stalledCycles['rateLimit']).toBeGreaterThan(1e4);
    const plain = await run({ ...incast, messages: 2 });
    expect(plain.report.operations['WRITE']!.milestonesPs).not.toHaveProperty('rateLimit');
    expect(plain.report.nodes[1]!.hca).not.toHaveProperty('congestion');
    expect(plain.report.switches![0]!.ports[0]).not.toHaveProperty('markedPackets');
  });

  it.each(eachPartition)(
    'is the same to the byte in partition %s, and in any order of an instant',
    async (partition) => {
      const few = { ...incast, topology: 'star:3', hostCount: 3, messages: 8 };
      const one = await run(few, annex, { partition });
      const other = await run(few, annex, partition === 'single' ? { shuffleSeed: 5 } : {});
      expect(countersOf(one).sent).toBeGreaterThan(3);
      expect(bytesOf(one.report)).toBe(bytesOf(other.report));
    },
  );

  it('is the same with two data lanes, whose queues are marked by themselves', async () => {
    const lanes = {
      'wire.dataVls': '2',
      'wire.receiveBufferBytes': 65_536,
      'switch.inputBufferBytes': 65_536,
    };
    const row = await run(incast, { ...annex, ...lanes });
    expect(row.isBalanced).toBe(true);
    expect(countersOf(row).fecns).toBe(marksOf(row));
    expect(marksOf(row)).toBeGreaterThan(20);
  });
});

describe('the algorithm of annex A10', () => {
  it('needs InfiniBand, and limits in their order', async () => {
    const rejected = (set: NonNullable<MachineOptions['set']>) => expect(smallMachine({ set })).rejects;
    const ethernet = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;
    await rejected({ ...ethernet, 'hca.congestion.algorithm': 'cct' }).toThrow(
      /hca\.congestion\.algorithm is "cct", expected dcqcn, timely or none/,
    );
    await rejected({ 'hca.congestion.cct.limit': 3, 'hca.congestion.cct.min': 4 }).toThrow(
      /hca\.congestion\.cct\.limit is 3, expected at least hca\.congestion\.cct\.min \(4\)/,
    );
  });
});
