/**
 * The timeline of a machine: the records of its processes in one order that does not depend on threads: by instant,
 * then by process name, then as recorded.
 */
import {
  type ExactPs,
  exactPs,
  OBSERVATION_VALUES,
  type ObservationTrack,
  type ProcessObservations,
} from '../../sim/index.ts';
import type { Topology } from '../topology/index.ts';
import { type TimelineKindName, timelineKindNames } from './kinds.ts';

/** A track of the machine, with its process. */
export interface TimelineTrack extends ObservationTrack {
  readonly process: string;
}

/** One record, for callers that read few. */
export interface TimelineRecord {
  readonly kind: TimelineKindName;
  /** Since power-on. */
  readonly atPs: ExactPs;
  readonly durationPs: number;
  readonly track: TimelineTrack;
  readonly trackNumber: number;
  readonly values: readonly number[];
}

/** Records lost because a process's stream was full. */
export interface DroppedRecords {
  readonly process: string;
  readonly kept: number;
  readonly dropped: number;
}

export class Timeline {
  readonly processes: readonly string[];
  readonly tracks: readonly TimelineTrack[];
  /** Per process. */
  readonly dropped: readonly DroppedRecords[];
  readonly count: number;
  /** Hosts, and the cables between their adapters. */
  readonly topology: Topology;
  /** Observations as each process has recorded them. */
  readonly parts: readonly ProcessObservations[];
  readonly #firstTrack: readonly number[];
  /** Process of each record in order, and its index there. */
  readonly #part: Uint16Array;
  readonly #place: Uint32Array;

  /** @param parts in the order of their names */
  constructor(parts: readonly ProcessObservations[], topology: Topology) {
    this.parts = parts;
    this.topology = topology;
    this.processes = parts.map(({ process }) => process);
    this.dropped = parts.map(({ process, columns, droppedCount }) => ({
      process,
      kept: columns.count,
      dropped: droppedCount,
    }));
    const firstTrack: number[] = [];
    const tracks: TimelineTrack[] = [];
    for (const { process, tracks: own } of parts) {
      firstTrack.push(tracks.length);
      tracks.push(...own.map((track) => ({ ...track, process })));
    }
    this.tracks = tracks;
    this.#firstTrack = firstTrack;
    this.count = parts.reduce((sum, { columns }) => sum + columns.count, 0);
    this.#part = new Uint16Array(this.count);
    this.#place = new Uint32Array(this.count);
    this.#merge();
  }

  /** The record at an index of the order. */
  record(index: number): TimelineRecord {
    const part = this.#part[index]!;
    const place = this.#place[index]!;
    const { us, ps, durationPs, kind, track, values } = this.parts[part]!.columns;
    const trackNumber = this.#firstTrack[part]! + track[place]!;
    const first = place * OBSERVATION_VALUES;
    return {
      kind: timelineKindNames[kind[place]!]!,
      atPs: exactPs(us[place]!, ps[place]!),
      durationPs: durationPs[place]!,
      track: this.tracks[trackNumber]!,
      trackNumber,
      values: [
        values[first]!,
        values[first + 1]!,
        values[first + 2]!,
        values[first + 3]!,
        values[first + 4]!,
        values[first + 5]!,
        values[first + 6]!,
        values[first + 7]!,
        values[first + 8]!,
      ],
    };
  }

  /** The records that overlap a time range. */
  between(fromPs: ExactPs, toPs: ExactPs): Timeline {
    const isWithin = (us: number, ps: number, durationPs: number): boolean => {
      const atPs = exactPs(us, ps);
      return (
        atPs < toPs && (typeof atPs === 'bigint' ? atPs + BigInt(durationPs) : atPs + durationPs) >= fromPs
      );
    };
    return new Timeline(
      this.parts.map((part) => selected(part, isWithin)),
      this.topology,
    );
  }

  /** All records in order. */
  *records(): Generator<TimelineRecord> {
    for (let index = 0; index < this.count; index++) yield this.record(index);
  }

  /** Sorts each process by instant first, then merges all of them, earliest first. */
  #merge(): void {
    const orders = this.parts.map(({ columns }) => orderOf(columns));
    const next = this.parts.map(() => 0);
    for (let index = 0; index < this.count; index++) {
      let chosen = -1;
      for (let part = 0; part < orders.length; part++) {
        if (next[part]! === orders[part]!.length) continue;
        if (
          chosen < 0 ||
          this.#isEarlier(part, orders[part]![next[part]!]!, chosen, orders[chosen]![next[chosen]!]!)
        )
          chosen = part;
      }
      this.#part[index] = chosen;
      this.#place[index] = orders[chosen]![next[chosen]!]!;
      next[chosen] = next[chosen]! + 1;
    }
  }

  #isEarlier(part: number, place: number, other: number, otherPlace: number): boolean {
    const [mine, its] = [this.parts[part]!.columns, this.parts[other]!.columns];
    return (mine.us[place]! - its.us[otherPlace]! || mine.ps[place]! - its.ps[otherPlace]!) < 0;
  }
}

/** The records of a process that match. */
function selected(
  part: ProcessObservations,
  passes: (us: number, ps: number, durationPs: number) => boolean,
): ProcessObservations {
  const { columns } = part;
  const places = Array.from({ length: columns.count }, (_, place) => place).filter((place) =>
    passes(columns.us[place]!, columns.ps[place]!, columns.durationPs[place]!),
  );
  const firsts = places.flatMap((place) =>
    Array.from({ length: OBSERVATION_VALUES }, (_, index) => place * OBSERVATION_VALUES + index),
  );
  return {
    ...part,
    columns: {
      count: places.length,
      us: Float64Array.from(places, (place) => columns.us[place]!),
      ps: Int32Array.from(places, (place) => columns.ps[place]!),
      durationPs: Float64Array.from(places, (place) => columns.durationPs[place]!),
      kind: Uint8Array.from(places, (place) => columns.kind[place]!),
      track: Uint16Array.from(places, (place) => columns.track[place]!),
      values: Float64Array.from(firsts, (place) => columns.values[place]!),
    },
  };
}

/** Indexes of the records by instant; those of one instant in recorded order. */
function orderOf({ count, us, ps }: ProcessObservations['columns']): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, place) => place);
  return order.sort((left, right) => us[left]! - us[right]! || ps[left]! - ps[right]! || left - right);
}

/** Merges the recordings of several processes into one timeline. */
export const mergedTimeline = (parts: readonly ProcessObservations[], topology: Topology): Timeline =>
  new Timeline(
    parts.toSorted((left, right) => (left.process < right.process ? -1 : 1)),
    topology,
  );
