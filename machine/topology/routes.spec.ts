/** Routes are walked from switch to switch as a packet would go; lengths and circles are judged by searches of this file's own. */
import { describe, expect, it } from 'vitest';
import '../../runtime/node.ts';
import { checkedTopology, parsedTopology } from './check-topology.ts';
import { fabricRoutesOf, type Routing, routings } from './routes.ts';
import {
  farEndOf,
  hostsOf,
  isSwitch,
  type NodePort,
  portsOf,
  switchesOf,
  type Topology,
} from './topology.ts';

const fabrics = ['star:6', 'ring:6', 'mesh:5', 'dumbbell:6', 'leaf-spine:3x4:8', 'fat-tree:4'];
const portOf = (node: number): NodePort => ({ node, port: 1 });

/** Switches that a packet passes, and the directed links between them. */
function walked(
  topology: Topology,
  routing: Routing,
  from: number,
  to: number,
): { nodes: number[]; links: string[] } {
  const routes = fabricRoutesOf(topology, routing);
  const nodes: number[] = [];
  const links: string[] = [];
  let at = farEndOf(topology, portOf(from))!;
  while (isSwitch(topology, at.node)) {
    if (nodes.includes(at.node)) throw new Error(`circle at ${at.node}`);
    nodes.push(at.node);
    const port = routes.portTowards(at.node, portOf(to))!;
    links.push(`${at.node}.${port}`);
    at = farEndOf(topology, { node: at.node, port })!;
  }
  expect(at).toEqual(portOf(to));
  return { nodes, links };
}

/** Number of switches on a shortest path, by breadth-first search over cables. */
function shortest(topology: Topology, from: number, to: number): number {
  let layer = [from];
  for (let links = 0; ; links++) {
    if (layer.includes(to)) return links - 1;
    layer = layer.flatMap((node) => portsOf(topology, node).map((port) => farEndOf(topology, port)!.node));
  }
}

const pairs = (topology: Topology): [number, number][] =>
  hostsOf(topology).flatMap((from) =>
    hostsOf(topology).flatMap((to): [number, number][] => (from === to ? [] : [[from, to]])),
  );

/** Whether links that packets hold while they wait for the next form a circle: removes links that wait for none, as long as it can. */
function hasCircle(paths: readonly (readonly string[])[]): boolean {
  const next = new Map<string, Set<string>>();
  for (const links of paths)
    for (const [at, link] of links.entries()) {
      const waitsFor = next.get(link) ?? new Set();
      next.set(link, waitsFor);
      if (at + 1 < links.length) waitsFor.add(links[at + 1]!);
    }
  for (;;) {
    const free = [...next].filter(([, waitsFor]) => [...waitsFor].every((link) => !next.has(link)));
    if (free.length === 0) return next.size > 0;
    for (const [link] of free) next.delete(link);
  }
}

describe('routes by fewest links', () => {
  it.each(fabrics)('lead from every host of %s to every other on a shortest path', (name) => {
    const topology = parsedTopology(name);
    for (const [from, to] of pairs(topology))
      expect(walked(topology, 'min-hop', from, to).nodes).toHaveLength(shortest(topology, from, to));
  });

  it('use all spines alike', () => {
    const topology = parsedTopology('leaf-spine:2x4:8');
    const routes = fabricRoutesOf(topology, 'min-hop');
    // Leaf 10 has hosts 0 and 1 at ports 1 and 2, spines at 3 and 4; six hosts are elsewhere.
    const ports = [2, 3, 4, 5, 6, 7].map((host) => routes.portTowards(10, portOf(host)));
    expect(ports.toSorted()).toEqual([3, 3, 3, 4, 4, 4]);
    expect(routes.portsTowards(10, portOf(7))).toEqual([3, 4]);
    expect(routes.portsTowards(10, portOf(1))).toEqual([2]);
  });

  it('can end in a circle of links that wait for each other, in a ring', () => {
    const topology = parsedTopology('ring:6');
    expect(hasCircle(pairs(topology).map(([from, to]) => walked(topology, 'min-hop', from, to).links))).toBe(
      true,
    );
  });
});

describe('routes up, then down', () => {
  it.each(fabrics)('lead from every host of %s to every other, without a circle of waiting links', (name) => {
    const topology = parsedTopology(name);
    const paths = pairs(topology).map(([from, to]) => walked(topology, 'up-down', from, to).links);
    expect(hasCircle(paths)).toBe(false);
  });

  it.each(['star:6', 'leaf-spine:3x4:8', 'fat-tree:4'])('are as short as any in %s', (name) => {
    const topology = parsedTopology(name);
    for (const [from, to] of pairs(topology))
      expect(walked(topology, 'up-down', from, to).nodes).toHaveLength(shortest(topology, from, to));
  });
});

describe('fabrics from files', () => {
  const joined = (hosts: number, switches: number, cables: readonly (readonly number[])[]): Topology =>
    checkedTopology({
      nodes: [...Array(hosts).fill({ kind: 'host' }), ...Array(switches).fill({ kind: 'switch' })],
      links: cables.map(([left, leftPort, right, rightPort]) => ({
        ends: [
          { node: left, port: leftPort },
          { node: right, port: rightPort },
        ],
      })),
    });
  const inRow = joined(3, 3, [
    ...[
      [0, 1, 3, 1],
      [1, 1, 4, 1],
      [2, 1, 5, 1],
    ],
    ...[
      [3, 2, 5, 2],
      [5, 3, 4, 2],
    ],
  ]);
  const crossed = joined(2, 2, [
    ...[
      [0, 1, 2, 1],
      [1, 1, 3, 1],
    ],
    ...[
      [2, 5, 3, 6],
      [2, 6, 3, 5],
    ],
  ]);

  it.each(routings)(
    'have routes between all hosts by %s, whatever the numbers of switches in a row',
    (routing) => {
      for (const topology of [inRow, crossed])
        expect(
          hasCircle(pairs(topology).map(([from, to]) => walked(topology, routing, from, to).links)),
        ).toBe(false);
    },
  );

  it('have a tree whose ports are the two ends of one cable, also where parallel cables cross', () => {
    const routes = fabricRoutesOf(crossed, 'min-hop');
    const between = routes.groupPorts(2).filter((port) => port > 1);
    expect(between).toHaveLength(1);
    const far = farEndOf(crossed, { node: 2, port: between[0]! })!;
    expect(routes.groupPorts(3)).toEqual([1, far.port]);
  });
});

describe('routes of a fat tree', () => {
  it('take every link of the tree at most once for a permutation by a shift', () => {
    const topology = parsedTopology('fat-tree:4');
    for (const shift of [4, 8, 12]) {
      const links = hostsOf(topology).flatMap(
        (from) => walked(topology, 'fat-tree', from, (from + shift) % 16).links,
      );
      expect(new Set(links).size).toBe(links.length);
    }
  });

  it('are as short as any', () => {
    const topology = parsedTopology('fat-tree:4');
    for (const to of [1, 2, 3, 4, 15])
      expect(walked(topology, 'fat-tree', 0, to).nodes).toHaveLength(shortest(topology, 0, to));
  });
});

describe('ports of a group', () => {
  it.each(fabrics)('reach every host of %s once', (name) => {
    const topology = parsedTopology(name);
    for (const routing of routings) {
      const routes = fabricRoutesOf(topology, routing);
      const reached: number[] = [];
      const flood = (at: NodePort): void => {
        if (!isSwitch(topology, at.node)) {
          reached.push(at.node);
          return;
        }
        for (const port of routes.groupPorts(at.node))
          if (port !== at.port) flood(farEndOf(topology, { node: at.node, port })!);
      };
      flood(farEndOf(topology, portOf(0))!);
      expect(reached.toSorted((left, right) => left - right)).toEqual(hostsOf(topology).slice(1));
      expect(switchesOf(topology).flatMap((node) => routes.groupPorts(node)).length).toBeGreaterThan(0);
    }
  });
});

describe('one path between any two hosts', () => {
  it.each([
    ['star:6', true],
    ['dumbbell:6', true],
    ['leaf-spine:3x1:6', true],
    ['ring:6', false],
    ['mesh:5', false],
    ['leaf-spine:3x4:8', false],
    ['fat-tree:4', false],
  ])('%s: %s', (fabric, isTree) => {
    expect(fabricRoutesOf(parsedTopology(fabric), 'min-hop').isTree).toBe(isTree);
  });

  it('is there with a switch that has no hosts, unless two cables lead to it', () => {
    const { nodes, links } = parsedTopology('star:2');
    const cables = [3, 4].map((port, at): Topology['links'][number] => ({
      ends: [
        { node: 2, port },
        { node: 3, port: at + 1 },
      ],
    }));
    const treeWith = (count: number): boolean => {
      const topology: Topology = {
        nodes: [...nodes, { kind: 'switch' }],
        links: [...links, ...cables.slice(0, count)],
      };
      return fabricRoutesOf(topology, 'min-hop').isTree;
    };
    expect([treeWith(1), treeWith(2)]).toEqual([true, false]);
  });
});
