/**
 * Bounds up to which the processes of one worker may run, from the published state of all workers.
 *
 * For a process in an awake worker only its promise is known: it does nothing before that. If its worker is asleep and has seen
 * all records sent to it, the process is known exactly: it does nothing before its own next event or the next record that
 * reaches it. So silence propagates through sleepers by arithmetic, at once, without waking them to repeat a promise a little
 * later. If all other workers sleep, the bounds equal those of one thread.
 *
 * The order of reading makes this sound:
 *
 *     1. which workers sleep    2. promises    3. own records, records sent to sleepers and seen by them    4. which slept all along
 *
 * A record unseen in step 3 was sent after the promise of step 2, or by a sleeper that woke after step 4 and so
 * acts no earlier than its bound.
 */

import { ConfigurationError, NEVER, type Picoseconds } from '../base/index.ts';
import type { ProcessGroup } from './process-group.ts';
import type { SharedControl } from './shared-control.ts';

const AWAKE = 0;

export class SharedHorizon {
  /** No process runs at or past this instant, by the present bound. */
  stopPs = 0;
  /** True if {@link stopPs} is the end of the run. */
  isFinal = false;

  readonly #control: SharedControl;
  readonly #worker: number;
  readonly #group: ProcessGroup;
  /** Index of the group's first process among all. */
  readonly #firstProcess: number;
  /** The channels of the machine: ends and latency, by channel number. */
  readonly #from: Int32Array;
  readonly #to: Int32Array;
  readonly #latencyPs: Float64Array;
  readonly #workerOf: Int32Array;
  readonly #sleep: Int32Array;
  /** Earliest instant at which each process may act, and at which an unknown record may reach it. */
  readonly #actPs: Float64Array;
  readonly #reachPs: Float64Array;
  /** 1 for processes that act only at their known next instant, or when reached. */
  readonly #isKnown: Uint8Array;
  #drainPs = NEVER;
  #limitPs = NEVER;
  #startPs = 0;

  constructor(control: SharedControl, worker: number, group: ProcessGroup) {
    const processCount = control.processNames.length;
    this.#control = control;
    this.#worker = worker;
    this.#group = group;
    this.#firstProcess = control.workerOf.indexOf(worker);
    this.#from = new Int32Array(control.channelCount);
    this.#to = new Int32Array(control.channelCount);
    this.#latencyPs = new Float64Array(control.channelCount);
    this.#workerOf = Int32Array.from(control.workerOf);
    this.#sleep = new Int32Array(control.workerCount);
    this.#actPs = new Float64Array(processCount);
    this.#reachPs = new Float64Array(processCount);
    this.#isKnown = new Uint8Array(processCount);
  }

  /** Reads which workers are connected, once every worker has registered its channel ends. */
  learnChannels(): void {
    for (let channel = 0; channel < this.#from.length; channel++) {
      const { from, to, latencyPs } = this.#control.channelEnds(channel);
      if (from < 0 || to < 0)
        throw new ConfigurationError(`ends of channel ${channel}`, 'open', 'both connected');
      this.#from[channel] = from;
      this.#to[channel] = to;
      this.#latencyPs[channel] = latencyPs;
    }
  }

  /** Sets the stop rule of the run that begins at `startPs`. */
  begin(startPs: Picoseconds, drainPs: Picoseconds, limitPs: Picoseconds): void {
    this.#startPs = startPs;
    this.#drainPs = drainPs;
    this.#limitPs = limitPs;
    this.stopPs = startPs;
    this.isFinal = false;
  }

  /** Reads the published state of all others, and sets the group's arrival and stop instants. Returns true if records arrived. */
  poll(): boolean {
    const haveCome = this.#readOthers();
    this.#propagate();
    this.#decideStop();
    const { arrivalPs, inward } = this.#group;
    arrivalPs.fill(NEVER);
    for (let index = 0; index < inward.length; index++) {
      const { process, end } = inward[index]!;
      const ps = this.#actPs[this.#from[end.reader.number]!]! + end.latencyPs;
      if (ps < arrivalPs[process]!) arrivalPs[process] = ps;
    }
    this.#group.stopPs = this.stopPs;
    return haveCome;
  }

  /** True if the group has no work before the end of the run, and will receive none. */
  get isDone(): boolean {
    return this.isFinal && this.#hasFinished(this.#worker);
  }

  /** Wakes the sleepers that have work, or have finished, as found by the last {@link poll}. */
  wakeOthers(): void {
    for (let worker = 0; worker < this.#sleep.length; worker++) {
      if (worker === this.#worker || this.#sleep[worker] === AWAKE) continue;
      if (this.#canRun(worker) || (this.isFinal && this.#hasFinished(worker))) this.#control.wake(worker);
    }
  }

  /** Reads in the order given at the head of this file. */
  #readOthers(): boolean {
    const control = this.#control;
    const sleep = this.#sleep;
    const isKnown = this.#isKnown;
    const workerOf = this.#workerOf;
    for (let worker = 0; worker < sleep.length; worker++) {
      const sequence = worker === this.#worker ? AWAKE : control.sleepSequence(worker);
      sleep[worker] = (sequence & 1) === 1 ? sequence : AWAKE;
    }
    for (let process = 0; process < workerOf.length; process++) {
      isKnown[process] = sleep[workerOf[process]!] === AWAKE ? 0 : 1;
      if (workerOf[process] !== this.#worker) this.#actPs[process] = control.promisePs(process);
    }
    const haveCome = this.#readOwn();
    this.#readSleepers();
    return haveCome;
  }

  #readOwn(): boolean {
    const { inward, nextPs, processes } = this.#group;
    let haveCome = false;
    for (let index = 0; index < inward.length; index++) {
      const { process, end } = inward[index]!;
      if (!end.reader.refreshRecords()) continue;
      haveCome = true;
      if (end.reader.nextPs < nextPs[process]!) nextPs[process] = end.reader.nextPs;
    }
    for (let index = 0; index < processes.length; index++) {
      this.#actPs[this.#firstProcess + index] = nextPs[index]!;
      this.#isKnown[this.#firstProcess + index] = 1;
    }
    return haveCome;
  }

  /** Replaces the promises of sleepers by their next due instant, if nothing else can happen there. */
  #readSleepers(): void {
    const control = this.#control;
    const isKnown = this.#isKnown;
    const workerOf = this.#workerOf;
    for (let channel = 0; channel < this.#to.length; channel++) {
      const to = this.#to[channel]!;
      const worker = workerOf[to]!;
      if (isKnown[to] === 0 || worker === this.#worker || worker === workerOf[this.#from[channel]!]) continue;
      if (!control.isConsumed(channel)) isKnown[to] = 0;
    }
    // Here, `reachPs` holds the next instant; the next step turns it into the reach.
    for (let process = 0; process < isKnown.length; process++) {
      if (isKnown[process] === 1 && workerOf[process] !== this.#worker)
        this.#reachPs[process] = control.nextPs(process);
    }
    for (let process = 0; process < isKnown.length; process++) {
      const worker = workerOf[process]!;
      if (isKnown[process] === 0 || worker === this.#worker) continue;
      if (control.sleepSequence(worker) !== this.#sleep[worker]) isKnown[process] = 0;
      else this.#actPs[process] = this.#reachPs[process]!;
    }
  }

  /** Every known process acts when reached; it is reached the sender's latency after the sender acts. */
  #propagate(): void {
    const actPs = this.#actPs;
    const reachPs = this.#reachPs;
    reachPs.fill(NEVER);
    for (let hasChanged = true; hasChanged; ) {
      hasChanged = false;
      for (let channel = 0; channel < this.#from.length; channel++) {
        const to = this.#to[channel]!;
        const ps = actPs[this.#from[channel]!]! + this.#latencyPs[channel]!;
        if (ps < reachPs[to]!) reachPs[to] = ps;
        if (this.#isKnown[to] === 1 && ps < actPs[to]!) {
          actPs[to] = ps;
          hasChanged = true;
        }
      }
    }
  }

  #decideStop(): void {
    if (this.#drainPs === NEVER) {
      this.stopPs = this.#limitPs;
      this.isFinal = true;
      return;
    }
    let endedPs = this.#startPs;
    let earliestPs = NEVER;
    let haveEnded = true;
    for (let process = 0; process < this.#actPs.length; process++) {
      if (this.#control.isEnded(process)) {
        endedPs = Math.max(endedPs, this.#control.endedPs(process));
      } else {
        haveEnded = false;
        earliestPs = Math.min(earliestPs, this.#actPs[process]!);
      }
    }
    const boundPs = haveEnded ? endedPs : Math.max(endedPs, earliestPs);
    this.stopPs = Math.min(this.#limitPs, boundPs + this.#drainPs);
    this.isFinal = haveEnded || this.stopPs === this.#limitPs;
  }

  #canRun(worker: number): boolean {
    for (let process = 0; process < this.#actPs.length; process++) {
      if (this.#workerOf[process] !== worker || this.#isKnown[process] === 0) continue;
      const ps = this.#actPs[process]!;
      if (ps < this.#reachPs[process]! && ps < this.stopPs) return true;
    }
    return false;
  }

  #hasFinished(worker: number): boolean {
    for (let process = 0; process < this.#actPs.length; process++) {
      if (this.#workerOf[process] === worker && this.#actPs[process]! < this.stopPs) return false;
    }
    return true;
  }
}
