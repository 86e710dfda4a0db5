/** The timeline options on the command line, for every command that runs its own machine. */
import { type Command, InvalidArgumentError } from 'commander';
import { ConfigurationError, visible } from '../base/index.ts';
import {
  deviceClock,
  hostClocks,
  type OperationRange,
  type TimelineOrder,
  type TimelineWritten,
  writeRecorded,
} from '../experiments/runs/timeline-files.ts';
import type { DevicesReport } from '../guests/serve/index.ts';
import {
  type Timeline,
  type TimelineCategory,
  timelineCategories,
  timelineRecordsMax,
} from '../machine/timeline/index.ts';
import { integer } from './options.ts';

export interface TimelineChoice {
  /** Categories of the trace, or the file of a timeline. */
  readonly trace?: string;
  readonly timeline?: string;
  readonly vcd?: string;
  readonly timelineWindow?: TimelineWindow;
  readonly timelineOperations?: OperationRange;
  readonly timelineOnly?: readonly TimelineCategory[];
  readonly timelineRecords?: number;
}

interface TimelineWindow {
  readonly fromPs: number;
  readonly toPs: number;
}

const recordsLimit = 20_000_000;
/** The trace formats by file extension: `--trace FILE` recognises a timeline by them. */
const isTimelineFile = (text: string): boolean => /\.(perfetto-trace|pftrace)$/.test(text);
const isVcdFile = (text: string): boolean => text.endsWith('.vcd');

/** A file that `--trace` names instead of categories. */
export const timelineFilesOf = ({ trace }: { readonly trace?: unknown }): readonly string[] =>
  typeof trace === 'string' && (isTimelineFile(trace) || isVcdFile(trace)) ? [trace] : [];

/** The options without a `--trace` that names a timeline file; the remaining values are categories. */
export function withoutTimelineFile<T extends { readonly trace?: string }>(choice: T): T {
  const { trace = '' } = choice;
  if (!isTimelineFile(trace) && !isVcdFile(trace)) return choice;
  const { trace: _, ...rest } = choice;
  return rest as T;
}

const unitPs: Readonly<Record<string, number>> = { ps: 1, ns: 1e3, us: 1e6, ms: 1e9, s: 1e12 };

function timeOf(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ps|ns|us|ms|s)$/.exec(text);
  if (match === null)
    throw new InvalidArgumentError('expected two times such as 1ms..1500us; either may be left out.');
  return Math.round(Number(match[1]) * unitPs[match[2]!]!);
}

function parsedWindow(text: string): TimelineWindow {
  const [from, to, ...rest] = text.split('..');
  if (to === undefined || rest.length > 0)
    throw new InvalidArgumentError('expected two times such as 1ms..1500us; either may be left out.');
  const window = {
    fromPs: from === '' ? 0 : timeOf(from!),
    toPs: to === '' ? Number.POSITIVE_INFINITY : timeOf(to),
  };
  if (window.fromPs < window.toPs) return window;
  throw new InvalidArgumentError('expected an end after the begin.');
}

function parsedOperations(text: string): OperationRange {
  const match = /^(\d+)(?:\.\.(\d+))?$/.exec(text);
  const [first, last] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
  if (match !== null && first <= last) return { first, last };
  throw new InvalidArgumentError('expected a number or a range such as 17 or 10..20.');
}

function parsedCategoryList(text: string): TimelineCategory[] {
  return text.split(',').map((word) => {
    const found = timelineCategories.find((category) => category === word);
    if (found === undefined)
      throw new InvalidArgumentError(`expected some of ${timelineCategories.join(',')}.`);
    return found;
  });
}

/** Adds --timeline, --vcd, --timeline-window, --timeline-operations, --timeline-only and --timeline-records. */
export function addTimelineOptions(command: Command): Command {
  return command
    .option('--timeline <file>', 'write what happened when as a Perfetto trace: see docs/how-to/timeline.md')
    .option('--vcd <file>', 'write states, levels, registers and clocks as a value change dump')
    .option('--timeline-window <from..to>', 'only this simulated time, as in 1ms..1500us', parsedWindow)
    .option(
      '--timeline-operations <n..m>',
      'only the life of these operations of host 0, by number from 0',
      parsedOperations,
    )
    .option('--timeline-only <list>', `some of ${timelineCategories.join(',')}`, parsedCategoryList)
    .option(
      '--timeline-records <n>',
      `records kept of each host and device (default ${timelineRecordsMax})`,
      integer(1, recordsLimit),
    );
}

/** Adds --trace to a command without a bus trace: the file extension selects --timeline or --vcd. */
export function addTimelineFileOption(command: Command): Command {
  return command.option(
    '--trace <file>',
    'as --timeline, to a .perfetto-trace or .pftrace, or as --vcd, to a .vcd',
    (text) => {
      if (isTimelineFile(text) || isVcdFile(text)) return text;
      throw new InvalidArgumentError('expected a file that ends in .perfetto-trace, .pftrace or .vcd.');
    },
  );
}

/**
 * The recording that the options request; undefined if they request none.
 * @throws ConfigurationError for options without an output file
 */
export function timelineOrderOf(choice: TimelineChoice): TimelineOrder | undefined {
  const { trace = '', timelineWindow, timelineOperations, timelineOnly, timelineRecords } = choice;
  const { timeline = isTimelineFile(trace) ? trace : undefined, vcd = isVcdFile(trace) ? trace : undefined } =
    choice;
  if (timeline === undefined && vcd === undefined) {
    if ([timelineWindow, timelineOperations, timelineOnly, timelineRecords].every((one) => one === undefined))
      return undefined;
    throw new ConfigurationError('--timeline', 'left out', 'a file to write, or --vcd with one');
  }
  return {
    options: {
      ...timelineWindow,
      ...(timelineOnly === undefined ? {} : { categories: withOperations(timelineOnly, timelineOperations) }),
      ...(timelineRecords === undefined ? {} : { recordsMax: timelineRecords }),
    },
    ...(timeline === undefined ? {} : { timeline }),
    ...(vcd === undefined ? {} : { vcd }),
    ...(timelineOperations === undefined ? {} : { operations: timelineOperations }),
  };
}

/**
 * Like {@link timelineOrderOf}, for devices whose hosts are guests.
 * @throws ConfigurationError also for operations by number: the posts of a guest are not observed
 */
export function servedTimelineOrderOf(choice: TimelineChoice): TimelineOrder | undefined {
  const { timelineOperations: range } = choice;
  if (range !== undefined)
    throw new ConfigurationError(
      '--timeline-operations',
      `${range.first}..${range.last}`,
      'left out: what a guest posts is seen by its device alone, without a number; --timeline-window',
    );
  return timelineOrderOf(choice);
}

/** Operations are found by their records. */
const withOperations = (
  only: readonly TimelineCategory[],
  range: OperationRange | undefined,
): readonly TimelineCategory[] =>
  range === undefined || only.includes('operations') ? only : [...only, 'operations'];

/**
 * Writes the files of served devices after serving has ended.
 * @param report the last one
 */
export const writeServedTimeline = async (
  machine: { timeline(): Promise<Timeline> | Timeline },
  { config, nodes, peer, elapsedPs }: DevicesReport,
  order: TimelineOrder,
): Promise<TimelineWritten> =>
  writeRecorded(
    {
      timeline: await machine.timeline(),
      clocks: [
        ...nodes.map((_, node) => deviceClock(config, node, 'hca')),
        ...(peer === undefined ? [] : hostClocks(config, nodes.length)),
      ],
      elapsedPs,
    },
    order,
  );

/** The names of the written files, and the number of omitted records. */
export function timelineText({ files, records, processes, notes }: TimelineWritten): string {
  const full = processes.filter(({ dropped }) => dropped > 0);
  return [
    `Recorded ${records} events in ${files.map((file) => visible(file)).join(' and ')}`,
    ...full.map(
      ({ process, kept, dropped }) =>
        `${process}: the first ${kept} events of the window were kept, ${dropped} later ones dropped; --timeline-window, --timeline-only or --timeline-records`,
    ),
    ...notes,
  ].join('\n');
}
