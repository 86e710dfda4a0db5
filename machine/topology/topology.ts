/**
 * Nodes, ports and links of a machine: plain data that every thread and every reader of a report shares.
 *
 *     node 0, port 1 ──link── node 2, port 1
 *     node 1, port 1 ──link── node 3, port 1
 *
 * Code that needs the other end of a cable calls these functions and never computes it from a node's number.
 */
import { InvariantError } from '../../base/index.ts';

/**
 * The kinds of nodes. A `host` ends traffic: a host with an adapter in its slot. A forwarding node will be another kind, numbered after the
 * hosts, with its own link at each port.
 */
export const nodeKinds = ['host'] as const;
export type NodeKind = (typeof nodeKinds)[number];

export interface TopologyNode {
  readonly kind: NodeKind;
}

/** One port of a node. */
export interface NodePort {
  /** Number of the node: its index in {@link Topology.nodes}. */
  readonly node: number;
  /** Number of the port from 1, as InfiniBand counts ports of a channel adapter (IBTA vol 1, 14.2.5.6). */
  readonly port: number;
}

/** A cable: both directions between two ports. A loopback plug has the same port at both ends. */
export interface Link {
  readonly ends: readonly [NodePort, NodePort];
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

/** The port for cables: adapters have a data path for their first port only. */
export const cabledPort = 1;

/** A link between the first ports of two nodes. */
export const linkBetween = (left: number, right: number): Link => ({
  ends: [
    { node: left, port: cabledPort },
    { node: right, port: cabledPort },
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
export const hostsOf = ({ nodes }: Topology): number[] =>
  nodes.flatMap(({ kind }, node) => (kind === 'host' ? [node] : []));

/** Both directions of every link, by sending node; a loopback plug has one. */
export function directionsOf({ links }: Topology): LinkDirectionEnds[] {
  const all = links.flatMap(({ ends: [left, right] }) =>
    byPort(left, right) === 0
      ? [{ from: left, to: right }]
      : [
          { from: left, to: right },
          { from: right, to: left },
        ],
  );
  return all.toSorted((left, right) => byPort(left.from, right.from));
}

/** Hosts that receive packets from a host, ascending; a host with a loopback plug is its own peer. */
export const peersOf = (topology: Topology, node: number): number[] =>
  directionsOf(topology)
    .filter(({ from }) => from.node === node)
    .map(({ to }) => to.node)
    .toSorted((left, right) => left - right);

/** The host at the other end of a host's cable; undefined if its port is open. */
export const peerOf = (topology: Topology, node: number): number | undefined => peersOf(topology, node)[0];

/**
 * The same for a machine of simulated hosts.
 * @throws InvariantError if its port is open
 */
export function cabledPeerOf(topology: Topology, node: number): number {
  const peer = peerOf(topology, node);
  if (peer === undefined) throw new InvariantError(`port of host ${node}`, 'open', 'one with a cable');
  return peer;
}

/** Hosts of a host's subnet, ascending, including that host. */
export const subnetOf = (topology: Topology, node: number): number[] =>
  [...new Set([node, ...peersOf(topology, node)])].toSorted((left, right) => left - right);

const byPort = (left: NodePort, right: NodePort): number => left.node - right.node || left.port - right.port;

/** The same topology with the lower end of each link first, and the links ordered by that end. */
export function ordered({ nodes, links }: Topology): Topology {
  const each = links.map(
    ({ ends: [left, right] }): Link => ({
      ends: byPort(left, right) <= 0 ? [left, right] : [right, left],
    }),
  );
  return { nodes, links: each.toSorted((left, right) => byPort(left.ends[0], right.ends[0])) };
}

/** The topology if it is not the default of its hosts; undefined for the default. Only then hashes and reports contain it. */
export const declaredOf = (topology: Topology): Topology | undefined =>
  JSON.stringify(ordered(topology)) === JSON.stringify(pairsOf(topology.nodes.length)) ? undefined : topology;
