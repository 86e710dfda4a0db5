/**
 * Places of a topology in a drawing: hosts in the lowest row, each switch in a row by its distance from the nearest host, and a curve for
 * each cable.
 */
import {
  farEndOf,
  hostsOf,
  type NodePort,
  portsOf,
  switchesOf,
  type Topology,
} from '../../machine/topology/index.ts';

/** A node: the middle of its box, in pixels. */
export interface TopologyBox {
  readonly node: number;
  readonly kind: 'host' | 'switch';
  readonly x: number;
  readonly y: number;
}

/** A cable from the middle of one box to that of the other, by a quadratic curve: between nodes of one row an arc above them. */
export interface TopologyCurve {
  readonly ends: readonly [NodePort, NodePort];
  readonly from: readonly [x: number, y: number];
  readonly bend: readonly [x: number, y: number];
  readonly to: readonly [x: number, y: number];
}

export interface TopologyLayout {
  readonly widthPixels: number;
  readonly heightPixels: number;
  readonly boxes: readonly TopologyBox[];
  readonly cables: readonly TopologyCurve[];
}

export const topologyBoxWidth = 52;
export const topologyBoxHeight = 26;
const columnPixels = 64;
const rowPixels = 110;
const marginPixels = 40;
const columnsMin = 3;

export function topologyLayoutOf(topology: Topology): TopologyLayout {
  const rows = rowsOf(topology);
  const widest = Math.max(...rows.map((row) => row.length));
  const widthPixels = Math.max(widest, columnsMin) * columnPixels + 2 * marginPixels;
  const heightPixels = (rows.length - 1) * rowPixels + 2 * marginPixels;
  const boxes = rows.flatMap((row, level) =>
    row.map((node, at) => ({
      node,
      kind: topology.nodes[node]!.kind,
      x: marginPixels + ((widthPixels - 2 * marginPixels) / row.length) * (at + 0.5),
      y: heightPixels - marginPixels - level * rowPixels,
    })),
  );
  const places = new Map(boxes.map((box) => [box.node, box]));
  const cables = topology.links.map(({ ends }) =>
    curveOf(ends, places.get(ends[0].node)!, places.get(ends[1].node)!),
  );
  return { widthPixels, heightPixels, boxes, cables };
}

/** Nodes by row: hosts, then switches by their distance from the nearest host, then those that no host reaches. */
function rowsOf(topology: Topology): number[][] {
  const rows = [hostsOf(topology)];
  const placed = new Set(rows[0]);
  for (;;) {
    const above = new Set(
      rows.at(-1)!.flatMap((node) => portsOf(topology, node).map((port) => farEndOf(topology, port)!.node)),
    );
    const next = [...above].filter((node) => !placed.has(node)).toSorted((left, right) => left - right);
    if (next.length === 0) break;
    for (const node of next) placed.add(node);
    rows.push(next);
  }
  const unreached = switchesOf(topology).filter((node) => !placed.has(node));
  return unreached.length === 0 ? rows : [...rows, unreached];
}

function curveOf(ends: TopologyCurve['ends'], from: TopologyBox, to: TopologyBox): TopologyCurve {
  const isLevel = from.y === to.y;
  const rise = isLevel ? Math.min(80, 14 + Math.abs(to.x - from.x) / 5) : 0;
  const bend = [(from.x + to.x) / 2, (from.y + to.y) / 2 - 2 * rise] as const;
  return { ends, from: [from.x, from.y], bend, to: [to.x, to.y] };
}
