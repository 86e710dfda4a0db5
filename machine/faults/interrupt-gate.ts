/**
 * A gate in front of an interrupt controller, real or simulated, with the faults that a plan injects: messages that get
 * lost, come late, or that the device never sent. Counts what passes, for the balance of interrupts.
 *
 *     root complex ── message ──► lost? · late? ──► sink
 *                                 spurious ───────►       at a time of its own, or behind one of the device's
 */
import type { InterruptSink } from '../../hw/pcie/index.ts';
import type { LogicalProcess } from '../../sim/index.ts';
import type { FaultLog } from './fault-log.ts';
import { isNth } from './fields.ts';
import type { FaultOf } from './kinds.ts';

/** The gate's view of the controller behind it. */
export interface GatedSink extends InterruptSink {
  /** The vector that a message means, or -1. */
  vectorOf(address: number, data: number): number;
  /** The message of a vector. */
  messageFor(vector: number): { readonly address: number; readonly data: number };
}

export class InterruptGate implements InterruptSink {
  readonly #lp: LogicalProcess;
  readonly #sink: GatedSink;
  readonly #raiseHandler: number;
  readonly #lateHandler: number;
  /** All faults of interrupts, and of them those that count messages. */
  #all: readonly FaultOf<'interrupt'>[] = [];
  #faults: readonly FaultOf<'interrupt'>[] = [];
  #log: FaultLog | undefined;
  /** Messages seen by each fault. */
  readonly #seen: number[] = [];
  /** Messages held back, by place, and the places that are free: as many as were ever held back at once. */
  readonly #late: (readonly [number, number])[] = [];
  readonly #freePlaces: number[] = [];
  /** Messages that came from the device. */
  messageCount = 0;
  /** Of these, those lost here, and those held back for a while. */
  lostCount = 0;
  lateCount = 0;
  /** Those held back that have not been delivered yet. */
  heldCount = 0;
  /** Messages invented here. */
  spuriousCount = 0;

  constructor(lp: LogicalProcess, sink: GatedSink) {
    this.#lp = lp;
    this.#sink = sink;
    this.#raiseHandler = lp.queue.addHandler((vector, index) => this.#raise(vector, index));
    this.#lateHandler = lp.queue.addHandler((place) => this.#deliver(place));
  }

  /** Takes the faults of interrupts; to be called once, before time starts. */
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

  /** The first fault that holds this message back; every fault counts it, and those that follow it are sent off. */
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
