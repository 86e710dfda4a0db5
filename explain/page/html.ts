/** Pieces of a page: text is escaped once, here, and so is a distinct type from what may stand in a page. */

/** Text that may stand in a page as it is. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Text of our own that stands in a page as it is: a style sheet, a script. */
export const pieceOf = (text: string): Html => new Html(text);

type Part = string | number | Html | readonly Html[];

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => entities[sign]!);

function inserted(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return escaped(String(part));
}

/** A template of a page: what is put in is escaped, unless it is a piece of a page itself. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    strings.map((string, at) => string + (at < parts.length ? inserted(parts[at]!) : '')).join(''),
  );
}

/** Longer than a figure or a name: read from the left, and over several lines. */
const isSentence = (cell: string | number | Html | undefined): boolean =>
  typeof cell === 'string' && cell.length > 40;

/** A table with a caption; the first column is the head of its row. It scrolls by itself where the page is narrow. */
export function table(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly (string | number | Html)[])[],
): Html {
  if (rows.length === 0) return html``;
  const saying = head.map((_name, column) => rows.some((row) => isSentence(row[column])));
  const classOf = (column: number): Html => (saying[column] === true ? html` class="said"` : html``);
  const cells = ([first, ...rest]: readonly (string | number | Html)[]): Html =>
    html`<tr><th scope="row">${first ?? ''}</th>${rest.map((cell, at) => html`<td${classOf(at + 1)}>${cell}</td>`)}</tr>`;
  return html`<p class="dim caption">${caption}</p><div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table>
<thead><tr>${head.map((name, column) => html`<th scope="col"${classOf(column)}>${name}</th>`)}</tr></thead>
<tbody>${rows.map(cells)}</tbody></table></div>
`;
}

/** One part of a bar. */
export interface Segment {
  readonly name: string;
  readonly value: number;
  /** Its explanation for a reader. */
  readonly text: string;
  /** Class of the segment's colour. */
  readonly colour: string;
}

/** Segments one behind the other, as long as their values; the bar is full at `full`. Their texts are read out. */
export function bar(segments: readonly Segment[], full: number): Html {
  const shown = segments.filter(({ value }) => value > 0);
  const spoken = shown.map(({ name, text }) => `${name} ${text}`).join(', ');
  const parts = shown.map(({ name, value, text, colour }) => {
    const width = full === 0 ? 0 : (100 * value) / full;
    return html`<span class="${colour}" style="width:${width.toFixed(3)}%" title="${name}: ${text}"></span>`;
  });
  return html`<span class="bar" role="img" aria-label="${spoken === '' ? 'nothing' : spoken}">${parts}</span>`;
}
