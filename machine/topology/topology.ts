/**
 * Nodes, ports and links of a machine: plain data that every thread and every reader of a report shares.
 *
 *     node 0, port 1 ──link── node 2, port 1          host 0 ──┐
 *     node 1, port 1 ──link── node 3, port 1          host 1 ──┴ switch 2, ports 1 and 2
 *
 * Code that needs the other end of a cable calls these functions and never computes it from a node's number.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import type { LaneCount, LaneSpeed } from '../../wire/index.ts';

/**
 * The kinds of nodes. A `host` ends traffic: a host with an adapter in its slot. A `switch` forwards it; switches are numbered after the
 * hosts, and have a link at each port in use.
 */
export const nodeKinds = ['host', 'switch'] as const;
export type NodeKind = (typeof nodeKinds)[number];

export interface TopologyNode {
  readonly kind: NodeKind;
  /**
   * Partitions of a host, by the low 15 bits of their P_Keys: the embedded subnet manager has the ports of switches that are cabled to
   * the host enforce them. Left out: they enforce nothing.
   */
  readonly partitions?: readonly number[];
  /** How a switch forwards; left out: `switch.forwarding`, or on Ethernet `switch.ethernet.forwarding`. */
  readonly forwarding?: SwitchForwarding;
}

/** How a switch forwards packets: before their last byte has come, or after. */
export const switchForwardings = ['cut-through', 'store-and-forward'] as const;
export type SwitchForwarding = (typeof switchForwardings)[number];

/** Most partitions of a host, and the greatest: the default one (IBTA volume 1, 10.9.2). */
export const hostPartitionsMax = 32;
export const partitionMax = 0x7fff;

/** One port of a node. */
export interface NodePort {
  /** Number of the node: its index in {@link Topology.nodes}. */
  readonly node: number;
  /** Number of the port from 1, as InfiniBand counts ports of a channel adapter (IBTA vol 1, 14.2.5.6). */
  readonly port: number;
}

/** A cable: both directions between two ports. A loopback plug has the same port at both ends. */
export interface Link extends LinkCable {
  readonly ends: readonly [NodePort, NodePort];
}

/**
 * How a cable differs from the configuration's (`wire.…`), on Ethernet in its length and rate; left out: not at all.
 */
export interface LinkCable {
  /** Its length: `wire.cableMetres`, or `ethernet.cableMetres`. */
  readonly metres?: number;
  /** Signalling rate of a lane: `wire.speed`. */
  readonly speed?: LaneSpeed;
  /** Its width: `wire.lanes`. */
  readonly lanes?: LaneCount;
  /** Its data rate on Ethernet: `ethernet.gigabitsPerSecond`. */
  readonly gigabitsPerSecond?: number;
  /** Limits of ports of switches at its ends, at power-on: `switch.hoqLife`, `switch.vlStallCount`. */
  readonly hoqLife?: number;
  readonly vlStallCount?: number;
}

export interface Topology {
  /** The hosts, by number, then nodes of other kinds. */
  readonly nodes: readonly TopologyNode[];
  /** Each port has at most one link. */
  readonly links: readonly Link[];
}

/** One direction of a link. */
export interface LinkDirectionEnds {
  readonly from: NodePort;
  readonly to: NodePort;
}

/** The port of a link whose end names none. */
export const firstPort = 1;
/** Ports of an adapter: the ConnectX-3 has two. */
export const hostPortMax = 2;
/** Most ports of a switch: one chip of 64, as Spectrum has; the 36 of SwitchX are among them. */
export const switchPortMax = 64;

/** A link between the first ports of two nodes. */
export const linkBetween = (left: number, right: number): Link => ({
  ends: [
    { node: left, port: firstPort },
    { node: right, port: firstPort },
  ],
});

/** Hosts joined by these links. */
export const hostsWith = (hostCount: number, links: readonly Link[]): Topology => ({
  nodes: Array.from({ length: hostCount }, () => ({ kind: 'host' })),
  links,
});

/** The default: host 0 is cabled to host 1, 2 to 3. @param hostCount an even number */
export const pairsOf = (hostCount: number): Topology =>
  hostsWith(
    hostCount,
    Array.from({ length: Math.floor(hostCount / 2) }, (_, pair) => linkBetween(2 * pair, 2 * pair + 1)),
  );

/** Numbers of the hosts, ascending. */
export const hostsOf = (topology: Topology): number[] => ofKind(topology, 'host');

/** Numbers of the switches, ascending. */
export const switchesOf = (topology: Topology): number[] => ofKind(topology, 'switch');

const ofKind = ({ nodes }: Topology, wanted: NodeKind): number[] =>
  nodes.flatMap(({ kind }, node) => (kind === wanted ? [node] : []));

export const isSwitch = ({ nodes }: Topology, node: number): boolean => nodes[node]?.kind === 'switch';

/** Cables by node, computed once for each topology. */
interface Cabling {
  readonly directions: readonly LinkDirectionEnds[];
  /** Ports with a link of each node, ascending. */
  readonly ports: readonly (readonly NodePort[])[];
  /** The far end of each of them, in the same order. */
  readonly farEnds: readonly (readonly NodePort[])[];
}

const cablings = new WeakMap<Topology, Cabling>();

function cablingOf(topology: Topology): Cabling {
  const known = cablings.get(topology);
  if (known !== undefined) return known;
  const directions = topology.links
    .flatMap(({ ends: [left, right] }) =>
      byPort(left, right) === 0
        ? [{ from: left, to: right }]
        : [
            { from: left, to: right },
            { from: right, to: left },
          ],
    )
    .toSorted((left, right) => byPort(left.from, right.from));
  const ports: NodePort[][] = topology.nodes.map(() => []);
  const farEnds: NodePort[][] = topology.nodes.map(() => []);
  for (const { from, to } of directions) {
    ports[from.node]!.push(from);
    farEnds[from.node]!.push(to);
  }
  const cabling = { directions, ports, farEnds };
  cablings.set(topology, cabling);
  return cabling;
}

/** Both directions of every link, by sending node; a loopback plug has one. */
export const directionsOf = (topology: Topology): readonly LinkDirectionEnds[] =>
  cablingOf(topology).directions;

/**
 * Hosts that receive packets from a host, by any of its ports, directly or through switches, ascending; a host with a loopback plug is
 * its own peer.
 */
export const peersOf = (topology: Topology, node: number): number[] =>
  inOrder(portsOf(topology, node).flatMap((port) => farPortsOf(topology, port).map((far) => far.node)));

/** The ports of a node that have a link, ascending. */
export const portsOf = (topology: Topology, node: number): readonly NodePort[] =>
  cablingOf(topology).ports[node] ?? [];

/** Ports of other hosts that a host's port reaches: at the far end of its cable, or in its subnet; a loopback plug reaches its port. */
export function farPortsOf(topology: Topology, port: NodePort): NodePort[] {
  const far = farEndOf(topology, port);
  if (far === undefined) return [];
  return byPort(port, far) === 0 ? [far] : subnetOf(topology, port).filter(({ node }) => node !== port.node);
}

/** The port at the other end of a port's cable; undefined where it is open. A loopback plug leads to the port itself. */
export function farEndOf(topology: Topology, { node, port }: NodePort): NodePort | undefined {
  const at = portsOf(topology, node).findIndex((own) => own.port === port);
  return at < 0 ? undefined : cablingOf(topology).farEnds[node]![at];
}

/** The link in a port; undefined where it is open. */
export const linkAt = ({ links }: Topology, port: NodePort): Link | undefined =>
  links.find(({ ends }) => ends.some((end) => byPort(end, port) === 0));

/**
 * The host at the other end of the cable of a host's first port, or the first of those that a switch joins to it; undefined where that is
 * open.
 */
export const peerOf = (topology: Topology, node: number): number | undefined =>
  farPortsOf(topology, { node, port: firstPort })[0]?.node;

/**
 * Returns the peer of a host in a machine of simulated hosts.
 * @throws InvariantError if its port is open
 */
export function cabledPeerOf(topology: Topology, node: number): number {
  const peer = peerOf(topology, node);
  if (peer === undefined) throw new InvariantError(`port of host ${node}`, 'open', 'one with a cable');
  return peer;
}

/**
 * Hosts in the order of the sides of a test: host 0, and the host at the other end of the cable of its first port; the others follow in
 * their order. In the default topology side and host have the same number.
 * @throws ConfigurationError for a cable to a second port, which tests do not use
 */
export function hostsBySide(topology: Topology): readonly number[] {
  const all = farPortsOf(topology, { node: 0, port: firstPort });
  const far = all.find(({ port }) => port === firstPort) ?? all[0];
  if (far !== undefined && far.port !== firstPort)
    throw new ConfigurationError(
      'topology, cable of host 0, port 1,',
      `a cable to port ${far.port} of host ${far.node}`,
      'one to port 1 of another host: a test uses the first ports of two hosts',
    );
  return [...new Set([0, far?.node ?? cabledPeerOf(topology, 0), ...hostsOf(topology)])];
}

/** Ports of hosts in the subnet of a host's port, ascending, that port among them: all that cables and switches join to it. */
export function subnetOf(topology: Topology, port: NodePort): NodePort[] {
  const members = [port];
  const switches = new Set<number>();
  const reach = (end: NodePort | undefined): void => {
    if (end === undefined || byPort(end, port) === 0) return;
    if (isSwitch(topology, end.node)) switches.add(end.node);
    else members.push(end);
  };
  reach(farEndOf(topology, port));
  for (const node of switches) for (const far of cablingOf(topology).farEnds[node]!) reach(far);
  return members.toSorted(byPort);
}

/** Whether a host's port is cabled to a switch, so that several hosts may send to it. */
export function isSwitched(topology: Topology, port: NodePort): boolean {
  const far = farEndOf(topology, port);
  return far !== undefined && isSwitch(topology, far.node);
}

/** Ports that adapters need for these links: 1, or 2 if a second port has a link. */
export const portCountOf = ({ nodes, links }: Topology): number =>
  Math.max(
    firstPort,
    ...links.flatMap(({ ends }) =>
      ends.flatMap(({ node, port }) => (nodes[node]!.kind === 'host' ? [port] : [])),
    ),
  );

/** Hosts that are joined by links, directly or through switches and other hosts: each group ascending, groups by their first host. */
export function joinedHostsOf(topology: Topology): number[][] {
  const groups: number[][] = [];
  for (const host of hostsOf(topology)) {
    if (groups.some((group) => group.includes(host))) continue;
    const group = [host];
    for (const member of group)
      group.push(...peersOf(topology, member).filter((peer) => !group.includes(peer)));
    groups.push(inOrder(group));
  }
  return groups;
}

/** Hosts whose first ports are at one switch: each rack ascending, racks by their first host. A host without a switch is a rack of its own. */
export function racksOf(topology: Topology): number[][] {
  const racks = new Map<number, number[]>();
  for (const node of hostsOf(topology)) {
    const far = farEndOf(topology, { node, port: firstPort })?.node ?? node;
    const place = isSwitch(topology, far) ? far : node;
    racks.set(place, [...(racks.get(place) ?? []), node]);
  }
  return [...racks.values()];
}

const inOrder = (nodes: readonly number[]): number[] =>
  [...new Set(nodes)].toSorted((left, right) => left - right);

const byPort = (left: NodePort, right: NodePort): number => left.node - right.node || left.port - right.port;

/** The same topology with the lower end of each link first, and the links ordered by that end. */
export function ordered({ nodes, links }: Topology): Topology {
  const each = links.map(
    ({ ends: [left, right], ...cable }): Link => ({
      ends: byPort(left, right) <= 0 ? [left, right] : [right, left],
      ...cable,
    }),
  );
  return { nodes, links: each.toSorted((left, right) => byPort(left.ends[0], right.ends[0])) };
}

/** The topology if it is not the default of its hosts; undefined for the default. Only then hashes and reports contain it. */
export const declaredOf = (topology: Topology): Topology | undefined =>
  JSON.stringify(ordered(topology)) === JSON.stringify(pairsOf(topology.nodes.length)) ? undefined : topology;
