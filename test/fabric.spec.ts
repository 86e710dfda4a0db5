/**
 * Hosts joined by switches: bytes, exact instants and balances, in every partition and whatever the order within an instant. Expected
 * times are those of a pair and of the parts that a switch adds, computed by hand.
 */
import { describe, expect, it, vi } from 'vitest';
import { fairnessOf, quantileOf } from '../experiments/runs/fabric-figures.ts';
import runFabric from '../experiments/runs/fabric-run.ts';
import {
  type FabricArgs,
  type FabricPattern,
  fabricPatterns,
  flowsOf,
} from '../experiments/workloads/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import type { Partition } from '../machine/partition/placement.ts';
import { checksOf } from '../machine/report/checks.ts';
import { checkedTopology, type LinkCable, parsedTopology, type Topology } from '../machine/topology/index.ts';
import { getDeviceList, openDevice, queryPort } from '../userlib/index.ts';
import { expectBalanced } from './expectations.ts';
import { rowsOf } from './extent.ts';
import { bytesOf, smallMachine, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const trafficOf = (
  fabric: string,
  pattern: FabricPattern,
  more: Partial<FabricArgs> = {},
  options: MachineOptions = {},
) => {
  const topology = parsedTopology(fabric);
  const hostCount = topology.nodes.filter(({ kind }) => kind === 'host').length;
  const args = {
    pattern,
    verb: 'write',
    hostCount,
    sizeBytes: 16_384,
    messages: 6,
    window: 4,
    ...more,
  } as const;
  const machine = { topology, ...options, set: { ...smallMemory, ...options.set } };
  return runFabric({ machine, args });
};

describe('one message over switches', () => {
  const alone = { sizeBytes: 256, messages: 1, window: 1, hostCount: 2 } as const;

  // There and back: a cable of 89.6 ns and 120 ns of the switch each way.
  it.each([
    ['star:2', 1],
    ['dumbbell:2', 2],
    ['ring:4', 2],
  ])(
    'takes in %s what it takes in a pair, and %i times the switch and its cable both ways',
    async (fabric, passed) => {
      const pair = await trafficOf('0-1', 'incast', alone);
      const switched = await trafficOf(fabric, 'incast', alone);
      const addedPs = switched.flows[0]!.medianPs - pair.flows[0]!.medianPs;
      expect(addedPs).toBeGreaterThanOrEqual(2 * passed * (89_600 + 120_000) - 4000);
      // A poll of the CQ takes its own time: completions are seen at its next turn.
      expect(addedPs).toBeLessThanOrEqual(2 * passed * (89_600 + 120_000) + 30_000);
    },
  );
});

describe('traffic of every pattern', () => {
  it.each(fabricPatterns)('%s arrives byte for byte, is balanced, and loses nothing', async (pattern) => {
    const row = await trafficOf('leaf-spine:2x2:4', pattern);
    expect(row.isEqual).toBe(true);
    expectBalanced(row.report);
    // Hosts act together in an all-reduce and with parameter servers: these have times, but no flows of their own.
    const actTogether = pattern === 'all-reduce' || pattern === 'parameter-server';
    const flows = actTogether ? [] : flowsOf({ pattern, hostCount: 4 });
    expect(row.flows.map(({ from, to }) => ({ from, to }))).toEqual(flows);
    for (const { ports, copies } of row.report.switches!) {
      expect(copies).toBe(0);
      for (const port of ports) expect([port.notForwarded, port.waitingPackets]).toEqual([{}, 0]);
    }
  });

  it('READs arrive byte for byte', async () => {
    const row = await trafficOf('star:3', 'all-to-all', { verb: 'read' });
    expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
  });
});

describe('an all-reduce', () => {
  // Each host sends and receives 2 (n - 1)/n of its vector: 6 operations and the unmeasured first one.
  it.each(['ring', 'halving-doubling'] as const)(
    'by %s moves 2 (n - 1)/n of a vector by each port',
    async (algorithm) => {
      const sizeBytes = 65_536;
      const row = await trafficOf('star:4', 'all-reduce', { algorithm, sizeBytes });
      expect(row.isEqual).toBe(true);
      expectBalanced(row.report);
      const payload = (7 * 2 * 3 * sizeBytes) / 4;
      for (const { from, opcodes } of row.report.wire) {
        if (from >= 4) continue;
        const carried = Object.values(opcodes).reduce((sum, { payloadBytes }) => sum + payloadBytes, 0);
        // Headers of messages, and what connects them, come on top.
        expect(carried).toBeGreaterThanOrEqual(payload);
        expect(carried).toBeLessThan(payload * 1.05);
      }
      // No port is busy for longer than the run lasts.
      for (const { busyShare } of row.outputs) expect(busyShare).toBeLessThan(1);
      expect(row.messageTimes.maxPs * 6).toBeGreaterThanOrEqual(row.durationPs);
    },
  );
});

describe('SENDs', () => {
  // Three hosts, three QPs: two flows from each host and two to it. XRC has initiators and targets.
  it.each([
    ['RC', {}, 12, 6],
    ['RC with a shared receive queue', { usesSrq: true }, 12, 1],
    ['XRC', { connection: 'XRC' }, 12, 1],
    ['UD', { connection: 'UD' }, 3, 3],
  ] as const)(
    'over %s arrive byte for byte, %j, over %i QPs and %i receive queues',
    async (_, way, qps, queues) => {
      const more = { verb: 'send', qpCount: 3, messages: 7, window: 5, sizeBytes: 1000, ...way } as const;
      const row = await trafficOf('star:3', 'all-to-all', more);
      expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
      expect(row.queues).toEqual({ qpCount: qps, receiveQueueCount: queues });
      // One context each, which a command moves to INIT.
      for (const { hca } of row.report.nodes) expect(hca.commands).toMatchObject({ RST2INIT_QP: qps });
      // The receiver has a message after its sender posted it: no flow ends before one way over two cables and a switch.
      for (const { durationPs } of row.flows) expect(durationPs).toBeGreaterThan(2 * 89_600 + 120_000);
    },
  );

  // 28 bytes of headers and CRCs around 4096 of payload, and a DETH of 8, at 4 bytes a nanosecond.
  it('of datagrams fill the cable of a receiver, and no more', async () => {
    const more = { verb: 'send', connection: 'UD', sizeBytes: 4096, messages: 200, window: 8 } as const;
    const { bytesPerSecond, isEqual } = await trafficOf('star:3', 'incast', more);
    expect(isEqual).toBe(true);
    const cable = (4e9 * 4096) / (4096 + 36);
    expect(bytesPerSecond / cable).toBeGreaterThan(0.95);
    expect(bytesPerSecond / cable).toBeLessThanOrEqual(1);
  });

  // Frames of 1500 bytes leave room for an MTU of 1024.
  it('of datagrams are one packet of the port: longer ones are rejected', async () => {
    const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;
    const options = { set: { ...roce, 'ethernet.mtuBytes': 1500 } };
    const more = { verb: 'send', connection: 'UD', qpCount: 2 } as const;
    const row = await trafficOf('star:3', 'all-to-all', { ...more, sizeBytes: 1024 }, options);
    expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
    await expect(trafficOf('star:3', 'all-to-all', { ...more, sizeBytes: 1025 }, options)).rejects.toThrow(
      /size is 1025, expected at most the MTU of the port, 1024, with connection UD/,
    );
  });

  // The driver's limits (mlx4_ib main.c, mlx4_ib_query_device): 2^14 WQEs less one of an SRQ, less a headroom of 33 of a QP.
  it.each([
    [
      'incast',
      { usesSrq: true, messages: 529, sizeBytes: 64 },
      /messages is 529, expected at most 528: .* 31 flows/,
    ],
    [
      'incast',
      { connection: 'UD', messages: 528, sizeBytes: 64 },
      /messages is 528, expected at most 527: .* 31/,
    ],
    [
      'outcast',
      { connection: 'UD', window: 528, sizeBytes: 64 },
      /window is 528, expected at most 527: 31 flows/,
    ],
  ] as const)('%s of SENDs is refused if queues do not take it: %j', async (pattern, more, message) => {
    await expect(trafficOf('star:32', pattern, { verb: 'send', ...more })).rejects.toThrow(message);
  });

  it.each([[{ connection: 'UD' }], [{ connection: 'XRC' }], [{ usesSrq: true }]] as const)(
    'of iWARP have no %j',
    async (way) => {
      const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' } as const;
      const more = { verb: 'send', sizeBytes: 64, ...way } as const;
      await expect(trafficOf('star:2', 'incast', more, { set: iwarp })).rejects.toThrow(
        'left out with iWARP',
      );
    },
  );
});

describe('rounds with parameter servers', () => {
  // 4X QDR carries 4 bytes a nanosecond. A WRITE of n packets of 4096 bytes takes 28 of headers and CRCs for each, and a RETH of 16;
  // a READ of n packets as many, and AETHs of 4 in its first and last.
  const cablePs = (packets: number): number => packets * 4124 * 250;

  // Vectors of 80 packets: each worker sends 80 / servers of them to each server.
  it.each([
    ['one server, four workers', 5, [4], 4 * 80],
    ['two servers, two workers', 4, [1, 3], 2 * 40],
    ['two servers, four workers', 6, [1, 2], 4 * 40],
    ['four servers, one worker, whose port sends all', 5, [1, 2, 3, 4], 80],
    ['all hosts both, which keep one part of five', 5, [0, 1, 2, 3, 4], 4 * 16],
  ])('take with %s what the busiest port needs, and no tenth more', async (_, hostCount, servers, due) => {
    const more = { hostCount, servers, sizeBytes: 80 * 4096, messages: 3 };
    const row = await trafficOf('star:6', 'parameter-server', more);
    expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
    const { pushPs, pullPs } = row.phases!;
    for (const phasePs of [pushPs, pullPs]) {
      expect(phasePs).toBeGreaterThan(cablePs(due));
      // Latency of the first message, and of its answer.
      expect(phasePs).toBeLessThan(1.1 * cablePs(due) + 8e6);
    }
    // Each phase is a part of a round, and the port that sends in one of them rests in the other.
    expect(row.messageTimes.medianPs).toBeGreaterThanOrEqual(pushPs);
    const sentBytes = row.report.wire.find(
      ({ from, to }) => from === row.busiest!.from && to === row.busiest!.to,
    )!.busyPs;
    expect(row.busiest!.busyShare).toBeCloseTo(sentBytes / row.durationPs, 9);
    expect(sentBytes).toBeGreaterThanOrEqual(3 * cablePs(due));
  });

  it('bring every byte also where packets are damaged on their way', async () => {
    const faults = [{ packet: 'corrupted', chance: '5%', node: 0 }] as const;
    const row = await trafficOf('star:3', 'parameter-server', { sizeBytes: 65_536, messages: 3 }, { faults });
    expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
    expect(row.report.wire.reduce((sum, { corrupted = 0 }) => sum + corrupted, 0)).toBeGreaterThan(0);
  });
});

describe('many senders at one port', () => {
  it('share it equally, and fill it', async () => {
    const row = await trafficOf('star:5', 'incast', { sizeBytes: 65_536, messages: 10 });
    expect(row.fairness).toBeGreaterThan(0.999);
    const share = row.bytesPerSecond / row.cableBytesPerSecond;
    expect(share).toBeGreaterThan(0.97);
    expect(share).toBeLessThanOrEqual(1);
  });

  it('are held back by credits: no buffer of the switch holds more than it has', async () => {
    const set = { 'switch.inputBufferBytes': 8448 };
    const { report } = await trafficOf('star:5', 'incast', { sizeBytes: 65_536 }, { set });
    for (const { bufferedBytesMax } of report.switches![0]!.ports)
      expect(bufferedBytesMax).toBeLessThanOrEqual(8448);
    const toSwitch = report.wire.filter(({ to, from }) => to === 5 && from > 0);
    for (const { creditWaitPs } of toSwitch) expect(creditWaitPs).toBeGreaterThan(0);
  });
});

describe('cables of their own', () => {
  const star = parsedTopology('star:3');
  const withCable = (at: number, cable: LinkCable): Topology => ({
    ...star,
    links: star.links.map((link, index) => (index === at ? { ...link, ...cable } : link)),
  });
  const run = async (topology: Topology, more: Partial<FabricArgs> = {}) => {
    const args = {
      pattern: 'incast',
      verb: 'write',
      hostCount: 2,
      sizeBytes: 256,
      messages: 1,
      window: 1,
      ...more,
    } as const;
    return runFabric({ machine: { topology, set: smallMemory }, args });
  };

  it('take their rate: the slowest of a host is what one cable carries', async () => {
    const { cableBytesPerSecond, bytesPerSecond } = await run(withCable(1, { lanes: '1' }), {
      sizeBytes: 65_536,
      messages: 10,
      window: 4,
    });
    // 16 packets of 4096 bytes with 28 of headers and CRCs, one RETH of 16: over one lane of QDR, a byte a nanosecond.
    expect(cableBytesPerSecond / ((65_536 * 1e9) / (16 * 4124 + 16))).toBeCloseTo(1, 3);
    expect(bytesPerSecond / cableBytesPerSecond).toBeGreaterThan(0.97);
    expect(bytesPerSecond / cableBytesPerSecond).toBeLessThanOrEqual(1);
  });

  it('take their length', async () => {
    const [near, far] = [await run(star), await run(withCable(1, { metres: 102 }))];
    const addedPs = far.flows[0]!.medianPs - near.flows[0]!.medianPs;
    // 100 m more, there and back, of 4.8 ns each; a completion is seen at the next poll.
    expect(addedPs).toBeGreaterThanOrEqual(960_000 - 30_000);
    expect(addedPs).toBeLessThanOrEqual(960_000 + 30_000);
  });

  it('take their rate, at both ends: a slower sender fills its own cable, half of the other', async () => {
    const args = { sizeBytes: 65_536, messages: 20, window: 8 } as const;
    const slow = await run(withCable(1, { speed: 'DDR' }), args);
    expect(slow.bytesPerSecond / slow.cableBytesPerSecond).toBeGreaterThan(0.96);
    expect(slow.bytesPerSecond / slow.cableBytesPerSecond).toBeLessThanOrEqual(1);
    const full = await run(star, args);
    expect(slow.cableBytesPerSecond / full.cableBytesPerSecond).toBeCloseTo(0.5, 9);
    expectBalanced(slow.report);
  });

  it('show in the port of the host', async () => {
    await using machine = await smallMachine({ topology: withCable(0, { speed: 'FDR', lanes: '1' }) });
    for (const node of [0, 1])
      await machine.load({
        node,
        run: async ({ verbs }) => {
          const context = await openDevice(getDeviceList(verbs)[0]!);
          const { activeSpeed, activeWidth } = await queryPort(context, 1);
          return { activeSpeed, activeWidth };
        },
      });
    await machine.run();
    // ibv_query_port(3): widths 1 is 1X, 2 is 4X; speeds 4 is QDR, 16 is FDR.
    expect(await machine.results()).toEqual([
      { activeSpeed: 16, activeWidth: 1 },
      { activeSpeed: 4, activeWidth: 2 },
    ]);
  });

  it.each([
    [{ metres: -1 }, 'topology, links[0], field metres, is -1, expected '],
    [{ speed: 'XDR' }, 'topology, links[0], field speed, is "XDR", expected '],
    [{ colour: 'red' }, 'field of topology, links[0] is "colour"'],
  ])('are rejected as %j', (cable, message) => {
    const links = star.links.map((link) => ({ ...link, ...cable }));
    expect(() => checkedTopology({ ...star, links })).toThrow(message);
  });
});

describe('a flow with several QPs', () => {
  it.each(['write', 'read'] as const)('sends its messages over them in turn: %s', async (verb) => {
    const row = await trafficOf('star:3', 'all-to-all', { verb, qpCount: 3, messages: 7, window: 5 });
    expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
    for (const { hca } of row.report.nodes) {
      // Two flows to peers and two from them.
      expect(hca.commands).toMatchObject({ RST2INIT_QP: 12 });
      // Seven messages over three QPs are three, two and two: each QP is used.
      expect(hca.caches['qpc']!.misses).toBeGreaterThanOrEqual(12);
    }
  });
});

describe('a ring of switches', () => {
  const full = { sizeBytes: 65_536, messages: 8, window: 16 } as const;

  it('can stand still with routes by the fewest links, and the failure names the cause', async () => {
    await expect(trafficOf('ring:6', 'all-to-all', full)).rejects.toThrow(
      /RETRY_EXC_ERR.*had waited for credits longer than HOQLife.*machine\.routing=up-down has none/,
    );
  });

  it('does not with routes up, then down', async () => {
    const row = await trafficOf('ring:6', 'all-to-all', full, { set: { 'machine.routing': 'up-down' } });
    expect([row.isEqual, row.isBalanced]).toEqual([true, true]);
  });
});

describe('a fat tree', () => {
  it('carries a permutation at the rate of all cables with routes of its own', async () => {
    const args = { sizeBytes: 65_536, messages: 10, window: 16 } as const;
    const spread = await trafficOf('fat-tree:4', 'permutation', args, {
      set: { 'machine.routing': 'fat-tree' },
    });
    const plain = await trafficOf('fat-tree:4', 'permutation', args);
    // 16 senders; by the fewest links alone two flows share each cable to the core.
    expect(spread.bytesPerSecond / spread.cableBytesPerSecond).toBeGreaterThan(14);
    expect(plain.bytesPerSecond / plain.cableBytesPerSecond).toBeLessThan(8.1);
  });
});

describe('the same fabric', () => {
  const traffic = (options: MachineOptions) => trafficOf('leaf-spine:2x2:4', 'all-to-all', {}, options);
  let reference: Promise<string> | undefined;
  const single = (): Promise<string> => (reference ??= traffic({}).then(({ report }) => bytesOf(report)));

  it.each(rowsOf<Partition>(['per-core'], ['per-node', 'per-device']))(
    'has the same report in partition %s',
    async (partition) => {
      expect(bytesOf((await traffic({ partition })).report)).toBe(await single());
    },
  );

  it.each([
    ['events of an instant in another order', { shuffleSeed: 7 }],
    ['no shortcuts', { shortcuts: false }],
    ['epochs of 100 us', { epochPs: 100_000_000 }],
  ])('has the same report with %s', async (_what, options) => {
    expect(bytesOf((await traffic(options)).report)).toBe(await single());
  });

  it('delivers the same bytes if packets travel as bytes', async () => {
    const row = await traffic({ set: { 'wire.packetForm': 'bytes' } });
    const fields = await traffic({});
    expect(row.isEqual).toBe(true);
    expect(row.flows).toEqual(fields.flows);
  });
});

describe('the balance of a switch', () => {
  it('fails if a packet is missing, or one too many leaves', async () => {
    const topology = parsedTopology('star:2');
    await using machine = await smallMachine({ topology });
    await machine.run();
    const { hosts, hcas, nics, switches } = await machine.ledgers();
    const [own] = switches;
    const port = own!.ports[0]!;
    const changed = (more: object) => [{ ...own!, ports: [{ ...port, ...more }, ...own!.ports.slice(1)] }];
    expect(checksOf(topology, hosts, hcas, nics, switches).wire.holds).toBe(true);
    for (const more of [{ waitingPackets: 1 }, { notForwarded: { noRoute: 2 } }]) {
      const { failures } = checksOf(topology, hosts, hcas, nics, changed(more)).wire;
      expect(failures.join()).toContain('switch 2, packets that left, wait or were dropped');
    }
  });
});

describe('faults on cables to a switch', () => {
  it('are made good, and the balances hold: also where a NAK is damaged on its way', async () => {
    const faults = [0, 1].map((node) => ({ packet: 'corrupted', chance: '5%', node }) as const);
    const more = { sizeBytes: 65_536, messages: 20 } as const;
    const { report, isEqual } = await trafficOf('star:3', 'incast', more, { faults });
    expect(isEqual).toBe(true);
    expectBalanced(report);
    const [toSwitch] = report.wire.filter(({ from }) => from === 0);
    expect(toSwitch!.corrupted).toBeGreaterThan(0);
    expect(report.nodes[0]!.hca.transport['sequenceNakSent']).toBeGreaterThan(0);
  });
});

describe('figures of flows', () => {
  it('are those of their definitions', () => {
    expect(fairnessOf([1, 1, 1, 1])).toBe(1);
    expect(fairnessOf([1, 0, 0, 0])).toBe(0.25);
    expect(fairnessOf([3, 1])).toBeCloseTo(16 / 20, 12);
    const times = Array.from({ length: 200 }, (_, index) => index + 1);
    expect([quantileOf(times, 0.5), quantileOf(times, 0.99), quantileOf([5], 0.99)]).toEqual([100, 198, 5]);
  });
});
