/** Layout of the block diagram for any blocks, caches and cores: no two elements overlap. */
import { describe, expect, it } from 'vitest';
import { dataPathPlaces, tcpPlaces } from './data-path.ts';
import {
  type Cell,
  cellHeight,
  cellWidth,
  type DiagramLayout,
  type DiagramParts,
  layoutOf,
} from './layout.ts';

const caches = ['QPC', 'CQC', 'SRQC', 'EQC', 'MPT', 'MTT', 'WQE'];
const machine = (blocks: readonly string[], cores: number, caches: readonly string[]): DiagramParts[] =>
  [0, 1].flatMap((node) => [
    {
      process: `host${node}`,
      blocks: Array.from({ length: cores }, (_, core) => `core ${core}`),
      caches: [],
    },
    { process: `hca${node}`, blocks, caches },
  ]);

const all = Object.keys(dataPathPlaces);
const machines = [
  ['of every block', machine([...all, 'commandProcessor', 'keyUnit', 'flusher'], 1, caches)],
  ['of blocks that it does not know', machine([...all, ...'abcdefghij'], 2, caches)],
  [
    'without some blocks of the path',
    machine(
      all.filter((_name, at) => at % 2 === 0),
      4,
      [],
    ),
  ],
  ['of hosts whose cores do nothing', machine(all, 0, caches)],
  ['of cards with TCP', machine([...all, ...Object.keys(tcpPlaces), 'keyUnit'], 1, caches)],
] as const;

const overlaps = (one: Cell, other: Cell): boolean =>
  Math.abs(one.x - other.x) < cellWidth && Math.abs(one.y - other.y) < cellHeight;

/** Whether a point lies on the edge of a cell. */
const isOnEdge = ([x, y]: readonly [number, number], cell: Cell): boolean => {
  const [right, bottom] = [cell.x + cellWidth, cell.y + cellHeight];
  const isBeside = y >= cell.y && y <= bottom && (x === cell.x || x === right);
  return isBeside || (x >= cell.x && x <= right && (y === cell.y || y === bottom));
};

describe.each(machines)('the diagram %s', (_what, parts) => {
  it.each([
    ['across', true],
    ['down', false],
  ])('%s: cells lie in their zone and do not overlap', (_direction, isAcross) => {
    const { cells, zones, width, height }: DiagramLayout = layoutOf(parts, isAcross);
    expect(cells.filter((cell, at) => cells.slice(at + 1).some((other) => overlaps(cell, other)))).toEqual(
      [],
    );
    for (const { process, x, y } of cells) {
      const zone = zones.find((each) => each.process === process)!;
      expect(x).toBeGreaterThan(zone.x);
      expect(x + cellWidth).toBeLessThan(zone.x + zone.width);
      expect(y).toBeGreaterThan(zone.y);
      expect(y + cellHeight).toBeLessThan(zone.y + zone.height);
    }
    for (const zone of zones) {
      expect(zone.x + zone.width).toBeLessThan(width);
      expect(zone.y + zone.height).toBeLessThan(height);
    }
    const named = new Set(cells.map(({ process, name }) => `${process} ${name}`));
    for (const { process, blocks } of parts)
      for (const name of blocks) expect(named).toContain(`${process} ${name}`);
  });

  it.each([
    ['across', true],
    ['down', false],
  ])('%s: every arrow connects the edges of two cells', (_direction, isAcross) => {
    const { cells, arrows } = layoutOf(parts, isAcross);
    for (const { points } of arrows) {
      const [from, to] = [points[0]!, points.at(-1)!].map((point) =>
        cells.find((cell) => isOnEdge(point, cell)),
      );
      expect(from, JSON.stringify(points)).toBeDefined();
      expect(to, JSON.stringify(points)).toBeDefined();
      expect(to).not.toBe(from);
    }
  });

  it('has the links of both directions, each to the process that receives', () => {
    const { lanes } = layoutOf(parts, true);
    expect(lanes.map(({ process, group }) => `${group} to ${process}`).toSorted()).toEqual(
      [
        'cable to hca0',
        'cable to hca1',
        'pcie to hca0',
        'pcie to hca1',
        'pcie to host0',
        'pcie to host1',
      ].toSorted(),
    );
  });
});
