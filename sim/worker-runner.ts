/**
 * Runs the logical processes of one worker thread in step with those of the others; every worker has its own runner and is
 * asked for the same run. Stop rules and results are those of {@link SingleRunner}.
 *
 *     ┌─▶ poll the others ────▶ take turns, publishing after each ─┐
 *     │        │ nothing may be run                                │
 *     │        ▼                                                   │
 *     │    sleep: say what is due and what was seen;               │
 *     │    poll for a while, then wait for a signal                │
 *     └────────┴───────────────────────────────────────────────────┘
 *
 * A worker that goes to sleep, or raises a promise, wakes the sleepers that may now run. The last worker awake sees the exact
 * state of all others, and so wakes the owner of the earliest event, at any distance. An error anywhere ends the run
 * everywhere; a lost worker is reported by its watcher ({@link watchWorker}).
 *
 * Waiting uses the wall clock only for waking; no result depends on it.
 */

import { ConfigurationError, NEVER, type Picoseconds, runtime } from '../base/index.ts';
import type { ChannelWriter } from './channel.ts';
import { exactPs } from './epoch.ts';
import type { LogicalProcess } from './logical-process.ts';
import { ProcessGroup } from './process-group.ts';
import { DeadlockError, ProcessFailedError, processFailure, type RunError } from './run-errors.ts';
import type { SharedControl } from './shared-control.ts';
import { SharedHorizon } from './shared-horizon.ts';
import { checkDrain, checkLimit, type Runner, type RunOutcome } from './single-runner.ts';

const NONE = -1;
/** Turns between two polls of the other workers. */
const TURNS_PER_POLL = 4;
/** A window is the least latency into the worker, divided by this: it sets how often promises are made. */
const WINDOW_DIVISOR = 3;

/** About 200 µs of polling: several times the duration of waking a thread. */
const SPIN_COUNT = 1000;

export interface WorkerRunnerOptions {
  /**
   * Polls of the others before the thread waits for a signal: many if every worker has a core, none if they share cores, since
   * a spinning thread would then occupy the core that the awaited one needs.
   */
  readonly spinCount?: number;
}

export class WorkerRunner implements Runner {
  readonly #control: SharedControl;
  readonly #worker: number;
  readonly #group: ProcessGroup;
  readonly #horizon: SharedHorizon;
  readonly #firstProcess: number;
  readonly #spinCount: number;
  /** Channel ends out of this worker, by process of the group. */
  readonly #writers: readonly (readonly ChannelWriter[])[];
  /** Last promise made, by process of the group. */
  readonly #promisedPs: Float64Array;
  readonly #wasEnded: boolean[];
  /** Worker at the reading end of each channel, once known. */
  #readingWorker: readonly number[] = [];
  #failure: RunError | undefined;

  /**
   * @param processes those that the control's plan names for this worker, in that order, completely wired
   * @throws ConfigurationError if they differ
   */
  constructor(
    control: SharedControl,
    worker: number,
    processes: readonly LogicalProcess[],
    options: WorkerRunnerOptions = {},
  ) {
    const planned = control.processNames.filter((_, process) => control.workerOf[process] === worker).join();
    const given = processes.map(({ name }) => name).join();
    if (given !== planned) throw new ConfigurationError(`processes of worker ${worker}`, given, planned);
    this.#control = control;
    this.#worker = worker;
    this.#group = new ProcessGroup(processes);
    this.#horizon = new SharedHorizon(control, worker, this.#group);
    this.#firstProcess = control.workerOf.indexOf(worker);
    this.#spinCount = options.spinCount ?? (control.workerCount <= runtime().coreCount ? SPIN_COUNT : 0);
    this.#promisedPs = new Float64Array(processes.length);
    this.#wasEnded = processes.map(() => false);
    for (const process of processes) process.isCalledOff = () => control.failure !== undefined;
    this.#writers = processes.map((_, process) =>
      this.#group.outward.filter((port) => port.process === process).map(({ end }) => end),
    );
    this.#register();
  }

  /** Turns taken by this worker so far. */
  get turnCount(): number {
    return this.#group.turnCount;
  }

  get nextPs(): Picoseconds {
    return this.#group.nextDuePs;
  }

  rebase(ps: number): void {
    for (const process of this.#group.processes) process.rebase(ps);
    this.#control.epochUs = this.#group.processes[0]!.epochUs;
  }

  async runTo(limitPs: Picoseconds): Promise<RunOutcome> {
    checkLimit(limitPs, this.#nowPs);
    return this.#run(NEVER, limitPs);
  }

  async runUntilEnded(drainPs: Picoseconds, limitPs = NEVER): Promise<RunOutcome> {
    checkDrain(drainPs);
    if (limitPs !== NEVER) checkLimit(limitPs, this.#nowPs);
    return this.#run(drainPs, limitPs);
  }

  get #nowPs(): Picoseconds {
    return this.#group.processes.reduce((latest, { nowPs }) => Math.max(latest, nowPs), 0);
  }

  async #run(drainPs: Picoseconds, limitPs: Picoseconds): Promise<RunOutcome> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      const startPs = this.#nowPs;
      await this.#begin(startPs, drainPs, limitPs);
      await this.#runToStop();
      return this.#end(drainPs);
    } catch (thrown) {
      const { current, processes } = this.#group;
      const { name, nowPs, instantPs } = processes[current]!;
      const failure = processFailure(name, instantPs, thrown);
      // Every worker detects a deadlock by itself. A report is dropped if another worker's was first, as is an error.
      if (!(failure instanceof DeadlockError)) {
        const reason = failure instanceof ProcessFailedError ? failure.reason : failure.message;
        this.#control.reportFailure(this.#firstProcess + current, nowPs, reason);
      }
      this.#failure = failure;
      throw failure;
    }
  }

  async #begin(startPs: Picoseconds, drainPs: Picoseconds, limitPs: Picoseconds): Promise<void> {
    const { processes } = this.#group;
    await this.#group.start();
    // From here on, no worker reads the results of the previous run.
    this.#control.waitAtBarrier();
    this.#control.setRun(this.#worker, drainPs, limitPs);
    for (let index = 0; index < processes.length; index++) {
      const { isEnded, endedPs } = processes[index]!;
      this.#wasEnded[index] = isEnded;
      this.#control.setEnded(this.#firstProcess + index, isEnded, Math.max(startPs, endedPs));
      this.#control.promise(this.#firstProcess + index, startPs);
      this.#promisedPs[index] = startPs;
      this.#send(index);
    }
    this.#control.waitAtBarrier();
    for (let worker = 0; worker < this.#control.workerCount; worker++) {
      if (this.#control.isSameRun(worker, drainPs, limitPs)) continue;
      throw new ConfigurationError(
        `run of worker ${worker}`,
        'another one',
        `drain ${drainPs}, limit ${limitPs}`,
      );
    }
    if (this.#readingWorker.length === 0) this.#learnChannels();
    this.#horizon.begin(startPs, drainPs, limitPs);
  }

  async #runToStop(): Promise<void> {
    const horizon = this.#horizon;
    for (;;) {
      this.#control.throwIfAborted();
      horizon.poll();
      if (horizon.isDone) return;
      this.#promise();
      horizon.wakeOthers();
      let index = this.#group.pick();
      if (index === NONE) this.#sleep();
      for (let turn = 0; index !== NONE; turn++) {
        if (this.#group.takeTurn(index)) await this.#group.settle(index);
        this.#group.finishTurn(index);
        this.#publish(index);
        index = turn < TURNS_PER_POLL ? this.#group.pick() : NONE;
      }
    }
  }

  /** Waits for the others at the end of the run, and determines its result with them. */
  #end(drainPs: Picoseconds): RunOutcome {
    const control = this.#control;
    const { processes, inward } = this.#group;
    const { stopPs } = this.#horizon;
    for (let index = 0; index < processes.length; index++)
      control.promise(this.#firstProcess + index, stopPs);
    control.wakeAll();
    control.waitAtBarrier();
    for (const { end } of inward) end.reader.refreshRecords();
    processes.forEach((process, index) => {
      control.setNext(this.#firstProcess + index, process.nextPs());
      control.promise(this.#firstProcess + index, process.nowPs);
    });
    control.waitAtBarrier();
    const waiting = control.processNames.flatMap((name, index) =>
      control.isEnded(index) ? [] : [{ name, instantPs: exactPs(control.epochUs, control.promisePs(index)) }],
    );
    const isSilent = control.processNames.every((_, index) => control.nextPs(index) === NEVER);
    if (drainPs !== NEVER && waiting.length > 0 && isSilent) throw new DeadlockError(waiting);
    for (const process of processes) process.nowPs = stopPs;
    return { reason: drainPs !== NEVER && waiting.length === 0 ? 'ended' : 'limit', stoppedPs: stopPs };
  }

  /** Publishes the effects of the process's turn, then the promises of all processes of the group. */
  #publish(index: number): void {
    const { isEnded, endedPs } = this.#group.processes[index]!;
    if (isEnded !== this.#wasEnded[index]) {
      this.#wasEnded[index] = isEnded;
      this.#control.setEnded(this.#firstProcess + index, isEnded, endedPs);
    }
    this.#send(index);
    this.#promise();
  }

  #promise(): void {
    const group = this.#group;
    for (let index = 0; index < this.#promisedPs.length; index++) {
      const ps = Math.min(group.nextPs[index]!, group.limitPs(index));
      if (ps <= this.#promisedPs[index]!) continue;
      this.#promisedPs[index] = ps;
      this.#control.promise(this.#firstProcess + index, ps);
    }
  }

  #send(index: number): void {
    const writers = this.#writers[index]!;
    for (let place = 0; place < writers.length; place++) {
      const writer = writers[place]!;
      if (!writer.isDirty) continue;
      this.#control.setSent(writer.number, writer.tail);
      writer.flush();
      const worker = this.#readingWorker[writer.number];
      if (worker !== undefined) this.#control.wake(worker);
    }
  }

  #sleep(): void {
    const control = this.#control;
    const { processes, nextPs, inward } = this.#group;
    for (let index = 0; index < processes.length; index++)
      control.setNext(this.#firstProcess + index, nextPs[index]!);
    for (let index = 0; index < inward.length; index++) {
      const { reader } = inward[index]!.end;
      control.setConsumed(reader.number, reader.knownTail);
    }
    control.toggleSleep(this.#worker);
    this.#waitForReason();
    control.toggleSleep(this.#worker);
  }

  #waitForReason(): void {
    for (let spin = 0; spin < this.#spinCount; spin++) if (this.#hasReason()) return;
    const signal = this.#control.announceParking(this.#worker);
    if (this.#hasReason()) this.#control.unpark(this.#worker);
    else this.#control.park(this.#worker, signal);
  }

  /** True if there is a reason to stay awake. */
  #hasReason(): boolean {
    this.#control.throwIfAborted();
    const haveCome = this.#horizon.poll();
    if (haveCome || this.#horizon.isDone || this.#group.pick() !== NONE) return true;
    this.#horizon.wakeOthers();
    return false;
  }

  /** Registers the channel ends in this worker, including those of channels within it. */
  #register(): void {
    let leastLatencyPs = NEVER;
    this.#group.processes.forEach((process, index) => {
      for (const writer of process.outbound) {
        this.#control.registerWriter(writer.number, this.#firstProcess + index);
      }
      for (const { reader, latencyPs } of process.inbound) {
        this.#control.registerReader(reader.number, this.#firstProcess + index, latencyPs);
      }
    });
    for (const { end } of this.#group.inward) leastLatencyPs = Math.min(leastLatencyPs, end.latencyPs);
    this.#group.windowPs = Math.ceil(leastLatencyPs / WINDOW_DIVISOR);
  }

  #learnChannels(): void {
    this.#horizon.learnChannels();
    const { workerOf, channelCount } = this.#control;
    this.#readingWorker = Array.from(
      { length: channelCount },
      (_, channel) => workerOf[this.#control.channelEnds(channel).to]!,
    );
  }
}
