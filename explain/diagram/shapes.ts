/** Points of a drawn arrow: its line, its head, and the place of its number. */
import type { DiagramArrow, LinkLane } from './layout.ts';

type Point = readonly [x: number, y: number];

const [headLength, headHalf] = [6, 3.2] as const;

const pointsText = (points: readonly Point[]): string =>
  points.map(([x, y]) => `${round(x)},${round(y)}`).join(' ');
const round = (value: number): number => Math.round(value * 10) / 10;

/** Points of a `polyline`: the whole arrow, to the tip of the head. */
export const lineText = ({ points }: Pick<DiagramArrow, 'points'>): string => pointsText(points);

/** Points of a `polygon`: the head at the end of the last piece. */
export function headText({ points }: Pick<DiagramArrow, 'points'>): string {
  const [[fromX, fromY], [x, y]] = points.slice(-2) as [Point, Point];
  const length = Math.hypot(x - fromX, y - fromY);
  const [alongX, alongY] = [(x - fromX) / length, (y - fromY) / length];
  const [baseX, baseY] = [x - alongX * headLength, y - alongY * headLength];
  return pointsText([
    [x, y],
    [baseX - alongY * headHalf, baseY + alongX * headHalf],
    [baseX + alongY * headHalf, baseY - alongX * headHalf],
  ]);
}

/** Length of an arrow that a number covers. */
const numberPx = 18;

/** The middle of the longest piece, or a point next to it if the piece is too short. */
export function numberPlace({ points }: Pick<DiagramArrow, 'points'>): Point {
  const pieces = points.slice(1).map((to, at) => [points[at]!, to] as const);
  const lengthOf = ([[fromX, fromY], [x, y]]: readonly [Point, Point]): number =>
    Math.abs(x - fromX) + Math.abs(y - fromY);
  const longest = pieces.reduce((best, piece) => (lengthOf(piece) > lengthOf(best) ? piece : best));
  const [[fromX, fromY], [x, y]] = longest;
  const asideX = lengthOf(longest) < numberPx && fromX === x ? 11 : 0;
  return [(fromX + x) / 2 + asideX, (fromY + y) / 2];
}

/** A link's direction as an arrow, with its number a third of the way from its sender, because two arrows may cross. */
export const laneArrow = ({ from, to, step }: LinkLane): DiagramArrow => ({ points: [from, to], step });
export const laneNumberPlace = ({ from, to }: LinkLane): Point => [
  from[0] + (to[0] - from[0]) / 3,
  from[1] + (to[1] - from[1]) / 3,
];

/** Returns as much of the text as fits into a cell, at the drawing's 12 pixels. */
export function cutToCell(text: string, widthPx: number): string {
  const most = Math.floor((widthPx - 8) / letterPx);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
const letterPx = 6.8;
