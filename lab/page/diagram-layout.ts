/**
 * Where everything of the block diagram stands: both hosts, both devices, the links between them; across, or on a narrow screen down.
 *
 *     host 0 ═ PCIe ═ device 0 ══ cable ══ device 1 ═ PCIe ═ host 1
 */
import type { MachinePicture, PictureTrack } from '../protocol.ts';

export interface Cell {
  readonly process: string;
  /** Of its track, or of a part that several tracks tell of. */
  readonly name: string;
  readonly x: number;
  readonly y: number;
}

interface Zone {
  readonly process: string;
  readonly title: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A direction of a link, from its sender to the process that takes what crosses. */
export interface LinkLane {
  readonly process: string;
  readonly group: string;
  readonly from: readonly [x: number, y: number];
  readonly to: readonly [x: number, y: number];
}

export interface DiagramLayout {
  readonly width: number;
  readonly height: number;
  readonly cellWidth: (process: string) => number;
  readonly zones: readonly Zone[];
  readonly cells: readonly Cell[];
  readonly lanes: readonly LinkLane[];
  readonly linkTitles: readonly { readonly text: string; readonly x: number; readonly y: number }[];
}

const order = ['host0', 'hca0', 'hca1', 'host1'] as const;
const titles = ['Host 0', 'Device 0', 'Device 1', 'Host 1'] as const;
const links = ['PCIe', 'cable', 'PCIe'] as const;
export const cellHeight = 22;
const pitch = cellHeight + 3;
const padding = 8;
const headHeight = 26;

/** From the PCIe side to the cable's: what comes in, what is fetched, what is sent and received. */
const blockOrder = [
  ...['pcieIngress', 'doorbells', 'wqeFetch', 'requester', 'transmitter', 'receiver', 'responseEngine'],
  ...['receiveWqeFetch', 'completionWriter', 'eventWriter', 'dmaRead', 'dmaReadReturn', 'dmaWrite'],
  ...['pcieCompleter', 'commandProcessor', 'keyUnit', 'flusher', 'asyncEvents'],
];

function namesOf(process: string, tracks: readonly PictureTrack[]): string[] {
  const own = tracks.filter((track) => track.process === process);
  const ofGroup = (group: string): string[] =>
    own.filter((track) => track.group === group).map(({ name }) => name);
  if (process.startsWith('host')) return [...ofGroup('cores'), 'interrupts', 'root complex', 'memory'];
  const placeOf = (name: string): number => (blockOrder.indexOf(name) + 100) % 100;
  const blocks = ofGroup('blocks').toSorted((left, right) => placeOf(left) - placeOf(right));
  return [...blocks, ...ofGroup('caches').map((name) => `${name} cache`)];
}

/** Below this many pixels the diagram goes down the page. */
const acrossPx = 900;

export const hasWidthAcross = (): boolean => document.documentElement.clientWidth >= acrossPx;

/**
 * Cores that do nothing in the picture are left out.
 * @param isAcross side by side; else one below the other
 */
export function layoutOf({ tracks: all, records }: MachinePicture, isAcross: boolean): DiagramLayout {
  const tracks = all.filter(
    ({ group }, track) => group !== 'cores' || records.some((record) => record.track === track),
  );
  return isAcross ? across(tracks) : down(tracks);
}

function across(tracks: readonly PictureTrack[]): DiagramLayout {
  const widths = [150, 300, 300, 150];
  const gaps = [115, 130, 115];
  const columns = [1, 2, 2, 1];
  const names = order.map((process) => namesOf(process, tracks));
  const height = Math.max(...names.map((each, at) => heightOf(each.length, columns[at]!)));
  const zones: Zone[] = [];
  const lanes: LinkLane[] = [];
  const linkTitles: DiagramLayout['linkTitles'][number][] = [];
  let x = 1;
  order.forEach((process, at) => {
    zones.push({ process, title: titles[at]!, x, y: 1, width: widths[at]!, height });
    x += widths[at]!;
    if (at === gaps.length) return;
    const [left, right, y] = [x, x + gaps[at]!, height / 2];
    lanes.push(...lanesOf(at, [left, y - 22], [right, y - 22], [left, y + 22], [right, y + 22]));
    linkTitles.push({ text: links[at]!, x: left + gaps[at]! / 2, y: y - 44 });
    x = right;
  });
  const cells = zones.flatMap((zone, at) => cellsOf(zone, names[at]!, columns[at]!));
  const cellWidth = (process: string): number => {
    const at = order.indexOf(process as (typeof order)[number]);
    return cellWidthOf(widths[at]!, columns[at]!);
  };
  return { width: x + 1, height: height + 2, cellWidth, zones, cells, lanes, linkTitles };
}

function down(tracks: readonly PictureTrack[]): DiagramLayout {
  const [width, gap] = [420, 74];
  const columns = [3, 3, 3, 3];
  const names = order.map((process) => namesOf(process, tracks));
  const zones: Zone[] = [];
  const lanes: LinkLane[] = [];
  const linkTitles: DiagramLayout['linkTitles'][number][] = [];
  let y = 1;
  order.forEach((process, at) => {
    const height = heightOf(names[at]!.length, columns[at]!);
    zones.push({ process, title: titles[at]!, x: 1, y, width, height });
    y += height;
    if (at === links.length) return;
    const [top, bottom, x] = [y, y + gap, width / 2];
    lanes.push(...lanesOf(at, [x - 22, top], [x - 22, bottom], [x + 22, top], [x + 22, bottom]));
    linkTitles.push({ text: links[at]!, x: x + 80, y: top + gap / 2 });
    y = bottom;
  });
  const cells = zones.flatMap((zone, at) => cellsOf(zone, names[at]!, columns[at]!));
  return {
    width: width + 2,
    height: y + 1,
    cellWidth: () => cellWidthOf(width, 3),
    zones,
    cells,
    lanes,
    linkTitles,
  };
}

type Point = readonly [number, number];

/** What goes away from host 0, and what comes back, over the link that follows a zone. */
function lanesOf(at: number, awayFrom: Point, awayTo: Point, backTo: Point, backFrom: Point): LinkLane[] {
  const [near, far] = [order[at]!, order[at + 1]!];
  const group = links[at] === 'PCIe' ? 'pcie' : 'cable';
  return [
    { process: far, group, from: awayFrom, to: awayTo },
    { process: near, group, from: backFrom, to: backTo },
  ];
}

const heightOf = (count: number, columns: number): number =>
  headHeight + Math.ceil(count / columns) * pitch + padding;
const cellWidthOf = (width: number, columns: number): number =>
  (width - 2 * padding - (columns - 1) * 4) / columns;

function cellsOf({ process, x, y, width }: Zone, names: readonly string[], columns: number): Cell[] {
  const rows = Math.ceil(names.length / columns);
  return names.map((name, at) => ({
    process,
    name,
    x: x + padding + Math.floor(at / rows) * (cellWidthOf(width, columns) + 4),
    y: y + headHeight + (at % rows) * pitch,
  }));
}
