/**
 * Tables for a terminal. A table wider than the terminal is split into several, one below the other, each with the
 * first column repeated; a column that is still too wide is wrapped. In a file or a pipe, a table keeps its full width.
 */
import Table from 'cli-table3';

export type Cell = string | number;

let widthInstead: number | undefined;

/** A text as it is without a terminal: independent of where it is made. */
export function atAnyWidth(made: () => string): string {
  const before = widthInstead;
  widthInstead = Number.POSITIVE_INFINITY;
  try {
    return made();
  } finally {
    widthInstead = before;
  }
}

/** Columns of the terminal on standard output, else those in COLUMNS, else unlimited. */
export const terminalColumns = (): number =>
  widthInstead ?? process.stdout.columns ?? (Number(process.env['COLUMNS']) || Number.POSITIVE_INFINITY);

/** Width of tables made of sentences: a line of a thousand characters is unreadable. */
export const listingColumns = (): number => Math.min(terminalColumns(), 120);

/** A border, and a space on either side. */
const frameColumns = 3;

/** A table with a title above it; numbers are right-aligned. */
export function tableOf(
  title: string,
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  columns = terminalColumns(),
): string {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => widthOfCell(row[column]))),
  );
  const parts = groupsOf(widths, columns).map((group) => partOf(group, head, rows, widths, columns));
  return [title, ...parts].join('\n');
}

/** A cell may have several lines. */
const widthOfCell = (cell: Cell | undefined): number =>
  String(cell ?? '')
    .split('\n')
    .reduce((widest, line) => Math.max(widest, line.length), 0);

/** Columns that fit next to each other; each group includes the first one. */
function groupsOf(widths: readonly number[], columns: number): number[][] {
  const groups: number[][] = [[0]];
  for (let column = 1; column < widths.length; column++) {
    const group = groups.at(-1)!;
    if (group.length === 1 || widthOf([...group, column], widths) <= columns) group.push(column);
    else groups.push([0, column]);
  }
  return groups;
}

const widthOf = (group: readonly number[], widths: readonly number[]): number =>
  group.reduce((sum, column) => sum + widths[column]! + frameColumns, 1);

function partOf(
  group: readonly number[],
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  widths: readonly number[],
  columns: number,
): string {
  const excess = Math.max(0, widthOf(group, widths) - columns);
  const last = group.length - 1;
  const lastWidth = Math.max(widths[group[last]!]! + 2 - excess, frameColumns + 1);
  const table = new Table({
    head: group.map((column) => head[column]!),
    style: { head: [], border: [], compact: true },
    colAligns: group.map((column) => (column === 0 || excess > 0 ? 'left' : 'right')),
    colWidths: group.map((_, at) => (excess > 0 && at === last ? lastWidth : null)),
  });
  const linesOf = (cell: Cell, at: number): string[] => {
    const lines = String(cell).split('\n');
    return excess > 0 && at === last ? lines.flatMap((line) => wrapped(line, lastWidth - 2)) : lines;
  };
  for (const row of rows)
    table.push(...rowsOfLines(group.map((column, at) => linesOf(row[column] ?? '', at))));
  return table.toString();
}

/**
 * One row for each line: for a cell with several lines, cli-table3 removes one character after another and measures
 * each time it draws a line.
 */
function rowsOfLines(cells: readonly (readonly string[])[]): string[][] {
  const lineCount = Math.max(...cells.map((lines) => lines.length));
  return Array.from({ length: lineCount }, (_, at) => cells.map((lines) => lines[at] ?? ''));
}

/** Wraps a line into lines of at most `columns`, if its words allow it. */
function wrapped(line: string, columns: number): string[] {
  const lines: string[] = [];
  let last = '';
  for (const [, space, word] of line.matchAll(/(\s*)(\S+)/g)) {
    const longer = `${last}${space}${word}`;
    if (longer.length <= columns) last = longer;
    else {
      if (last !== '') lines.push(last);
      last = word!;
    }
  }
  return [...lines, last];
}
