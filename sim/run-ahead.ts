/**
 * Work that a process may do ahead of its turn: while nothing else is due in it, a stage continues to its next edge, and the
 * receiver of a record also takes the next records. Each step happens at its own instant and in order of time, so no result
 * depends on it; it saves a pass through the process's loop.
 *
 * It can be switched off (LogicalProcess): then something else is always due. It is off if the order within an instant is
 * random, or a process has several clock domains.
 */
import { type Cycles, NEVER, type Picoseconds } from '../base/index.ts';
import type { ChannelReader } from './channel.ts';
import type { ClockDomain } from './clock-domain.ts';

/** State of a process that determines whether anything else is due in it. */
export interface AheadProcess {
  nowPs: Picoseconds;
  recordCount: number;
  /** Edges before this instant may run now: no record can arrive earlier. In the far past if none may run ahead. */
  readonly untilPs: Picoseconds;
  /** The end of the turn. */
  readonly limitPs: Picoseconds;
  readonly runningProgramCount: number;
  readonly queue: { readonly nextPs: Picoseconds };
  readonly inbound: readonly { readonly reader: ChannelReader }[];
}

const PAST = Number.NEGATIVE_INFINITY;
/** No edge. */
const NONE = -1;

export class RunAhead {
  readonly isOn: boolean;

  readonly #process: AheadProcess;

  constructor(process: AheadProcess, isOn: boolean) {
    this.#process = process;
    this.isOn = isOn;
  }

  /**
   * Continues to edge `cycle` while `stage` runs, if the process has no other work until then or at that edge: the stage need
   * not wait for its turn. The stage has finished its work at the previous edge.
   * @returns whether it is that edge now; if not, the stage may wake itself
   */
  passTo(domain: ClockDomain, stage: number, cycle: Cycles): boolean {
    const process = this.#process;
    if (!this.isOn || process.runningProgramCount > 0 || domain.aloneUntil(stage) <= cycle) return false;
    const edgePs = domain.clock.edgePs(cycle);
    if (edgePs >= process.untilPs || edgePs > process.queue.nextPs) return false;
    process.nowPs = edgePs;
    domain.standAt(cycle, 1);
    return true;
  }

  /** The last edge to which {@link passTo} would continue now; it may be a lower bound. */
  lastPassable(domain: ClockDomain, stage: number): number {
    const process = this.#process;
    if (!this.isOn || process.runningProgramCount > 0) return NONE;
    const last = domain.aloneUntil(stage) - 1;
    const { untilPs } = process;
    const eventPs = process.queue.nextPs;
    // At one instant edges come before events, and after records.
    const boundPs = eventPs < untilPs ? eventPs + 1 : untilPs;
    if (boundPs === NEVER) return last;
    const bound = boundPs <= process.nowPs ? 0 : domain.clock.cycleAtOrAfter(boundPs);
    return bound <= last ? bound - 1 : last;
  }

  /**
   * The instant before which the process only has to run its clock domain and take the records of `reader`: in the far past if
   * more than two channels lead in.
   */
  quiescentUntilPs(reader: ChannelReader): number {
    const process = this.#process;
    const { inbound } = process;
    const isOff = !this.isOn || process.untilPs === PAST || inbound.length > 2;
    if (isOff || process.runningProgramCount > 0) return PAST;
    let quiescentUntilPs = process.limitPs;
    if (process.queue.nextPs < quiescentUntilPs) quiescentUntilPs = process.queue.nextPs;
    for (let index = 0; index < inbound.length; index++) {
      const other = inbound[index]!.reader;
      if (other !== reader && other.nextPs < quiescentUntilPs) quiescentUntilPs = other.nextPs;
    }
    return quiescentUntilPs;
  }

  /** Takes the next record of `reader`, which is due before {@link quiescentUntilPs}, at its time. Returns its offset. */
  takeRecord(reader: ChannelReader): number {
    const process = this.#process;
    process.recordCount++;
    process.nowPs = reader.nextPs;
    return reader.take();
  }

  /** Takes the record if it is of the protocol's `kind`; otherwise returns -1, without effect. */
  takeRecordOf(reader: ChannelReader, kind: number): number {
    const process = this.#process;
    const { nextPs } = reader;
    const offset = reader.takeOf(kind);
    if (offset < 0) return NONE;
    process.recordCount++;
    process.nowPs = nextPs;
    return offset;
  }
}
