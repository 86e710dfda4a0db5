/**
 * The logical processes of one thread, run in turns so that none ever receives a record from its past.
 *
 *        ┌─ turn ────────────────────────────────────────────────────────────────┐
 *        │ pick the process whose next event is the earliest                     │
 *        │ run it up to its limit: no record unknown to it can take effect before │
 *        └───────────────────────────────────────────────────────────────────────┘
 *
 * The limit is exact. The next change begins with the next event of some process j and reaches process k after the least sum of
 * latencies on a route from j to k. So k may run below min over j of (next j + route j→k). The process with the earliest event
 * can therefore always run it, and silence of any length costs one turn. Processes of other threads enter as `arrivalPs`: the
 * earliest effect of any record that they may still send.
 *
 * A turn allocates nothing. Turns do not change results, only when they are computed in host time.
 */

import { assertPositive, ConfigurationError, NEVER, type Picoseconds } from '../base/index.ts';
import { type ChannelWriter, joinEnds } from './channel.ts';
import type { InboundPort } from './inbound-port.ts';
import type { LogicalProcess } from './logical-process.ts';

const NONE = -1;
const PAUSE = -2;
const QUICK_SETTLE_TURNS = 64;
/** Processes that are compared without a loop; a group has at least this many slots. */
const QUICK_PLACES = 4;
/** Turns between two pauses: a few milliseconds. A turn that runs programs may take longer, and counts as several. */
const PAUSE_TURNS = 1024;
const PROGRAM_TURNS = 16;
/** Awaiting it lets all pending callbacks run; unlike other values it needs no promise of its own. */
const SETTLED = Promise.resolve();

/** A channel end whose opposite end is in another thread. */
export interface OutwardPort<End> {
  /** Index of its process in this group. */
  readonly process: number;
  readonly end: End;
}

export class ProcessGroup {
  readonly processes: readonly LogicalProcess[];
  /** Earliest due instant, by process (Infinity for each unused slot). */
  readonly nextPs: Float64Array;
  /** Earliest instant at which an unknown record can arrive from another thread, by process. */
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
  /** Turns after which {@link runToStop} pauses; Infinity: it never pauses. */
  pauseTurn = NEVER;
  /** Index of the process that ran last: if an error was thrown, its code threw it. */
  current = 0;

  /** The least sums of latencies on a route to each process from each slot: for process p from p × {@link #placeCount} on. */
  readonly #waysTo: Float64Array;
  readonly #placeCount: number;
  /** Whether channels lead in from other threads. */
  readonly #isOpen: boolean;

  /** @param processes completely wired: channels connected later are ignored */
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

  /** Lets programs that were started between runs reach their first wait, and updates the due instants. */
  async start(): Promise<void> {
    for (let index = 0; index < this.processes.length; index++) {
      if (this.processes[index]!.runningProgramCount > 0) await this.settle(index);
      this.finishTurn(index);
    }
  }

  /**
   * Takes turns until nothing more may run, and lets resumed programs run in between.
   * @param pause called now and then between two turns, and awaited if it returns a promise; pauses change no result
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
      // Most programs wait again after a few microtasks: lets those pass here, without an async call's promise for each.
      const process = this.processes[resumed]!;
      for (let turn = 0; process.runningProgramCount > 0 && turn < QUICK_SETTLE_TURNS; turn++) await SETTLED;
      if (process.runningProgramCount > 0 || process.failure !== undefined) await this.settle(resumed);
      this.finishTurn(resumed);
    }
  }

  /**
   * Takes turns until nothing is due below any limit: then returns -1; or -2 at {@link pauseTurn}. Otherwise returns the index
   * of a process whose programs were resumed: the caller awaits {@link settle}, calls {@link finishTurn} and continues.
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

  /** Runs one process through its window. Returns true if it stopped because programs were resumed. */
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

  /** Earliest due instant of all processes. */
  get earliestPs(): Picoseconds {
    let earliestPs = NEVER;
    for (const nextPs of this.nextPs) if (nextPs < earliestPs) earliestPs = nextPs;
    return earliestPs;
  }

  /** The next due instant from the present state of each process: between two runs, after changes from outside. */
  get nextDuePs(): Picoseconds {
    return this.processes.reduce((earliest, process) => Math.min(earliest, process.nextPs()), NEVER);
  }

  /** True if no process has members left. */
  get isEnded(): boolean {
    return this.processes.every((process) => process.isEnded);
  }

  /** The last end of all members, if all have ended; before that, a lower bound of it. */
  endBoundPs(startPs: Picoseconds): number {
    let boundPs = this.isEnded ? startPs : Math.max(startPs, this.earliestPs);
    for (const process of this.processes) boundPs = Math.max(boundPs, process.endedPs);
    return boundPs;
  }

  /** Instant below which process `index` may run: no unknown record can take effect earlier. */
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

  /** Earliest instant at which an unknown record may reach process `index` from other threads, directly or through another process. */
  #arrivalLimitPs(index: number): number {
    const arrivalPs = this.arrivalPs;
    const first = index * this.#placeCount;
    let limit = arrivalPs[index]!;
    for (let from = 0; from < arrivalPs.length; from++)
      limit = Math.min(limit, arrivalPs[from]! + this.#waysTo[first + from]!);
    return limit;
  }

  /** Updates the next due instant of a process after its turn; its neighbours saw its records when it sent them. */
  finishTurn(index: number): void {
    this.nextPs[index] = this.processes[index]!.nextPs();
  }

  /** The process with the earliest next event among those that may run it now, or -1. */
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
    // Latencies are positive: only another thread can hold back the process with the earliest event.
    return this.#isOpen ? this.#pickOf(picked) : picked;
  }

  /** Returns `earliest` or, if other threads hold it back, the first process that may run its next event; or -1. */
  #pickOf(earliest: number): number {
    const nextPs = this.nextPs;
    if (nextPs[earliest]! < this.limitPs(earliest)) return earliest;
    for (let index = 0; index < this.processes.length; index++) {
      if (nextPs[index]! < this.limitPs(index)) return index;
    }
    return NONE;
  }

  /** Floyd and Warshall: every route is the shortest of the routes through each process between. */
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
