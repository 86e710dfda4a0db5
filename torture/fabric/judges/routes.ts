/**
 * The forwarding tables of InfiniBand switches, as they were written: each leads from every host to every other, and the dependencies
 * between channels have no cycle if routes go up, then down (Dally and Seitz, IEEE Transactions on Computers, 1987).
 *
 *     a packet that has come by one cable waits for room at the end of the next: an edge from cable to cable
 *     deadlock is possible if the edges of all routes together contain a cycle
 */
import type { NodePort } from '../../../machine/topology/index.ts';
import { isOnEthernet, type PlayedFabric } from '../played.ts';

/** A direction of a cable, by the port that sends. */
type Channel = string;
const channelOf = ({ node, port }: NodePort): Channel => `${node}.${port}`;

/** Far ends of cables, from the links of a topology alone. */
class Cables {
  readonly #far = new Map<Channel, NodePort>();

  constructor({ topology }: PlayedFabric) {
    for (const { ends } of topology.links) {
      this.#far.set(channelOf(ends[0]), ends[1]);
      this.#far.set(channelOf(ends[1]), ends[0]);
    }
  }

  /** Where a cable leads. */
  farOf(port: NodePort): NodePort | undefined {
    return this.#far.get(channelOf(port));
  }
}

/** The channels that a packet takes from one host to another, and where it ends. */
interface Walk {
  readonly channels: readonly Channel[];
  readonly end: number | 'no entry' | 'a circle';
}

/** Output by LID, of each switch. */
function tablesOf({ fresh }: PlayedFabric): ReadonlyMap<number, ReadonlyMap<number, number>> {
  const tables = new Map<number, ReadonlyMap<number, number>>();
  for (const [node, state] of fresh) {
    const { linear } = state['tables'] as { readonly linear: readonly (readonly [number, number])[] };
    tables.set(node, new Map(linear));
  }
  return tables;
}

function walkFrom(played: PlayedFabric, from: number, lid: number): Walk {
  const [cables, tables] = [new Cables(played), tablesOf(played)];
  const channels: Channel[] = [];
  let at: NodePort = { node: from, port: 1 };
  for (let hops = 0; hops <= played.topology.nodes.length; hops++) {
    channels.push(channelOf(at));
    const far = cables.farOf(at);
    if (far === undefined) return { channels, end: 'no entry' };
    const table = tables.get(far.node);
    if (table === undefined) return { channels, end: far.node };
    const port = table.get(lid);
    if (port === undefined) return { channels, end: 'no entry' };
    at = { node: far.node, port };
  }
  return { channels, end: 'a circle' };
}

function walksOf(played: PlayedFabric): { from: number; to: number; walk: Walk }[] {
  return played.outcomes.flatMap(({ lid }, to) =>
    played.outcomes.flatMap((_, from) =>
      from === to ? [] : [{ from, to, walk: walkFrom(played, from, lid) }],
    ),
  );
}

/** A circle of channels that wait for each other, if there is one. */
function circleIn(edges: ReadonlyMap<Channel, ReadonlySet<Channel>>): readonly Channel[] | undefined {
  const done = new Set<Channel>();
  const path: Channel[] = [];
  const visit = (channel: Channel): readonly Channel[] | undefined => {
    const at = path.indexOf(channel);
    if (at >= 0) return path.slice(at);
    if (done.has(channel)) return undefined;
    path.push(channel);
    for (const next of edges.get(channel) ?? []) {
      const circle = visit(next);
      if (circle !== undefined) return circle;
    }
    path.pop();
    done.add(channel);
    return undefined;
  };
  for (const channel of edges.keys()) {
    const circle = visit(channel);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

/** Edges of all unicast routes, and of groups if the story has some. */
function edgesOf(played: PlayedFabric, withGroups: boolean): ReadonlyMap<Channel, ReadonlySet<Channel>> {
  const edges = new Map<Channel, Set<Channel>>();
  const add = (from: Channel, to: Channel): void => {
    const known = edges.get(from) ?? new Set<Channel>();
    edges.set(from, known.add(to));
  };
  for (const { walk } of walksOf(played))
    walk.channels.forEach((channel, at) => {
      if (at > 0) add(walk.channels[at - 1]!, channel);
    });
  if (!withGroups) return edges;
  for (const [node, state] of played.fresh) {
    const { groupPorts } = state['tables'] as { readonly groupPorts: readonly number[] };
    for (const input of groupPorts)
      for (const output of groupPorts) {
        const came = new Cables(played).farOf({ node, port: input });
        if (came !== undefined && input !== output) add(channelOf(came), channelOf({ node, port: output }));
      }
  }
  return edges;
}

/** Whether the packets of a story on InfiniBand may wait for each other in a circle. */
export function canDeadlock(played: PlayedFabric): boolean {
  if (isOnEthernet(played)) return false;
  return (
    circleIn(
      edgesOf(
        played,
        played.story.flows.some(({ kind }) => kind === 'group'),
      ),
    ) !== undefined
  );
}

export function judgeRoutes(played: PlayedFabric): string[] {
  if (isOnEthernet(played) || played.outcomes.length < played.hostCount) return [];
  const astray = walksOf(played).flatMap(({ from, to, walk }) =>
    walk.end === to
      ? []
      : [`packets from host ${from} to host ${to} end at ${walk.end}: ${walk.channels.join(' ')}`],
  );
  const isTree = ['star', 'dumbbell'].some((name) => played.story.fabric.startsWith(name));
  const isUpDown = played.story.set['machine.routing'] === 'up-down';
  const circle = isTree || isUpDown ? circleIn(edgesOf(played, false)) : undefined;
  return [
    ...astray.slice(0, 3),
    ...(circle === undefined ? [] : [`routes close a circle of channels: ${circle.join(' ')}`]),
  ];
}
