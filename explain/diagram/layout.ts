/**
 * Positions of all elements of the block diagram: both hosts, both devices, the links between them; across, or on a narrow screen down.
 *
 *     host 0 ═ PCIe ═ device 0 ══ cable ══ device 1 ═ PCIe ═ host 1
 *
 * A device has its data path at the top (data-path.ts), and its control blocks and caches below.
 */
import {
  type DataPathArrow,
  dataPathArrows,
  dataPathPlaces,
  dataPathRows,
  hostSteps,
  linkSteps,
  tcpArrows,
  tcpPlaces,
} from './data-path.ts';

type Point = readonly [x: number, y: number];

/** The blocks to draw of a host or a device. */
export interface DiagramParts {
  /** `host0`, `hca0`, `hca1`, `host1`. */
  readonly process: string;
  /** Cores of a host; blocks of a device. */
  readonly blocks: readonly string[];
  /** Caches of a device. */
  readonly caches: readonly string[];
}

export interface Cell {
  readonly process: string;
  /** Name of its track, or of a part that several tracks describe. */
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

/** A direction of a link, from its sender to the receiving process. */
export interface LinkLane {
  readonly process: string;
  readonly group: string;
  readonly from: Point;
  readonly to: Point;
  readonly step: number | undefined;
}

/** A line of several points, with an arrowhead at its end. */
export interface DiagramArrow {
  readonly points: readonly Point[];
  /** Part of a WRITE's path; such arrows are drawn bold. */
  readonly step: number | undefined;
}

export interface DiagramLayout {
  readonly width: number;
  readonly height: number;
  readonly zones: readonly Zone[];
  readonly cells: readonly Cell[];
  readonly arrows: readonly DiagramArrow[];
  readonly lanes: readonly LinkLane[];
  /** Names of links, and of groups of blocks. */
  readonly titles: readonly {
    readonly text: string;
    readonly x: number;
    readonly y: number;
    readonly anchor: 'start' | 'middle';
  }[];
}

export const cellWidth = 130;
export const cellHeight = 22;
const [columnGap, rowPitch, bandPitch] = [24, 34, 26] as const;
const [padding, headHeight, bandHead] = [8, 28, 22] as const;
const columns = 3;
const pathPlaces = { ...dataPathPlaces, ...tcpPlaces };
const deviceWidth = columns * cellWidth + (columns - 1) * columnGap + 2 * padding;
const hostWidth = cellWidth + 2 * padding;
const [pcieGap, cableGap, downGap] = [84, 104, 74] as const;

const order = ['host0', 'hca0', 'hca1', 'host1'] as const;
const titles: Readonly<Record<string, string>> = {
  host0: 'Host 0',
  hca0: 'Device 0',
  hca1: 'Device 1',
  host1: 'Host 1',
};

/** @param isAcross side by side; else one below the other */
export function layoutOf(parts: readonly DiagramParts[], isAcross: boolean): DiagramLayout {
  const known = order.map(
    (process) => parts.find((part) => part.process === process) ?? { process, blocks: [], caches: [] },
  );
  return isAcross ? across(known) : down(known);
}

/** A zone and its contents, with its corner at 0, 0. */
interface Drawn {
  readonly width: number;
  readonly height: number;
  readonly cells: readonly Cell[];
  readonly arrows: readonly DiagramArrow[];
  readonly titles: DiagramLayout['titles'];
}

function across(parts: readonly DiagramParts[]): DiagramLayout {
  const devices = [deviceOf(parts[1]!, false), deviceOf(parts[2]!, true)] as const;
  const hosts = [hostOf(parts[0]!), hostOf(parts[3]!)] as const;
  const drawn = [hosts[0], devices[0], devices[1], hosts[1]];
  const height = Math.max(...drawn.map((each) => each.height));
  const gaps = [pcieGap, cableGap, pcieGap];
  const begins = drawn.map(
    (_each, at) => 1 + drawn.slice(0, at).reduce((sum, { width }, before) => sum + width + gaps[before]!, 0),
  );
  const rowY = (row: number): number => 1 + headHeight + row * rowPitch + cellHeight / 2;
  const edge = (at: number, side: 'left' | 'right'): number =>
    begins[at]! + (side === 'left' ? 0 : drawn[at]!.width);
  const rootY = (node: number): number => 1 + rootComplexY(hosts[node]!) + cellHeight / 2;
  const lanes: LinkLane[] = [
    lane('hca0', 'pcie', [edge(0, 'right'), rootY(0) - 6], [edge(1, 'left'), rowY(0)], linkSteps.toDevice[0]),
    lane('host0', 'pcie', [edge(1, 'left'), rowY(4)], [edge(0, 'right'), rootY(0) + 6], linkSteps.toHost[0]),
    lane('hca1', 'cable', [edge(1, 'right'), rowY(2)], [edge(2, 'left'), rowY(4)], linkSteps.away),
    lane('hca0', 'cable', [edge(2, 'left'), rowY(2)], [edge(1, 'right'), rowY(4)], linkSteps.back),
    lane('host1', 'pcie', [edge(2, 'right'), rowY(4)], [edge(3, 'left'), rootY(1) + 6], linkSteps.toHost[1]),
    lane('hca1', 'pcie', [edge(3, 'left'), rootY(1) - 6], [edge(2, 'right'), rowY(0)], linkSteps.toDevice[1]),
  ];
  const linkTitles = ['PCIe', 'cable', 'PCIe'].map((text, at) => ({
    text,
    x: (edge(at, 'right') + edge(at + 1, 'left')) / 2,
    y: 16,
    anchor: 'middle' as const,
  }));
  return composed(
    parts,
    drawn,
    (at) => [begins[at]!, 1],
    () => height,
    lanes,
    linkTitles,
  );
}

function down(parts: readonly DiagramParts[]): DiagramLayout {
  const drawn = [
    hostInRowsOf(parts[0]!),
    deviceOf(parts[1]!, false),
    deviceOf(parts[2]!, false),
    hostInRowsOf(parts[3]!),
  ];
  const begins = drawn.map(
    (_each, at) => 1 + drawn.slice(0, at).reduce((sum, { height }) => sum + height + downGap, 0),
  );
  const bottom = (at: number): number => begins[at]! + drawn[at]!.height;
  const [pcieX, cableX] = [padding + cellWidth / 2, deviceWidth - padding - cellWidth / 2];
  const down_ = (process: string, at: number, x: number, step: number | undefined): LinkLane =>
    lane(process, at === 1 ? 'cable' : 'pcie', [x, bottom(at)], [x, begins[at + 1]!], step);
  const up = (process: string, at: number, x: number, step: number | undefined): LinkLane =>
    lane(process, at === 1 ? 'cable' : 'pcie', [x, begins[at + 1]!], [x, bottom(at)], step);
  const lanes: LinkLane[] = [
    down_('hca0', 0, pcieX - 22, linkSteps.toDevice[0]),
    up('host0', 0, pcieX + 22, linkSteps.toHost[0]),
    down_('hca1', 1, cableX - 22, linkSteps.away),
    up('hca0', 1, cableX + 22, linkSteps.back),
    down_('host1', 2, pcieX - 22, linkSteps.toHost[1]),
    up('hca1', 2, pcieX + 22, linkSteps.toDevice[1]),
  ];
  const linkTitles = ['PCIe', 'cable', 'PCIe'].map((text, at) => ({
    text,
    x: at === 1 ? cableX - 60 : pcieX + 64,
    y: bottom(at) + downGap / 2 + 4,
    anchor: 'middle' as const,
  }));
  return composed(
    parts,
    drawn,
    (at) => [1, begins[at]!],
    (at) => drawn[at]!.height,
    lanes,
    linkTitles,
  );
}

const lane = (
  process: string,
  group: string,
  from: Point,
  to: Point,
  step: number | undefined,
): LinkLane => ({ process, group, from, to, step });

/** Placed zones with their contents. */
function composed(
  parts: readonly DiagramParts[],
  drawn: readonly Drawn[],
  cornerOf: (at: number) => Point,
  heightOf: (at: number) => number,
  lanes: readonly LinkLane[],
  linkTitles: DiagramLayout['titles'],
): DiagramLayout {
  const zones = drawn.map((each, at): Zone => {
    const [x, y] = cornerOf(at);
    const { process } = parts[at]!;
    return { process, title: titles[process]!, x, y, width: each.width, height: heightOf(at) };
  });
  const moved = (at: number, [x, y]: Point): Point => [x + zones[at]!.x, y + zones[at]!.y];
  return {
    width: Math.max(...zones.map(({ x, width }) => x + width)) + 1,
    height: Math.max(...zones.map(({ y, height }) => y + height)) + 1,
    zones,
    cells: drawn.flatMap(({ cells }, at) =>
      cells.map((cell) => {
        const [x, y] = moved(at, [cell.x, cell.y]);
        return { ...cell, x, y };
      }),
    ),
    arrows: drawn.flatMap(({ arrows }, at) =>
      arrows.map((arrow) => ({ ...arrow, points: arrow.points.map((point) => moved(at, point)) })),
    ),
    lanes,
    titles: [
      ...linkTitles,
      ...drawn.flatMap((each, at) =>
        each.titles.map((title) => {
          const [x, y] = moved(at, [title.x, title.y]);
          return { ...title, x, y };
        }),
      ),
    ],
  };
}

/** @param isMirrored whether its cable is on the left */
function deviceOf({ process, blocks, caches }: DiagramParts, isMirrored: boolean): Drawn {
  const columnX = (column: number): number =>
    padding + (isMirrored ? columns - 1 - column : column) * (cellWidth + columnGap);
  const path = blocks.filter((name) => pathPlaces[name] !== undefined);
  const pathCells = path.map((name): Cell => {
    const [column, row] = pathPlaces[name]!;
    return { process, name, x: columnX(column), y: headHeight + row * rowPitch };
  });
  const arrows = [...dataPathArrows, ...tcpArrows]
    .filter(({ from, to }) => path.includes(from) && path.includes(to))
    .map((arrow) => arrowOf(arrow, pathCells, process));
  const bands: readonly (readonly [title: string, names: readonly string[]])[] = [
    ['Control', blocks.filter((name) => pathPlaces[name] === undefined)],
    ['Caches', caches.map((name) => `${name} cache`)],
  ];
  let y = headHeight + dataPathRows * rowPitch;
  const drawnBands = bands
    .filter(([, names]) => names.length > 0)
    .map(([title, names]) => {
      const band = bandOf(process, title, names, y);
      y += bandHead + Math.ceil(names.length / columns) * bandPitch;
      return band;
    });
  return {
    width: deviceWidth,
    height: y + padding,
    cells: [...pathCells, ...drawnBands.flatMap(({ cells }) => cells)],
    arrows,
    titles: drawnBands.map(({ title }) => title),
  };
}

function bandOf(process: string, text: string, names: readonly string[], y: number) {
  const cells = names.map((name, at): Cell => {
    const [column, row] = [at % columns, Math.floor(at / columns)];
    return {
      process,
      name,
      x: padding + column * (cellWidth + columnGap),
      y: y + bandHead + row * bandPitch,
    };
  });
  return { cells, title: { text, x: padding + 2, y: y + bandHead - 7, anchor: 'start' as const } };
}

const rootComplexY = ({ cells }: Drawn): number => cells.find(({ name }) => name === 'root complex')!.y;

/** Returns the host's cells from top to bottom: interrupts, cores, root complex, memory. */
function hostOf({ process, blocks }: DiagramParts): Drawn {
  const names = ['interrupts', ...blocks, 'root complex', 'memory'];
  const places = names.map(
    (_name, at) => at + (at > blocks.length ? 1 : 0) + (at > blocks.length + 1 ? 1 : 0),
  );
  const cells = names.map(
    (name, at): Cell => ({ process, name, x: padding, y: headHeight + places[at]! * rowPitch }),
  );
  const node = process === 'host0' ? 0 : 1;
  const x = padding + cellWidth / 2;
  const between = (from: Cell, to: Cell, step: number | undefined): DiagramArrow => ({
    points: [
      [x, from.y + cellHeight],
      [x, to.y],
    ],
    step,
  });
  const [root, memory] = [cells.at(-2)!, cells.at(-1)!];
  return {
    width: hostWidth,
    height: memory.y + cellHeight + padding,
    cells,
    arrows: [
      between(cells.at(-3)!, root, hostSteps.post[node]),
      between(root, memory, hostSteps.memory[node]),
      ...(blocks.length === 0 ? [] : [between(cells[0]!, cells[1]!, undefined)]),
    ],
    titles: [],
  };
}

/** Layout with hosts above and below devices: cores, root complex and memory in a row, interrupts below. */
function hostInRowsOf({ process, blocks }: DiagramParts): Drawn {
  const node = process === 'host0' ? 0 : 1;
  const cores = blocks.map((name, at) => ({ name, column: 0, row: at }));
  const all = [
    ...cores,
    { name: 'root complex', column: 1, row: 0 },
    { name: 'memory', column: 2, row: 0 },
    { name: 'interrupts', column: 1, row: 1 },
  ];
  const cells = all.map(
    ({ name, column, row }): Cell => ({
      process,
      name,
      x: padding + column * (cellWidth + columnGap),
      y: headHeight + row * rowPitch,
    }),
  );
  const y = headHeight + cellHeight / 2;
  const between = (column: number, step: number | undefined): DiagramArrow => {
    const x = padding + column * (cellWidth + columnGap) + cellWidth;
    return {
      points: [
        [x, y],
        [x + columnGap, y],
      ],
      step,
    };
  };
  return {
    width: deviceWidth,
    height: headHeight + Math.max(2, cores.length) * rowPitch,
    cells,
    arrows: [
      ...(cores.length === 0 ? [] : [between(0, hostSteps.post[node])]),
      between(1, hostSteps.memory[node]),
    ],
    titles: [],
  };
}

function arrowOf(
  { from, to, route, steps, aside = 0 }: DataPathArrow,
  cells: readonly Cell[],
  process: string,
): DiagramArrow {
  const [source, target] = [from, to].map((name) => cells.find((cell) => cell.name === name)!) as [
    Cell,
    Cell,
  ];
  const step = steps[process === 'hca0' ? 0 : 1];
  return { points: pointsOf(route, source, target, aside), step };
}

const middleX = ({ x }: Cell): number => x + cellWidth / 2;
const middleY = ({ y }: Cell): number => y + cellHeight / 2;
/** The edge of a cell that faces another. */
const facingX = (cell: Cell, other: Cell): number => (other.x < cell.x ? cell.x : cell.x + cellWidth);

function pointsOf(
  route: DataPathArrow['route'],
  source: Cell,
  target: Cell,
  aside: number,
): readonly Point[] {
  const isBelow = target.y > source.y;
  if (route === 'straight' && source.x === target.x)
    return [
      [middleX(source), isBelow ? source.y + cellHeight : source.y],
      [middleX(source), isBelow ? target.y : target.y + cellHeight],
    ];
  if (route === 'straight')
    return [
      [facingX(source, target), middleY(source)],
      [facingX(target, source), middleY(target)],
    ];
  if (route === 'elbow') {
    const [fromX, toX] = [facingX(source, target), facingX(target, source)];
    const x = (fromX + toX) / 2;
    return [
      [fromX, middleY(source) + Math.min(0, aside)],
      [x, middleY(source) + Math.min(0, aside)],
      [x, middleY(target) + Math.max(0, aside)],
      [toX, middleY(target) + Math.max(0, aside)],
    ];
  }
  if (route === 'under')
    return [
      [middleX(source), source.y + cellHeight],
      [middleX(source), middleY(target)],
      [facingX(target, source), middleY(target)],
    ];
  return [
    [facingX(source, target), middleY(source)],
    [middleX(target) + aside, middleY(source)],
    [middleX(target) + aside, target.y + cellHeight],
  ];
}
