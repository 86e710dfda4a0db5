/**
 * The timeline of a run whose end alone is displayed. It keeps only levels of earlier records (mostly the boot),
 * because a level stays valid until it changes.
 */

import {
  kindNumbers,
  mergedTimeline,
  type Timeline,
  type TimelineOptions,
} from '../../../machine/timeline/index.ts';
import { OBSERVATION_VALUES, type ProcessObservations } from '../../../sim/index.ts';

/** Records of a process that are read at a time. */
const batchRecords = 2048;

export class Recording {
  readonly options: TimelineOptions = { recordsMax: batchRecords, sink: (batch) => this.#take(batch) };
  readonly #kept = new Map<string, ProcessObservations>();
  #isKeeping = false;

  get isKeeping(): boolean {
    return this.#isKeeping;
  }

  /** Keeps all records from now on. */
  keep(): void {
    this.#isKeeping = true;
  }

  /** @param rest the machine's own timeline, read at the end: intervals that have begun and not ended */
  timeline(rest: Timeline): Timeline {
    return mergedTimeline(
      rest.parts.map((part) => joined(this.#kept.get(part.process), part)),
      rest.topology,
    );
  }

  #take(batch: ProcessObservations): void {
    const all = joined(this.#kept.get(batch.process), batch);
    this.#kept.set(batch.process, this.#isKeeping ? all : lastLevels(all));
  }
}

const levelKinds: ReadonlySet<number> = new Set([
  kindNumbers.level,
  kindNumbers.updateFc,
  kindNumbers.flowControl,
]);

/** Numbers of tracks and kinds have 16 and 8 bits. */
const [tracksMax, kindsMax] = [2 ** 16, 2 ** 8] as const;

/** The last record of each level, and of each credit limit of a link. */
function lastLevels({ columns, ...part }: ProcessObservations): ProcessObservations {
  const { kind, track, values } = columns;
  const last = new Map<number, number>();
  for (let place = 0; place < columns.count; place++) {
    const own = kind[place]!;
    if (!levelKinds.has(own)) continue;
    // The first number of a credit limit names its flow.
    const flow = own === kindNumbers.updateFc ? values[place * OBSERVATION_VALUES]! : 0;
    last.set((flow * tracksMax + track[place]!) * kindsMax + own, place);
  }
  return {
    ...part,
    columns: columnsAt(
      columns,
      [...last.values()].toSorted((left, right) => left - right),
    ),
  };
}

function columnsAt(
  { us, ps, durationPs, kind, track, values }: ProcessObservations['columns'],
  places: readonly number[],
): ProcessObservations['columns'] {
  const numbers = new Float64Array(places.length * OBSERVATION_VALUES);
  for (const [at, place] of places.entries()) {
    const first = place * OBSERVATION_VALUES;
    numbers.set(values.subarray(first, first + OBSERVATION_VALUES), at * OBSERVATION_VALUES);
  }
  return {
    count: places.length,
    us: Float64Array.from(places, (place) => us[place]!),
    ps: Int32Array.from(places, (place) => ps[place]!),
    durationPs: Float64Array.from(places, (place) => durationPs[place]!),
    kind: Uint8Array.from(places, (place) => kind[place]!),
    track: Uint16Array.from(places, (place) => track[place]!),
    values: numbers,
  };
}

/** Joins two parts of one process's recording; the tracks are those of the later part, which has all. */
export function joined(
  former: ProcessObservations | undefined,
  latter: ProcessObservations,
): ProcessObservations {
  if (former === undefined) return latter;
  const [a, b] = [former.columns, latter.columns];
  return {
    ...latter,
    columns: {
      count: a.count + b.count,
      us: filled(new Float64Array(a.us.length + b.us.length), a.us, b.us),
      ps: filled(new Int32Array(a.ps.length + b.ps.length), a.ps, b.ps),
      durationPs: filled(new Float64Array(a.us.length + b.us.length), a.durationPs, b.durationPs),
      kind: filled(new Uint8Array(a.kind.length + b.kind.length), a.kind, b.kind),
      track: filled(new Uint16Array(a.track.length + b.track.length), a.track, b.track),
      values: filled(new Float64Array(a.values.length + b.values.length), a.values, b.values),
    },
  };
}

interface Numbers extends ArrayLike<number> {
  set(values: ArrayLike<number>, at?: number): void;
}

function filled<Column extends Numbers>(column: Column, former: Column, latter: Column): Column {
  column.set(former);
  column.set(latter, former.length);
  return column;
}
