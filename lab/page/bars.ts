/** Stacked bars on one scale, with their key; each part says its figure to a pointer and to a reader. */
import { html, type TemplateResult } from 'lit-html';
import { timeText } from '../../system/text/format.ts';
import type { LabTerm } from '../protocol.ts';

export interface BarRow {
  readonly title: string;
  readonly parts: readonly LabTerm[];
}

const colourCount = 10;

export function bars(rows: readonly BarRow[]): TemplateResult {
  const names = [...new Set(rows.flatMap(({ parts }) => parts.map(({ name }) => name)))];
  const colourOf = (name: string): string => `c${names.indexOf(name) % colourCount}`;
  const totalOf = ({ parts }: BarRow): number => parts.reduce((sum, { ps }) => sum + ps, 0);
  const longest = Math.max(...rows.map(totalOf));
  return html`<p class="key">${names.map((name) => html`<span><i class="mark ${colourOf(name)}"></i>${words(name)}</span>`)}</p>
    <div class="bars">${rows.map(
      (row) => html`<span>${row.title}</span>
      <span class="bar" role="img" aria-label="${row.title}: ${row.parts.map(({ name, ps }) => `${words(name)} ${timeText(Math.round(ps))}`).join(', ')}">
        ${row.parts.map(({ name, ps }) => html`<i class=${colourOf(name)} style="width:${((100 * ps) / longest).toFixed(3)}%" title="${words(name)}: ${timeText(Math.round(ps))}"></i>`)}
      </span><span class="figure">${timeText(Math.round(totalOf(row)))}</span>`,
    )}</div>`;
}

/** `payloadRead` as `payload read`; names of the standards stay. */
const words = (name: string): string =>
  name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/ [A-Z](?=[a-z])/g, (letter) => letter.toLowerCase());
