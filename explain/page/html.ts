/** Pieces of a page. Text is escaped once, here; a distinct type marks text that a page may contain. */
import { stackedClass } from './stacked.ts';

/** Text that a page may contain unchanged. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Trusted text that a page contains unchanged: a style sheet, a script. */
export const pieceOf = (text: string): Html => new Html(text);

type Part = string | number | Html | readonly Html[];

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => entities[sign]!);

function inserted(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return escaped(String(part));
}

/** A template of a page. Inserted values are escaped, unless they are pieces of a page. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    strings.map((string, at) => string + (at < parts.length ? inserted(parts[at]!) : '')).join(''),
  );
}

type Cell = string | number | Html;

/** The visible text of a cell. */
const seen = (cell: Cell | undefined): string =>
  cell instanceof Html ? cell.text.replace(/<[^>]*>/g, '') : String(cell ?? '');

/** Layout of a column's cells: sentences over several lines; words that may wrap; figures on one line. */
type Setting = 'said' | 'worded' | 'figures';

function settingOf(column: number, rows: readonly (readonly Cell[])[]): Setting {
  const texts = rows.flatMap((row) => (typeof row[column] === 'string' ? [row[column]] : []));
  if (texts.some((text) => text.length > 40)) return 'said';
  return texts.some((text) => text.length > 16 && /^[^\d]*[a-z]{3}/i.test(text)) ? 'worded' : 'figures';
}

/**
 * A table with a caption; the first column is the head of its row. If its place is narrower than the table, each row
 * becomes a block, with the column names next to the figures, so that nothing is cut (`stacked.ts`).
 */
export function table(caption: string, head: readonly string[], rows: readonly (readonly Cell[])[]): Html {
  if (rows.length === 0) return html``;
  const settings = head.map((_name, column) => settingOf(column, rows));
  const classOf = (column: number): Html =>
    settings[column] === 'figures' ? html`` : html` class="${settings[column]!}"`;
  const stacked = stackedClass(widthOf(head, rows, settings));
  const label = (column: number): Html =>
    stacked === '' ? html`` : html` data-label="${head[column] ?? ''}"`;
  const cells = ([first, ...rest]: readonly Cell[]): Html =>
    html`<tr><th scope="row">${first ?? ''}</th>${rest.map((cell, at) => html`<td${classOf(at + 1)}${label(at + 1)}>${cell}</td>`)}</tr>`;
  return html`<p class="dim caption">${caption}</p><div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table${stacked === '' ? html`` : html` class="${stacked}"`}>
<thead><tr>${head.map((name, column) => html`<th scope="col"${classOf(column)}>${name}</th>`)}</tr></thead>
<tbody>${rows.map(cells)}</tbody></table></div>
`;
}

/** Returns the table, transposed if that makes fewer columns: for few items with many figures each. */
export function narrowTable(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
): Html {
  if (rows.length + 1 >= head.length) return table(caption, head, rows);
  const turned = head.slice(1).map((name, at) => [name, ...rows.map((row) => row[at + 1] ?? '')]);
  return table(caption, [head[0]!, ...rows.map(([name]) => seen(name))], turned);
}

/**
 * Widths in pixels: a letter of the widest common fonts, in a head and elsewhere; a cell without its text; columns of
 * sentences and of words.
 */
const [headLetterPx, letterPx, besidePx, saidPx, wordedPx] = [10.5, 9.6, 23, 224, 144] as const;
/** Minimum number of letters in each line of a row's name, which may use several lines. */
const rowNameLetters = 14;

/** The width in pixels below which a table would be cut, with its head and row names wrapped. */
function widthOf(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  settings: readonly Setting[],
): number {
  const longestWord = (text: string): number => Math.max(...text.split(' ').map((word) => word.length));
  const most = (of: (row: readonly Cell[]) => number): number =>
    rows.reduce((longest, row) => Math.max(longest, of(row)), 0);
  return head.reduce((sum, name, column) => {
    const letters =
      column === 0
        ? Math.max(
            most(([first]) => longestWord(seen(first))),
            Math.min(
              rowNameLetters,
              most(([first]) => seen(first).length),
            ),
          )
        : most((row) => seen(row[column]).length);
    const textPx = letters * letterPx;
    const ownPx = { said: saidPx, worded: Math.min(wordedPx, textPx), figures: textPx }[settings[column]!];
    return sum + besidePx + Math.max(ownPx, longestWord(name) * headLetterPx);
  }, 0);
}

/** One part of a bar. */
export interface Segment {
  readonly name: string;
  readonly value: number;
  /** Its description for the reader. */
  readonly text: string;
  /** Class of the segment's colour. */
  readonly colour: string;
}

/** Consecutive segments with lengths proportional to their values; the bar is full at `full`. Screen readers read their texts. */
export function bar(segments: readonly Segment[], full: number): Html {
  const shown = segments.filter(({ value }) => value > 0);
  const spoken = shown.map(({ name, text }) => `${name} ${text}`).join(', ');
  const parts = shown.map(({ name, value, text, colour }) => {
    const width = full === 0 ? 0 : (100 * value) / full;
    return html`<span class="${colour}" style="width:${width.toFixed(3)}%" title="${name}: ${text}"></span>`;
  });
  return html`<span class="bar" role="img" aria-label="${spoken === '' ? 'nothing' : spoken}">${parts}</span>`;
}
