/**
 * A heat map: a figure over two axes, as a table with coloured cells. Each cell also has its figure, so the map does
 * not rely on colour alone.
 */
import { type Html, html, reportLink } from '../../explain/page/index.ts';

export interface HeatMap {
  readonly title: string;
  /** Names of the columns, from left to right. */
  readonly xLabel: string;
  readonly xs: readonly string[];
  /** Names of the rows, from top to bottom. */
  readonly yLabel: string;
  readonly ys: readonly string[];
  /** Quantity of the cells, with its unit. */
  readonly label: string;
  /** Cells by row and column; undefined if the point has no figure. */
  readonly cells: readonly (readonly (number | undefined)[])[];
  /** Numbers of the reports that clicks on the cells open, by row and column; undefined if none exists. */
  readonly reports?: readonly (readonly (number | undefined)[])[];
}

/** @param at index of the map on the page; {@link heatMapStyle} has its style */
export function heatMapHtml(map: HeatMap, at: number): Html {
  const { title, xLabel, xs, yLabel, ys, label, cells } = map;
  const values = cells.flat().filter((value) => value !== undefined);
  // A sweep can have more points than a call may have arguments.
  const low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const rows = ys.map((y, row) => {
    const inRow = xs.map((_x, column) => cellHtml(map, row, column, low, high));
    return html`<tr><th scope="row">${broken(y)}</th>${inRow}</tr>`;
  });
  const heads = xs.map((x) => html`<th scope="col"><span>${x}</span></th>`);
  return html`<h2>${title}</h2><p class="dim caption">${label}: <span class="ramp">${textOf(low)} <i style="background:${rampGradient}"></i> ${textOf(high)}</span></p>
<div class="map" id="map${at}"><div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="heat"><thead><tr><td></td><th scope="colgroup" colspan="${xs.length}">${broken(xLabel)}</th></tr>
<tr><th scope="col">${broken(yLabel)}</th>${heads}</tr></thead><tbody>${rows}</tbody></table></div></div>`;
}

function cellHtml(map: HeatMap, row: number, column: number, low: number, high: number): Html {
  const value = map.cells[row]![column];
  if (value === undefined) return html`<td class="none">–</td>`;
  const share = high === low ? 0.5 : (value - low) / (high - low);
  const [colour, ink] = colourOf(share);
  const place = `${map.xLabel}=${map.xs[column]!}, ${map.yLabel}=${map.ys[row]!}: ${textOf(value)}`;
  const report = map.reports?.[row]?.[column];
  const figure = html`<span>${textOf(value)}</span>`;
  const inside = report === undefined ? figure : reportLink(report, figure, `${place}, opens its report`);
  return html`<td style="background:${colour};color:${ink}" title="${place}">${inside}</td>`;
}

const textOf = (value: number): string => String(Number(value.toPrecision(4)));

/** A long name may break after each of its parts. */
const broken = (text: string): Html => html`${text.split(/(?<=[.\-_])/).map((part) => html`${part}<wbr>`)}`;

/** Widths of text in units of the font size: of a digit, and of the padding around a cell's text. */
const digitEms = 0.62;
const besideEms = 0.75;
/** Font sizes in pixels: the page's usual one, the smallest for horizontal names, the smallest that is readable. */
const sizes = { preset: 15, lying: 11, least: 8.5 };
/**
 * Smallest width in pixels of a column that shows only its colour and has an upright name, and the font size of such
 * names.
 */
const bareColumnPx = 10;
const bareLettersPx = 10;

/**
 * The map fits the width of its place. Its font becomes smaller first, then the column names stand upright. If figures
 * still do not fit, the cells have colours only and show their figure when hovered or clicked.
 */
export function heatMapStyle(map: HeatMap, at: number): string {
  const { names, lying, upright } = widthsOf(map);
  const namesPx = Math.ceil(names * bareLettersPx);
  const letters = (ems: number, least: number): string =>
    `font-size: clamp(${least}px, calc(100cqi / ${ems.toFixed(1)}), ${sizes.preset}px);`;
  const uprightPx = Math.round(lying * sizes.lying);
  const barePx = Math.round(upright * sizes.least);
  const own = `#map${at}`;
  const isUprightOfUse = upright < lying * 0.9;
  return `${own} table { ${letters(lying, isUprightOfUse ? sizes.lying : sizes.least)} }
${
  isUprightOfUse
    ? `@container (max-width: ${uprightPx}px) { ${own} table { ${letters(upright, sizes.least)} } ${own} thead th + th { writing-mode: vertical-rl; text-align: right; } }`
    : ''
}
@container (max-width: ${barePx}px) { ${own} table { table-layout: fixed; width: 100%; min-width: ${map.xs.length * bareColumnPx + namesPx}px; font-size: ${bareLettersPx}px; }
  ${own} thead th + th { writing-mode: vertical-rl; text-align: right; vertical-align: bottom; padding: 0.2rem 0; line-height: 1; } ${own} th:first-child, ${own} thead td:first-child { width: ${namesPx}px; }
  ${own} td { padding: 0; height: 1.6rem; } ${own} td > a { height: 1.6rem; } ${own} td span { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); } }`;
}

/** Widths in units of the font size: of the row names, and of the whole table with horizontal and with upright column names. */
function widthsOf({ xs, yLabel, ys, cells }: HeatMap): Record<'names' | 'lying' | 'upright', number> {
  const longest = (texts: readonly string[]): number =>
    texts.reduce((most, text) => Math.max(most, text.length), 0);
  const parts = [yLabel, ...ys].flatMap((text) => text.split(/(?<=[.\-_ ])/));
  const names = longest(parts) * digitEms + 1.5;
  const columns = xs.map((x, column) => {
    const figures = longest(cells.map((row) => (row[column] === undefined ? '–' : textOf(row[column]))));
    return { figures, head: x.length };
  });
  const sum = (of: (column: { figures: number; head: number }) => number): number =>
    columns.reduce((total, column) => total + of(column) * digitEms + besideEms, names);
  return {
    names,
    lying: sum(({ figures, head }) => Math.max(figures, head * 1.05)),
    upright: sum(({ figures }) => Math.max(figures, 2)),
  };
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

const rampGradient = `linear-gradient(to right, ${ramp.map((parts) => `rgb(${parts.join(' ')})`).join(', ')})`;

/**
 * A colour and the text colour that is readable on it.
 * @param share from 0 to 1
 */
function colourOf(share: number): readonly [colour: string, ink: string] {
  const place = share * (ramp.length - 1);
  const at = Math.min(ramp.length - 2, Math.floor(place));
  const mixed = ramp[at]!.map((from, part) =>
    Math.round(from + (ramp[at + 1]![part]! - from) * (place - at)),
  );
  return [`rgb(${mixed.join(' ')})`, luminanceOf(mixed) > evenLuminance ? '#000' : '#fff'];
}

/** Black and white are equally readable on it: (L + 0.05)² = 1.05 · 0.05, by WCAG 2.2's contrast ratio. */
const evenLuminance = Math.sqrt(1.05 * 0.05) - 0.05;

/** Relative luminance of an sRGB colour, as WCAG 2.2 defines it. */
function luminanceOf(parts: readonly number[]): number {
  const [red, green, blue] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
