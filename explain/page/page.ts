/**
 * A page that needs nothing else: what was run, and below it sections. It needs no script unless it has charts or reports to open, is light or dark as the
 * reader's system is, and fits from 400 pixels on.
 */
import { timeText } from '../text/format.ts';
import { type Html, html, narrowTable, pieceOf, table } from './html.ts';
import { reportLink } from './reports.ts';
import { stackedStyle } from './stacked.ts';
import { style } from './style.ts';

/** Head of every page: the command, its version, and its results. */
export interface PageHead {
  readonly title: string;
  /** The command line that made it. */
  readonly command: string;
  /** Of the package. */
  readonly version: string;
  /** Of the machine; left out where none was asked for. */
  readonly configHash?: string;
  /** Simulated time; left out where there was none, or several. */
  readonly elapsedPs?: number;
  /** Sentences to take away; left out or empty: none. */
  readonly sentences?: readonly string[];
}

export interface PageTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
  /** For few items with many figures each: a column for each item. */
  readonly isTurned?: true;
  /** Of each row the number of the report that its head opens; undefined if none exists. */
  readonly reports?: readonly (number | undefined)[];
}

/** Requirements of sections in addition to their own text. */
export interface PageNeeds {
  /** Style sheets before the page's own. */
  readonly styles?: readonly string[];
  /** Scripts at the end of the page, in their order. */
  readonly scripts?: readonly string[];
}

/** The whole page. */
export function pageOf(head: PageHead, sections: readonly Html[], needs: PageNeeds = {}): string {
  const { title, command, sentences = [] } = head;
  const { styles = [], scripts = [] } = needs;
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
${[...styles, style, stackedStyle(sections.map(({ text }) => text).join(''))].map((text) => html`<style>${pieceOf(text)}</style>`)}</head>
<body>
<h1>${title}</h1>
<p><code>${command}</code></p>
<p class="dim">${originText(head)}</p>
${sentences.length === 0 ? html`` : html`<ol>${sentences.map((text) => html`<li>${text}</li>`)}</ol>`}
${sections}
${scripts.map(scriptOf)}
</body>
</html>
`;
  return page.text;
}

/** Not in a template: a build tool rewrites those that hold the end of a script. */
const scriptOf = (text: string): Html =>
  pieceOf(`<script>${text.replaceAll('</script', '<\\/script')}</script>`);

function originText({ version, configHash, elapsedPs }: PageHead): string {
  return [
    `hca-emulator ${version}`,
    ...(configHash === undefined ? [] : [`configuration ${configHash.slice(0, 12)}`]),
    ...(elapsedPs === undefined ? [] : [`${timeText(elapsedPs)} simulated`]),
  ].join(', ');
}

export function tableSection({ title, head, rows, isTurned, reports = [] }: PageTable): Html {
  const linked = rows.map(([first = '', ...rest], at) => {
    const number = reports[at];
    return [number === undefined ? first : reportLink(number, html`${first}`), ...rest];
  });
  return isTurned === true ? narrowTable(title, head, linked) : table(title, head, linked);
}

/** Text as a terminal shows it; lines that are longer than the page is wide continue in the next. */
export const textSection = (title: string, text: string): Html => html`<h2>${title}</h2><pre>${text}</pre>`;

/** Text that few readers want: folded away. */
export const foldedSection = (title: string, text: string): Html =>
  html`<details><summary>${title}</summary><pre>${text}</pre></details>`;
