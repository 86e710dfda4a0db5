/**
 * The plan of a served machine: real HCAs, root complexes and links; the hosts are guests.
 *
 *     guest0 ══PCIe══ hca0 ══╗                guest0 ══PCIe══ hca0 ══cable══ hca1 ══PCIe══ guest1
 *                        ╚═══╝ loopback plug  guest0 ══PCIe══ hca0 ══cable══ hca1 ══PCIe══ host1   (or nic1: `machine.adapter`)
 *
 * `guestN` is the logical process of a slot: a root complex that a real guest's accesses enter and whose memory is the guest's.
 *     guest0 ══PCIe══ hca0 ══cable══ switch4 ══cable══ hca1 ══PCIe══ host1 …
 *
 * An HCA without a cable to another has in its port a loopback plug, nothing, or a cable whose other end is a socket for
 * third-party endpoints. `host1` is a simulated host, planned as in a machine of simulated hosts; so are all hosts of a fabric but the
 * first ones, and its switches.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { Fault } from '../../machine/faults/index.ts';
import {
  bytesToDevice,
  bytesToHost,
  channelKey,
  checkLinkLayer,
  type HcaNeighbours,
  type HcaPlan,
  hcaCableBytes,
  hcaName,
  hcaNeighboursOf,
  hostName,
  type MachinePlan,
  nicName,
  planMachine,
} from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import {
  hostsOf,
  hostsWith,
  linkBetween,
  pairsOf,
  peerOf,
  subnetOf,
  type Topology,
} from '../../machine/topology/index.ts';
import { peerNode } from './peer-host.ts';

/** The plug in port 1 of each HCA. */
const cablings = ['cable', 'loopback', 'open', 'socket', 'fabric'] as const;
export type Cabling = (typeof cablings)[number];

/** Served HCAs at most: on a fabric, and without one. */
export const servedHcasMax = 8;
const cabledHcasMax = 2;

export interface ServedChoice {
  readonly config: MachineConfig;
  readonly hcaCount: number;
  readonly cabling: Cabling;
  readonly faults: readonly Fault[];
  /** Left out: true. */
  readonly shortcuts?: boolean;
  /** Whether the other end of the cable is a simulated host's; left out: false. */
  readonly hasPeer?: boolean;
  /** Hosts and switches that the served HCAs are cabled to, as its first hosts; left out: none. */
  readonly fabric?: Topology | undefined;
}

/** The node number for faults of a third-party endpoint's frames. */
export const strangerNode = 1;

export interface ServedPlan extends HcaPlan {
  /** Served HCAs. */
  readonly hcaCount: number;
  readonly cabling: Cabling;
  /** Inputs of the simulated host, if present. */
  readonly peer: MachinePlan | undefined;
  /** Inputs of the other hosts of a fabric and of its switches, if present. */
  readonly fabric: MachinePlan | undefined;
}

export const guestName = (node: number): string => `guest${node}`;
/** The end of a channel that is unconnected, or to which a third-party endpoint connects. */
export const openEndName = (node: number): string => `open${node}`;

/** The number of served HCAs must be possible. @throws ConfigurationError */
export function checkHcaCount(hcaCount: number, fabric: Topology | undefined): void {
  const most = fabric === undefined ? cabledHcasMax : Math.min(servedHcasMax, hostsOf(fabric).length);
  if (!Number.isInteger(hcaCount) || hcaCount < 1 || hcaCount > most)
    throw new ConfigurationError('hcas', hcaCount, `an integer from 1 to ${most}`);
}

/** @throws ConfigurationError for a number of HCAs that is not possible, or a cable with one end */
export function planServed(choice: ServedChoice): ServedPlan {
  const { config, hcaCount, cabling, faults, shortcuts = true, hasPeer = false } = choice;
  checkHcaCount(hcaCount, choice.fabric);
  if (choice.fabric !== undefined) return planFabric(choice, choice.fabric);
  if (hasPeer) checkPeer(choice);
  else if (cabling === 'cable' && hcaCount !== 2)
    throw new ConfigurationError('hcas', hcaCount, '2 for a cable between them');
  else if (cabling === 'socket') checkStranger(choice);
  const how = { shuffleSeed: undefined, shortcuts };
  const peer = hasPeer ? planPeer({ config, faults, ...how }) : undefined;
  const channels: Record<string, SharedArrayBuffer> = { ...peer?.channels };
  const topology = servedTopology(cabling, hcaCount);
  const plan: ServedPlan = {
    config,
    topology,
    hcaCount,
    cabling,
    faults,
    channels,
    peer,
    fabric: undefined,
    ...how,
  };
  const add = (from: string, to: string, bytes: number): void => {
    channels[channelKey(from, to)] ??= new SharedArrayBuffer(bytes);
  };
  for (let node = 0; node < hcaCount; node++) {
    const { host, cables } = servedNeighboursOf(plan, node);
    add(host, hcaName(node), bytesToDevice(config));
    add(hcaName(node), host, bytesToHost(config));
    for (const cable of cables)
      for (const key of Object.values(cable ?? {}))
        channels[key] ??= new SharedArrayBuffer(hcaCableBytes(config));
  }
  return plan;
}

/** A machine of simulated hosts and switches, whose first hosts are guests. */
function planFabric(
  { config, hcaCount, faults, shortcuts = true, hasPeer = false }: ServedChoice,
  topology: Topology,
): ServedPlan {
  if (hasPeer) checkFabricPeer({ config, hcaCount }, topology);
  const how = { config, topology, faults, shuffleSeed: undefined, shortcuts };
  const fabric = planMachine({ ...how, partition: 'single', analysis: undefined });
  const isGuests = (name: string): boolean =>
    Array.from({ length: hcaCount }, (_, node) => hostName(node)).includes(name);
  const exchanges = hasPeer ? exchangeKeys : [];
  const kept = Object.entries(fabric.channels).filter(
    ([key]) => exchanges.includes(key) || !key.split('>').some(isGuests),
  );
  const channels: Record<string, SharedArrayBuffer> = Object.fromEntries(kept);
  for (let node = 0; node < hcaCount; node++) {
    const [guest, hca] = [guestName(node), hcaName(node)];
    channels[channelKey(guest, hca)] = new SharedArrayBuffer(bytesToDevice(config));
    channels[channelKey(hca, guest)] = new SharedArrayBuffer(bytesToHost(config));
  }
  return {
    ...{ ...how, hcaCount, cabling: 'fabric', channels },
    // The peer exchanges values with the guest, too.
    peer: hasPeer ? { ...fabric, channels, guestHosts: 0 } : undefined,
    fabric: { ...fabric, channels, guestHosts: hcaCount },
  };
}

/** @throws ConfigurationError for options that leave the simulated host no place */
export function checkPeer({
  config,
  hcaCount,
  cabling,
}: Pick<ServedChoice, 'config' | 'hcaCount' | 'cabling'>): void {
  const { machine, hca } = config;
  if (hcaCount !== 1) throw new ConfigurationError('hcas', hcaCount, '1 beside a peer: the other HCA is its');
  if (cabling !== 'cable') throw new ConfigurationError('cabling', cabling, 'a cable to the peer');
  const { linkLayer, roce, transport } = hca.capability;
  if (machine.adapter === 'nic' && linkLayer !== 'ethernet')
    throw new ConfigurationError(
      'hca.capability.linkLayer',
      linkLayer,
      'ethernet beside a simulated host with a NIC (machine.adapter=nic)',
    );
  const isConventional = linkLayer === 'ethernet' && roce === 'none' && transport !== 'iwarp';
  if (machine.adapter === 'hca' && isConventional)
    throw new ConfigurationError(
      'hca.capability.roce',
      roce,
      'v1 or v2 beside a simulated host with an HCA, or hca.capability.transport=iwarp; with machine.adapter=nic it has a NIC, and its kernel TCP',
    );
  checkLinkLayer(config);
  if (machine.nodeCount !== 2)
    throw new ConfigurationError('machine.nodeCount', machine.nodeCount, '2: the guest and its peer');
}

/** @throws ConfigurationError for an adapter to which a third-party endpoint's cable cannot be connected */
export function checkStranger({ config, hcaCount }: Pick<ServedChoice, 'config' | 'hcaCount'>): void {
  if (hcaCount !== 1) throw new ConfigurationError('hcas', hcaCount, '1 for a cable to a stranger');
  const { linkLayer } = config.hca.capability;
  if (linkLayer !== 'ethernet')
    throw new ConfigurationError(
      'hca.capability.linkLayer',
      linkLayer,
      'ethernet for a cable to a stranger, which carries frames',
    );
}

/** The plan of a machine of simulated hosts, of which the guest represents host 0; a NIC's cable leads to the guest's HCA. */
function planPeer(choice: Pick<MachinePlan, 'config' | 'faults' | 'shuffleSeed' | 'shortcuts'>): MachinePlan {
  const plan = planMachine({ ...choice, partition: 'single', analysis: undefined });
  const hasNic = choice.config.machine.adapter === 'nic';
  const own = [hostName(0), hcaName(0)];
  const isOwn = (key: string): boolean =>
    hasNic ? key.includes(nicName(0)) : own.every((name) => key.includes(name));
  const channels = Object.fromEntries(Object.entries(plan.channels).filter(([key]) => !isOwn(key)));
  return { ...plan, channels, ...(hasNic ? { nicFarEnd: hcaName(0) } : {}) };
}

/** The peer on a fabric is its host 1. @throws ConfigurationError for options that leave it no place */
export function checkFabricPeer(
  { config, hcaCount }: Pick<ServedChoice, 'config' | 'hcaCount'>,
  fabric: Topology,
): void {
  if (hcaCount !== peerNode)
    throw new ConfigurationError('hcas', hcaCount, '1 beside a peer: host 1 of the topology is its');
  const hostCount = hostsOf(fabric).length;
  if (hostCount <= peerNode)
    throw new ConfigurationError('topology', `${hostCount} host`, 'a host for the peer');
  checkLinkLayer(config);
}

/** Channels between the guest and the simulated host beside it. */
const exchangeKeys: readonly string[] = [
  channelKey(hostName(peerNode), hostName(0)),
  channelKey(hostName(0), hostName(peerNode)),
];

/** The channels of the exchange with the simulated host, as in the guest's slot. */
export const exchangeChannelsOf = ({ channels }: ServedPlan) => ({
  inbound: channels[channelKey(hostName(peerNode), hostName(0))]!,
  outbound: channels[channelKey(hostName(0), hostName(peerNode))]!,
});

/**
 * The links of the served HCAs: a cable joins two nodes, the second of which may be a simulated host; a loopback plug joins a port to
 * itself. An open port, and one whose cable leads to a socket, has no link in this machine.
 */
export function servedTopology(cabling: Cabling, hcaCount: number): Topology {
  if (cabling === 'cable') return pairsOf(2);
  const own = Array.from({ length: hcaCount }, (_, node) => linkBetween(node, node));
  return hostsWith(hcaCount, cabling === 'loopback' ? own : []);
}

/** The peers at the other ends of an HCA's links. */
export function servedNeighboursOf(plan: ServedPlan, node: number): HcaNeighbours {
  const { topology, peer, fabric } = plan;
  if (fabric !== undefined) return { ...hcaNeighboursOf(fabric, node), host: guestName(node) };
  const far = peerOf(topology, node);
  const adapterOf = (other: number): string =>
    peer?.nicFarEnd !== undefined && other === peerNode ? nicName(other) : hcaName(other);
  const farName = far === undefined ? openEndName(node) : adapterOf(far);
  const outbound = channelKey(hcaName(node), farName);
  return {
    host: guestName(node),
    cables: [{ outbound, inbound: channelKey(farName, hcaName(node)) }],
    subnets: [subnetOf(topology, { node, port: 1 })],
  };
}
