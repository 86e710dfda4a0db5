/** A topology as a drawing (SVG): a box for each host and switch, a line for each cable with the numbers of the ports at its ends. */
import {
  type TopologyBox,
  type TopologyCurve,
  topologyBoxHeight,
  topologyBoxWidth,
  topologyLayoutOf,
} from '../../explain/diagram/index.ts';
import { type Html, html } from '../../explain/page/index.ts';
import type { Topology } from '../../machine/topology/index.ts';

export function topologyDrawing(topology: Topology): Html {
  const { widthPixels: width, heightPixels: height, boxes, cables } = topologyLayoutOf(topology);
  return html`<svg class="topology" role="img" aria-label="hosts, switches and cables" viewBox="0 0 ${width} ${height}" style="max-width:${width}px">${cables.map(cable)}${boxes.map((each) => box(each, topology))}</svg>`;
}

function cable({ ends: [left, right], from, bend, to }: TopologyCurve): Html {
  const title = `node ${left.node}, port ${left.port} to node ${right.node}, port ${right.port}`;
  return html`<path d="M${from.join(' ')} Q${bend.join(' ')} ${to.join(' ')}" fill="none" stroke="currentColor" stroke-opacity="0.45"><title>${title}</title></path>`;
}

function box({ node, kind, x, y }: TopologyBox, { nodes }: Topology): Html {
  const { forwarding } = nodes[node]!;
  const title = `${kind} ${node}${forwarding === undefined ? '' : `, ${forwarding}`}`;
  const [width, height] = [topologyBoxWidth, topologyBoxHeight];
  const round = kind === 'switch' ? 2 : 12;
  const opacity = kind === 'switch' ? 0.22 : 0.08;
  return html`<g><title>${title}</title><rect x="${x - width / 2}" y="${y - height / 2}" width="${width}" height="${height}" rx="${round}" fill="Canvas" stroke="currentColor"/><rect x="${x - width / 2}" y="${y - height / 2}" width="${width}" height="${height}" rx="${round}" fill="currentColor" fill-opacity="${opacity}"/><text x="${x}" y="${y + 4}" text-anchor="middle" font-size="12" fill="currentColor">${kind === 'switch' ? 'S' : 'H'}${node}</text></g>`;
}
