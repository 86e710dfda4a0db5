/**
 * The plan of a machine: plain data (and shared memory) from which every thread builds its logical processes. In every
 * placement, the parts and their channels are the same. The topology has the hosts and the cables between their
 * adapters, and perhaps switches between them; the default is pairs:
 *
 *     host0 ══PCIe══ hca0 ══cable══ hca1 ══PCIe══ host1      (or nic0, nic1: `machine.adapter`)
 *       └────────────── exchange ──────────────────┘
 */
import { ConfigurationError } from '../base/index.ts';
import { linkChannelBytes } from '../hw/pcie/index.ts';
import { checkEthernetSwitch } from '../hw/switch/index.ts';
import { channelBufferBytes, planSharedControl, type SharedControlPlan } from '../sim/index.ts';
import {
  type EthernetConfig,
  ethernetChannelBytes,
  type PacketArrival,
  type WireConfig,
  wireChannelBytes,
  withTag,
} from '../wire/index.ts';
import type { AnalysisOptions } from './analysis/index.ts';
import type { Fault } from './faults/index.ts';
import { type OperationTimesMemory, operationTimesMemory } from './node/operation-times.ts';
import { type Partition, placementOf, switchName } from './partition/placement.ts';
import type { MachineConfig } from './profile/index.ts';
import {
  directionsOf,
  isSwitch,
  linkAt,
  type NodePort,
  pairsOf,
  portsOf,
  type SwitchForwarding,
  switchesOf,
  type Topology,
} from './topology/index.ts';

/** `races`: programs that access buffers owned by the device; `accesses`: device accesses to memory that was not granted. */
export const watches = ['races', 'accesses'] as const;
export type Watch = (typeof watches)[number];

export interface MachinePlan {
  readonly config: MachineConfig;
  /** Hosts, and the cables between their adapters. */
  readonly topology: Topology;
  readonly faults: readonly Fault[];
  /** Names of the logical processes of each thread. */
  readonly placement: readonly (readonly string[])[];
  /** Memory of each channel, by `from>to`. */
  readonly channels: Readonly<Record<string, SharedArrayBuffer>>;
  /** Seed for reordering events that one instant leaves unordered; the report does not change. */
  readonly shuffleSeed: number | undefined;
  /** Whether to use everything that only makes the simulation faster; the report does not change. */
  readonly shortcuts: boolean;
  /** The analysis between hosts and HCAs; undefined for none. */
  readonly analysis: AnalysisOptions | undefined;
  /** Watches of programs; undefined: disabled. */
  readonly watch: Watch | undefined;
  /** Wall-clock time for which programs may await something that is not simulated. */
  readonly programPatienceMs: number;
  /** Whether costs are attributed to marked operations. */
  readonly attributesCosts: boolean;
  /** Synchronisation of the threads; undefined if there is only one. */
  readonly control: SharedControlPlan | undefined;
  /** Memory of each node for its {@link OperationTimes}. */
  readonly operationTimes: readonly OperationTimesMemory[];
  /**
   * Name of the process at the other end of a NIC's cable if it is not part of this machine: a port of an HCA, whose
   * MAC ARP requests from its software. If left out: the NIC of the node's peer, whose MAC is configuration.
   */
  readonly nicFarEnd?: string | undefined;
  /**
   * Number of hosts, the first ones, that are guests outside of this machine: nothing is exchanged with them, and the management agents
   * of the other hosts answer on the fabric. If left out: none.
   */
  readonly guestHosts?: number | undefined;
  /** Progress of the programs of each node: done and total, in units of their own. One thread writes it, any may read it. */
  readonly progress: SharedArrayBuffer;
}

/** Inputs of an HCA: the part of a plan that does not depend on its host. */
export type HcaPlan = Pick<
  MachinePlan,
  'config' | 'topology' | 'faults' | 'channels' | 'shuffleSeed' | 'shortcuts'
> & {
  /** Memory of operation times; left out if no host notes the times of posts. */
  readonly operationTimes?: readonly OperationTimesMemory[];
  /** If left out: false. */
  readonly attributesCosts?: boolean;
  readonly analysis?: AnalysisOptions | undefined;
};

/** An HCA's links: to its host, and by port from 1 the cables. */
export interface HcaNeighbours {
  /** Name of the host's logical process. */
  readonly host: string;
  readonly cables: readonly (CableChannels | undefined)[];
  /** The ports at the ends of each cable, ascending. */
  readonly subnets: readonly (readonly NodePort[])[];
}

/** Keys of the two channels of a cable, as one of its ends sees them. */
interface CableChannels {
  readonly outbound: string;
  readonly inbound: string;
  /** Rate and length of the cable; if left out: those of the configuration. */
  readonly wire?: WireConfig;
  readonly ethernet?: EthernetConfig;
  /** True if the other end is a switch, which takes packets as soon as they begin to arrive. */
  readonly leadsToSwitch?: boolean;
  /** When frames of Ethernet arrive at the other end; if left out: `tail`. */
  readonly frameArrival?: PacketArrival;
}

export const hostName = (node: number): string => `host${node}`;
export const hcaName = (node: number): string => `hca${node}`;

export const nicName = (node: number): string => `nic${node}`;
export { switchName };

/** Name of the logical process of the adapter in a host's slot. */
export const adapterName = ({ machine }: MachineConfig, node: number): string => `${machine.adapter}${node}`;

export const channelKey = (from: string, to: string): string => `${from}>${to}`;

/** Channel of one direction of a cable. */
export const cableKey = (cabled: Cabled, from: NodePort, to: NodePort): string =>
  channelKey(cableEnd(cabled, from), cableEnd(cabled, to));

const cableEnd = ({ config, topology }: Cabled, { node, port }: NodePort): string =>
  `${isSwitch(topology, node) ? switchName(node) : adapterName(config, node)}${port === 1 ? '' : `.${port}`}`;

/** A topology with the configuration of its nodes. */
export type Cabled = Pick<MachinePlan, 'config' | 'topology'>;

/** Rate and length of the cable in a port: those of the configuration, unless its link has its own. */
export function wireAt({ config: { wire }, topology }: Cabled, port: NodePort): WireConfig {
  const { metres = wire.cableMetres, speed = wire.speed, lanes = wire.lanes } = linkAt(topology, port) ?? {};
  return { ...wire, cableMetres: metres, speed, lanes };
}

/**
 * The cable of Ethernet in a port: length and rate of the configuration, unless its link has its own. A frame passes
 * two ports, whose latencies differ between hosts and switches: theirs here is the mean.
 */
export function ethernetAt({ config, topology }: Cabled, port: NodePort): EthernetConfig {
  const { ethernet } = config;
  const link = linkAt(topology, port);
  const latencies = (link?.ends ?? []).map(({ node }) =>
    isSwitch(topology, node) ? config.switch.ethernet.portLatencyNs : ethernet.portLatencyNs,
  );
  const [near = ethernet.portLatencyNs, far = near] = latencies;
  return {
    ...ethernet,
    cableMetres: link?.metres ?? ethernet.cableMetres,
    gigabitsPerSecond: link?.gigabitsPerSecond ?? ethernet.gigabitsPerSecond,
    portLatencyNs: (near + far) / 2,
  };
}

/** How a switch forwards: as the configuration of its kind of links says, unless the topology has its own for it. */
export function forwardingAt({ config, topology }: Cabled, node: number): SwitchForwarding {
  const isInfiniband = config.hca.capability.linkLayer === 'infiniband';
  const { forwarding } = isInfiniband ? config.switch : config.switch.ethernet;
  return topology.nodes[node]!.forwarding ?? forwarding;
}

/** When frames of Ethernet arrive at a node: with their first bit at a switch that cuts through. */
export const frameArrivalAt = (cabled: Cabled, node: number): PacketArrival =>
  isSwitch(cabled.topology, node) && forwardingAt(cabled, node) === 'cut-through' ? 'head' : 'tail';

export interface PlanChoice {
  readonly config: MachineConfig;
  /** If left out: the default topology of the configuration's hosts. */
  readonly topology?: Topology | undefined;
  readonly faults: readonly Fault[];
  readonly partition: Partition;
  readonly shuffleSeed: number | undefined;
  /** If left out: true. */
  readonly shortcuts?: boolean | undefined;
  readonly analysis: AnalysisOptions | undefined;
  readonly watch?: Watch | undefined;
  readonly programPatienceMs?: number | undefined;
  /** If left out: false. */
  readonly attributesCosts?: boolean | undefined;
}

const programPatienceMs = 30_000;

/** @throws ConfigurationError for a device that no host of a machine has a driver for */
export function planMachine(choice: PlanChoice): MachinePlan {
  checkLinkLayer(choice.config);
  checkSwitches(choice);
  const { config, faults, partition, shuffleSeed, analysis, watch } = choice;
  const { nodeCount } = config.machine;
  const topology = choice.topology ?? pairsOf(nodeCount);
  const placement = placementOf(partition, topology, config.machine.adapter);
  const channels: Record<string, SharedArrayBuffer> = {};
  const add = (from: string, to: string, bytes: number): void => {
    channels[channelKey(from, to)] = new SharedArrayBuffer(bytes);
  };
  for (let node = 0; node < nodeCount; node++) {
    const adapter = adapterName(config, node);
    add(hostName(node), adapter, bytesToDevice(config));
    add(adapter, hostName(node), bytesToHost(config));
    for (let other = 0; other < nodeCount; other++)
      if (other !== node) add(hostName(node), hostName(other), exchangeBytes(config));
  }
  for (const { from, to } of directionsOf(topology)) {
    const wire = wireAt({ config, topology }, from);
    const isAtSwitch = isSwitch(topology, from.node) || isSwitch(topology, to.node);
    channels[cableKey({ config, topology }, from, to)] = new SharedArrayBuffer(
      cableBytes({ ...config, wire, ethernet: ethernetAt({ config, topology }, from) }, isAtSwitch),
    );
  }
  const control = placement.length === 1 ? undefined : planSharedControl(placement, Object.values(channels));
  const progress = new SharedArrayBuffer(nodeCount * 16);
  const operationTimes = Array.from({ length: nodeCount }, operationTimesMemory);
  return {
    config,
    topology,
    faults,
    placement,
    channels,
    shuffleSeed,
    // A process that runs ahead would be recorded out of order; the report is the same without shortcuts.
    shortcuts: (choice.shortcuts ?? true) && analysis?.timeline === undefined,
    analysis,
    watch,
    programPatienceMs: choice.programPatienceMs ?? programPatienceMs,
    attributesCosts: choice.attributesCosts ?? false,
    control,
    operationTimes,
    progress,
  };
}

/** @throws ConfigurationError for adapters that no switch joins, and for switches that their headroom fills */
function checkSwitches({ config, topology }: Pick<PlanChoice, 'config' | 'topology'>): void {
  if (topology === undefined || switchesOf(topology).length === 0) return;
  const { adapter } = config.machine;
  if (adapter !== 'hca')
    throw new ConfigurationError(
      'machine.adapter',
      adapter,
      'hca where the topology has switches: the NIC knows the station at the other end of one cable only',
    );
  if (config.hca.capability.linkLayer === 'infiniband') return;
  for (const node of switchesOf(topology))
    checkEthernetSwitch(
      config.switch.ethernet,
      portsOf(topology, node).map((port) => ethernetAt({ config, topology }, port)),
    );
}

/** Smallest MTU of a RoCE cable: a path MTU of 256 bytes, the smallest, with the longest headers of a RoCE packet. */
const roceMtuBytesMin = 352;

/**
 * On Ethernet, simulated hosts with HCAs have a driver for RoCE and iWARP only: interface frames are for guests.
 * @throws ConfigurationError for ports without a driver
 */
export function checkLinkLayer({ machine, hca, ethernet }: MachineConfig): void {
  if (machine.adapter !== 'hca') return;
  const { linkLayer, roce, transport } = hca.capability;
  if (transport === 'iwarp') {
    if (linkLayer !== 'ethernet')
      throw new ConfigurationError(
        'hca.capability.transport',
        transport,
        'ibta where ports are of InfiniBand: iWARP needs hca.capability.linkLayer=ethernet',
      );
    if (roce !== 'none') throw new ConfigurationError('hca.capability.roce', roce, 'none with iWARP');
    return;
  }
  if (linkLayer === 'infiniband' && roce !== 'none')
    throw new ConfigurationError('hca.capability.roce', roce, 'none where ports are of InfiniBand');
  if (linkLayer === 'infiniband') return;
  if (roce === 'none')
    throw new ConfigurationError(
      'hca.capability.roce',
      roce,
      'v1 or v2, or hca.capability.transport=iwarp: simulated hosts have no driver for other frames, which are for guests (hca serve, hca guest)',
    );
  if (ethernet.mtuBytes < roceMtuBytesMin)
    throw new ConfigurationError(
      'ethernet.mtuBytes',
      ethernet.mtuBytes,
      `at least ${roceMtuBytesMin}, so that frames hold a packet of RoCE`,
    );
}

/** Returns the channel bytes of one direction of the cable: InfiniBand's or Ethernet's. */
const cableBytes = (config: MachineConfig, isAtSwitch: boolean): number => {
  if (config.machine.adapter !== 'hca') return ethernetChannelBytes(nicEthernetOf(config));
  const bytes = hcaCableBytes(config);
  return isAtSwitch ? Math.max(bytes, hcaCableBytes({ ...config, wire: switchWireOf(config) })) : bytes;
};

/** The wire of a switch's ports: rate and length of the cable, and the buffers of the switch. */
const switchWireOf = ({ wire, switch: { inputBufferBytes } }: MachineConfig): WireConfig => ({
  ...wire,
  receiveBufferBytes: inputBufferBytes,
});

/** The cable of two NICs: with room for a tag if they have a VLAN. */
export const nicEthernetOf = ({ ethernet, net }: MachineConfig): EthernetConfig =>
  net.stack.vlanId === 0 ? ethernet : withTag(ethernet);

/** Returns the bytes of an HCA's cable, according to its ports. */
export const hcaCableBytes = ({ hca, wire, ethernet }: MachineConfig): number =>
  hca.capability.linkLayer === 'infiniband'
    ? wireChannelBytes(wire)
    : ethernetChannelBytes(withTag(ethernet));

/** Requests within the endpoint's credits, and completions of every read that the device's tags allow. */
export function bytesToDevice({ pcie, dma }: MachineConfig): number {
  const { link, endpointPort, rootComplex, enumeration } = pcie;
  const readBytes = enumeration.maxReadRequestBytes;
  const completionsPerRead = readBytes / rootComplex.readCompletionBoundaryBytes + 1;
  const completions = dma.tagCount * completionsPerRead;
  return channelBufferBytes(linkChannelBytes(link, endpointPort, completions, dma.tagCount * readBytes));
}

/** Requests within the root port's credits, and one completion for every load and configuration access of a core. */
export function bytesToHost({ pcie }: MachineConfig): number {
  const { link, rootPort, rootComplex } = pcie;
  return channelBufferBytes(
    linkChannelBytes(link, rootPort, rootComplex.cpuTagCount, rootComplex.cpuTagCount * 64),
  );
}

/** Hosts up to which each pair has all of its room for exchanged values: channels of all pairs grow with the square of the hosts. */
const exchangeHostsMax = 8;
/** Room for two exchanged values of greatest length. */
const exchangeBytesMin = 16_384;

/** A channel's capacity is a power of two. */
function exchangeBytes({ machine: { exchangeBufferKib, nodeCount } }: MachineConfig): number {
  const share = Math.min(1, exchangeHostsMax / nodeCount);
  const bytes = Math.max(
    exchangeBufferKib * 1024 * share,
    Math.min(exchangeBytesMin, exchangeBufferKib * 1024),
  );
  return channelBufferBytes(2 ** Math.ceil(Math.log2(bytes)));
}
