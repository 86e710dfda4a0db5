/** Rows of what happened over one axis of time, with a line at the instant that is shown. */
import { html, type TemplateResult } from 'lit-html';
import { guard } from 'lit-html/directives/guard.js';
import { timeText } from '../../system/text/format.ts';

interface AxisItem {
  readonly fromPs: number;
  readonly toPs: number;
  /** Of the page's colours. */
  readonly colour: number;
  readonly title: string;
}

interface AxisRow {
  readonly title: string;
  readonly items: readonly AxisItem[];
}

export interface Axis {
  readonly fromPs: number;
  readonly toPs: number;
  readonly rows: readonly AxisRow[];
}

const tickCount = 5;

/** @param pick the reader chose an instant of the axis */
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
    <div class="axis-rows" @click=${picked} role="img" aria-label="What happened over time; the same events are stepped through above">
      ${guard([axis], () => rows.map((row) => drawnRow(row, place)))}
      <i class="axis-now" style="left:${place(atPs)}"></i>
      <div class="axis-ticks">${guard([axis], () =>
        ticks.map((ps) => html`<span style="left:${place(ps)}">${timeText(Math.round(ps))}</span>`),
      )}</div>
    </div>
  </div>`;
}

const drawnRow = ({ title: name, items }: AxisRow, place: (ps: number) => string): TemplateResult =>
  html`<div class="axis-row" data-name=${name}>${items.map(
    ({ fromPs, toPs, colour, title }) =>
      html`<i class="c${colour}" style="left:${place(fromPs)};right:calc(100% - max(${place(toPs)}, ${place(fromPs)} + 2px))" title=${title}></i>`,
  )}</div>`;
