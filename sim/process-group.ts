/**
 * The logical processes of one thread, run in turns so that none ever gets a record from its past.
 *
 *        ┌─ turn ────────────────────────────────────────────────────────────────┐
 *        │ pick the process whose next event is the earliest                     │
 *        │ run it up to its limit: no record unknown to it can take effect before │
 *        └───────────────────────────────────────────────────────────────────────┘
 *
 * The limit is exact. Whatever happens next begins with the next event of some process j and reaches process k
 * after the least sum of latencies on a way from j to k, so k may run below min over j of (next j + way j→k).
 * The process with the earliest event can therefore always run it, and silence of any length costs one turn.
 * Processes of other threads enter as `arrivalPs`: the earliest effect of anything that they may still send.
 *
 * A turn allocates nothing. Turns do not change what happens, only when in host time it is computed.
 */

import { assertPositive, ConfigurationError, NEVER, type Picoseconds } from '../base/index.ts';
import { type ChannelWriter, joinEnds } from './channel.ts';
import type { InboundPort } from './inbound-port.ts';
import type { LogicalProcess } from './logical-process.ts';

const NONE = -1;
const PAUSE = -2;
const QUICK_SETTLE_TURNS = 64;
/** Processes that are compared without a loop; a group has places for as many at least. */
const QUICK_PLACES = 4;
/** Turns between two pauses: a few milliseconds. A turn in which programs run may take longer, and counts for as many. */
const PAUSE_TURNS = 1024;
const PROGRAM_TURNS = 16;
/** Awaited, it lets everything run that was about to: unlike other values it needs no promise of its own. */
const SETTLED = Promise.resolve();

/** A channel end whose other end is in another thread. */
export interface OutwardPort<End> {
  /** Index of the process of this group. */
  readonly process: number;
  readonly end: End;
}

export class ProcessGroup {
  readonly processes: readonly LogicalProcess[];
  /** Earliest instant at which something is due, by process (and Infinity for each place that has none). */
  readonly nextPs: Float64Array;
  /** Earliest instant at which a record that is not known yet can arrive from another thread, by process. */
  readonly arrivalPs: Float64Array;
  /** Channel ends that lead out of this thread and into it. */
  readonly outward: readonly OutwardPort<ChannelWriter>[];
  readonly inward: readonly OutwardPort<InboundPort>[];
  /** No process runs at or past this instant. */
  stopPs = NEVER;
  /** The longest window of a turn: shorter windows let other threads follow more closely. */
  windowPs = NEVER;
  /** Turns taken so far. */
  turnCount = 0;
  /** Number of turns after which {@link runToStop} pauses; Infinity: it never does. */
  pauseTurn = NEVER;
  /** Index of the process that ran last: whose code threw, when something was thrown. */
  current = 0;

  /** The least sums of latencies on a way to each process from each place: of process p from p × {@link #placeCount} on. */
  readonly #waysTo: Float64Array;
  readonly #placeCount: number;
  /** Whether channels lead in from other threads. */
  readonly #isOpen: boolean;

  /** @param processes completely wired: channels connected later are not seen */
  constructor(processes: readonly LogicalProcess[]) {
    if (processes.length === 0) throw new ConfigurationError('number of logical processes', 0, 'at least 1');
    this.processes = processes;
    const placeCount = Math.max(QUICK_PLACES, processes.length);
    this.nextPs = new Float64Array(placeCount).fill(NEVER);
    this.arrivalPs = new Float64Array(placeCount).fill(NEVER);
    this.#placeCount = placeCount;
    this.#waysTo = new Float64Array(processes.length * placeCount).fill(NEVER);
    const inward = inboundByBuffer(processes);
    const outward: OutwardPort<ChannelWriter>[] = [];
    processes.forEach((process, from) => {
      for (const writer of process.outbound) {
        const target = inward.get(writer.buffer);
        if (target === undefined) {
          outward.push({ process: from, end: writer });
          continue;
        }
        inward.delete(writer.buffer);
        if (target.process === from) process.noteOwnChannel();
        const way = target.process * placeCount + from;
        this.#waysTo[way] = Math.min(this.#waysTo[way]!, target.end.latencyPs);
        joinEnds(writer, target.end.reader, this.nextPs, target.process);
      }
    });
    this.outward = outward;
    this.inward = [...inward.values()];
    this.#isOpen = this.inward.length > 0;
    this.#completeWays();
  }

  /** Lets programs that were started between runs get to their first wait, and learns what is due. */
  async start(): Promise<void> {
    for (let index = 0; index < this.processes.length; index++) {
      if (this.processes[index]!.runningProgramCount > 0) await this.settle(index);
      this.finishTurn(index);
    }
  }

  /**
   * Takes turns until nothing more may be run, letting resumed programs run in between.
   * @param pause is called now and then between two turns, and awaited where it gives something to await; pauses change nothing of what happens
   */
  async runToStop(pause: () => Promise<void> | undefined): Promise<void> {
    for (;;) {
      const resumed = this.runTurns();
      if (resumed === NONE) return;
      if (resumed === PAUSE) {
        this.pauseTurn = this.turnCount + PAUSE_TURNS;
        const paused = pause();
        if (paused !== undefined) await paused;
        continue;
      }
      this.pauseTurn -= PROGRAM_TURNS;
      // Most programs wait again after a few microtasks: let them pass here, without a promise of an async call each.
      const process = this.processes[resumed]!;
      for (let turn = 0; process.runningProgramCount > 0 && turn < QUICK_SETTLE_TURNS; turn++) await SETTLED;
      if (process.runningProgramCount > 0 || process.failure !== undefined) await this.settle(resumed);
      this.finishTurn(resumed);
    }
  }

  /**
   * Takes turns until nothing is due below any limit: then returns -1; or -2 at {@link pauseTurn}. Returns the index of a process whose
   * programs were resumed: the caller awaits {@link settle}, calls {@link finishTurn} and continues.
   */
  runTurns(): number {
    const { processes, nextPs } = this;
    for (;;) {
      if (this.turnCount >= this.pauseTurn) return PAUSE;
      const index = this.pick();
      if (index === NONE) return NONE;
      const process = processes[index]!;
      this.#beginTurn(process, index);
      if (process.takeTurn()) return index;
      nextPs[index] = process.aheadPs;
    }
  }

  /** Runs one process through its window. Returns true when it stopped because programs were resumed. */
  takeTurn(index: number): boolean {
    const process = this.processes[index]!;
    this.#beginTurn(process, index);
    return process.takeTurn();
  }

  #beginTurn(process: LogicalProcess, index: number): void {
    process.limitPs = this.limitPs(index);
    if (this.#isOpen) process.limitPs = Math.min(process.limitPs, this.nextPs[index]! + this.windowPs);
    this.turnCount++;
    this.current = index;
  }

  /** Lets the resumed programs of a process run until each waits for simulated time again. */
  async settle(index: number): Promise<void> {
    const process = this.processes[index]!;
    this.current = index;
    await process.settle();
    if (process.failure !== undefined) throw process.failure;
  }

  /** Earliest instant at which anything is due. */
  get earliestPs(): Picoseconds {
    let earliestPs = NEVER;
    for (const nextPs of this.nextPs) if (nextPs < earliestPs) earliestPs = nextPs;
    return earliestPs;
  }

  /** The same by what each process has now: between two runs, when things were done to them from outside too. */
  get nextDuePs(): Picoseconds {
    return this.processes.reduce((earliest, process) => Math.min(earliest, process.nextPs()), NEVER);
  }

  /** True when no process has members left. */
  get isEnded(): boolean {
    return this.processes.every((process) => process.isEnded);
  }

  /** The last end of all members, when all have ended; before that, an instant that it cannot precede. */
  endBoundPs(startPs: Picoseconds): number {
    let boundPs = this.isEnded ? startPs : Math.max(startPs, this.earliestPs);
    for (const process of this.processes) boundPs = Math.max(boundPs, process.endedPs);
    return boundPs;
  }

  /** Instant below which process `index` may run: nothing unknown to it can take effect earlier. */
  limitPs(index: number): number {
    const nextPs = this.nextPs;
    const ways = this.#waysTo;
    const first = index * this.#placeCount;
    let limit = this.stopPs;
    let reach = nextPs[0]! + ways[first]!;
    if (reach < limit) limit = reach;
    reach = nextPs[1]! + ways[first + 1]!;
    if (reach < limit) limit = reach;
    reach = nextPs[2]! + ways[first + 2]!;
    if (reach < limit) limit = reach;
    reach = nextPs[3]! + ways[first + 3]!;
    if (reach < limit) limit = reach;
    for (let from = QUICK_PLACES; from < nextPs.length; from++) {
      reach = nextPs[from]! + ways[first + from]!;
      if (reach < limit) limit = reach;
    }
    return this.#isOpen ? Math.min(limit, this.#arrivalLimitPs(index)) : limit;
  }

  /** Instant at which something unknown may come to process `index` from other threads, directly or by another process. */
  #arrivalLimitPs(index: number): number {
    const arrivalPs = this.arrivalPs;
    const first = index * this.#placeCount;
    let limit = arrivalPs[index]!;
    for (let from = 0; from < arrivalPs.length; from++)
      limit = Math.min(limit, arrivalPs[from]! + this.#waysTo[first + from]!);
    return limit;
  }

  /** Learns what is due next at a process after its turn; its records were known to its neighbours as it sent them. */
  finishTurn(index: number): void {
    this.nextPs[index] = this.processes[index]!.nextPs();
  }

  /** The process whose next event is the earliest among those that may run it now, or -1. */
  pick(): number {
    const nextPs = this.nextPs;
    let picked = 0;
    let earliestPs = nextPs[0]!;
    if (nextPs[1]! < earliestPs) {
      picked = 1;
      earliestPs = nextPs[1]!;
    }
    if (nextPs[2]! < earliestPs) {
      picked = 2;
      earliestPs = nextPs[2]!;
    }
    if (nextPs[3]! < earliestPs) {
      picked = 3;
      earliestPs = nextPs[3]!;
    }
    for (let index = QUICK_PLACES; index < nextPs.length; index++) {
      if (nextPs[index]! >= earliestPs) continue;
      picked = index;
      earliestPs = nextPs[index]!;
    }
    if (earliestPs >= this.stopPs) return NONE;
    // Latencies are positive: nothing but another thread holds back the process with the earliest event.
    return this.#isOpen ? this.#pickOf(picked) : picked;
  }

  /** `earliest` or, where other threads hold it back, the first process that may run its next event; or -1. */
  #pickOf(earliest: number): number {
    const nextPs = this.nextPs;
    if (nextPs[earliest]! < this.limitPs(earliest)) return earliest;
    for (let index = 0; index < this.processes.length; index++) {
      if (nextPs[index]! < this.limitPs(index)) return index;
    }
    return NONE;
  }

  /** Floyd and Warshall: every way is the shortest of the ways by each process between. */
  #completeWays(): void {
    const count = this.processes.length;
    const waysTo = this.#waysTo;
    const placeCount = this.#placeCount;
    for (let between = 0; between < count; between++) {
      for (let from = 0; from < count; from++) {
        for (let to = 0; to < count; to++) {
          const detour = waysTo[between * placeCount + from]! + waysTo[to * placeCount + between]!;
          if (detour < waysTo[to * placeCount + from]!) waysTo[to * placeCount + from] = detour;
        }
      }
    }
  }
}

/** The inbound ports of all processes by their channel's memory. */
function inboundByBuffer(
  processes: readonly LogicalProcess[],
): Map<SharedArrayBuffer, OutwardPort<InboundPort>> {
  const ports = new Map<SharedArrayBuffer, OutwardPort<InboundPort>>();
  processes.forEach((process, index) => {
    for (const port of process.inbound) {
      assertPositive(`latencyPs of a channel into ${process.name}`, port.latencyPs);
      if (ports.has(port.reader.buffer)) {
        throw new ConfigurationError(`readers of a channel into ${process.name}`, 2, 'exactly 1');
      }
      ports.set(port.reader.buffer, { process: index, end: port });
    }
  });
  return ports;
}
