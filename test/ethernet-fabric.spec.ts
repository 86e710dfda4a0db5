/**
 * Simulated hosts with RoCE that Ethernet switches join. Expected times are those of the cables and switches: at 10 Gb/s a byte takes
 * 800 ps; a frame of n bytes has a preamble of 8 and an FCS of 4; a cable takes 309.6 ns and a switch 300 ns.
 */
import { describe, expect, it, vi } from 'vitest';
import { readCapture } from '../analyser/capture/index.ts';
import runFabric from '../experiments/runs/fabric-run.ts';
import type { FabricArgs, Flow } from '../experiments/workloads/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, eachPartition, programsOf, runPrograms, smallMachine, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 300_000 });

const cablePs = 309_600;
const switchPs = 300_000;
const framePs = (frameBytes: number): number => (8 + frameBytes + 4) * 800;

const roce = (topology: string, more: MachineOptions = {}): MachineOptions => ({
  ...more,
  topology: parsedTopology(topology),
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2', ...more.set },
});

/** WRITEs that are all posted at once. */
interface Messages {
  readonly bytes: number;
  readonly messages: number;
  readonly trafficClass?: number;
}

/** Runs flows on all hosts of a fabric; every byte arrives, and the report balances. */
async function outcomeOf(
  flows: readonly Flow[],
  { bytes, messages, trafficClass }: Messages,
  options: MachineOptions,
) {
  const hostCount = options.topology!.nodes.filter(({ kind }) => kind === 'host').length;
  const args: FabricArgs = {
    pattern: 'incast',
    verb: 'write',
    hostCount,
    sizeBytes: bytes,
    messages,
    window: messages,
    flows,
    ...(trafficClass === undefined ? {} : { trafficClass }),
  };
  const machine = { ...options, set: { ...smallMemory, ...options.set } };
  const { report, isEqual, flows: rows } = await runFabric({ machine, args });
  expectBalanced(report);
  expect(isEqual).toBe(true);
  return { tookPs: rows.map(({ durationPs }) => durationPs), report };
}

const incast: readonly Flow[] = [1, 2, 3].map((from) => ({ from, to: 0 }));
const long = { bytes: 32_768, messages: 4 } as const;

describe('hosts at one Ethernet switch', () => {
  it.each(['v1', 'v2'] as const)(
    'receive packets of RoCE %s a switch, a cable and the frame later than over a cable, to the picosecond',
    async (version) => {
      const instantsOver = async (topology: string): Promise<number[]> => {
        const ends = [{ node: 0 }, { node: 1 }];
        const analysis = { capture: { ends, sizeBytes: 2 ** 20 } };
        const set = { 'hca.capability.roce': version };
        await using machine = await smallMachine(roce(topology, { set, analysis }));
        for (const program of programsOf('roce', 'oneByOne', 64)) await machine.load(program);
        await machine.run();
        expectBalanced(await machine.report());
        // The last WRITE as it left and arrived, and its ACK.
        const last = readCapture((await machine.capture())!).frames.slice(-4);
        return last.map(({ timePs }) => Number(timePs));
      };
      // Without FCS: 14, GRH 40 or IPv4 20 and UDP 8, BTH 12, RETH 16 and 64 or AETH 4, ICRC 4.
      const network = version === 'v2' ? 28 : 40;
      const write = 14 + network + 12 + 16 + 64 + 4;
      const acknowledgement = 14 + network + 12 + 4 + 4;
      const [left, arrived, answered, acknowledged] = await instantsOver('star:2');
      expect(arrived! - left!).toBe(cablePs + switchPs + framePs(write) + cablePs);
      expect(acknowledged! - answered!).toBe(cablePs + switchPs + framePs(acknowledgement) + cablePs);
      const [pairLeft, pairArrived, pairAnswered] = await instantsOver('0-1');
      expect(pairArrived! - pairLeft!).toBe(cablePs);
      // The responder answers at the same time after the packet, to within an edge of its clock.
      expect(Math.abs(answered! - arrived! - (pairAnswered! - pairArrived!))).toBeLessThan(5_000);
    },
  );

  it.each([
    // At 10 Gb/s the frame of a WRITE of 64 bytes takes 120 ns: it is stored, or not.
    ['cut-through', 0],
    ['store-and-forward', 1],
  ] as const)(
    'receive packets of RoCE through a switch with forwarding=%s, to the picosecond',
    async (forwarding, frames) => {
      const analysis = { capture: { ends: [{ node: 0 }, { node: 1 }], sizeBytes: 2 ** 20 } };
      const set = {
        'switch.ethernet.forwarding': forwarding,
        'switch.ethernet.portLatencyNs': 40,
        'ethernet.fec': 'rs-528',
      } as const;
      await using machine = await smallMachine(roce('star:2', { set, analysis }));
      for (const program of programsOf('roce', 'oneByOne', 64)) await machine.load(program);
      await machine.run();
      const report = await machine.report();
      expectBalanced(report);
      const [left, arrived] = readCapture((await machine.capture())!)
        .frames.slice(-4)
        .map(({ timePs }) => Number(timePs));
      // A port of a host and one of the switch, 2 m, and a word of 5280 bits at 10.3125 Gb/s with its decoding.
      const onePs = 150_000 + 40_000 + 9600 + 512_000 + 21_000;
      const write = 14 + 28 + 12 + 16 + 64 + 4;
      expect(arrived! - left!).toBe(2 * onePs + switchPs + frames * framePs(write));
      const cut = report.switches![0]!.ports.map(({ cutThroughFrames }) => cutThroughFrames);
      expect(cut.every((count) => (forwarding === 'cut-through' ? count! > 0 : count === undefined))).toBe(
        true,
      );
    },
  );

  it('connect between any two of them', async () => {
    const flows = [0, 1, 2, 3].flatMap((from) =>
      [0, 1, 2, 3].flatMap((to) => (from === to ? [] : [{ from, to }])),
    );
    const { report } = await outcomeOf(flows, { bytes: 1500, messages: 2 }, roce('star:4'));
    // Each host has sent frames before any was addressed to it but the first: later ones are not flooded.
    expect(report.switches![0]!.buffer!.floodedFrames).toBeLessThan(20);
  });

  it.each(eachPartition)(
    'write three to one without loss, byte for byte, in partition %s',
    async (partition) => {
      const set = { 'switch.ethernet.bufferKib': 128 };
      const { tookPs, report } = await outcomeOf(incast, long, roce('star:4', { partition, set }));
      const [device] = report.switches!;
      expect(
        device!.ports.every(
          ({ notForwarded, output }) => Object.keys(notForwarded).length + output!.queueDrops === 0,
        ),
      ).toBe(true);
      expect(device!.ports.slice(1).every(({ flowControl }) => flowControl!['sentTransitions']! > 1)).toBe(
        true,
      );
      expect(report.nodes.every(({ hca }) => Object.keys(hca.transport).length === 0)).toBe(true);
      // 3 × 128 packets of 1024 bytes: 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, preamble 8, gap 12, and RETH 16 in the first of 32.
      const wirePs = 3 * (128 * (1024 + 62 + 20) + 4 * 16) * 800;
      expect(Math.max(...tookPs)).toBeGreaterThan(wirePs);
      expect(Math.max(...tookPs)).toBeLessThan(wirePs + 20_000_000);
      if (partition !== 'single') return;
      const shuffled = await outcomeOf(incast, long, roce('star:4', { set, shuffleSeed: 3 }));
      expect(bytesOf(shuffled.report)).toBe(bytesOf(report));
    },
  );

  it('need the same times with PFC of their only priority as with PAUSE', async () => {
    const set = { 'switch.ethernet.bufferKib': 128 };
    const pfc = { ...set, 'switch.ethernet.flowControl': 'pfc', 'driver.pfcPriorities': 1 };
    const paused = await outcomeOf(incast, long, roce('star:4', { set }));
    const byPriority = await outcomeOf(incast, long, roce('star:4', { set: pfc }));
    expect(byPriority.tookPs).toEqual(paused.tookPs);
    expect(byPriority.report.switches![0]!.ports[1]!.flowControl!['sentPriorityPauses']).toBeGreaterThan(2);
    expect(byPriority.report.nodes[1]!.hca.ethernet!.flowControl['priorityPausedPs']).toBe(
      paused.report.nodes[1]!.hca.ethernet!.flowControl['pausedPs'],
    );
  });

  it('have cables of the length that a topology gives them', async () => {
    const { nodes, links } = parsedTopology('star:2');
    const topology = { nodes, links: links.map((link) => ({ ...link, metres: 1002 })) };
    const [flow, message] = [[{ from: 0, to: 1 }], { bytes: 64, messages: 1 }];
    const near = await outcomeOf(flow, message, roce('star:2'));
    const far = await outcomeOf(flow, message, { ...roce('star:2'), topology });
    // WRITE and ACK pass two cables each, which are 1000 m of 4.8 ns longer; the host polls.
    const added = far.tookPs[0]! - near.tookPs[0]!;
    expect(Math.abs(added - 4 * 1000 * 4800)).toBeLessThan(100_000);
  });

  it('lose frames of an incast without flow control, and send them again', async () => {
    const set = { 'switch.ethernet.bufferKib': 64, 'switch.ethernet.flowControl': 'none' };
    const { report } = await outcomeOf(incast, long, roce('star:4', { set }));
    expect(report.switches![0]!.ports[0]!.output!.queueDrops).toBeGreaterThan(10);
    expect(report.nodes[0]!.hca.transport['sequenceNakSent']).toBeGreaterThan(0);
  });

  it('RFC 3168: have their packets with ECT marked in a long queue', async () => {
    const set = { 'switch.ethernet.marksCongestion': true };
    const markedOf = async (trafficClass: number): Promise<number> => {
      const { report } = await outcomeOf(incast, { ...long, trafficClass }, roce('star:4', { set }));
      return report.switches![0]!.ports[0]!.output!.markedFrames;
    };
    expect(await markedOf(2)).toBeGreaterThan(0);
    expect(await markedOf(0)).toBe(0);
  });

  it('give the packets of an all-reduce the traffic class that is asked for, and refuse one over iWARP', async () => {
    const set = {
      'switch.ethernet.marksCongestion': true,
      'switch.ethernet.ecnMinBytes': 1024,
      'switch.ethernet.ecnMaxBytes': 2048,
    };
    const markedOf = async (trafficClass: number): Promise<number> => {
      const args: FabricArgs = {
        ...{ pattern: 'all-reduce', algorithm: 'halving-doubling', verb: 'write', hostCount: 4 },
        ...{ sizeBytes: 65_536, messages: 1, window: 1, trafficClass },
      };
      // Two flows meet at the cable between the switches.
      const machine = roce('dumbbell:4', { set: { ...set, ...smallMemory } });
      const { report, isEqual } = await runFabric({ machine, args });
      expect(isEqual).toBe(true);
      const ports = report.switches!.flatMap((each) => each.ports);
      return ports.reduce((sum, { output }) => sum + output!.markedFrames, 0);
    };
    // RFC 3168: 2 is ECT(0); packets without ECT are not marked.
    expect(await markedOf(2)).toBeGreaterThan(0);
    expect(await markedOf(0)).toBe(0);
    const iwarp = { 'hca.capability.roce': 'none', 'hca.capability.transport': 'iwarp' };
    await expect(
      outcomeOf(incast, { ...long, trafficClass: 2 }, roce('star:4', { set: iwarp })),
    ).rejects.toThrow('trafficClass is 2, expected left out with iWARP');
  });

  it('carry streams of iWARP', async () => {
    const set = { 'hca.capability.roce': 'none', 'hca.capability.transport': 'iwarp' };
    const { report } = await runPrograms(
      programsOf('iwarp', 'everyVerb', { sizes: [0, 1441] }),
      roce('star:2', { set }),
    );
    expectBalanced(report);
    expect(report.switches![0]!.ports[0]!.receivedPackets).toBeGreaterThan(10);
  });
});

describe('hosts of a fabric with several paths', () => {
  const flows = [0, 1, 2, 3].flatMap((host) =>
    [0, 1, 2, 3].map((turn) => ({ from: host, to: 4 + ((host + turn) % 4) })),
  );
  const two = { bytes: 8192, messages: 2 } as const;

  it('use all spines for connections, each QP one path', async () => {
    const { report } = await outcomeOf(flows, two, roce('leaf-spine:2x4:8'));
    // Spines are nodes 8 and 9; WRITEs of 4 × 4 flows come to them from the two leaves of hosts 0 to 3.
    const bySpine = [8, 9].map((spine) =>
      report.wire
        .filter(({ to, from }) => to === spine && (from === 10 || from === 11))
        .reduce((sum, { bytes }) => sum + bytes, 0),
    );
    expect(Math.min(...bySpine)).toBeGreaterThan(2 * 8192 * 2);
    expect(report.nodes.every(({ hca }) => Object.keys(hca.transport).length === 0)).toBe(true);
  });

  it('use one spine along a tree', async () => {
    const set = { 'switch.ethernet.multipath': 'tree' };
    const { report } = await outcomeOf(flows, two, roce('leaf-spine:2x4:8', { set }));
    const bytes = [8, 9].map((spine) =>
      report.wire.filter(({ to }) => to === spine).reduce((sum, row) => sum + row.bytes, 0),
    );
    expect(Math.max(...bytes)).toBeGreaterThan(16 * 2 * 8192);
    expect(Math.min(...bytes)).toBeLessThan(0.1 * Math.max(...bytes));
  });

  it.each(['ring:4', 'mesh:4', 'dumbbell:4'])('reach each other in %s', async (topology) => {
    await outcomeOf([...incast.slice(0, 2), { from: 0, to: 3 }], long, roce(topology));
  });
});

describe('an Ethernet fabric', () => {
  it('rejects NICs, and a buffer that headroom fills', async () => {
    const made = (set: MachineOptions['set']) => smallMachine(roce('star:4', { set: set! }));
    await expect(made({ 'machine.adapter': 'nic' })).rejects.toThrow(/machine\.adapter/);
    await expect(made({ 'switch.ethernet.bufferKib': 64 })).rejects.toThrow(/switch\.ethernet\.bufferKib/);
  });
});
