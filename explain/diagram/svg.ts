/** The block diagram as static SVG: in reports, with the work of each block; and in docs. */
import { wordsOf } from '../../explain/text/words.ts';
import { type Cell, cellHeight, cellWidth, type DiagramArrow, type DiagramLayout } from './layout.ts';
import { cutToCell, headText, laneArrow, laneNumberPlace, lineText, numberPlace } from './shapes.ts';

/** Work of a block, as fractions of the busiest block's. */
export interface Work {
  readonly busy: number;
  readonly stalled: number;
  readonly text: string;
}

interface Drawing {
  readonly layout: DiagramLayout;
  /** Description for screen readers. */
  readonly label: string;
  /** Class of the `svg`. */
  readonly name: string;
  readonly workOf?: (cell: Cell) => Work | undefined;
}

/**
 * Returns the drawing without a style sheet, which belongs to the page or to {@link diagramFile}.
 */
export function diagramSvg({ layout, label, name, workOf = () => undefined }: Drawing): string {
  const { width, height, zones, cells, arrows, lanes, titles } = layout;
  const parts = [
    ...zones.map(
      ({ title, x, y, width: wide, height: high }) =>
        `<rect class="zone" x="${x}" y="${y}" width="${wide}" height="${high}" rx="8"/><text class="name" x="${x + 10}" y="${y + 18}">${title}</text>`,
    ),
    ...titles.map(
      ({ text, x, y, anchor }) =>
        `<text class="dim" x="${x}" y="${y}"${anchor === 'middle' ? ' text-anchor="middle"' : ''}>${text}</text>`,
    ),
    ...lanes.flatMap((each) => arrowOf(laneArrow(each), 'link', laneNumberPlace(each))),
    ...arrows.flatMap((each) => arrowOf(each, each.step === undefined ? 'other' : 'path', numberPlace(each))),
    ...cells.map((cell) => cellOf(cell, workOf(cell))),
  ];
  return `<svg class="${name}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">${parts.join('\n')}</svg>`;
}

function arrowOf(arrow: DiagramArrow, name: string, [x, y]: readonly [number, number]): string[] {
  const number =
    arrow.step === undefined
      ? ''
      : `<text class="step" x="${x}" y="${y + 3.5}" text-anchor="middle">${arrow.step}</text>`;
  return [
    `<polyline class="${name}" points="${lineText(arrow)}"/><polygon class="${name}" points="${headText(arrow)}"/>${number}`,
  ];
}

function cellOf(cell: Cell, work: Work | undefined): string {
  const { name, x, y } = cell;
  const words = wordsOf(name);
  const wide = (part: number): number => Math.round(part * cellWidth * 10) / 10;
  const bars =
    work === undefined
      ? ''
      : `<title>${words}: ${work.text}</title><rect class="busy" x="${x}" y="${y + cellHeight - 4}" width="${wide(work.busy)}" height="4"/><rect class="stalled" x="${x + wide(work.busy)}" y="${y + cellHeight - 4}" width="${wide(work.stalled)}" height="4"/>`;
  return `<g><rect class="cell" x="${x}" y="${y}" width="${cellWidth}" height="${cellHeight}" rx="4"/>${bars}<text x="${x + 6}" y="${y + 14.5}">${cutToCell(words, cellWidth)}</text></g>`;
}

/** Style of a drawing: its colours are variables of the page. */
export const diagramStyle = `svg.data-path { display: block; width: 100%; font: 12px system-ui, sans-serif; } svg.data-path text { fill: var(--ink); } svg.data-path .dim { fill: var(--dim); } svg.data-path .name { font-weight: 600; }
svg.data-path .zone { fill: none; stroke: var(--line); } svg.data-path .cell { fill: var(--card); stroke: var(--line); } svg.data-path rect.busy { fill: var(--busy); } svg.data-path rect.stalled { fill: var(--stalled); }
svg.data-path polyline { fill: none; } svg.data-path polyline:is(.path, .link) { stroke: var(--c0); stroke-width: 1.5; } svg.data-path polygon:is(.path, .link) { fill: var(--c0); } svg.data-path polyline.other { stroke: var(--dim); } svg.data-path polygon.other { fill: var(--dim); }
svg.data-path .step { font-size: 10px; font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }`;

/** The drawing as a separate file. */
export const diagramFile = (layout: DiagramLayout, label: string): string =>
  diagramSvg({ layout, label, name: 'data-path' })
    .replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ')
    .replace(
      '>',
      `><style>:root { --ink: #1b1b1b; --dim: #595959; --paper: #fff; --card: #f4f5f7; --line: #d5d8dc; --c0: #2471a3; } @media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --dim: #a9adb3; --paper: #15181c; --card: #1f242a; --line: #3a4149; --c0: #5dade2; } }
${diagramStyle}</style><rect width="100%" height="100%" fill="var(--paper)"/>`,
    );
