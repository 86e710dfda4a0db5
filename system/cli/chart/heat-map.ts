/**
 * A heat map: a figure over two axes, as a table whose cells have colours. The figures are in the cells, so nothing is said by
 * colour alone.
 */
import { type Html, html } from '../../page/index.ts';

export interface HeatMap {
  readonly title: string;
  /** Of the columns, from left to right. */
  readonly xLabel: string;
  readonly xs: readonly string[];
  /** Of the rows, from top to bottom. */
  readonly yLabel: string;
  readonly ys: readonly string[];
  /** What the cells are, with its unit. */
  readonly label: string;
  /** By row and column; undefined where there is no figure. */
  readonly cells: readonly (readonly (number | undefined)[])[];
}

export function heatMapHtml({ title, xLabel, xs, yLabel, ys, label, cells }: HeatMap): Html {
  const values = cells.flat().filter((value) => value !== undefined);
  // A sweep has more points than a call has arguments.
  const low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const rows = ys.map((y, at) => {
    const row = cells[at]!.map((value) => cellHtml(value, low, high));
    return html`<tr><th scope="row">${y}</th>${row}</tr>`;
  });
  return html`<h2>${title}</h2><p class="dim caption">${label}</p>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="heat"><thead><tr>${[`${yLabel} \\ ${xLabel}`, ...xs].map((text) => html`<th scope="col">${text}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`;
}

function cellHtml(value: number | undefined, low: number, high: number): Html {
  if (value === undefined) return html`<td class="none">–</td>`;
  const share = high === low ? 0.5 : (value - low) / (high - low);
  const [colour, ink] = colourOf(share);
  return html`<td style="background:${colour};color:${ink}">${Number(value.toPrecision(4))}</td>`;
}

/** From dark blue over green to yellow by rising lightness: seven colours of matplotlib's viridis. */
const ramp = [
  [68, 1, 84],
  [68, 57, 131],
  [49, 104, 142],
  [33, 145, 140],
  [53, 183, 121],
  [144, 215, 67],
  [253, 231, 37],
] as const;

/** A colour and what can be read on it. @param share from 0 to 1 */
function colourOf(share: number): readonly [colour: string, ink: string] {
  const place = share * (ramp.length - 1);
  const at = Math.min(ramp.length - 2, Math.floor(place));
  const mixed = ramp[at]!.map((from, part) =>
    Math.round(from + (ramp[at + 1]![part]! - from) * (place - at)),
  );
  return [`rgb(${mixed.join(' ')})`, share > 0.55 ? '#111' : '#fff'];
}
