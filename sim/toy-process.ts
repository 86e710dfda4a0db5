/**
 * A toy logical process for the specs of the kernel: it plays ping-pong with its neighbours, between timers, cancelled timers,
 * a clocked stage and programs, all of random length, and keeps a digest of all its observations.
 *
 *     program ── ping ──▶ neighbour: fifo ▶ stage ▶ timer ── pong ──▶ program
 */
import type { Cycles, Picoseconds } from '../base/index.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes, RECORD_HEADER_BYTES } from './channel.ts';
import { PHASE_SOFTWARE } from './event-queue.ts';
import { Fifo } from './fifo.ts';
import { LogicalProcess } from './logical-process.ts';
import { Random } from './random.ts';
import { RunError } from './run-errors.ts';

/** One neighbour: the memory of the channel from it and of the channel to it, each with this latency. */
export interface ToyNeighbour {
  readonly from: SharedArrayBuffer;
  readonly to: SharedArrayBuffer;
  readonly latencyPs: Picoseconds;
}

/** Everything from which a toy is built: plain data, so that it can be sent to a worker. */
export interface ToyConfig {
  readonly name: string;
  readonly seed: number;
  readonly neighbours: readonly ToyNeighbour[];
  /** Round trips of the toy's program; 0: the toy has none. */
  readonly roundTrips: number;
  /** The program's longest pause in picoseconds. */
  readonly pauseMaxPs: Picoseconds;
  /** Ending instead of the last pong: nothing, an exception, an error that ends runs, or endless silence. */
  readonly ending?: 'throw' | 'giveUp' | 'silence';
}

const PING = 1;
const PONG = 2;
const WORK_MAX_PS = 90_000;

/** Four toys around a square, each pair of neighbours joined by two channels of about `latencyPs`. */
export function toyConfigs(seed: number, changes: Partial<ToyConfig> = {}, latencyPs = 150_000): ToyConfig[] {
  const names = ['north', 'east', 'south', 'west'];
  const neighbours: ToyNeighbour[][] = names.map(() => []);
  for (let index = 0; index < names.length; index++) {
    const other = (index + 1) % names.length;
    const clockwise = new SharedArrayBuffer(channelBufferBytes(4096));
    const back = new SharedArrayBuffer(channelBufferBytes(4096));
    const ownLatencyPs = latencyPs + index * 7;
    neighbours[index]!.push({ from: back, to: clockwise, latencyPs: ownLatencyPs });
    neighbours[other]!.push({ from: clockwise, to: back, latencyPs: ownLatencyPs });
  }
  return names.map((name, index) => ({
    name,
    seed: seed + index,
    neighbours: neighbours[index]!,
    // The west toy has no program: it has ended from the start.
    roundTrips: index === 3 ? 0 : 100 + 20 * index,
    pauseMaxPs: 400_000,
    ...changes,
  }));
}

export class Toy {
  readonly process: LogicalProcess;
  readonly #config: ToyConfig;
  readonly #random: Random;
  readonly #writers: ChannelWriter[] = [];
  readonly #fifo = new Fifo({ name: 'toys', capacity: 64, whenFull: 'never: the channel holds fewer' });
  readonly #clock;
  readonly #stage: number;
  readonly #replyHandler: number;
  readonly #wakeHandler: number;
  readonly #watchdogHandler: number;
  #watchdog = 0;
  #resume: (() => void) | undefined;
  #digest = 0;
  #count = 0;

  constructor(config: ToyConfig) {
    this.#config = config;
    this.#random = new Random(config.seed, config.name);
    this.process = new LogicalProcess(config.name);
    const queue = this.process.queue;
    this.#replyHandler = queue.addHandler((neighbour, value) => this.#send(neighbour, PONG, value));
    this.#wakeHandler = queue.addHandler(() => this.#wake(), PHASE_SOFTWARE);
    this.#watchdogHandler = queue.addHandler(() => this.#note(9, 0));
    this.#clock = this.process.addClockDomain(427);
    this.#stage = this.#clock.addStage(this.#work, this);
    config.neighbours.forEach((neighbour, index) => {
      this.#connect(neighbour, index);
    });
  }

  /** Digest of all observations in order: equal digests mean equal runs. */
  get digest(): string {
    const { process } = this;
    return `${process.name} ${this.#count} ${this.#digest >>> 0} ${process.recordCount} ${process.queue.firedCount} ${process.nowPs}`;
  }

  /** Starts the program, if the toy has one. */
  start(): void {
    if (this.#config.roundTrips === 0) return;
    this.process.addMember();
    this.process.runningProgramCount++;
    this.#program().catch((thrown: unknown) => {
      this.process.failure = thrown;
      this.process.runningProgramCount--;
    });
  }

  async #program(): Promise<void> {
    const { roundTrips, pauseMaxPs, neighbours, ending } = this.#config;
    for (let trip = 0; trip < roundTrips; trip++) {
      const isLast = trip === roundTrips - 1;
      if (isLast && ending === 'throw') throw new TypeError('the toy broke');
      if (isLast && ending === 'giveUp') throw new RunError('the toy gave up');
      if (isLast && ending === 'silence') await this.#wait();
      this.#send(this.#random.below(neighbours.length), PING, trip);
      await this.#wait();
      this.process.queue.schedule(
        this.process.nowPs + this.#random.between(1, pauseMaxPs),
        this.#wakeHandler,
      );
      await this.#wait();
    }
    this.process.markEnded();
    this.process.runningProgramCount--;
  }

  async #wait(): Promise<void> {
    const resumed = new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
    this.process.runningProgramCount--;
    await resumed;
  }

  #wake(): void {
    this.#note(7, 0);
    this.process.runningProgramCount++;
    this.#resume!();
  }

  #connect(neighbour: ToyNeighbour, index: number): void {
    const reader = new ChannelReader(neighbour.from);
    const writer = new ChannelWriter(neighbour.to);
    this.#writers.push(writer);
    this.process.addOutbound(writer);
    this.process.addInbound(reader, neighbour.latencyPs, (offset) => {
      const kind = reader.kindAt(offset);
      const value = reader.floats[(offset >> 3) + 2]!;
      reader.release(offset);
      this.#note(kind + 10 * index, value);
      if (kind === PONG) {
        this.#wake();
        return;
      }
      const cycle = this.#clock.clock.cycleAfter(this.process.nowPs);
      this.#fifo.push(value * 4 + index, cycle + 1);
      this.#clock.wake(this.#stage, cycle);
    });
  }

  /** The clocked stage: takes one ping each cycle and starts its work; now and then it restarts the watchdog. */
  #work(cycle: Cycles): void {
    if (this.#fifo.headCycle > cycle) {
      this.#sleepUntil(this.#fifo.headCycle);
      return;
    }
    const item = this.#fifo.pop();
    this.#note(5, item);
    const queue = this.process.queue;
    const nowPs = this.process.nowPs;
    queue.schedule(nowPs + this.#random.below(WORK_MAX_PS), this.#replyHandler, item & 3, item >> 2);
    queue.cancel(this.#watchdog);
    this.#watchdog = queue.schedule(nowPs + this.#random.between(1, 20 * WORK_MAX_PS), this.#watchdogHandler);
    this.#sleepUntil(Math.max(this.#fifo.headCycle, cycle + 1));
  }

  #sleepUntil(cycle: Cycles): void {
    if (cycle !== Number.POSITIVE_INFINITY) this.#clock.wake(this.#stage, cycle);
  }

  #send(neighbour: number, kind: number, value: number): void {
    const writer = this.#writers[neighbour]!;
    const { latencyPs } = this.#config.neighbours[neighbour]!;
    const offset = writer.append(this.process.nowPs + latencyPs, kind, RECORD_HEADER_BYTES);
    writer.floats[(offset >> 3) + 2] = value;
    this.#note(3, value);
  }

  #note(kind: number, value: number): void {
    const nowPs = this.process.nowPs;
    let digest = Math.imul(this.#digest ^ kind, 0x01000193);
    digest = Math.imul(digest ^ value, 0x01000193);
    digest = Math.imul(digest ^ (nowPs | 0), 0x01000193);
    this.#digest = Math.imul(digest ^ Math.floor(nowPs / 2 ** 32), 0x01000193) ^ (digest >>> 15);
    this.#count++;
  }
}
