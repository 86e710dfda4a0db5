/**
 * Faults within a fabric: on cables between switches, at ports of switches, and in forwarding entries. Every packet that does not arrive is
 * counted once under a named reason, all bytes arrive in the end, and all balances hold.
 *
 *     host 0 ─┐                  ┌─ host 2
 *             ├ switch 4 ── switch 5 ┤
 *     host 1 ─┘                  └─ host 3
 */
import { describe, expect, it, vi } from 'vitest';
import runFabric from '../experiments/runs/fabric-run.ts';
import { parsedFault } from '../machine/faults/index.ts';
import type { Machine, MachineOptions, Report } from '../machine/index.ts';
import { parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, smallMachine, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const args = {
  pattern: 'all-to-all',
  verb: 'write',
  hostCount: 4,
  sizeBytes: 16_384,
  messages: 40,
  window: 8,
} as const;

/** All hosts of the dumbbell send to all others; every byte is right in the end. */
async function reportWith(faults: readonly string[], options: MachineOptions = {}): Promise<Report> {
  const machine = {
    topology: parsedTopology('dumbbell:4'),
    faults: faults.map(parsedFault),
    ...options,
    set: { ...smallMemory, ...options.set },
  };
  const { report, isEqual } = await runFabric({ machine, args });
  expect(isEqual).toBe(true);
  expectBalanced(report);
  return report;
}

const ethernet = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;

/** Packets by reason: of a direction of a cable, and of a switch. */
const cableOf = ({ wire }: Report, from: number, to: number) =>
  wire.find((row) => row.from === from && row.to === to)!;
const notForwardedOf = ({ switches }: Report, node: number): Record<string, number> => {
  const sums: Record<string, number> = {};
  for (const { ports } of switches!.filter((own) => own.node === node))
    for (const [reason, count] of ports.flatMap(({ notForwarded }) => Object.entries(notForwarded)))
      sums[reason] = (sums[reason] ?? 0) + count;
  return sums;
};
const repeatedOf = ({ nodes }: Report): number =>
  nodes.reduce((sum, { hca }) => sum + (hca.transport['sequenceNakSent'] ?? 0), 0);

/** Both directions of all cables but one, which must be as without faults. */
const othersOf = ({ wire }: Report, from: number, to: number) =>
  wire.filter((row) => row.from !== from || row.to !== to);

/** Networks, and an instant in the middle of their traffic. */
const networks = [
  ['InfiniBand', {}, '6500us'],
  ['Ethernet', ethernet, '7500us'],
] as const;

describe.each(networks)('packets on a cable between switches of %s', (_network, set) => {
  it('are lost by number, counted there and nowhere else, and sent again', async () => {
    const report = await reportWith(['packet=lost,node=4,to=5,nth=100-104'], { set });
    expect(cableOf(report, 4, 5).lost ?? 0).toBe(5);
    for (const row of othersOf(report, 4, 5)) expect(row.lost ?? 0).toBe(0);
    expect(report.faults).toEqual([{ fault: 'packet=lost,portNumber=3,nth=100-104,node=4', fired: 5 }]);
    expect(repeatedOf(report)).toBeGreaterThan(0);
  });

  it('are damaged by chance: the next switch counts each, and drops it', async () => {
    const report = await reportWith(['packet=corrupted,node=5,to=4,chance=2%'], { set });
    const { corrupted } = cableOf(report, 5, 4);
    expect(corrupted).toBeGreaterThan(2);
    expect(report.faults![0]!.fired).toBe(corrupted);
    expect(report.switches!.every(({ node }) => Object.keys(notForwardedOf(report, node)).length === 0)).toBe(
      true,
    );
  });

  it('are slow: each holds the link, so that the traffic takes that much longer', async () => {
    const fast = await reportWith([], { set });
    const slow = await reportWith(['packet=late,node=4,to=5,chance=100%,delay=2us'], { set });
    const { packets } = cableOf(slow, 4, 5);
    expect(slow.faults![0]!.fired).toBe(packets);
    // Nearly all packets of that direction follow one another.
    expect(slow.elapsedPs - fast.elapsedPs).toBeGreaterThan(0.5 * packets * 2_000_000);
    expect(slow.elapsedPs - fast.elapsedPs).toBeLessThan(1.1 * packets * 2_000_000);
  });

  it('pass each other and come twice, and arrive in order at the program', async () => {
    const faults = ['packet=reordered,node=4,to=5,chance=3%,by=4', 'packet=duplicated,node=5,to=4,chance=3%'];
    const report = await reportWith(faults, { set });
    expect(cableOf(report, 4, 5).reordered).toBeGreaterThan(0);
    expect(cableOf(report, 5, 4).duplicated).toBeGreaterThan(0);
    expect(report.faults!.map(({ fired }) => fired)).toEqual([
      cableOf(report, 4, 5).reordered,
      cableOf(report, 5, 4).duplicated,
    ]);
  });
});

/** Packets with a wrong CRC, by `switch.port`, of the ports that have any. */
const wrongCrcOf = ({ switches }: Report): unknown =>
  Object.fromEntries(
    switches!.flatMap(({ node, ports }) =>
      ports.flatMap(({ port, wrongCrc }) => (wrongCrc === undefined ? [] : [[`${node}.${port}`, wrongCrc]])),
    ),
  );

describe('packets with a wrong CRC between switches', () => {
  /** Damages five packets from switch 5 to port 3 of switch 4, whose ports 1 and 2 lead to hosts 0 and 1. */
  const damaged = (crc: string): string[] =>
    ['50-51', '80-82'].map((nth) => `packet=corrupted,node=5,to=4${crc},nth=${nth}`);

  it.each([
    ['a wrong VCRC on InfiniBand', {}],
    [
      'a wrong FCS at a switch that stores frames',
      { ...ethernet, 'switch.ethernet.forwarding': 'store-and-forward' },
    ],
  ] as const)('are counted by the port that drops them: %s', async (_what, set) => {
    const report = await reportWith(damaged(''), { set });
    expect(wrongCrcOf(report)).toEqual({ '4.3': { dropped: 5, accepted: 0, sent: 0 } });
    expect(cableOf(report, 5, 4).corrupted).toBe(5);
  });

  it('IBTA 7.8: are counted by each port that they pass with a wrong ICRC alone', async () => {
    const report = await reportWith(damaged(',crc=icrc'));
    const [to0, to1] = [0, 1].map((host) => cableOf(report, 4, host).corrupted);
    expect(to0! + to1!).toBe(5);
    // They are damaged on the cable: switch 5 has sent them intact, and has received none.
    const sent = (count: number, port: string): object =>
      count === 0 ? {} : { [port]: { dropped: 0, accepted: 0, sent: count } };
    expect(wrongCrcOf(report)).toEqual({
      '4.3': { dropped: 0, accepted: 5, sent: 0 },
      ...sent(to0!, '4.1'),
      ...sent(to1!, '4.2'),
    });
  });

  it('are counted by the port that accepts them and by those that they leave, if the switch cuts frames through', async () => {
    const set = { ...ethernet, 'switch.ethernet.forwarding': 'cut-through' };
    const report = await reportWith(damaged(''), { set });
    const [to0, to1] = [0, 1].map((host) => cableOf(report, 4, host).corrupted);
    const { wrongFcs = 0 } = notForwardedOf(report, 4);
    expect(to0! + to1! + wrongFcs).toBe(5);
    expect(wrongCrcOf(report)).toMatchObject({ '4.3': { dropped: 0, accepted: 5, sent: 0 } });
    const sent = report
      .switches!.flatMap(({ ports }) => ports)
      .reduce((sum, { wrongCrc }) => sum + (wrongCrc?.sent ?? 0), 0);
    expect(sent).toBe(to0! + to1!);
    expect([cableOf(report, 5, 4).corrupted, cableOf(report, 5, 4).relayedDamage]).toEqual([0, 5]);
  });
});

describe('packets with a wrong ICRC alone on a cable between switches of InfiniBand', () => {
  it('IBTA 7.8: are passed on by the next switch, dropped by a host, and sent again', async () => {
    const fault = 'packet=corrupted,node=5,to=4,chance=2%,crc=icrc';
    const report = await reportWith([fault], {});
    const { fired } = report.faults![0]!;
    expect(fired).toBeGreaterThan(2);
    expect([cableOf(report, 5, 4).corrupted, cableOf(report, 5, 4).relayedDamage]).toEqual([0, fired]);
    expect(cableOf(report, 4, 0).corrupted + cableOf(report, 4, 1).corrupted).toBe(fired);
    for (const row of report.wire.filter(({ to }) => to !== 0 && to !== 1)) expect(row.corrupted).toBe(0);
    expect(report.switches!.map(({ node }) => notForwardedOf(report, node))).toEqual([{}, {}]);
    const again = await reportWith([fault], { partition: 'per-node' });
    expect(bytesOf(again)).toBe(bytesOf(report));
  });
});

describe.each(networks)('a cable between switches of %s', (_network, set, at) => {
  const traffic = { set } as const;

  it.each(['cable=pulled,node=4,to=5', 'port=down,node=5,portNumber=3'])(
    '%s: packets are discarded or dropped there, and sent again when it is back',
    async (fault) => {
      const report = await reportWith([`${fault},at=${at},for=100us`], traffic);
      const between = [cableOf(report, 4, 5), cableOf(report, 5, 4)];
      expect(between.reduce((sum, { discarded }) => sum + discarded, 0)).toBeGreaterThan(0);
      for (const row of report.wire.filter(({ from, to }) => from < 4 || to < 4))
        expect([row.lost ?? 0, row.corrupted, row.dropped, row.discarded]).toEqual([0, 0, 0, 0]);
      expect(report.faults![0]!.fired).toBe(1);
    },
  );

  it('carries what waits when it is plugged in after the start', async () => {
    const faults = ['port=down,node=4,portNumber=3,at=1ms', `port=up,node=4,portNumber=3,at=${at}`];
    const report = await reportWith(faults, traffic);
    expect(report.faults!.map(({ fired }) => fired)).toEqual([1, 1]);
  });
});

describe('faults of one port that overlap', () => {
  const wireWith = async (...faults: readonly string[]): Promise<string> =>
    JSON.stringify((await reportWith(faults)).wire);

  it('end when the last one has ended', async () => {
    const pulled = 'cable=pulled,node=4,to=5,at=6500us,for=100us';
    expect(await wireWith(pulled, 'port=down,node=4,portNumber=3,at=6520us,for=10us')).toBe(
      await wireWith(pulled),
    );
  });

  it('end before others begin at the same instant, in whatever order they are given', async () => {
    const [early, late] = [
      'port=down,node=4,portNumber=3,at=6500us,for=100us',
      'port=down,node=4,portNumber=3,at=6600us,for=50us',
    ];
    expect(await wireWith(late, early)).toBe(await wireWith(early, late));
  });
});

describe('a cable that stays unplugged', () => {
  it('ends the requests over it with RETRY_EXC_ERR', async () => {
    await expect(reportWith(['cable=pulled,node=4,to=5,at=6500us'])).rejects.toThrow(
      /message from host \d to \d, QP \d+: RETRY_EXC_ERR.*The fault cable=pulled,.* fired once/,
    );
  });
});

describe('two faults that pull the same cable', () => {
  it.each([
    ['at a host', 'node=0'],
    ['between switches', 'node=4,to=5'],
  ])('%s keep it out until the later one ends', async (_where, place) => {
    const overlapping = await reportWith([
      `cable=pulled,${place},at=6500us,for=50us`,
      `cable=pulled,${place},at=6520us,for=100us`,
    ]);
    const single = await reportWith([`cable=pulled,${place},at=6500us,for=120us`]);
    expect(overlapping.wire).toEqual(single.wire);
    expect(overlapping.nodes).toEqual(single.nodes);
  });
});

describe('a forwarding entry of InfiniBand', () => {
  it('that leads to no port drops packets as noRoute while it lasts', async () => {
    const report = await reportWith(['forwarding=none,node=4,host=2,at=6500us,for=50us']);
    expect(notForwardedOf(report, 4)).toEqual({ noRoute: expect.any(Number) });
    expect(notForwardedOf(report, 5)).toEqual({});
  });

  it('IBTA 16.1.3.5: that leads back drops packets as ownPort; at another host they are foreign', async () => {
    const report = await reportWith(['forwarding=wrong,node=4,host=2,output=1,at=6500us,for=50us']);
    expect(notForwardedOf(report, 4)).toEqual({ ownPort: expect.any(Number) });
    const foreign = report.nodes.map(({ hca }) => hca.violations['packetForeignLid'] ?? 0);
    expect(foreign[0]).toBeGreaterThan(0);
    expect(foreign.slice(1)).toEqual([0, 0, 0]);
  });

  it('that leads a packet between two switches to and fro drops it where it came from', async () => {
    const report = await reportWith(['forwarding=wrong,node=5,host=2,output=3,at=6500us,for=50us']);
    // Switch 5 drops packets of hosts 0 and 1. It sends those of host 3 to switch 4, which drops them.
    expect(notForwardedOf(report, 5)).toEqual({ ownPort: expect.any(Number) });
    expect(notForwardedOf(report, 4)).toEqual({ ownPort: expect.any(Number) });
  });

  it('that leads to another host ends requests, and the error names both the drops there and the fault', async () => {
    const stays = 'forwarding=wrong,node=4,host=2,output=1,at=6500us';
    await expect(reportWith([stays])).rejects.toThrow(
      /message from host \d to \d, .*Hosts dropped \d+ packets to LIDs of other hosts.*The fault forwarding=wrong/,
    );
  });

  it('that stays wrong ends requests with RETRY_EXC_ERR', async () => {
    await expect(reportWith(['forwarding=none,node=4,host=2,at=6500us'])).rejects.toThrow(/RETRY_EXC_ERR/);
  });
});

describe('partitions of hosts', () => {
  it('IBTA 9.9.2.4.1: that exclude a host end its requests, and the error counts their packets at the switch', async () => {
    const star = parsedTopology('star:3');
    const nodes = star.nodes.map((node, at) =>
      node.kind === 'host' ? { ...node, partitions: at === 2 ? [1] : [1, 32_767] } : node,
    );
    const machine = { topology: { ...star, nodes }, set: smallMemory };
    // Five WRITEs of one packet, each sent once and seven times again (Retry Count).
    const flows = [{ from: 2, to: 0 }];
    const one = { ...args, pattern: 'incast', hostCount: 3, sizeBytes: 1024, messages: 5, flows } as const;
    await expect(runFabric({ machine, args: one })).rejects.toThrow(
      /host 2 to 0, .*RETRY_EXC_ERR\. The switches dropped 40 packets of partitions/,
    );
  });
});

describe('the same faults', () => {
  const faults = [
    'packet=lost,node=4,to=5,chance=1%',
    'cable=pulled,node=4,to=5,at=6500us,for=50us',
    'forwarding=none,node=5,host=1,at=6650us,for=20us',
  ];

  it.each([
    ['in partition per-node', { partition: 'per-node' }],
    ['with events of an instant in another order', { shuffleSeed: 5 }],
    ['in epochs of 100 us', { epochPs: 100_000_000 }],
  ] as const)('give the same report %s', async (_how, options) => {
    expect(bytesOf(await reportWith(faults, options))).toBe(bytesOf(await reportWith(faults)));
  });

  it('give the same report on Ethernet in partition per-node', async () => {
    const some = faults.slice(0, 2);
    const single = bytesOf(await reportWith(some, { set: ethernet }));
    expect(bytesOf(await reportWith(some, { set: ethernet, partition: 'per-node' }))).toBe(single);
  });
});

describe('a fault that a network does not have', () => {
  const made = (fault: string, set: MachineOptions['set'] = {}): Promise<Machine> =>
    smallMachine({ topology: parsedTopology('dumbbell:4'), faults: [parsedFault(fault)], set: set! });

  it('is refused: no forwarding entries on Ethernet, no PAUSE frames on InfiniBand', async () => {
    await expect(made('forwarding=none,node=4,host=2', ethernet)).rejects.toThrow(
      'fault 1 (forwarding), field node, is 4, expected a switch of InfiniBand',
    );
    await expect(made('packet=lost,node=4,to=5,only=pauses')).rejects.toThrow('only is "pauses"');
  });

  it('is refused: a wrong entry that is the planned one', async () => {
    // Switch 4 reaches host 2 by its third port, which leads to switch 5.
    await expect(made('forwarding=wrong,node=4,host=2,output=3')).rejects.toThrow(
      'fault 1 (forwarding), field output, is 3, expected another port: the routes of the plan lead to host 2 by this one',
    );
  });
});
