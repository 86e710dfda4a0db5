/**
 * A gate between the root complex and a real or simulated interrupt controller, with the faults that a plan injects:
 * lost, late and spurious messages. Counts the messages that pass, for the balance of interrupts.
 *
 *     root complex ── message ──► lost? · late? ──► sink
 *                                 spurious ───────►       at a given time, or after one of the device's
 */
import type { InterruptSink } from '../../hw/pcie/index.ts';
import type { LogicalProcess } from '../../sim/index.ts';
import type { FaultLog } from './fault-log.ts';
import { isNth } from './fields.ts';
import type { FaultOf } from './kinds.ts';

/** The interface of the interrupt controller that the gate needs. */
export interface GatedSink extends InterruptSink {
  /** The vector of a message, or -1. */
  vectorOf(address: number, data: number): number;
  /** The message of a vector. */
  messageFor(vector: number): { readonly address: number; readonly data: number };
}

export class InterruptGate implements InterruptSink {
  readonly #lp: LogicalProcess;
  readonly #sink: GatedSink;
  readonly #raiseHandler: number;
  readonly #lateHandler: number;
  /** All interrupt faults, and those among them that count messages. */
  #all: readonly FaultOf<'interrupt'>[] = [];
  #faults: readonly FaultOf<'interrupt'>[] = [];
  #log: FaultLog | undefined;
  /** Messages counted by each fault. */
  readonly #seen: number[] = [];
  /** Delayed messages by slot, and the free slots: as many as were ever delayed at once. */
  readonly #late: (readonly [number, number])[] = [];
  readonly #freePlaces: number[] = [];
  /** Messages from the device. */
  messageCount = 0;
  /** Numbers of these messages that were lost here, and that were delayed. */
  lostCount = 0;
  lateCount = 0;
  /** Delayed messages that have not been delivered yet. */
  heldCount = 0;
  /** Spurious messages generated here. */
  spuriousCount = 0;

  constructor(lp: LogicalProcess, sink: GatedSink) {
    this.#lp = lp;
    this.#sink = sink;
    this.#raiseHandler = lp.queue.addHandler((vector, index) => this.#raise(vector, index));
    this.#lateHandler = lp.queue.addHandler((place) => this.#deliver(place));
  }

  /** Sets the interrupt faults; must be called once, before time starts. */
  inject(faults: readonly FaultOf<'interrupt'>[], log?: FaultLog): void {
    this.#all = faults;
    this.#log = log;
    for (const [index, { vector, at }] of faults.entries())
      if (at !== undefined) this.#lp.queue.schedule(at, this.#raiseHandler, vector, index);
    this.#faults = faults.filter(({ at }) => at === undefined);
    this.#faults.forEach((_, index) => {
      this.#seen[index] = 0;
    });
  }

  message(address: number, data: number, nowPs: number): void {
    this.messageCount++;
    const fault =
      this.#faults.length === 0 ? undefined : this.#faultOf(this.#sink.vectorOf(address, data), nowPs);
    if (fault !== undefined) this.#log?.fired(fault);
    if (fault === undefined) {
      this.#sink.message(address, data, nowPs);
    } else if (fault.interrupt === 'lost') {
      this.lostCount++;
    } else {
      this.lateCount++;
      this.heldCount++;
      const place = this.#freePlaces.pop() ?? this.#late.length;
      this.#late[place] = [address, data];
      this.#lp.queue.schedule(nowPs + fault.delay!, this.#lateHandler, place);
    }
  }

  intx(pin: number, isAsserted: boolean, nowPs: number): void {
    this.#sink.intx(pin, isAsserted, nowPs);
  }

  /**
   * Returns the first fault that delays or drops this message. Every fault counts it, and spurious messages that follow
   * it are scheduled.
   */
  #faultOf(vector: number, nowPs: number): FaultOf<'interrupt'> | undefined {
    let found: FaultOf<'interrupt'> | undefined;
    for (const [index, fault] of this.#faults.entries()) {
      if (fault.vector !== undefined && fault.vector !== vector) continue;
      this.#seen[index] = this.#seen[index]! + 1;
      if (!isNth(fault.nth, this.#seen[index]!)) continue;
      if (fault.interrupt === 'spurious')
        this.#lp.queue.schedule(
          nowPs + (fault.delay ?? 0),
          this.#raiseHandler,
          vector,
          this.#all.indexOf(fault),
        );
      else found ??= fault;
    }
    return found;
  }

  #deliver(place: number): void {
    const [address, data] = this.#late[place]!;
    this.#freePlaces.push(place);
    this.heldCount--;
    this.#sink.message(address, data, this.#lp.nowPs);
  }

  #raise(vector: number, index: number): void {
    this.spuriousCount++;
    this.#log?.fired(this.#all[index]!);
    const { address, data } = this.#sink.messageFor(vector);
    this.#sink.message(address, data, this.#lp.nowPs);
  }
}
