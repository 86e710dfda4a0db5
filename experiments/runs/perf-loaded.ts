/** Results of an offered load: rates, latencies from the arrival of a message on, interrupts and processor time. */
import { psPerSecond, psPerUs } from '../../base/index.ts';
import { countText } from '../../explain/text/format.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import {
  distributionOf,
  type HostWork,
  type LoadedRates,
  millionsText,
  type PerfArgs,
  type PerfSide,
  percentileOf,
  usec,
} from '../workloads/index.ts';

export interface LoadOutcome {
  /** Nominal arrivals per second, over all sending sides. */
  readonly offeredPerSecond: number;
  /** Actual arrivals per second: random arrivals deviate from their nominal rate. */
  readonly arrivedPerSecond: number;
  readonly arrivedCount: number;
  /** Arrivals dropped because the backlog was full. They are neither sent nor counted in the latencies. */
  readonly droppedCount: number;
  /** Greatest number of messages of a program that waited to be posted at the same time. */
  readonly backlogMost: number;
  /** Messages that waited when the last one arrived. */
  readonly backlogAtEnd: number;
  /** Whether the offered load exceeded the throughput: latencies depend on the duration of the test and on the size of the backlog. */
  readonly isOverload: boolean;
  /** Interrupt rates of the client's host and the server's, from the start to the last completion. */
  readonly interruptsPerSecond: readonly number[];
  /** Busy cores of these hosts, including polling: 0.25 is a quarter of one core. */
  readonly busyCores: readonly number[];
}

type LoadedSide = Required<Pick<PerfSide, 'load'>>;

const loadedOf = (sides: readonly PerfSide[]): readonly LoadedSide['load'][] =>
  sides.flatMap(({ load }) => load ?? []);

/** Latencies of the messages of all programs. */
export function loadedTimes(
  sides: readonly PerfSide[],
): Omit<LoadedRates, 'durationPs' | 'averageBytesPerSecond' | 'messagesPerSecond' | 'iterations'> {
  const times = Float64Array.from(loadedOf(sides).flatMap(({ timesPs }) => timesPs));
  const { iterations: _, ...figures } = distributionOf(times);
  return { ...figures, p90Ps: percentileOf(times, 0.9) };
}

/**
 * The backlog counts as growing if this share of all messages waits at the end, and more of each program than random
 * arrivals accumulate.
 */
const growingShare = 0.01;
const piledUp = 16;

/** @param nodes the host of each side */
export function loadOutcomeOf(
  { load: plan, isBidirectional }: PerfArgs,
  sides: readonly PerfSide[],
  nodes: readonly number[],
  { host: { core } }: MachineConfig,
): LoadOutcome {
  const loads = loadedOf(sides);
  const sum = (pick: (load: (typeof loads)[number]) => number): number =>
    loads.reduce((total, load) => total + pick(load), 0);
  const backlogMost = Math.max(...loads.map((load) => load.backlogMost));
  const [arrivedCount, droppedCount] = [sum((load) => load.arrivedCount), sum((load) => load.droppedCount)];
  const backlogAtEnd = sum((load) => load.backlogAtEnd);
  const isGrowing = backlogAtEnd > growingShare * arrivedCount && backlogAtEnd >= backlogMost / 2;
  const works = [...new Set(nodes)]
    .toSorted()
    .map((node) => lastWorkOf(sides.filter((_, at) => nodes[at] === node)));
  return {
    offeredPerSecond: plan!.perSecond * (isBidirectional === true ? 2 : 1),
    arrivedPerSecond: sum((load) => (load.arrivedCount / load.arrivalsPs) * psPerSecond),
    arrivedCount,
    droppedCount,
    backlogMost,
    backlogAtEnd,
    isOverload: droppedCount > 0 || (isGrowing && backlogAtEnd > piledUp * loads.length),
    interruptsPerSecond: works.map(({ interrupts, spanPs }) => (interrupts / spanPs) * psPerSecond),
    busyCores: works.map(({ cycles, spanPs }) => cycles / (core.clockMHz * (spanPs / psPerUs))),
  };
}

/** Programs of a host have read the same meter; the last reading is the largest. */
const lastWorkOf = (sides: readonly PerfSide[]): HostWork =>
  sides.flatMap(({ host }) => host ?? []).toSorted((left, right) => right.spanPs - left.spanPs)[0]!;

const columns: readonly (readonly [head: string, width: number])[] = [
  [' #bytes', 8],
  ['#messages', 10],
  ['offered[Mpps]', 15],
  ['MsgRate[Mpps]', 15],
  ['50%[usec]', 11],
  ['90%[usec]', 11],
  ['99%[usec]', 11],
  ['99.9%[usec]', 13],
  ['t_max[usec]', 13],
  ['interrupts[1/s]', 18],
  ['busy cores', 13],
];

const cells = (texts: readonly string[]): string =>
  texts.map((text, at) => (at === 0 ? text.padEnd(columns[0]![1]) : text.padStart(columns[at]![1]))).join('');

export const loadedHeader = (): string => cells(columns.map(([head]) => head));

/** @param bytes of a message */
export function loadedLine(bytes: string, count: number, result: LoadedRates, load: LoadOutcome): string {
  return cells([
    ` ${bytes}`,
    String(count),
    millionsText(load.offeredPerSecond),
    millionsText(result.messagesPerSecond),
    ...[result.typicalPs, result.p90Ps, result.p99Ps, result.p999Ps, result.maxPs].map(usec),
    load.interruptsPerSecond.map((rate) => String(Math.round(rate))).join(' / '),
    load.busyCores.map((cores) => cores.toFixed(2)).join(' / '),
  ]);
}

/** Meaning of the figures of a loaded test, in sentences. */
export function loadNotes(
  { load: plan, sizeBytes }: PerfArgs,
  load: LoadOutcome,
  delivered: number,
): string[] {
  if (plan === undefined || !load.isOverload) return [];
  const percent = ((delivered / load.offeredPerSecond) * 100).toFixed(1);
  const first = `${sizeBytes} bytes: more was offered than went through, ${percent} % of it:`;
  return load.droppedCount > 0
    ? [
        `${first} ${countText(load.droppedCount)} of ${countText(load.arrivedCount)} messages`,
        `  found the backlog of ${countText(plan.backlog)} full and were dropped. Latencies are those of a full backlog.`,
      ]
    : [
        `${first} ${countText(load.backlogAtEnd)} messages waited`,
        '  when the last one arrived. Latencies grow with the length of the test.',
      ];
}
