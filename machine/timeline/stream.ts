/** The stream of one process of a machine: an observation log that accepts only the requested categories. */
import {
  type Clock,
  type LogicalProcess,
  ObservationLog,
  type ObservationTrack,
  type ProcessObservations,
} from '../../sim/index.ts';
import { kindNumbers, type TimelineCategory, type TimelineKindName, timelineCategories } from './kinds.ts';

/** The recorded categories of a machine, and the limit: plain data. */
export interface TimelineOptions {
  /** If left out: all. */
  readonly categories?: readonly TimelineCategory[];
  /** Time range since power-on, in picoseconds; records wholly outside are left out. If omitted: all the time. */
  readonly fromPs?: number;
  readonly toPs?: number;
  /** Greatest number of records kept of each process; default {@link timelineRecordsMax}. Later ones are counted. */
  readonly recordsMax?: number;
  /** Receives the records of each process, `recordsMax` at a time; only in partition `single`. If left out: {@link Machine.timeline}. */
  readonly sink?: (observations: ProcessObservations) => void;
  /** Called within each post of a send request with its number on its host: the stack shows the poster. Only in partition `single`. */
  readonly onPost?: (node: number, ordinal: number) => void;
}

export const timelineRecordsMax = 200_000;

export class Stream {
  readonly lp: LogicalProcess;
  readonly #log: ObservationLog;
  readonly #categories: ReadonlySet<TimelineCategory>;

  readonly #onPost: TimelineOptions['onPost'];

  constructor(lp: LogicalProcess, options: TimelineOptions) {
    this.#onPost = options.onPost;
    const { fromPs = 0, toPs = Number.POSITIVE_INFINITY, recordsMax = timelineRecordsMax } = options;
    this.lp = lp;
    this.#log = new ObservationLog(lp.name, lp, { recordsMax, fromPs, toPs, sink: options.sink });
    this.#categories = new Set(options.categories ?? timelineCategories);
  }

  has(category: TimelineCategory): boolean {
    return this.#categories.has(category);
  }

  track(group: string, name: string, rest: Omit<ObservationTrack, 'group' | 'name'> = {}): number {
    return this.#log.track(group, name, rest);
  }

  /** Records an interval between two instants of the epoch. */
  interval(
    kind: TimelineKindName,
    track: number,
    fromPs: number,
    toPs: number,
    ...numbers: readonly number[]
  ): void {
    this.#log.note(kindNumbers[kind], track, fromPs, toPs - fromPs, ...numbers);
  }

  /** Records an event at an instant of the epoch. */
  instant(kind: TimelineKindName, track: number, atPs: number, ...numbers: readonly number[]): void {
    this.#log.note(kindNumbers[kind], track, atPs, 0, ...numbers);
  }

  /** Records an interval between two edges of a clock. */
  cycles(kind: TimelineKindName, track: number, clock: Clock, from: number, to: number, a = 0, b = 0): void {
    const fromPs = clock.edgePs(from);
    this.#log.note(kindNumbers[kind], track, fromPs, clock.edgePs(to) - fromPs, a, b);
  }

  /** Notes that a host posts its send request of this number. */
  posted(ordinal: number): void {
    this.#onPost?.(Number(this.lp.name.replace(/^\D+/, '')), ordinal);
  }

  addOpenEnd(noteOpen: () => void): void {
    this.#log.addOpenEnd(noteOpen);
  }

  /** Records so far; a sink, if present, receives and removes them. */
  collect(): ProcessObservations {
    this.#log.flush();
    return this.#log.collect();
  }
}
