/**
 * The stream of observations in one process: typed numeric records in columns, bounded, in the order of recording.
 *
 *     record   instant (microseconds since power-on, and picoseconds of that one) · duration · kind · track · nine numbers of the kind
 *     track    where it happened: a block, a queue pair, a core, a direction of a link
 *
 * Instants are absolute and exact, independent of epochs. The owner of a kind declares the meaning of its numbers. An interval
 * is one record, written when its end is known: so a stream is in order of recording, not of instants, until it is merged. The
 * stream is full after {@link ObservationLimits.recordsMax} records: later ones are counted, not kept.
 */
import { ConfigurationError, type Picoseconds, psPerUs } from '../base/index.ts';
import type { EpochClock } from './epoch.ts';

/** Numbers in every record, used by its kind. */
export const OBSERVATION_VALUES = 9;
const ROOM_AT_FIRST = 4096;
/** Track numbers have 16 bits. */
const TRACKS_MAX = 65_536;

/** Locations of observations. */
export interface ObservationTrack {
  readonly name: string;
  /** Its group: blocks, cores, queue pairs. */
  readonly group: string;
  /** Latency of a link: from leaving one end completely to taking effect at the other. */
  readonly latencyPs?: number;
  /** Names to which the first number of a record refers. */
  readonly names?: readonly string[];
}

export interface ObservationLimits {
  /** Records kept; later ones are only counted. */
  readonly recordsMax: number;
  /** Records completely outside [fromPs, toPs) since power-on are neither kept nor counted as dropped. */
  readonly fromPs: number;
  readonly toPs: number;
  /** Receives the records whenever `recordsMax` are present, and the rest on request: then none is dropped. */
  readonly sink?: ((observations: ProcessObservations) => void) | undefined;
}

/** Records as columns: record n has its instant at us[n] and ps[n], its numbers from values[9 n] on. Plain data. */
export interface ObservationColumns {
  readonly count: number;
  readonly us: Float64Array;
  readonly ps: Int32Array;
  readonly durationPs: Float64Array;
  readonly kind: Uint8Array;
  readonly track: Uint16Array;
  readonly values: Float64Array;
}

/** All observations of one process: plain data. */
export interface ProcessObservations {
  readonly process: string;
  readonly tracks: readonly ObservationTrack[];
  readonly columns: ObservationColumns;
  /** Records that found the stream full. */
  readonly droppedCount: number;
}

const columnsOf = (room: number): Omit<ObservationColumns, 'count'> => ({
  us: new Float64Array(room),
  ps: new Int32Array(room),
  durationPs: new Float64Array(room),
  kind: new Uint8Array(room),
  track: new Uint16Array(room),
  values: new Float64Array(room * OBSERVATION_VALUES),
});

export class ObservationLog {
  readonly process: string;
  readonly tracks: ObservationTrack[] = [];
  droppedCount = 0;
  readonly #clock: EpochClock;
  readonly #limits: ObservationLimits;
  readonly #numbers = new Map<string, number>();
  readonly #openEnds: (() => void)[] = [];
  #columns = columnsOf(ROOM_AT_FIRST);
  #room = ROOM_AT_FIRST;
  #count = 0;

  /** @param clock of the process, which makes instants of an epoch absolute */
  constructor(process: string, clock: EpochClock, limits: ObservationLimits) {
    this.process = process;
    this.#clock = clock;
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  /** The number of a track; adds the track if its group and name are new. */
  track(group: string, name: string, rest: Omit<ObservationTrack, 'group' | 'name'> = {}): number {
    const key = `${group} ${name}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (this.tracks.length === TRACKS_MAX)
      throw new ConfigurationError(`tracks of ${this.process}`, TRACKS_MAX + 1, `at most ${TRACKS_MAX}`);
    const number = this.tracks.push({ group, name, ...rest }) - 1;
    this.#numbers.set(key, number);
    return number;
  }

  /**
   * Records an event at `atPs` of the present epoch that lasts for `durationPs`.
   * @param numbers of the kind, at most {@link OBSERVATION_VALUES}; those left out are 0
   */
  note(
    kind: number,
    track: number,
    atPs: Picoseconds,
    durationPs: number,
    ...numbers: readonly number[]
  ): void {
    const { epochUs } = this.#clock;
    const { fromPs, toPs, recordsMax } = this.#limits;
    const sincePs = epochUs * psPerUs + atPs;
    if (sincePs >= toPs || sincePs + durationPs < fromPs) return;
    if (this.#count === recordsMax && !this.#makeRoom()) return;
    const at = this.#count;
    if (at === this.#room) this.#grow();
    this.#count = at + 1;
    const { us, ps, durationPs: durations, kind: kinds, track: tracks, values } = this.#columns;
    const wholeUs = Math.floor(atPs / psPerUs);
    us[at] = epochUs + wholeUs;
    ps[at] = atPs - wholeUs * psPerUs;
    durations[at] = durationPs;
    kinds[at] = kind;
    tracks[at] = track;
    const first = at * OBSERVATION_VALUES;
    for (let n = 0; n < OBSERVATION_VALUES; n++) values[first + n] = numbers[n] ?? 0;
  }

  /** `noteOpen` records unfinished intervals up to now: for a sample in mid-run, which leaves them open. */
  addOpenEnd(noteOpen: () => void): void {
    this.#openEnds.push(noteOpen);
  }

  /** A copy of all observations so far. */
  collect(): ProcessObservations {
    const [count, dropped] = [this.#count, this.droppedCount];
    for (const noteOpen of this.#openEnds) noteOpen();
    const observations = this.#copy();
    this.#count = count;
    this.droppedCount = dropped;
    return observations;
  }

  #copy(): ProcessObservations {
    const { us, ps, durationPs, kind, track, values } = this.#columns;
    const shown = this.#count;
    return {
      process: this.process,
      tracks: [...this.tracks],
      columns: {
        count: shown,
        us: us.slice(0, shown),
        ps: ps.slice(0, shown),
        durationPs: durationPs.slice(0, shown),
        kind: kind.slice(0, shown),
        track: track.slice(0, shown),
        values: values.slice(0, shown * OBSERVATION_VALUES),
      },
      droppedCount: this.droppedCount,
    };
  }

  /** Hands all records to the sink. */
  flush(): void {
    const { sink } = this.#limits;
    if (sink === undefined || this.#count === 0) return;
    sink(this.#copy());
    this.#count = 0;
  }

  /** The stream is full. @returns whether a sink has taken its records */
  #makeRoom(): boolean {
    if (this.#limits.sink === undefined) this.droppedCount++;
    this.flush();
    return this.#limits.sink !== undefined;
  }

  #grow(): void {
    const old = this.#columns;
    this.#room = Math.min(this.#room * 2, Math.max(this.#limits.recordsMax, this.#room + 1));
    const columns = columnsOf(this.#room);
    columns.us.set(old.us);
    columns.ps.set(old.ps);
    columns.durationPs.set(old.durationPs);
    columns.kind.set(old.kind);
    columns.track.set(old.track);
    columns.values.set(old.values);
    this.#columns = columns;
  }
}
