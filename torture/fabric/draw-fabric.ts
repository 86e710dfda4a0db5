/** Draws a story of a fabric from a seed: its switches, cables, flows and faults. */
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { ParameterValue } from '../../machine/profile/index.ts';
import {
  directionsOf,
  fabricRoutesOf,
  hostsOf,
  parsedTopology,
  switchesOf,
  type Topology,
} from '../../machine/topology/index.ts';
import { Random } from '../../sim/index.ts';
import type { Again } from '../story.ts';
import {
  type CableOfStory,
  type FabricFlow,
  type FabricStory,
  type FlowKind,
  flowKinds,
  type SwitchOfStory,
  startPs,
} from './fabric-story.ts';

const fabrics = [
  ...[3, 4, 6].map((hosts) => `star:${hosts}`),
  ...[4, 6].map((hosts) => `dumbbell:${hosts}`),
  ...[3, 4, 5, 6].map((hosts) => `ring:${hosts}`),
  'leaf-spine:2x2:4',
  'leaf-spine:2x3:6',
  'leaf-spine:3x2:4',
  'fat-tree:2',
  'mesh:4',
] as const;
/** Up to twelve hosts, or sixteen and twenty switches: rarely, since each host costs its boot. */
const largeFabrics = [
  'star:12',
  'dumbbell:12',
  'ring:8',
  'leaf-spine:3x4:8',
  'leaf-spine:2x4:12',
  'fat-tree:4',
] as const;
const routings = ['min-hop', 'up-down', 'fat-tree'] as const;
const largeShare = 0.12;
const ethernetShare = 0.45;
const faultyShare = 0.5;
/** Shares of stories whose switches forward unalike, and of those whose links have error correction. */
const unlikeSwitchesShare = 0.3;
const fecShare = 0.3;
/** Buffer of each port of which at most half is headroom at 100 Gb/s. */
const fastKibPerPort = 192;
/** Fabrics with more nodes are played in one thread: each node is a thread of its own otherwise. */
const threadedNodesMax = 8;
/** Payload of all flows together. */
const bytesMax = 600_000;
/** Faults with a time begin within this time from the start of the flows. */
const faultSpanPs = 150_000_000;

type Values = Record<string, ParameterValue>;

export function fabricStoryOf(seed: number): FabricStory {
  const random = new Random(seed, 'fabric story');
  const fabric = oneOf<string>(random, random.chance(largeShare) ? largeFabrics : fabrics);
  const topology = parsedTopology(fabric);
  const isEthernet = random.chance(ethernetShare);
  const set = isEthernet ? ethernetOf(random, fabric, topology) : infinibandOf(random, fabric);
  const faults = random.chance(faultyShare) ? drawFaults(random, topology, { isEthernet, set }) : [];
  const hostCount = hostsOf(topology).length;
  const flows = drawFlows(random, hostCount, isEthernet);
  const cables = drawCables(random, topology, set);
  const again = drawAgain(random, topology.nodes.length);
  const plain = { seed, fabric, cables, set: { 'host.memory.sizeMib': 64, ...set }, faults, flows, again };
  return traits.reduce<FabricStory>((story, { name, share, ofEthernet, add }) => {
    const own = new Random(seed, `${name} of a fabric story`);
    return (ofEthernet || !isEthernet) && own.chance(share) ? add(own, story, hostCount) : story;
  }, plain);
}

/**
 * Traits that some stories have in addition. Each has its own random generator, so the rest of a seed's story does not
 * depend on it.
 */
interface Trait {
  readonly name: string;
  readonly share: number;
  readonly ofEthernet: boolean;
  add(random: Random, story: FabricStory, hostCount: number): FabricStory;
}

const traits: readonly Trait[] = [
  { name: 'links', share: 1, ofEthernet: true, add: withLinks },
  { name: 'unlike cables', share: 0.35, ofEthernet: true, add: withUnlikeCables },
  { name: 'lanes', share: 0.4, ofEthernet: false, add: withLanes },
  { name: 'partitions', share: 0.3, ofEthernet: false, add: withPartitions },
  { name: 'rates', share: 0.3, ofEthernet: false, add: withRates },
  { name: 'limits', share: 0.3, ofEthernet: false, add: withLimits },
  { name: 'damage', share: 0.3, ofEthernet: true, add: withDamage },
  { name: 'recovery', share: 0.25, ofEthernet: true, add: withSelectiveRepeat },
];

const isOfEthernet = ({ set }: FabricStory): boolean => set['hca.capability.linkLayer'] === 'ethernet';

function withLinks(random: Random, story: FabricStory): FabricStory {
  const switches = drawForwardings(random, parsedTopology(story.fabric));
  const set = { ...story.set, ...linksOf(random, isOfEthernet(story)) };
  return { ...story, set, ...(switches.length === 0 ? {} : { switches }) };
}

/** Cables of Ethernet with several rates. */
function withUnlikeCables(random: Random, story: FabricStory): FabricStory {
  if (!isOfEthernet(story)) return story;
  const topology = parsedTopology(story.fabric);
  const set = { ...story.set, ...roomFor(topology, story.set) };
  return { ...story, set, cables: withCableRates(random, topology, story.cables) };
}

function withLanes(random: Random, story: FabricStory): FabricStory {
  const set = { ...story.set, ...lanesOf(random) };
  return { ...story, set, flows: story.flows.map((flow) => ({ ...flow, level: random.below(16) })) };
}

/** Two partitions, with full and limited members; ports of switches that accept one of them or both. */
function withPartitions(random: Random, story: FabricStory, hostCount: number): FabricStory {
  const memberships = Array.from({ length: hostCount }, () => {
    const own = random.chance(0.85) ? 0x7fff : 1;
    const other = own === 1 ? 0x7fff : 1;
    const partitions = random.chance(0.1) ? [other] : random.chance(0.5) ? [own] : [1, 0x7fff];
    return { pkey: own | (random.chance(0.8) ? 0x8000 : 0), partitions };
  });
  return { ...story, memberships };
}

function withRates(random: Random, story: FabricStory): FabricStory {
  const buffers = between(random, 2, 5);
  const set = {
    ...story.set,
    'hca.capability.staticRates': true,
    // So few that a burst of packets that waited together is short.
    ...{ 'hca.transmitBufferPackets': buffers, 'hca.responseBufferPackets': buffers },
  };
  const rateOf = (): object => (random.chance(0.7) ? { rate: oneOf(random, ratesDrawn) } : {});
  return { ...story, set, flows: story.flows.map((flow) => ({ ...flow, ...rateOf() })) };
}

/** 2.5, 5, 10 and 20 Gb/s. */
const ratesDrawn = [2, 5, 3, 6] as const;

/** Limits of the time of packets in switches that congestion reaches. */
function withLimits(random: Random, story: FabricStory): FabricStory {
  const hoqLife = (): number => oneOf(random, [0, 1, 2, 4, 6, 20]);
  const vlStallCount = (): number => oneOf(random, [0, 1, 2, 7]);
  const set = {
    ...story.set,
    'switch.hoqLife': hoqLife(),
    'switch.vlStallCount': vlStallCount(),
    'switch.lifetimeValue': oneOf(random, [1, 3, 6, 20, 20]),
  };
  const { links } = parsedTopology(story.fabric);
  const others = new Map(story.cables.map((cable) => [cable.link, cable]));
  for (const link of links.keys())
    if (random.chance(0.3))
      others.set(link, { link, ...others.get(link), hoqLife: hoqLife(), vlStallCount: vlStallCount() });
  return { ...story, set, cables: [...others.values()] };
}

/** Damage within a switch, which only destinations find. */
function withDamage(random: Random, story: FabricStory): FabricStory {
  const topology = parsedTopology(story.fabric);
  const cables = directionsOf(topology).filter(({ from }) => topology.nodes[from.node]!.kind === 'switch');
  const { from } = oneOf(random, cables);
  const chance = oneOf(random, ['1%', '5%', '20%']);
  const place = { node: from.node, portNumber: from.port };
  const fault = { packet: 'corrupted', crc: 'icrc', ...place, chance, shots: between(random, 1, 30) };
  return { ...story, faults: [...story.faults, fault as FaultEntry] };
}

/** Cards with selective repeat. After 5 ms no congestion is left that could delay an answer. */
function withSelectiveRepeat(random: Random, story: FabricStory): FabricStory {
  const timeoutsUs = oneOf(random, [{}, { 'hca.retransmitLowUs': 5000, 'hca.retransmitHighUs': 5000 }]);
  const set = {
    ...story.set,
    ...{ 'hca.lossRecovery': 'selective-repeat', ...timeoutsUs },
    'hca.recoveryWindowPackets': oneOf(random, [4, 16, 128]),
    'hca.reorderBufferPackets': oneOf(random, [1, 8, 128]),
  };
  return { ...story, set };
}

const oneOf = <T>(random: Random, values: readonly T[]): T => values[random.below(values.length)]!;
const between = (random: Random, least: number, most: number): number =>
  least + random.below(most - least + 1);

/** Routes of a circle of switches may deadlock unless they go up, then down: then a story cannot demand that all arrives. */
function infinibandOf(random: Random, fabric: string): Values {
  const isTree = fabric.startsWith('fat-tree');
  const chosen = isTree ? routings : (['min-hop', 'up-down', 'up-down'] as const);
  return {
    'machine.routing': oneOf(random, chosen),
    'switch.forwarding': oneOf(random, ['cut-through', 'store-and-forward']),
    'switch.inputBufferBytes': oneOf(random, [8448, 12_288, 32_768]),
    'switch.latencyNs': oneOf(random, [1, 120, 900]),
    'switch.hoqLife': oneOf(random, [10, 14, 18]),
    'wire.speed': oneOf(random, ['SDR', 'DDR', 'QDR', 'FDR']),
    'wire.lanes': oneOf(random, ['1', '4']),
    'wire.cableMetres': oneOf(random, [1, 2, 30]),
    ...(random.chance(0.2) ? { 'wire.packetForm': 'bytes' } : {}),
  };
}

/** Several data lanes, each with room for two of the longest packets or more. */
function lanesOf(random: Random): Values {
  const lanes = oneOf(random, [2, 4, 8]);
  const bytes = (): number => lanes * oneOf(random, [8448, 12_288, 16_384]);
  return {
    'wire.dataVls': String(lanes),
    'wire.receiveBufferBytes': bytes(),
    'switch.inputBufferBytes': bytes(),
    'wire.creditReturnBytes': oneOf(random, [64, 2048]),
    'hca.lanePackets': oneOf(random, [1, 2, 8]),
    'lanes.highLimit': oneOf(random, [0, 1, 255]),
    'lanes.high.vl1': oneOf(random, [0, 1, 255]),
    'lanes.low.vl0': oneOf(random, [1, 64, 255]),
  };
}

function ethernetOf(random: Random, fabric: string, topology: Topology): Values {
  const flowControl = oneOf(random, ['none', 'pause', 'pfc']);
  const isLossy = flowControl === 'none';
  // Pauses that wait for each other around a circle are a deadlock, as they are in hardware.
  const isCircle = fabric.startsWith('ring') || fabric.startsWith('mesh');
  const ports = portsMaxOf(topology);
  return {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': oneOf(random, ['v1', 'v2', 'v2']),
    'ethernet.gigabitsPerSecond': oneOf(random, [10, 25, 40]),
    'ethernet.cableMetres': oneOf(random, [1, 2, 50]),
    'switch.ethernet.flowControl': flowControl,
    ...(flowControl === 'pfc' ? { 'driver.pfcPriorities': 1 } : {}),
    // Headroom takes at most half of the buffer; a lossy buffer may be the smallest.
    'switch.ethernet.bufferKib': isLossy ? 64 : oneOf(random, [64, 128, 512]) * ports,
    'switch.ethernet.pauseAlpha': oneOf(random, ['1/64', '1/8', '1/2']),
    'switch.ethernet.alpha': oneOf(random, ['1/32', '1/8', '1/2', '1']),
    'switch.ethernet.scheduling': oneOf(random, ['strict', 'round-robin']),
    'switch.ethernet.multipath': isCircle && !isLossy ? 'tree' : oneOf(random, ['ecmp', 'ecmp', 'tree']),
    'switch.ethernet.hashSeed': random.below(1000),
    'switch.ethernet.latencyNs': oneOf(random, [50, 300, 2000]),
    ...(random.chance(0.4)
      ? { 'switch.ethernet.marksCongestion': true, 'switch.ethernet.ecnMaxBytes': 20_000 }
      : {}),
  };
}

/** How switches of Ethernet forward, and what ports and links add to the way of a frame or packet. */
function linksOf(random: Random, isEthernet: boolean): Values {
  const fec = random.chance(fecShare) ? oneOf(random, ['fire-code', 'rs-528', 'rs-544', 'rs-272']) : 'none';
  if (!isEthernet) return { 'wire.fec': fec };
  return {
    'ethernet.fec': fec,
    'switch.ethernet.forwarding': oneOf(random, ['cut-through', 'cut-through', 'store-and-forward']),
    'switch.ethernet.portLatencyNs': oneOf(random, [1, 31, 150]),
  };
}

/** Room for the headroom of the fastest cable, if inputs stop their senders. */
function roomFor(topology: Topology, set: Values): Values {
  const path = 'switch.ethernet.bufferKib';
  if (set['switch.ethernet.flowControl'] === 'none') return {};
  return { [path]: Math.max(Number(set[path]), fastKibPerPort * portsMaxOf(topology)) };
}

const portsMaxOf = (topology: Topology): number =>
  Math.max(...switchesOf(topology).map((node) => portCountOf(topology, node)));

/** Switches with a way of forwarding of their own, in some stories. */
function drawForwardings(random: Random, topology: Topology): SwitchOfStory[] {
  if (!random.chance(unlikeSwitchesShare)) return [];
  return switchesOf(topology).flatMap((node) =>
    random.chance(0.5) ? [{ node, forwarding: oneOf(random, ['cut-through', 'store-and-forward']) }] : [],
  );
}

/** Gives some cables of Ethernet a rate of their own. */
function withCableRates(
  random: Random,
  { links }: Topology,
  cables: readonly CableOfStory[],
): CableOfStory[] {
  const own = new Map(cables.map((cable) => [cable.link, cable]));
  return links.flatMap((_, link) => {
    const cable = own.get(link);
    const isOwn = random.chance(0.5);
    if (!isOwn) return cable ?? [];
    return [{ ...cable, link, gigabitsPerSecond: oneOf(random, [10, 25, 40, 100]) }];
  });
}

/** Cables of other lengths; on InfiniBand of other rates, too. */
function drawCables(random: Random, { links }: Topology, set: Values): CableOfStory[] {
  const isEthernet = set['hca.capability.linkLayer'] === 'ethernet';
  const isLossy = set['switch.ethernet.flowControl'] === 'none';
  if (!random.chance(0.45)) return [];
  return links.flatMap((_, link) => {
    if (!random.chance(0.4)) return [];
    // Long enough that packets on unlike paths pass each other; beyond what headroom covers by default.
    const metres = oneOf(random, [1, 5, isLossy ? 300 : 60]);
    return isEthernet ? [{ link, metres }] : [{ link, metres, speed: oneOf(random, ['SDR', 'QDR', 'FDR']) }];
  });
}

const portCountOf = (topology: Topology, node: number): number =>
  directionsOf(topology).filter(({ from }) => from.node === node).length;

function drawFlows(random: Random, hosts: number, isEthernet: boolean): FabricFlow[] {
  const isIncast = random.chance(0.4);
  const count = between(random, 1, Math.min(2 * hosts, 14));
  const flows: FabricFlow[] = [];
  let left = bytesMax;
  for (let index = 0; index < count && left > 0; index++) {
    const kind: FlowKind = random.chance(0.1) ? 'group' : oneOf(random, flowKinds.slice(0, 4));
    const isDatagram = kind === 'datagram' || kind === 'group';
    const to = isIncast ? 0 : random.below(hosts);
    const from = (to + 1 + random.below(hosts - 1)) % hosts;
    const sizeBytes = isDatagram
      ? between(random, 8, isEthernet ? 1000 : 2000)
      : oneOf(random, [1, 64, 1024, 4096, 20_000, 65_536]);
    const messages = between(random, 1, Math.max(1, Math.min(24, Math.floor(left / sizeBytes))));
    const window = between(random, 1, 8);
    flows.push({ kind, from, to: kind === 'group' ? from : to, sizeBytes, messages, window });
    left -= sizeBytes * messages;
  }
  return flows;
}

const psText = (ps: number): string => `${ps}ps`;

function drawFaults(
  random: Random,
  topology: Topology,
  { isEthernet, set }: { readonly isEthernet: boolean; readonly set: Values },
): FaultEntry[] {
  const cables = directionsOf(topology).filter(({ from }) => topology.nodes[from.node]!.kind === 'switch');
  return Array.from({ length: between(random, 1, 3) }, () => {
    const { from } = oneOf(random, cables);
    const at = psText(startPs + random.below(faultSpanPs));
    // On Ethernet a lost frame may delay connections for seconds, until after the fault.
    const lasting =
      isEthernet || random.chance(0.85) ? { for: psText(between(random, 1_000_000, 100_000_000)) } : {};
    const place = { node: from.node, portNumber: from.port };
    if (!isEthernet && random.chance(0.25)) return drawEntry(random, topology, from.node, { at, set });
    if (random.chance(0.45))
      return random.chance(0.5)
        ? { cable: 'pulled', ...place, at, ...lasting }
        : { port: 'down', ...place, at, ...lasting };
    const share = { chance: oneOf(random, ['1%', '5%', '20%']), shots: between(random, 1, 30) };
    const late = { delay: psText(between(random, 1, 3_000_000)) };
    const kinds: FaultEntry[] = [
      { packet: 'lost', ...place, ...share },
      { packet: 'corrupted', ...place, ...share },
      { packet: 'late', ...place, ...share, ...late },
      { packet: 'duplicated', ...place, ...share },
      { packet: 'reordered', ...place, ...share, by: between(random, 1, 5) },
    ];
    return oneOf(random, kinds);
  });
}

/** A wrong forwarding entry. It always ends: three switches that send a packet in a circle do so without end. */
function drawEntry(
  random: Random,
  topology: Topology,
  node: number,
  { at, set }: { readonly at: string; readonly set: Values },
): FaultEntry {
  const lasting = { at, for: psText(between(random, 1_000_000, 60_000_000)) };
  const host = oneOf(random, hostsOf(topology));
  if (random.chance(0.5)) return { forwarding: 'none', node, host, ...lasting };
  const routing = routings.find((each) => each === set['machine.routing']) ?? 'min-hop';
  const planned = fabricRoutesOf(topology, routing).portTowards(node, { node: host, port: 1 });
  const outputs = directionsOf(topology).filter(({ from }) => from.node === node && from.port !== planned);
  return { forwarding: 'wrong', node, host, output: oneOf(random, outputs).from.port, ...lasting };
}

function drawAgain(random: Random, nodeCount: number): Again {
  const partition =
    nodeCount <= threadedNodesMax && random.chance(0.2)
      ? oneOf(random, ['per-node', 'per-device', 'per-core'] as const)
      : 'single';
  const shuffleSeed = partition === 'single' ? 1 + random.below(1000) : undefined;
  return {
    partition,
    shuffleSeed,
    ...(random.chance(0.2) ? { isPlain: true as const } : {}),
    ...(random.chance(0.2) ? { epochPs: between(random, 100, 3000) * 1_000_000 } : {}),
  };
}
