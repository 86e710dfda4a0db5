/**
 * Hosts, switches and cables at one instant: each direction of a cable by the share of a short time for which it sends, a gauge for the
 * bytes that wait at a port of a switch.
 */
import { nothing, type SVGTemplateResult, svg, type TemplateResult } from 'lit-html';
import { bytesText, timeText } from '../../explain/text/format.ts';
import type { FabricDirection, FabricPicture, FabricPort, FabricQueue } from '../protocol.ts';
import { isWithin, sharedTime } from './fabric-moment.ts';
import { levelAt } from './moment.ts';

type TopologyCurve = FabricPicture['layout']['cables'][number];

const boxWidth = 52;
const boxHeight = 26;
/** Distance of the lines of both directions from the middle of the cable. */
const apartPixels = 3;
const gaugeWidth = 7;
const gaugeHeight = 24;
/** Place of a gauge on its cable, as a part of the way from the switch. */
const gaugePart = 0.3;
/** The shown share is that of this part of the whole time, around the instant. */
const windowPart = 1 / 100;

export const nodeName = ({ layout }: FabricPicture, node: number): string =>
  `${layout.boxes.find((box) => box.node === node)!.kind} ${node}`;

/** Share of a short time around an instant for which a direction sends. */
export function busyShareAt({ toPs }: FabricPicture, { sends }: FabricDirection, atPs: number): number {
  const halfPs = (toPs * windowPart) / 2;
  const [fromPs, untilPs] = [Math.max(0, atPs - halfPs), Math.min(toPs, atPs + halfPs)];
  return sharedTime(sends, fromPs, untilPs) / (untilPs - fromPs);
}

export function fabricDrawing(picture: FabricPicture, atPs: number): TemplateResult {
  const { widthPixels, heightPixels, boxes, cables } = picture.layout;
  return svg`<svg class="fabric" role="img" aria-label="Hosts, switches and cables; the tables below have the same figures"
    viewBox="0 0 ${widthPixels} ${heightPixels}" style="max-width:${2 * widthPixels}px">
    ${cables.map((curve) => [0, 1].map((end) => line(picture, curve, end === 0 ? 0 : 1, atPs)))}
    ${boxes.map(
      ({ node, kind, x, y }) => svg`<g><title>${kind} ${node}</title>
        <rect class=${kind} x=${x - boxWidth / 2} y=${y - boxHeight / 2} width=${boxWidth} height=${boxHeight} rx=${kind === 'switch' ? 2 : 12}></rect>
        <text class="name" x=${x} y=${y + 4}>${kind === 'switch' ? 'S' : 'H'}${node}</text></g>`,
    )}
    ${picture.queues.map((queue) => gauge(picture, queue, atPs))}
  </svg>`;
}

const isPort = (left: FabricPort, right: FabricPort): boolean =>
  left.node === right.node && left.port === right.port;

/** The direction from one end of a cable. */
function line(
  picture: FabricPicture,
  { ends, from, bend, to }: TopologyCurve,
  end: 0 | 1,
  atPs: number,
): SVGTemplateResult {
  const direction = picture.directions.find((each) => isPort(each.from, ends[end]))!;
  const share = busyShareAt(picture, direction, atPs);
  const isWaiting = isWithin(direction.waits, atPs);
  const [x, y] = acrossOf(from, to, end === 0 ? apartPixels : -apartPixels);
  const shifted = ([pointX, pointY]: readonly [number, number]): string => `${pointX + x} ${pointY + y}`;
  const title = `${nodeName(picture, direction.from.node)}, port ${direction.from.port} to ${nodeName(picture, direction.to.node)}: sends ${Math.round(100 * share)} % of the time${isWaiting ? ', waits for the far port' : ''}`;
  return svg`<path class=${isWaiting ? 'cable waits' : 'cable sends'} d="M${shifted(from)} Q${shifted(bend)} ${shifted(to)}"
    stroke-opacity=${(0.12 + 0.88 * Math.max(share, isWaiting ? 0.6 : 0)).toFixed(3)}><title>${title}</title></path>`;
}

/** A way of this length across the line from one point to another. */
function acrossOf(
  [fromX, fromY]: readonly [number, number],
  [toX, toY]: readonly [number, number],
  pixels: number,
): readonly [number, number] {
  const length = Math.hypot(toX - fromX, toY - fromY);
  return [(-(toY - fromY) / length) * pixels, ((toX - fromX) / length) * pixels];
}

function gauge(
  { layout, gaugeBytes }: FabricPicture,
  queue: FabricQueue,
  atPs: number,
): SVGTemplateResult | typeof nothing {
  const curve = layout.cables.find(({ ends }) => ends.some((end) => isPort(end, queue)));
  if (curve === undefined) return nothing;
  const [x, y] = pointOn(curve, isPort(curve.ends[0], queue) ? gaugePart : 1 - gaugePart);
  const bytes = levelAt(queue, atPs) ?? 0;
  const height = gaugeHeight * Math.min(1, bytes / gaugeBytes);
  return svg`<g class="gauge"><title>port ${queue.port} of switch ${queue.node}: ${bytesText(bytes)} wait at ${timeText(atPs)}</title>
    <rect class="limit" x=${x - gaugeWidth / 2} y=${y - gaugeHeight / 2} width=${gaugeWidth} height=${gaugeHeight}></rect>
    <rect class="level" x=${x - gaugeWidth / 2} y=${y + gaugeHeight / 2 - height} width=${gaugeWidth} height=${height}></rect></g>`;
}

/** The point of a quadratic curve at a part of its way. */
function pointOn({ from, bend, to }: TopologyCurve, part: number): readonly [number, number] {
  const of = (axis: 0 | 1): number =>
    (1 - part) ** 2 * from[axis] + 2 * part * (1 - part) * bend[axis] + part ** 2 * to[axis];
  return [of(0), of(1)];
}
