/**
 * Routes through switches: for each switch the port towards each port of a host, as a subnet manager writes them into forwarding tables.
 *
 * `min-hop`: fewest links. `up-down`: packets go up, then down, and never up again, which leaves no circle of buffers that wait for each
 * other (Autonet: Schroeder et al., 1991). Switches nearer to hosts are lower, and of equals the higher number; where that order leaves
 * switches without a route, the order is that of levels below one root, the highest switch. In both, of several ports
 * the one that the fewest hosts use so far is taken, then the lowest: the balance of opensm (osm_switch.c, osm_switch_recommend_path).
 * `fat-tree`: fewest links, and of several ports one by a digit of the host's number, lower digits at lower switches (d-mod-k: Zahavi,
 * 2010), so that a permutation by a shift takes every link once.
 */
import { InvariantError } from '../../base/index.ts';
import { directionsOf, type NodePort, switchesOf, type Topology } from './topology.ts';

export const routings = ['min-hop', 'up-down', 'fat-tree'] as const;
export type Routing = (typeof routings)[number];

/** A link from one switch to another, as the first sees it. */
interface Hop {
  readonly port: number;
  readonly to: number;
  /** Port of the other switch in which the cable ends. */
  readonly farPort: number;
}

/** A cable of a tree over switches. */
interface Branch {
  readonly from: NodePort;
  readonly to: NodePort;
}

/** Ports of one switch towards one port of a host: the chosen one first, then others of equal length. */
type Choices = readonly number[];

export interface FabricRoutes {
  /** The port towards a port of a host; undefined if no path leads there. */
  portTowards(switchNode: number, destination: NodePort): number | undefined;
  /** The port towards another switch, by which management packets reach it; undefined if no path leads there. */
  portToSwitch(switchNode: number, destination: number): number | undefined;
  /** All ports on shortest paths to it, ascending. */
  portsTowards(switchNode: number, destination: NodePort): readonly number[];
  /** Ports of a tree that reaches every host of the subnet once: packets of a group leave by these, except the one they came by. */
  groupPorts(switchNode: number): readonly number[];
  /** Whether the cables between switches close no circle, so that one path joins any two hosts. */
  readonly isTree: boolean;
}

/**
 * The routes of a topology.
 * @returns for a topology without switches, routes that are never asked for
 */
export function fabricRoutesOf(topology: Topology, routing: Routing): FabricRoutes {
  const graph = new SwitchGraph(topology);
  const tables = new Map<number, Map<string, Choices>>(graph.switches.map((node) => [node, new Map()]));
  const load = new Map<string, number>();
  const distancesTo = (node: number): Distances =>
    routing === 'up-down' ? graph.legalDistancesTo(node) : graph.distancesTo(node);
  for (const [index, { host, at }] of graph.attachments.entries()) {
    const distances = distancesTo(at.node);
    for (const node of graph.switches) {
      const ports = node === at.node ? [at.port] : nearest(graph.hopsOf(node), node, distances);
      if (ports.length === 0) continue;
      const choices =
        routing === 'fat-tree'
          ? digitFirst(index, graph.rankOf(node), ports)
          : leastLoadedFirst(node, ports, load);
      tables.get(node)!.set(keyOf(host), choices);
    }
  }
  const tree = graph.treePorts();
  const choicesAt = (node: number, destination: NodePort): Choices =>
    tableOf(tables, node).get(keyOf(destination)) ?? [];
  return {
    portTowards: (node, destination) => choicesAt(node, destination)[0],
    portToSwitch: (node, destination) => nearest(graph.hopsOf(node), node, distancesTo(destination))[0],
    portsTowards: (node, destination) => choicesAt(node, destination).toSorted((left, right) => left - right),
    groupPorts: (node) => tree.get(node) ?? [],
    isTree: graph.isTree,
  };
}

function tableOf<Table>(tables: ReadonlyMap<number, Table>, node: number): Table {
  const table = tables.get(node);
  if (table === undefined) throw new InvariantError('node', node, 'a switch');
  return table;
}

const keyOf = ({ node, port }: NodePort): string => `${node}.${port}`;

/** Distance of a switch to a destination, and whether the path from it only leads down. */
interface Distance {
  readonly links: number;
  /** Whether the next link leads up. */
  readonly isUp: boolean;
}

/** Ports of shortest legal paths. */
function nearest(hops: readonly Hop[], node: number, distances: Distances): number[] {
  const own = distances.of(node);
  if (own === undefined) return [];
  return hops.filter((hop) => distances.isNext(node, own, hop)).map(({ port }) => port);
}

/** Moves the least used port to the front, and counts its use. */
function leastLoadedFirst(node: number, ports: readonly number[], load: Map<string, number>): number[] {
  const useOf = (port: number): number => load.get(`${node}.${port}`) ?? 0;
  const chosen = ports.reduce((best, port) => (useOf(port) < useOf(best) ? port : best));
  load.set(`${node}.${chosen}`, useOf(chosen) + 1);
  return [chosen, ...ports.filter((port) => port !== chosen)];
}

/** Moves the port of a digit of the host's number to the front: the lowest digit at switches with hosts, to the base of their ports upwards. */
function digitFirst(host: number, rank: number, ports: readonly number[]): number[] {
  const chosen = ports[Math.floor(host / ports.length ** rank) % ports.length]!;
  return [chosen, ...ports.filter((port) => port !== chosen)];
}

/** Distances of all switches to one, and which links shorten them. */
class Distances {
  readonly #byNode: ReadonlyMap<number, Distance>;
  readonly #isAbove: (left: number, right: number) => boolean;
  readonly #isAnyWay: boolean;

  constructor(
    byNode: ReadonlyMap<number, Distance>,
    isAnyWay: boolean,
    isAbove: (left: number, right: number) => boolean,
  ) {
    this.#byNode = byNode;
    this.#isAnyWay = isAnyWay;
    this.#isAbove = isAbove;
  }

  of(node: number): Distance | undefined {
    return this.#byNode.get(node);
  }

  isNext(node: number, own: Distance, { to }: Hop): boolean {
    const next = this.#byNode.get(to);
    if (next === undefined || next.links !== own.links - 1) return false;
    if (this.#isAnyWay) return true;
    return own.isUp ? this.#isAbove(to, node) : this.#isAbove(node, to) && !next.isUp;
  }
}

class SwitchGraph {
  readonly switches: readonly number[];
  /** Each port of a host at a switch, and the port of the switch. */
  readonly attachments: readonly { readonly host: NodePort; readonly at: NodePort }[];
  readonly #hops = new Map<number, Hop[]>();
  readonly #ranks = new Map<number, number>();
  /** Levels below the root of each group of joined switches, where the order by ranks leaves switches without a route. */
  #levels: ReadonlyMap<number, number> | undefined;

  constructor(topology: Topology) {
    this.switches = switchesOf(topology);
    const isSwitch = (node: number): boolean => topology.nodes[node]!.kind === 'switch';
    for (const node of this.switches) this.#hops.set(node, []);
    const attachments: { host: NodePort; at: NodePort }[] = [];
    for (const { from, to } of directionsOf(topology)) {
      if (isSwitch(from.node) && isSwitch(to.node))
        this.#hops.get(from.node)!.push({ port: from.port, to: to.node, farPort: to.port });
      if (!isSwitch(from.node) && isSwitch(to.node)) attachments.push({ host: from, at: to });
    }
    this.attachments = attachments;
    this.#rank();
    if (!this.#reachesAll()) this.#levels = this.#levelsBelowRoots();
  }

  /** Whether every switch has a route up, then down, to every switch with hosts that it is joined to. */
  #reachesAll(): boolean {
    const targets = [...new Set(this.attachments.map(({ at }) => at.node))];
    return targets.every((target) => {
      const [joined, legal] = [this.distancesTo(target), this.legalDistancesTo(target)];
      return this.switches.every((node) => joined.of(node) === undefined || legal.of(node) !== undefined);
    });
  }

  /** Breadth first from the highest switch of each group of joined ones. */
  #levelsBelowRoots(): ReadonlyMap<number, number> {
    const levels = new Map<number, number>();
    const byHeight = this.switches.toSorted((left, right) => (this.#isHigher(left, right) ? -1 : 1));
    for (const root of byHeight) {
      if (levels.has(root)) continue;
      levels.set(root, 0);
      const order = [root];
      for (const node of order)
        for (const { to } of this.hopsOf(node)) {
          if (levels.has(to)) continue;
          levels.set(to, levels.get(node)! + 1);
          order.push(to);
        }
    }
    return levels;
  }

  hopsOf(node: number): readonly Hop[] {
    return this.#hops.get(node)!;
  }

  /** Distance of a switch from the nearest host: 0 with hosts of its own. */
  rankOf(node: number): number {
    return this.#ranks.get(node) ?? 0;
  }

  /** Fewest links to a switch. */
  distancesTo(target: number): Distances {
    const byNode = new Map<number, Distance>([[target, { links: 0, isUp: false }]]);
    this.#spread([target], byNode, () => ({ isUp: false }));
    return new Distances(byNode, true, () => true);
  }

  /** Fewest links to a switch on paths that go up, then down: only down where that is possible, since a path that has begun to go down stays. */
  legalDistancesTo(target: number): Distances {
    const isAbove = (left: number, right: number): boolean => this.#isAbove(left, right);
    const byNode = new Map<number, Distance>([[target, { links: 0, isUp: false }]]);
    this.#spread([target], byNode, (from, to) => (isAbove(to, from) ? { isUp: false } : undefined));
    // From every switch that has a path down, and from those found so far, one link up: shortest first.
    const waiting = [...byNode.keys()];
    while (waiting.length > 0) {
      waiting.sort((left, right) => byNode.get(left)!.links - byNode.get(right)!.links || left - right);
      const node = waiting.shift()!;
      const links = byNode.get(node)!.links + 1;
      for (const { to } of this.hopsOf(node))
        if (isAbove(node, to) && !byNode.has(to)) {
          byNode.set(to, { links, isUp: true });
          waiting.push(to);
        }
    }
    return new Distances(byNode, false, isAbove);
  }

  /** For each switch the ports of hosts, and of a tree over all switches with hosts that are joined: breadth first from the lowest. */
  treePorts(): ReadonlyMap<number, number[]> {
    const ports = new Map<number, number[]>(this.switches.map((node) => [node, []]));
    for (const { at } of this.attachments) ports.get(at.node)!.push(at.port);
    for (const { from, to } of this.#withoutStubs(this.#branches())) {
      ports.get(from.node)!.push(from.port);
      ports.get(to.node)!.push(to.port);
    }
    return new Map([...ports].map(([node, own]) => [node, own.toSorted((left, right) => left - right)]));
  }

  /** Whether a tree over the switches leaves out no cable between them. */
  get isTree(): boolean {
    const ends = this.switches.reduce((sum, node) => sum + this.hopsOf(node).length, 0);
    return 2 * this.#branches().length === ends;
  }

  /** Cables of a tree over each group of joined switches. */
  #branches(): Branch[] {
    const branches: Branch[] = [];
    const reached = new Set<number>();
    for (const root of this.switches) {
      if (reached.has(root)) continue;
      reached.add(root);
      const order = [root];
      for (const node of order)
        for (const { port, to, farPort } of this.hopsOf(node)) {
          if (reached.has(to)) continue;
          reached.add(to);
          order.push(to);
          branches.push({ from: { node, port }, to: { node: to, port: farPort } });
        }
    }
    return branches;
  }

  /** The same without those that end at a switch without hosts, where nothing leaves again. */
  #withoutStubs(branches: readonly Branch[]): readonly Branch[] {
    const isAtEnd = ({ node }: NodePort): boolean =>
      !this.attachments.some(({ at }) => at.node === node) &&
      branches.filter(({ from, to }) => from.node === node || to.node === node).length === 1;
    const kept = branches.filter(({ from, to }) => !isAtEnd(from) && !isAtEnd(to));
    return kept.length === branches.length ? branches : this.#withoutStubs(kept);
  }

  /** Breadth first over links along which `step` gives a distance. */
  #spread(
    order: number[],
    byNode: Map<number, Distance>,
    step: (from: number, to: number) => Pick<Distance, 'isUp'> | undefined,
  ): void {
    for (const node of order)
      for (const { to } of this.hopsOf(node)) {
        if (byNode.has(to)) continue;
        const found = step(node, to);
        if (found === undefined) continue;
        byNode.set(to, { links: byNode.get(node)!.links + 1, ...found });
        order.push(to);
      }
  }

  /** Distance of each switch from the nearest host. */
  #rank(): void {
    const order = [...new Set(this.attachments.map(({ at }) => at.node))];
    for (const node of order) this.#ranks.set(node, 0);
    for (const node of order)
      for (const { to } of this.hopsOf(node)) {
        if (this.#ranks.has(to)) continue;
        this.#ranks.set(to, this.#ranks.get(node)! + 1);
        order.push(to);
      }
  }

  /** Whether a switch is above another: nearer to the root, if there is one; else higher. */
  #isAbove(left: number, right: number): boolean {
    if (this.#levels === undefined) return this.#isHigher(left, right);
    const difference = this.#levels.get(right)! - this.#levels.get(left)!;
    return difference > 0 || (difference === 0 && left < right);
  }

  /** Whether a switch is farther from hosts than another, or of equals has the lower number. */
  #isHigher(left: number, right: number): boolean {
    const difference = this.rankOf(left) - this.rankOf(right);
    return difference > 0 || (difference === 0 && left < right);
  }
}
