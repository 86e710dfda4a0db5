/**
 * The study of scale: one workload grows along three lines, each of which exceeds a different cache of the card, and
 * then along all of them.
 *
 *     qps      16 … 10,000                 contexts of QPs (QPC)
 *     region   2 MiB … 64 GiB, pages 2 MiB  translations (MTT)
 *     keys     1 … 16,384                  memory protection (MPT)
 */
import { type AxisValue, kneeOf } from '../sweep/index.ts';
import { bindsText, bytesText, percentText, type Study, type StudyFigures } from './study.ts';

const rate = 'messagesPerSecond';
const mib = 2 ** 20;
const gib = 2 ** 30;

/** The other two stay small while one grows. A QP has enough messages to fill the caches that they can fill. */
const small = { qps: 16, region: 16 * mib, keys: 1, iters: 256 } as const;
const corner = { qps: 10_000, region: 64 * gib, keys: 1, iters: 8 } as const;

/** One line of growth: the axis, its values, and the cache that it exceeds. */
interface Line {
  readonly axis: 'qps' | 'region' | 'keys';
  readonly values: readonly number[];
  readonly cache: string;
  readonly name: string;
  text(value: number): string;
}

const lines: readonly Line[] = [
  {
    axis: 'qps',
    values: [32, 64, 128, 256, 512, 1024, 2048, 4096, 10_000],
    cache: 'qpc',
    name: 'QP contexts',
    text: (qps) => `${qps} QPs`,
  },
  {
    axis: 'region',
    values: [256 * mib, 1 * gib, 4 * gib, 8 * gib, 16 * gib, 32 * gib, 64 * gib],
    cache: 'mtt',
    name: 'translations',
    text: bytesText,
  },
  {
    axis: 'keys',
    values: [16, 64, 128, 256, 512, 1024, 4096, 16_384],
    cache: 'mpt',
    name: 'memory regions',
    text: (keys) => `${keys} keys`,
  },
];

type Place = Readonly<Record<string, AxisValue>>;

const placesOf = ({ axis, values }: Line): Place[] =>
  values.map((value) => ({ ...small, [axis]: value, ...(axis === 'qps' ? { iters: itersOf(value) } : {}) }));

/** About the same number of messages in total, and at least as many per QP as the corner has. */
const itersOf = (qps: number): number => Math.max(corner.iters, (small.qps * small.iters) / qps);

export const scale: Study = {
  name: 'scale',
  question: 'Where does each cache of the card give in, up to ten thousand QPs over 64 GiB?',
  spec: {
    workload: 'write-bw,size=64,inline=64,threads=4,txDepth=4,warmup=8,pattern=random',
    vary: { pageSize: '2M' },
    points: [small, ...lines.flatMap(placesOf), corner],
  },
  reduced: { pageSize: '2M' },
  reducedPoints: [
    small,
    ...lines.flatMap((line) => placesOf({ ...line, values: [line.values[3]!, line.values[5]!] })),
  ],
  plots: lines.map(({ axis, cache }) => ({
    x: axis,
    y: [rate, `caches.1.${cache}.misses`],
    where: othersThan(axis).map(([other, value]) => `${other}=${value}`),
  })),
  answer(figures) {
    const known = lines.map((line) => ({ line, points: pointsOf(figures, line) }));
    const reached = figures.numbersOf('qps').includes(corner.qps);
    const best = figures.at(rate, small);
    return [
      `${known.map(({ line, points }) => kneeText(line, points)).join('; ')}.`,
      `${known.map(({ line, points }) => lossText(line, points)).join('; ')}, where ${figures.text(rate, small)} go with ${small.qps} QPs, ${bytesText(small.region)} and one key.`,
      reached
        ? `${corner.qps} QPs over ${bytesText(corner.region)} of random places reach ${figures.text(rate, corner)}, ${percentText(figures.at(rate, corner) / best)} of that, and the ${bindsText(figures, corner)} binds.`
        : `With ${small.qps} QPs, ${bytesText(small.region)} and one key the ${bindsText(figures, small)} binds.`,
    ];
  },
};

/** Axes that stay constant while one grows. */
function othersThan(axis: Line['axis']): (readonly [string, number])[] {
  return (['qps', 'region', 'keys'] as const)
    .filter((other) => other !== axis)
    .map((other) => [other, small[other]]);
}

/** Rates along a line, from its small end on. */
function pointsOf(figures: StudyFigures, line: Line): (readonly [value: number, rate: number])[] {
  const others = othersThan(line.axis);
  return figures.rows
    .filter(({ axes }) => others.every(([axis, value]) => axes[axis] === value))
    .map(({ axes, figures: row }) => [Number(axes[line.axis]), Number(row[rate])] as const)
    .toSorted(([left], [right]) => left - right);
}

function kneeText({ name, text }: Line, points: readonly (readonly [number, number])[]): string {
  const knee = kneeOf(points);
  return knee === undefined ? `${name} have no knee` : `${name} have their knee at ${text(knee)}`;
}

function lossText({ text }: Line, points: readonly (readonly [number, number])[]): string {
  const [most, atMost] = points.at(-1)!;
  const best = Math.max(...points.map(([, value]) => value));
  return `${text(most)} leave ${Math.round((100 * atMost) / best)} % of the best rate`;
}
