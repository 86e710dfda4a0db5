/**
 * The interrupt controller: from a message write or a wire at the root complex to a vector on a core.
 *
 *     MSI, MSI-X ── address: core, data: vector ──┐                    ┌─ handler
 *                                                 ├─ delivery time ─ pending ─ core ─ entry ─┤
 *     INTA … INTD ── level ───────────────────────┘                    └─ none: spurious
 *
 * Message addresses and data are those of a PC (Intel SDM vol. 3A 10.11): destination in address bits 19:12, vector
 * in data bits 7:0, the first of the platform's vectors being 32.
 *
 * Promises: one pending interrupt per vector: a message whose vector is already pending merges into it, so a storm causes at
 * most back-to-back handlers; for each vector delivered = handled + spurious + merged + waiting. A wire that changes at the
 * instant of sampling counts with its old level, in either order.
 */
import { assertRange, InvariantError, nsToPs, type Picoseconds } from '../base/index.ts';
import { type BlockState, type LogicalProcess, PHASE_HARDWARE } from '../sim/index.ts';
import type { Core } from './core.ts';
import type { CoreThread } from './core-thread.ts';
import type { InterruptConfig } from './host-parameters.ts';

export type InterruptHandler = (cpu: CoreThread) => Promise<void>;

/** Device writes to this range are interrupts; devices cannot reach the memory under it. */
export const messageWindowAddress = 0xfee0_0000;
export const messageWindowBytes = 0x10_0000;

const firstSystemVector = 32;
const NEVER = Number.NEGATIVE_INFINITY;

export interface InterruptStatistics {
  /** MSI-X vector of the platform, or `INTA` to `INTD`. */
  readonly vector: number | string;
  /** Interrupts that have reached the vector's core. */
  readonly delivered: number;
  /** Arrived messages that a handler has served. */
  readonly handled: number;
  /** Arrived messages without a handler. */
  readonly spurious: number;
  /** Arrived messages that found the vector pending. */
  readonly merged: number;
  /** Arrived messages that are not served yet. */
  readonly waiting: number;
}

class Line {
  readonly name: number | string;
  core: number;
  handler: InterruptHandler | undefined;
  delivered = 0;
  handled = 0;
  spurious = 0;
  merged = 0;
  isPending = false;
  isInService = false;
  /** Level of a wire; messages have none. */
  isAsserted = false;
  /** The instant of its last change, and its level before that. */
  #changedPs = NEVER;
  #wasAsserted = false;

  constructor(name: number | string, core: number) {
    this.name = name;
    this.core = core;
  }

  /** The wire changes. */
  setAsserted(isAsserted: boolean, nowPs: Picoseconds): void {
    if (nowPs !== this.#changedPs) this.#wasAsserted = this.isAsserted;
    this.#changedPs = nowPs;
    this.isAsserted = isAsserted;
  }

  /** Its level as sampled at an instant: a change counts from the next picosecond on. */
  isHigh(nowPs: Picoseconds): boolean {
    return nowPs === this.#changedPs ? this.#wasAsserted : this.isAsserted;
  }

  rebase(ps: number): void {
    this.#changedPs -= ps;
  }
}

export class InterruptController {
  readonly vectorCount: number;
  /** Messages whose address or data match no core or vector of this platform. */
  unroutedMessageCount = 0;
  /** Messages in flight to a core. */
  deliveringCount = 0;

  readonly #process: LogicalProcess;
  readonly #cores: readonly Core[];
  readonly #config: InterruptConfig;
  readonly #deliveryPs: Picoseconds;
  /** The platform's vectors, then the four pins. */
  readonly #lines: Line[];
  readonly #deliverHandler: number;

  /** @param cores filled before the first interrupt */
  constructor(process: LogicalProcess, cores: readonly Core[], coreCount: number, config: InterruptConfig) {
    this.#process = process;
    this.#cores = cores;
    this.#config = config;
    this.vectorCount = config.vectorCount;
    this.#deliveryPs = nsToPs(config.deliveryNs);
    this.#lines = [
      ...Array.from({ length: config.vectorCount }, (_, vector) => new Line(vector, vector % coreCount)),
      ...['INTA', 'INTB', 'INTC', 'INTD'].map((name) => new Line(name, 0)),
    ];
    process.addTimeKeeper(this);
    this.#deliverHandler = process.queue.addHandler((line, core) => this.#arrive(line, core), PHASE_HARDWARE);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (const line of this.#lines) line.rebase(ps);
  }

  // Methods for the root complex.

  /** A device wrote `data` to the message window. */
  message(address: number, data: number): void {
    const vector = (data & 0xff) - firstSystemVector;
    const core = Math.floor((address - messageWindowAddress) / 4096) & 0xff;
    if (vector < 0 || vector >= this.vectorCount || core >= this.#cores.length) {
      this.unroutedMessageCount++;
      return;
    }
    this.deliveringCount++;
    this.#process.queue.schedule(this.#process.nowPs + this.#deliveryPs, this.#deliverHandler, vector, core);
  }

  /** The virtual wire of a pin (0 is INTA) has changed. */
  intx(pin: number, isAsserted: boolean): void {
    const index = this.vectorCount + pin;
    const line = this.#lines[index]!;
    line.setAsserted(isAsserted, this.#process.nowPs);
    if (!isAsserted) return;
    this.#process.queue.schedule(
      this.#process.nowPs + this.#deliveryPs,
      this.#deliverHandler,
      index,
      line.core,
    );
  }

  // Methods for software.

  /** Message address and data for an MSI-X table entry of this vector. */
  messageFor(vector: number): { readonly address: number; readonly data: number } {
    return {
      address: messageWindowAddress + this.#messageLine(vector).core * 4096,
      data: firstSystemVector + vector,
    };
  }

  /** Directs the vector to a core in later calls of {@link messageFor}. */
  setAffinity(vector: number, coreIndex: number): void {
    assertRange('interrupt affinity', coreIndex, 0, this.#cores.length - 1);
    this.#messageLine(vector).core = coreIndex;
  }

  attach(vector: number, handler: InterruptHandler): void {
    attachTo(this.#messageLine(vector), handler);
  }

  detach(vector: number): void {
    this.#messageLine(vector).handler = undefined;
  }

  attachPin(pin: number, handler: InterruptHandler): void {
    attachTo(this.#lines[this.vectorCount + pin]!, handler);
  }

  detachPin(pin: number): void {
    this.#lines[this.vectorCount + pin]!.handler = undefined;
  }

  /** Runs in the interrupt context of a core, once for each interrupt the core takes. */
  async serve(index: number, cpu: CoreThread): Promise<void> {
    const line = this.#lines[index]!;
    line.isPending = false;
    line.isInService = true;
    cpu.charge('interrupt', this.#config.entryCycles);
    if (line.handler === undefined) {
      line.spurious++;
    } else {
      await line.handler(cpu);
      line.handled++;
    }
    cpu.charge('interrupt', this.#config.exitCycles);
    await cpu.settle();
    line.isInService = false;
    // A level that is still high interrupts again at the end of interrupt.
    const isHigh = line.isHigh(this.#process.nowPs);
    if (isHigh && line.handler !== undefined && !line.isPending) this.#deliver(index, line.core);
  }

  /** Counts of every vector that has had an interrupt. */
  counts(): InterruptStatistics[] {
    return this.#lines
      .filter(({ delivered }) => delivered > 0)
      .map((line) => ({
        vector: line.name,
        delivered: line.delivered,
        handled: line.handled,
        spurious: line.spurious,
        merged: line.merged,
        waiting: line.delivered - line.handled - line.spurious - line.merged,
      }));
  }

  /** Whether every vector's interrupts are accounted for: waiting ones are the one pending and the one in service. */
  get isBalanced(): boolean {
    return this.#lines.every((line) => {
      const waiting = line.delivered - line.handled - line.spurious - line.merged;
      const most = (line.isPending ? 1 : 0) + (line.isInService ? 1 : 0);
      return waiting >= (line.isPending ? 1 : 0) && waiting <= most;
    });
  }

  /** Messages in flight, and each vector and pin that differs from its initial state, by name. */
  inspect(): BlockState {
    const lines = this.#lines
      .filter(({ isPending, isInService, isAsserted, handler }) =>
        [isPending, isInService, isAsserted, handler !== undefined].includes(true),
      )
      .map(({ name, core, isPending, isInService, isAsserted, handler }) => [
        String(name),
        { core, isPending, isInService, isAsserted, hasHandler: handler !== undefined },
      ]);
    return { delivering: this.deliveringCount, lines: Object.fromEntries(lines) };
  }

  /** A message, or a change of a pin, has reached its core. */
  #arrive(index: number, coreIndex: number): void {
    if (index < this.vectorCount) this.deliveringCount--;
    this.#deliver(index, coreIndex);
  }

  #deliver(index: number, coreIndex: number): void {
    const line = this.#lines[index]!;
    if (index >= this.vectorCount && !line.isHigh(this.#process.nowPs)) return;
    line.delivered++;
    if (line.isPending) {
      line.merged++;
      return;
    }
    line.isPending = true;
    this.#cores[coreIndex]!.interrupt(index);
  }

  #messageLine(vector: number): Line {
    assertRange('interrupt vector', vector, 0, this.vectorCount - 1);
    return this.#lines[vector]!;
  }
}

function attachTo(line: Line, handler: InterruptHandler): void {
  if (line.handler !== undefined) {
    throw new InvariantError(
      `handler of interrupt ${line.name}`,
      'attached',
      'detached before another is attached',
    );
  }
  line.handler = handler;
}
