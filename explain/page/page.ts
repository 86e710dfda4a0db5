/**
 * A self-contained page: the command above, sections below. It needs a script only for charts or for reports to open,
 * follows the reader's light or dark scheme, and fits from a width of 400 pixels on.
 */
import { timeText } from '../text/format.ts';
import { type Html, html, narrowTable, pieceOf, table } from './html.ts';
import { reportLink } from './reports.ts';
import { stackedStyle } from './stacked.ts';
import { style } from './style.ts';

/** Head of every page: the command, its version, and its results. */
export interface PageHead {
  readonly title: string;
  /** The command line that created the page. */
  readonly command: string;
  /** Version of the package. */
  readonly version: string;
  /** Seed of the machine; left out if none was requested. */
  readonly configHash?: string;
  /** Simulated time; left out if there was none, or several. */
  readonly elapsedPs?: number;
  /** Summary sentences; left out or empty: none. */
  readonly sentences?: readonly string[];
}

export interface PageTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
  /** Shows one column per item: for few items with many figures each. */
  readonly isTurned?: true;
  /** Numbers of the reports that the heads of rows open, by row; undefined if none exists. */
  readonly reports?: readonly (number | undefined)[];
}

/** Requirements of sections in addition to their own text. */
export interface PageNeeds {
  /** Style sheets before the page's own. */
  readonly styles?: readonly string[];
  /** Scripts at the end of the page, in order. */
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

/**
 * Returns the script, outside of a template because a build tool rewrites templates that contain the end of a script.
 */
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

/** Text as a terminal shows it; lines wider than the page wrap. */
export const textSection = (title: string, text: string): Html => html`<h2>${title}</h2><pre>${text}</pre>`;

/** Text that few readers need, folded. */
export const foldedSection = (title: string, text: string): Html =>
  html`<details><summary>${title}</summary><pre>${text}</pre></details>`;
