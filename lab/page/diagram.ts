/** The block diagram at one instant: the activity of each block, and everything on its way. */
import { html, nothing, svg, type TemplateResult } from 'lit-html';
import {
  type Cell,
  cellHeight,
  cellWidth,
  cutToCell,
  type DiagramLayout,
  headText,
  type LinkLane,
  laneArrow,
  laneNumberPlace,
  lineText,
  numberPlace,
} from '../../explain/diagram/index.ts';
import { wordsOf } from '../../explain/text/words.ts';
import type { MachinePicture, PictureRecord } from '../protocol.ts';
import { cellState, type UnderWay, underWay, waiting } from './moment.ts';

export interface DiagramActions {
  /** Called when a block is chosen. */
  choose(process: string, name: string): void;
  /** Called when a message on its way is chosen. */
  show(record: PictureRecord): void;
}

export interface DiagramMarks {
  /** The block whose events the buttons step through, as `process name`. */
  readonly block: string;
  readonly shown: PictureRecord | undefined;
}

/** Colours by kind of message. */
const classColours: Readonly<Record<string, number>> = {
  doorbell: 1,
  blueFlame: 1,
  doorbellRecord: 1,
  wqeRead: 4,
  payloadRead: 0,
  payloadWrite: 0,
  cqe: 2,
  eqe: 2,
  context: 5,
  translation: 5,
  msix: 3,
};
export const colourKey: readonly (readonly [text: string, colour: number])[] = [
  ['payload', 0],
  ['doorbell', 1],
  ['CQE, EQE, ACK', 2],
  ['interrupt, NAK, stalled block', 3],
  ['WQE', 4],
  ['context, translation', 5],
  ['flow control, other', 7],
  ['core at work', 8],
  ['block at work', 9],
];

/** Index into the page's colours, by content. */
export function colourOf({ kind, values, label }: PictureRecord): number {
  if (kind === 'packet') return /NAK/.test(label) ? 3 : /ACKNOWLEDGE/.test(label) ? 2 : 0;
  if (kind !== 'tlp') return 7;
  return classColours[String(values.find(([name]) => name === 'trafficClass')?.[1])] ?? 7;
}

/**
 * @param when the instant in words
 * @param actions if left out, nothing can be chosen
 */
export function diagram(
  picture: MachinePicture,
  layout: DiagramLayout,
  atPs: number,
  when: string,
  marks: DiagramMarks,
  actions?: DiagramActions,
): TemplateResult {
  const moving = underWay(picture, atPs);
  const title = `Block diagram ${when}: ${moving.length} on the way`;
  return html`<svg class="diagram" viewBox="0 0 ${layout.width} ${layout.height}" style="max-width:${layout.width > 600 ? 1700 : 640}px" role="group" aria-label=${title}>
    ${layout.zones.map(
      ({
        title: name,
        x,
        y,
        width,
        height,
      }) => svg`<g><rect class="zone" x=${x} y=${y} width=${width} height=${height} rx="8"></rect>
      <text class="zone-title" x=${x + 10} y=${y + 18}>${name}</text></g>`,
    )}
    ${layout.titles.map(({ text, x, y, anchor }) => svg`<text class="link-title" x=${x} y=${y} text-anchor=${anchor}>${text}</text>`)}
    ${layout.lanes.map((each) => drawnArrow(laneArrow(each), 'lane', laneNumberPlace(each)))}
    ${layout.arrows.map((each) => drawnArrow(each, each.step === undefined ? 'other' : 'path', numberPlace(each)))}
    ${layout.cells.map((cell) => drawnCell(picture, cell, atPs, marks, actions))}
    ${moving.flatMap((each) => drawnWay(picture, layout, each, marks, actions))}
    ${drawnWaiting(picture, layout, atPs, marks, actions)}
  </svg>`;
}

/** An arrow of the data path, with its number among the steps of a WRITE. */
function drawnArrow(
  arrow: DiagramLayout['arrows'][number],
  name: string,
  [x, y]: readonly [number, number],
): TemplateResult {
  const number =
    arrow.step === undefined
      ? nothing
      : svg`<text class="step" x=${x} y=${y + 3.5} text-anchor="middle">${arrow.step}</text>`;
  return svg`<g class="arrow ${name}"><polyline points=${lineText(arrow)}></polyline><polygon points=${headText(arrow)}></polygon>${number}</g>`;
}

function drawnCell(
  picture: MachinePicture,
  { process, name, x, y }: Cell,
  atPs: number,
  { block }: DiagramMarks,
  actions: DiagramActions | undefined,
): TemplateResult {
  const { state, text } = cellState(picture, process, name, atPs);
  const isChosen = block === `${process} ${name}`;
  const choose = (): void => actions?.choose(process, name);
  const press = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose();
  };
  const words = text === '' ? wordsOf(name) : `${wordsOf(name)}: ${text}`;
  return svg`<g class="cell ${state} ${isChosen ? 'chosen' : ''}" role=${actions === undefined ? 'img' : 'button'} tabindex=${actions === undefined ? nothing : 0} aria-pressed=${actions === undefined ? nothing : isChosen}
    aria-label="${process} ${words}, ${state}" @click=${choose} @keydown=${press}>
    <title>${process} ${words} (${state})</title>
    <rect x=${x} y=${y} width=${cellWidth} height=${cellHeight} rx="4"></rect>
    <text x=${x + 6} y=${y + 15}>${cutToCell(words, cellWidth)}</text></g>`;
}

function drawnWay(
  { tracks }: MachinePicture,
  { lanes }: DiagramLayout,
  { record, head, tail }: UnderWay,
  { shown }: DiagramMarks,
  actions: DiagramActions | undefined,
): TemplateResult[] {
  const { process, group } = tracks[record.track]!;
  const lane = lanes.find((each) => each.process === process && each.group === group);
  if (lane === undefined) return [];
  const [x1, y1] = pointOf(lane, tail);
  const [x2, y2] = pointOf(lane, head);
  const name = `c${colourOf(record)}`;
  return [
    svg`<g class="way ${record === shown ? 'shown' : ''}" @click=${() => actions?.show(record)}><title>${record.label}</title>
      <line class="body f${name}" x1=${x1} y1=${y1} x2=${x2} y2=${y2}></line>
      <circle class="f${name}" cx=${x2} cy=${y2} r="7"></circle></g>`,
  ];
}

const pointOf = ({ from, to }: LinkLane, part: number): readonly [number, number] => [
  from[0] + part * (to[0] - from[0]),
  from[1] + part * (to[1] - from[1]),
];

/** Writes at a root complex, drawn in its cell. */
function drawnWaiting(
  picture: MachinePicture,
  layout: DiagramLayout,
  atPs: number,
  { shown }: DiagramMarks,
  actions: DiagramActions | undefined,
): TemplateResult[] {
  return layout.cells
    .filter(({ name }) => name === 'root complex')
    .flatMap(({ process, x, y }) => {
      const own = waiting(picture, atPs).filter(({ track }) => picture.tracks[track]!.process === process);
      const right = x + cellWidth;
      return own.slice(0, 4).map(
        (
          record,
          at,
        ) => svg`<g class="way ${record === shown ? 'shown' : ''}" @click=${() => actions?.show(record)}><title>${record.label}, waits for the memory</title>
        <circle class="fc${colourOf(record)}" cx=${right - 9 - 13 * at} cy=${y + cellHeight / 2} r="5"></circle></g>`,
      );
    });
}
