/** The block diagram of hosts, devices and links: see README.md. */
export { blockOrder } from './data-path.ts';
export {
  type Cell,
  cellHeight,
  cellWidth,
  type DiagramLayout,
  type DiagramParts,
  type LinkLane,
  layoutOf,
} from './layout.ts';
export { cutToCell, headText, laneArrow, laneNumberPlace, lineText, numberPlace } from './shapes.ts';
export { diagramFile, diagramStyle, diagramSvg, type Work } from './svg.ts';
export {
  type TopologyBox,
  type TopologyCurve,
  type TopologyLayout,
  topologyBoxHeight,
  topologyBoxWidth,
  topologyLayoutOf,
} from './topology-layout.ts';
