/** Stacked bars on one scale, with a key; each part has its figure as tooltip and as text for screen readers. */
import { html, type TemplateResult } from 'lit-html';
import { timeText } from '../../explain/text/format.ts';
import { wordsOf } from '../../explain/text/words.ts';
import type { LabTerm } from '../protocol.ts';

export interface BarRow {
  readonly title: string;
  readonly parts: readonly LabTerm[];
}

const colourCount = 15;

/** Bars of times. */
export function bars(rows: readonly BarRow[]): TemplateResult {
  const names = [...new Set(rows.flatMap(({ parts }) => parts.map(({ name }) => name)))];
  const amounts = rows.map(({ title, parts }) => ({
    title,
    parts: parts.map(({ name, ps }) => ({ name, amount: ps })),
  }));
  return html`${colourKey(names)}${stackedBars(amounts, names, (ps) => timeText(Math.round(ps)))}`;
}

export interface AmountRow {
  readonly title: string;
  readonly parts: readonly { readonly name: string; readonly amount: number }[];
  /** Text beside the sum, such as the current activity. */
  readonly note?: string;
}

/** Colour of the page's palette for a name, by its index. */
export const colourNumber = (names: readonly string[], name: string): number =>
  names.indexOf(name) % colourCount;

export const colourKey = (names: readonly string[]): TemplateResult =>
  html`<p class="key">${names.map((name) => html`<span><i class="mark c${colourNumber(names, name)}"></i>${wordsOf(name)}</span>`)}</p>`;

/**
 * @param names in the order of their colours
 * @param text formats an amount
 * @param whole length of a full bar; default: the longest row
 */
export function stackedBars(
  rows: readonly AmountRow[],
  names: readonly string[],
  text: (amount: number) => string,
  whole?: number,
): TemplateResult {
  const totalOf = ({ parts }: AmountRow): number => parts.reduce((sum, { amount }) => sum + amount, 0);
  const longest = whole ?? Math.max(...rows.map(totalOf));
  const textOf = ({ title, parts }: AmountRow): string =>
    `${title}: ${parts.map(({ name, amount }) => `${wordsOf(name)} ${text(amount)}`).join(', ')}`;
  return html`<div class="bars">${rows.map(
    (row) => html`<span>${row.title}</span>
      <span class="bar" role="img" aria-label=${textOf(row)}>
        ${row.parts.map(({ name, amount }) => html`<i class="c${colourNumber(names, name)}" style="width:${((100 * amount) / longest).toFixed(3)}%" title="${wordsOf(name)}: ${text(amount)}"></i>`)}
      </span><span class="figure">${text(totalOf(row))}${row.note === undefined ? '' : html` <span class="dim">${row.note}</span>`}</span>`,
  )}</div>`;
}
