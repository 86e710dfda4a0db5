/** Rows of events over one time axis, with a line at the displayed instant. */
import { html, nothing, svg, type TemplateResult } from 'lit-html';
import { guard } from 'lit-html/directives/guard.js';
import { timeText } from '../../explain/text/format.ts';

interface AxisItem {
  readonly fromPs: number;
  readonly toPs: number;
  /** Index into the page's colours. */
  readonly colour: number;
  readonly title: string;
  /** Text written into the bar, as far as it fits. */
  readonly text?: string;
}

export interface AxisRow {
  readonly title: string;
  /** The name that identifies the row, if it differs from the title. */
  readonly name?: string;
  readonly items: readonly AxisItem[];
  /** A level over time, drawn as a curve from 0 to its maximum. */
  readonly levels?: readonly (readonly [atPs: number, value: number])[];
}

export interface Axis {
  readonly fromPs: number;
  readonly toPs: number;
  readonly rows: readonly AxisRow[];
}

const tickCount = 5;

/** @param pick called when the reader chooses an instant on the axis */
export function timeAxis(axis: Axis, atPs: number, pick: (atPs: number) => void): TemplateResult {
  const { fromPs, toPs, rows } = axis;
  const place = (ps: number): string => `${((100 * (ps - fromPs)) / (toPs - fromPs)).toFixed(3)}%`;
  const picked = (event: MouseEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    pick(Math.round(fromPs + part * (toPs - fromPs)));
  };
  const ticks = Array.from(
    { length: tickCount },
    (_, index) => fromPs + (index * (toPs - fromPs)) / (tickCount - 1),
  );
  return html`<div class="axis">
    <div class="axis-names" aria-hidden="true">${rows.map(({ title }) => html`<span>${title}</span>`)}</div>
    <div class="axis-rows" @click=${picked} role="img" aria-label="Events over time; the controls above step through the same events">
      ${guard([axis], () => rows.map((row) => drawnRow(row, axis, place)))}
      <i class="axis-now" style="left:${place(atPs)}"></i>
      <div class="axis-ticks">${guard([axis], () =>
        ticks.map((ps) => html`<span style="left:${place(ps)}">${timeText(Math.round(ps))}</span>`),
      )}</div>
    </div>
  </div>`;
}

const drawnRow = (
  { title: rowTitle, name = rowTitle, items, levels }: AxisRow,
  axis: Axis,
  place: (ps: number) => string,
): TemplateResult =>
  html`<div class="axis-row" data-name=${name} data-title=${rowTitle}>${items.map(
    ({ fromPs, toPs, colour, title, text }) =>
      html`<i class="c${colour}" style="left:${place(fromPs)};right:calc(100% - max(${place(toPs)}, ${place(fromPs)} + 2px))" title=${title}>${text ?? nothing}</i>`,
  )}${levels === undefined ? nothing : drawnLevels(rowTitle, levels, axis)}</div>`;

/** Size of the curve's own scale, which spans the row. */
const [curveWidth, curveHeight] = [1000, 20] as const;

function drawnLevels(
  name: string,
  levels: NonNullable<AxisRow['levels']>,
  { fromPs, toPs }: Axis,
): TemplateResult {
  const most = Math.max(...levels.map(([, value]) => value));
  const least = Math.min(...levels.map(([, value]) => value));
  // A credit limit counts from power-on: the curve shows its growth, and the text its first value.
  const floor = least > (most - least) * 4 ? least : 0;
  const xOf = (ps: number): string =>
    ((curveWidth * (Math.max(ps, fromPs) - fromPs)) / (toPs - fromPs)).toFixed(2);
  const yOf = (value: number): string =>
    (curveHeight - 1 - ((curveHeight - 2) * (value - floor)) / Math.max(1, most - floor)).toFixed(2);
  const path = levels.map(([ps, value], at) =>
    at === 0 ? `M${xOf(ps)} ${yOf(value)}` : `H${xOf(ps)}V${yOf(value)}`,
  );
  // Closes the path at its start: a level that becomes known at a later instant has no area before it.
  const beginX = levels.length === 0 ? xOf(toPs) : xOf(levels[0]![0]);
  return html`<svg class="axis-level" viewBox="0 0 ${curveWidth} ${curveHeight}" preserveAspectRatio="none"><title>${name}: from ${floor} to ${most}</title>
    ${svg`<path d="${path.join('')}H${curveWidth}V${curveHeight}H${beginX}Z"></path>`}</svg>`;
}
