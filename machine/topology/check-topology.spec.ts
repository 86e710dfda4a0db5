import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../../runtime/node.ts';
import { ConfigurationError } from '../../base/index.ts';
import { Machine } from '../machine.ts';
import { configuredOf, machineHashOf } from '../machine-hash.ts';
import { ethernetAt } from '../plan.ts';
import { configHashOf, configurationOf } from '../profile/index.ts';
import { checkedTopology, parsedTopology, topologyText } from './check-topology.ts';
import { pairsOf } from './topology.ts';

const host = { kind: 'host' } as const;
const four = [host, host, host, host];
const link = (left: number, right: number) => ({ ends: [{ node: left }, { node: right }] as const });
const crossed = { nodes: four, links: [link(0, 2), link(1, 3)] };

function messageOf(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  return 'no error';
}

describe('a topology of a user', () => {
  it('has the lower end of each link first, and links in the order of that end', () => {
    const given = { nodes: four, links: [link(3, 1), link(2, 0)] };
    expect(checkedTopology(given)).toEqual(checkedTopology(crossed));
    expect(checkedTopology(crossed).links[0]).toEqual({
      ends: [
        { node: 0, port: 1 },
        { node: 2, port: 1 },
      ],
    });
  });

  it.each([
    ['nothing', undefined, /^topology is .*expected an object with nodes and links/],
    ['another field', { ...crossed, switches: 1 }, /^field of topology is "switches", .*links/],
    ['one node', { nodes: [host], links: [] }, /^topology, field nodes, is 1, .*2 to 128/],
    ['257 nodes', { nodes: Array(257).fill(host), links: [] }, /is 257, .*2 to 128 hosts/],
    ['129 hosts', { nodes: Array(129).fill(host), links: [] }, /hosts of the topology is 129, .*2 to 128/],
    [
      'an unknown kind',
      { ...crossed, nodes: [host, { kind: 'router' }] },
      /nodes\[1\], field kind, is "router"/,
    ],
    [
      'partitions of a switch',
      { ...crossed, nodes: [host, { kind: 'switch', partitions: [1] }] },
      /nodes\[1\], field partitions, is \[1\], expected left out for a switch/,
    ],
    ['links that are no list', { nodes: four, links: {} }, /^topology, field links, is \{\}/],
    ['one end', { nodes: four, links: [{ ends: [{ node: 0 }] }] }, /links\[0\], field ends, /],
    [
      'a node that does not exist',
      { nodes: four, links: [link(0, 4)] },
      /ends\[1\], field node, is 4, .*0 to 3/,
    ],
    [
      'a node in words',
      { nodes: four, links: [{ ends: [{ node: 'a' }, { node: 1 }] }] },
      /field node, is "a"/,
    ],
    [
      'a cable to itself',
      { nodes: four, links: [link(1, 1)] },
      /ends\[1\], field node, is 1, .*another node/,
    ],
    [
      'port 3',
      { nodes: four, links: [{ ends: [{ node: 0, port: 3 }, { node: 1 }] }] },
      /ends\[0\], field port, is 3, .*1 to 2/,
    ],
    [
      'a link at port 2 only',
      { nodes: [host, host], links: [{ ends: [{ node: 0, port: 2 }, { node: 1 }] }] },
      /nodes\[0\] is "without a link", .*port 1: port 2 is for a second link/,
    ],
    [
      'two links in a port',
      { nodes: four, links: [link(0, 1), link(2, 1)] },
      /is "node 1, port 1", .*links\[0\]/,
    ],
    [
      'a cable without a length',
      { nodes: [host, host], links: [{ ...link(0, 1), metres: null }] },
      /^topology, links\[0\], field metres, is null, expected /,
    ],
    [
      'a length in an object',
      { nodes: [host, host], links: [{ ...link(0, 1), metres: { m: 3 } }] },
      /field metres, is \{"m":3\}, expected /,
    ],
    ['a host without a link', { nodes: four, links: [link(0, 2)] }, /nodes\[1\] is "without a link"/],
  ])('is rejected with %s', (_what, entry, message) => {
    expect(messageOf(() => checkedTopology(entry))).toMatch(message);
  });

  it.each([
    ['none', []],
    ['0', [0]],
    ['a membership bit', [0x8001]],
    ['one twice', [1, 1]],
    ['a word', 'all'],
    ['33 of them', Array.from({ length: 33 }, (_, index) => index + 1)],
  ])('is rejected with partitions of a host that are not 1 to 32 numbers: %s', (_what, partitions) => {
    const entry = { ...crossed, nodes: [{ kind: 'host', partitions }, host, host, host] };
    expect(messageOf(() => checkedTopology(entry))).toMatch(
      /nodes\[0\], field partitions, is .*, expected 1 to 32 different integers from 1 to 32767/,
    );
  });

  const starOf = (partitions: readonly number[]) => ({
    nodes: [{ kind: 'host', partitions } as const, host, { kind: 'switch' } as const],
    links: [link(0, 2), { ends: [{ node: 1 }, { node: 2, port: 2 }] } as const],
  });

  it.each([
    ['on Ethernet', starOf([1]), { 'hca.capability.linkLayer': 'ethernet' }, 'without InfiniBand'],
    [
      'with a subnet manager on the fabric',
      starOf([1]),
      { 'hca.control.embeddedSubnetManager': false },
      'with hca.control.embeddedSubnetManager=false',
    ],
    [
      'without a switch',
      { ...crossed, nodes: [{ ...host, partitions: [1] }, host, host, host] },
      {},
      'where no switch is cabled to host 0',
    ],
  ] as const)('is rejected with partitions that nothing enforces: %s', async (_what, topology, set, why) => {
    const made = Machine.create({ topology, set });
    await expect(made).rejects.toThrow(
      `topology, nodes[0], field partitions, is "[1]", expected left out ${why}`,
    );
  });

  it('keeps the partitions of hosts, and writes them as JSON', () => {
    const topology = checkedTopology(starOf([1, 0x7fff]));
    expect(topology.nodes[0]).toEqual({ kind: 'host', partitions: [1, 0x7fff] });
    expect(parsedTopology(topologyText(topology))).toEqual(topology);
  });

  it('is rejected with another number of hosts than machine.nodeCount', async () => {
    const made = Machine.create({ topology: crossed, set: { 'machine.nodeCount': 2 } });
    await expect(made).rejects.toThrow('machine.nodeCount is 2, expected 4, the hosts of the topology');
  });
});

describe('a topology as an option', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'topology-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is links, or a file of nodes and links', () => {
    const file = join(folder, 'crossed.json');
    writeFileSync(file, JSON.stringify(crossed));
    expect(parsedTopology('0-2,1-3')).toEqual(checkedTopology(crossed));
    expect(parsedTopology(file)).toEqual(checkedTopology(crossed));
    expect(topologyText(parsedTopology(file))).toBe('0-2,1-3');
  });

  it.each([
    ['0:2', 'topology is "0:2", expected a JSON file, or links such as 0-2,1-3 or 0-1,0.2-2'],
    ['0-0', 'topology, link 0-0, is "a cable from host 0 to itself", expected two hosts, such as 0-1'],
    [
      '0-1,0-2',
      'topology, links[1], ends[0], is "node 0, port 1", expected a port without a link: links[0] is plugged into it (0.2 is port 2 of host 0)',
    ],
    ['0-2', 'topology, nodes[1] is "without a link", expected one link for each host'],
    ['0-199', 'topology, links[0], ends[1], field node, is 199, expected an integer from 0 to 127'],
    ['/nowhere/at.json', 'topology file is "/nowhere/at.json", expected a readable file (ENOENT)'],
  ])('is rejected as %s', (text, message) => {
    expect(messageOf(() => parsedTopology(text))).toBe(message);
  });

  it('names a second port after a dot', () => {
    const topology = parsedTopology('1-0,2-0.2');
    expect(topology.links).toEqual([
      {
        ends: [
          { node: 0, port: 1 },
          { node: 1, port: 1 },
        ],
      },
      {
        ends: [
          { node: 0, port: 2 },
          { node: 2, port: 1 },
        ],
      },
    ]);
    expect(topologyText(topology)).toBe('0-1,0.2-2');
  });

  it('is read from a file that begins with a byte order mark', () => {
    const file = join(folder, 'marked.json');
    writeFileSync(file, `\uFEFF${JSON.stringify(crossed)}`);
    expect(parsedTopology(file)).toEqual(checkedTopology(crossed));
  });

  it('is rejected if the file is not JSON', () => {
    const file = join(folder, 'torn.json');
    writeFileSync(file, '{ "nodes": [');
    expect(messageOf(() => parsedTopology(file))).toBe(
      `topology file is "${file}", expected a file of valid JSON`,
    );
  });
});

describe('a second port', () => {
  const star = parsedTopology('0-1,0.2-2');
  it('is that of all adapters, and the number of hosts may be odd', () => {
    const { config } = configuredOf({ topology: star });
    expect(config.machine.nodeCount).toBe(3);
    expect(config.hca.capability.portCount).toBe(2);
  });

  it.each([
    [{ 'hca.capability.portCount': 1 }, 'hca.capability.portCount is 1, expected 2 where the topology'],
    [
      { 'machine.adapter': 'nic' },
      'machine.adapter is "nic", expected hca where the topology has a link at port 2',
    ],
    [
      { 'hca.capability.linkLayer': 'ethernet' },
      'hca.capability.linkLayer is "ethernet", expected infiniband where',
    ],
  ])('is rejected with %j', (set, message) => {
    expect(messageOf(() => configuredOf({ topology: star, set }))).toContain(message);
  });
});

describe('a rate of its own of a cable', () => {
  const ofLink = (cable: object) => ({
    nodes: [host, host, { kind: 'switch' } as const],
    links: [
      { ends: [{ node: 0 }, { node: 2 }] as const },
      { ends: [{ node: 2, port: 7 }, { node: 1 }] as const, ...cable },
    ],
  });
  const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;

  it.each([
    [{ speed: 'DDR' }, roce, 'link 1-2.7, field speed, is "DDR", expected left out with hca.capability.link'],
    [
      { lanes: '1' },
      roce,
      'link 1-2.7, field lanes, is "1", expected left out with hca.capability.linkLayer',
    ],
    [{ speed: 'DDR' }, { 'machine.adapter': 'nic' }, 'is "DDR", expected left out with machine.adapter=nic'],
  ])('%j is rejected on Ethernet with %j', (cable, set, message) => {
    const text = messageOf(() => configuredOf({ topology: ofLink(cable), set }));
    expect(text).toContain(message);
    expect(text).toContain('field gigabitsPerSecond is the rate of Ethernet');
  });

  it('is gigabitsPerSecond on Ethernet, and refused on InfiniBand and of NICs', () => {
    const topology = ofLink({ gigabitsPerSecond: 40 });
    const { config, topology: checked } = configuredOf({ topology, set: roce });
    const rates = [1, 7].map(
      (port) => ethernetAt({ config, topology: checked }, { node: 2, port }).gigabitsPerSecond,
    );
    expect(rates).toEqual([config.ethernet.gigabitsPerSecond, 40]);
    expect(messageOf(() => configuredOf({ topology }))).toContain('left out on InfiniBand');
    expect(messageOf(() => configuredOf({ topology, set: { 'machine.adapter': 'nic' } }))).toContain(
      'field gigabitsPerSecond, is 40, expected left out with machine.adapter=nic',
    );
  });

  it('accepts a forwarding mode of a switch and rejects one of a host', () => {
    const withMode = (forwarding: unknown, at: number) => {
      const { nodes, links } = ofLink({});
      return { nodes: nodes.map((node, index) => (index === at ? { ...node, forwarding } : node)), links };
    };
    expect(checkedTopology(withMode('store-and-forward', 2)).nodes[2]).toEqual({
      kind: 'switch',
      forwarding: 'store-and-forward',
    });
    expect(messageOf(() => checkedTopology(withMode('both', 2)))).toContain(
      'cut-through or store-and-forward',
    );
    expect(messageOf(() => checkedTopology(withMode('cut-through', 0)))).toContain('left out for a host');
  });

  it('does not change the latency of a port, which is that of its node', () => {
    const set = { ...roce, 'ethernet.portLatencyNs': 100, 'switch.ethernet.portLatencyNs': 20 };
    const { config, topology } = configuredOf({ topology: ofLink({}), set });
    // A frame passes one port of each kind: 120 ns, as two of 60.
    expect(ethernetAt({ config, topology }, { node: 0, port: 1 }).portLatencyNs).toBe(60);
  });

  it('has lanes as a number or as a text', () => {
    const lanesOf = (lanes: unknown) => checkedTopology(ofLink({ speed: 'SDR', lanes })).links[1]!.lanes;
    expect([lanesOf(1), lanesOf('1')]).toEqual(['1', '1']);
    expect(messageOf(() => checkedTopology(ofLink({ lanes: 3 })))).toContain(
      'field lanes, is "3", expected one of',
    );
  });

  it('is accepted on InfiniBand, and a length on both', () => {
    expect(messageOf(() => configuredOf({ topology: ofLink({ speed: 'DDR', lanes: '1' }) }))).toBe(
      'no error',
    );
    expect(messageOf(() => configuredOf({ topology: ofLink({ metres: 5 }), set: roce }))).toBe('no error');
  });
});

describe('limits of switches at a cable', () => {
  const ofLinks = (toSwitch: object, between: object) => ({
    nodes: [host, host, host, { kind: 'switch' } as const],
    links: [
      { ends: [{ node: 0 }, { node: 3 }] as const, ...toSwitch },
      {
        ends: [
          { node: 1, port: 1 },
          { node: 3, port: 2 },
        ] as const,
      },
      { ends: [{ node: 1, port: 2 }, { node: 2 }] as const, ...between },
    ],
  });
  const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;
  const twoPorts = { 'hca.capability.portCount': 2 } as const;

  it.each([
    [{ hoqLife: 32 }, {}, twoPorts, 'topology, links[0], field hoqLife, is 32, expected '],
    [{ vlStallCount: 8 }, {}, twoPorts, 'topology, links[0], field vlStallCount, is 8, expected '],
    [{}, { hoqLife: 8 }, twoPorts, 'link 1.2-2, field hoqLife, is 8, expected left out where no end is a sw'],
  ])('%j and %j with %j are rejected', (toSwitch, between, set, message) => {
    expect(messageOf(() => configuredOf({ topology: ofLinks(toSwitch, between), set }))).toContain(message);
  });

  it('are rejected on Ethernet, and accepted on InfiniBand', () => {
    const { nodes, links } = ofLinks({ hoqLife: 8, vlStallCount: 7 }, {});
    const topology = { nodes: [nodes[0]!, nodes[1]!, nodes[3]!], links: [links[0]!, links[1]!] };
    const renumbered = JSON.parse(JSON.stringify(topology).replaceAll('"node":3', '"node":2')) as never;
    expect(messageOf(() => configuredOf({ topology: renumbered, set: roce }))).toContain(
      'field hoqLife, is 8, expected left out with hca.capability.linkLayer=ethernet: only switches of InfiniBand',
    );
    expect(messageOf(() => configuredOf({ topology: renumbered }))).toBe('no error');
  });
});

describe('the hash of a machine', () => {
  it('is that of its parameters for the default topology', () => {
    const hash = configHashOf(configurationOf({ set: { 'machine.nodeCount': 4 } }));
    expect(machineHashOf({ topology: parsedTopology('3-2,1-0') })).toBe(hash);
    expect(machineHashOf({ topology: pairsOf(4) })).toBe(hash);
  });

  it('differs for other links', () => {
    const [default4, crossed4, nested] = [
      machineHashOf({ nodes: 4 }),
      machineHashOf({ topology: parsedTopology('0-2,1-3') }),
      machineHashOf({ topology: parsedTopology('0-3,1-2') }),
    ];
    expect(new Set([default4, crossed4, nested]).size).toBe(3);
  });
});
