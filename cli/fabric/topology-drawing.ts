/**
 * A topology as a drawing (SVG): hosts in the lowest row, each switch in a row by its distance from the nearest host, a line for each cable
 * with the numbers of the ports at its ends.
 */
import { type Html, html } from '../../explain/page/index.ts';
import {
  farEndOf,
  hostsOf,
  type NodePort,
  portsOf,
  switchesOf,
  type Topology,
} from '../../machine/topology/index.ts';

const columnPixels = 64;
const rowPixels = 110;
const boxWidth = 52;
const boxHeight = 26;
const marginPixels = 40;

interface Place {
  readonly x: number;
  readonly y: number;
}

export function topologyDrawing(topology: Topology): Html {
  const rows = rowsOf(topology);
  const widest = Math.max(...rows.map((row) => row.length));
  const width = Math.max(widest * columnPixels, 3 * columnPixels) + 2 * marginPixels;
  const height = (rows.length - 1) * rowPixels + 2 * marginPixels;
  const places = new Map<number, Place>();
  rows.forEach((row, level) => {
    const gap = (width - 2 * marginPixels) / row.length;
    row.forEach((node, at) => {
      places.set(node, { x: marginPixels + gap * (at + 0.5), y: height - marginPixels - level * rowPixels });
    });
  });
  const cables = topology.links.map(({ ends: [left, right] }) =>
    cable(places.get(left.node)!, places.get(right.node)!, left, right),
  );
  const boxes = [...places].map(([node, place]) => box(node, place, topology.nodes[node]!.kind));
  return html`<svg class="topology" role="img" aria-label="hosts, switches and cables" viewBox="0 0 ${width} ${height}" style="max-width:${width}px">${cables}${boxes}</svg>`;
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

/** A cable between nodes of one row is an arc above them. */
function cable(from: Place, to: Place, left: NodePort, right: NodePort): Html {
  const isLevel = from.y === to.y;
  const bend = isLevel ? Math.min(80, 14 + Math.abs(to.x - from.x) / 5) : 0;
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 2 * bend };
  const title = `node ${left.node}, port ${left.port} to node ${right.node}, port ${right.port}`;
  return html`<path d="M${from.x} ${from.y} Q${middle.x} ${middle.y} ${to.x} ${to.y}" fill="none" stroke="currentColor" stroke-opacity="0.45"><title>${title}</title></path>`;
}

function box(node: number, { x, y }: Place, kind: string): Html {
  const round = kind === 'switch' ? 2 : 12;
  const opacity = kind === 'switch' ? 0.22 : 0.08;
  return html`<g><title>${kind} ${node}</title><rect x="${x - boxWidth / 2}" y="${y - boxHeight / 2}" width="${boxWidth}" height="${boxHeight}" rx="${round}" fill="Canvas" stroke="currentColor"/><rect x="${x - boxWidth / 2}" y="${y - boxHeight / 2}" width="${boxWidth}" height="${boxHeight}" rx="${round}" fill="currentColor" fill-opacity="${opacity}"/><text x="${x}" y="${y + 4}" text-anchor="middle" font-size="12" fill="currentColor">${kind === 'switch' ? 'S' : 'H'}${node}</text></g>`;
}
