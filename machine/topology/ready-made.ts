/**
 * Ready-made fabrics, by a name with sizes. Hosts take the lowest free port of their switch, in order; then switches are joined, each pair
 * by one cable.
 *
 *     star:8            8 hosts at one switch
 *     ring:8            8 switches in a ring, one host at each
 *     mesh:8            8 switches, each joined to every other, one host at each
 *     dumbbell:8        2 switches joined by one cable, half of the hosts at each
 *     leaf-spine:2x4:8  2 spines, 4 leaves, 8 hosts in all, an equal number at each leaf
 *     fat-tree:4        k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts (Al-Fares, SIGCOMM 2008)
 */
import { ConfigurationError } from '../../base/index.ts';
import { firstPort, type Link, type NodePort, switchPortMax, type Topology } from './topology.ts';

/** Hosts and switches of a machine. */
export const hostCountMin = 2;
export const hostCountMax = 128;
export const switchCountMax = 128;
export const nodeCountMax = hostCountMax + switchCountMax;

/** Collects nodes and cables; gives each cable the next free port at both ends. */
class FabricDrawing {
  readonly #hostCount: number;
  #switchCount = 0;
  readonly #links: Link[] = [];
  readonly #nextPort = new Map<number, number>();

  constructor(hostCount: number) {
    this.#hostCount = hostCount;
  }

  /** Adds switches. @returns their numbers */
  addSwitches(count: number): number[] {
    const first = this.#hostCount + this.#switchCount;
    this.#switchCount += count;
    return Array.from({ length: count }, (_, index) => first + index);
  }

  join(left: number, right: number): void {
    this.#links.push({ ends: [this.#endAt(left), this.#endAt(right)] });
  }

  get topology(): Topology {
    const kinds = [
      ...Array<'host'>(this.#hostCount).fill('host'),
      ...Array<'switch'>(this.#switchCount).fill('switch'),
    ];
    return { nodes: kinds.map((kind) => ({ kind })), links: this.#links };
  }

  #endAt(node: number): NodePort {
    const port = this.#nextPort.get(node) ?? firstPort;
    this.#nextPort.set(node, port + 1);
    return { node, port };
  }
}

/** Attaches hosts evenly: the first of them to the first switch. */
function attachHosts(drawing: FabricDrawing, hostCount: number, switches: readonly number[]): void {
  const each = hostCount / switches.length;
  for (let host = 0; host < hostCount; host++) drawing.join(host, switches[Math.floor(host / each)]!);
}

/** Joins switches that are neighbours in a ring; two are joined once. */
function closeRing(drawing: FabricDrawing, switches: readonly number[]): void {
  for (let at = 0; at + 1 < switches.length; at++) drawing.join(switches[at]!, switches[at + 1]!);
  if (switches.length > 2) drawing.join(switches[0]!, switches.at(-1)!);
}

function joinAll(drawing: FabricDrawing, switches: readonly number[]): void {
  switches.forEach((left, at) => {
    for (const right of switches.slice(at + 1)) drawing.join(left, right);
  });
}

/** A fabric whose only size is its number of hosts: its number of switches, and their cables. */
interface SimpleFabric {
  readonly switchesFor: (hostCount: number) => number;
  readonly joinSwitches: (drawing: FabricDrawing, switches: readonly number[]) => void;
  readonly hostCountMax: number;
}

const simpleFabrics: Readonly<Record<string, SimpleFabric>> = {
  star: { switchesFor: () => 1, joinSwitches: () => undefined, hostCountMax: switchPortMax },
  ring: { switchesFor: (hosts) => hosts, joinSwitches: closeRing, hostCountMax },
  mesh: { switchesFor: (hosts) => hosts, joinSwitches: joinAll, hostCountMax: switchPortMax },
  dumbbell: { switchesFor: () => 2, joinSwitches: joinAll, hostCountMax: 2 * (switchPortMax - 1) },
};

/** Names of ready-made fabrics, with their sizes. */
export const readyMadeNames = [
  ...Object.keys(simpleFabrics).map((name) => `${name}:HOSTS`),
  'leaf-spine:SPINESxLEAVES:HOSTS',
  'fat-tree:K',
] as const;

/** Whether a text names a ready-made fabric, perhaps with a wrong size. */
export const isReadyMade = (text: string): boolean => /^[a-z]/.test(text);

/**
 * The fabric of a name with sizes.
 * @throws ConfigurationError for another name, and for sizes that make no fabric
 */
export function readyMadeTopology(text: string): Topology {
  const [name = '', first = '', second] = text.split(':');
  const simple = simpleFabrics[name];
  if (simple !== undefined && second === undefined) return simpleTopology(text, simple, first);
  if (name === 'leaf-spine') return leafSpine(text, first, second);
  if (name === 'fat-tree' && second === undefined) return fatTree(text, first);
  throw new ConfigurationError(
    'topology',
    text,
    `a JSON file, links such as 0-2,1-3, or one of ${readyMadeNames.join(', ')}`,
  );
}

function simpleTopology(
  text: string,
  { switchesFor, joinSwitches, hostCountMax: most }: SimpleFabric,
  size: string,
): Topology {
  const hostCount = sizeIn(text, 'hosts', size, hostCountMin, most);
  const switchCount = switchesFor(hostCount);
  checkDivisible(text, hostCount, switchCount, 'switches');
  const drawing = new FabricDrawing(hostCount);
  const switches = drawing.addSwitches(switchCount);
  attachHosts(drawing, hostCount, switches);
  joinSwitches(drawing, switches);
  return drawing.topology;
}

/** Two layers: every leaf is joined to every spine. */
function leafSpine(text: string, sizes: string, hosts: string | undefined): Topology {
  const [spines = '', leaves = '', surplus] = sizes.split('x');
  if (surplus !== undefined) throw new ConfigurationError('topology', text, 'leaf-spine:SPINESxLEAVES:HOSTS');
  const spineCount = sizeIn(text, 'spines', spines, 1, switchPortMax - 1);
  const leafCount = sizeIn(text, 'leaves', leaves, 1, switchPortMax);
  const hostsMax = Math.min(hostCountMax, leafCount * (switchPortMax - spineCount));
  const hostCount = sizeIn(
    text,
    'hosts',
    hosts ?? `${2 * leafCount}`,
    Math.max(hostCountMin, leafCount),
    hostsMax,
  );
  checkDivisible(text, hostCount, leafCount, 'leaves');
  const drawing = new FabricDrawing(hostCount);
  const spineNumbers = drawing.addSwitches(spineCount);
  const leafNumbers = drawing.addSwitches(leafCount);
  attachHosts(drawing, hostCount, leafNumbers);
  for (const leaf of leafNumbers) for (const spine of spineNumbers) drawing.join(leaf, spine);
  return drawing.topology;
}

/** Three layers of switches with k ports each, all alike. */
function fatTree(text: string, size: string): Topology {
  const k = sizeIn(text, 'ports of a switch (k)', size, 2, 8);
  if (k % 2 !== 0) throw new ConfigurationError('topology', text, 'fat-tree:K with an even K from 2 to 8');
  const half = k / 2;
  const drawing = new FabricDrawing(k * half * half);
  const cores = drawing.addSwitches(half * half);
  for (let pod = 0; pod < k; pod++) {
    const above = drawing.addSwitches(half);
    const edges = drawing.addSwitches(half);
    for (const [at, edge] of edges.entries()) {
      for (let host = 0; host < half; host++) drawing.join((pod * half + at) * half + host, edge);
      for (const aggregation of above) drawing.join(edge, aggregation);
    }
    for (const [at, aggregation] of above.entries())
      for (let core = 0; core < half; core++) drawing.join(aggregation, cores[at * half + core]!);
  }
  return drawing.topology;
}

function sizeIn(text: string, what: string, size: string, least: number, most: number): number {
  const count = Number(size);
  if (/^\d+$/.test(size) && count >= least && count <= most) return count;
  throw new ConfigurationError(`topology ${text}, ${what},`, size, `an integer from ${least} to ${most}`);
}

function checkDivisible(text: string, hostCount: number, switchCount: number, what: string): void {
  if (hostCount % switchCount === 0) return;
  throw new ConfigurationError(
    `topology ${text}, hosts,`,
    hostCount,
    `a multiple of ${switchCount}, the ${what} that share them`,
  );
}
