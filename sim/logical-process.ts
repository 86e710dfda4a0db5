/**
 * A logical process is a part of the machine that keeps its own time: a host or an HCA. It owns an event
 * queue, clock domains and the ends of its channels, and shares nothing else with other logical processes.
 *
 * At one instant it delivers records (in the order of its inbound ports), then runs clock edges (in the order
 * of its clock domains), then queued events (hardware before software). Records are known before their instant
 * is reached, so this order, and with it every result, is the same however logical processes are placed on
 * threads.
 */

import { InvariantError } from '../base/assert.ts';
import type { ChannelReader, ChannelWriter } from './channel.ts';
import { Clock } from './clock.ts';
import { ClockDomain } from './clock-domain.ts';
import { EventQueue } from './event-queue.ts';

/** Sources that {@link LogicalProcess.advance} compares without a loop. */
const QUICK_SOURCES = 4;

/** Receives a record: `offset` is its place in the reader's data area; it must be released in the end. */
export type RecordHandler = (offset: number) => void;

/** The reading end of a channel, at the process that it leads to. */
export class InboundPort {
  readonly reader: ChannelReader;
  readonly latencyPs: number;
  readonly deliver: RecordHandler;
  promisedPs = 0;

  constructor(reader: ChannelReader, latencyPs: number, deliver: RecordHandler) {
    this.reader = reader;
    this.latencyPs = latencyPs;
    this.deliver = deliver;
  }
}

export class LogicalProcess {
  readonly name: string;
  readonly queue: EventQueue;
  /** The current instant in picoseconds. */
  nowPs = 0;
  /** Earliest instant at which something was due when {@link advance} last ran up to its limit. */
  aheadPs = 0;
  /** Records delivered so far. */
  recordCount = 0;
  /**
   * Programs (async functions) that have been resumed and have not yet asked to wait for simulated time again.
   * While it is above zero, time stands still and {@link settle} lets them run.
   */
  runningProgramCount = 0;

  /**
   * What ended a program of this process with an error, if anything did: the run ends with it. Whoever runs
   * the programs sets it, before the program stops being counted as running.
   */
  failure: unknown;

  #inbound: InboundPort[] = [];
  #outbound: ChannelWriter[] = [];
  #memberCount = 0;
  #endedPs = Number.NEGATIVE_INFINITY;
  #clockDomains: ClockDomain[] = [];
  #shuffle: (() => number) | undefined;
  /** How far {@link advance} may run. A field, because a number among the arguments would be unpacked at each step. */
  #limitPs = 0;
  /** Next instant of each source in the order of precedence: inbound ports, clock domains, event queue. */
  #due: Float64Array = new Float64Array(QUICK_SOURCES);

  /** @param shuffle reorders what one instant leaves unordered; see {@link EventQueue} */
  constructor(name: string, shuffle?: () => number) {
    this.name = name;
    this.#shuffle = shuffle;
    this.queue = new EventQueue(1024, shuffle);
    this.#layOutDue();
  }

  /** Adds a clock domain of the given frequency. */
  addClockDomain(frequencyMHz: number): ClockDomain {
    const domain = new ClockDomain(new Clock(frequencyMHz));
    this.#clockDomains.push(domain);
    this.#layOutDue();
    return domain;
  }

  /** Connects the reading end of a channel whose records take at least `latencyPs` from sending to effect. */
  addInbound(reader: ChannelReader, latencyPs: number, deliver: RecordHandler): void {
    this.#inbound.push(new InboundPort(reader, latencyPs, deliver));
    this.#layOutDue();
  }

  /** Connects the writing end of a channel. */
  addOutbound(writer: ChannelWriter): void {
    this.#outbound.push(writer);
  }

  /** Reading ends connected so far, in the order in which they were added. */
  get inbound(): readonly InboundPort[] {
    return this.#inbound;
  }

  /** Writing ends connected so far, in the order in which they were added. */
  get outbound(): readonly ChannelWriter[] {
    return this.#outbound;
  }

  /** Adds a member: something of this process, like a program, that a run until the end waits for. */
  addMember(): void {
    this.#memberCount++;
  }

  /** One member ends, now. */
  markEnded(): void {
    if (this.#memberCount === 0)
      throw new InvariantError(`members of ${this.name}`, 0, 'at least 1 at an end');
    this.#memberCount--;
    if (this.nowPs > this.#endedPs) this.#endedPs = this.nowPs;
  }

  /** True when no member is left: also of a process that never had one. */
  get isEnded(): boolean {
    return this.#memberCount === 0;
  }

  /** Instant at which the last member ended so far, -Infinity when none has. */
  get endedPs(): number {
    return this.#endedPs;
  }

  /** Earliest instant at which something is due here, as far as is known; Infinity when nothing is. */
  nextPs(): number {
    const due = this.#due;
    let next = due[0]!;
    for (let source = 1; source < due.length; source++) if (due[source]! < next) next = due[source]!;
    return next;
  }

  /** How many things are due here, as far as is known: channels with a record, clock domains, and each event. */
  get dueCount(): number {
    const sources = this.#due.subarray(0, -1);
    return (
      this.queue.pendingCount + sources.filter((instantPs) => instantPs < Number.POSITIVE_INFINITY).length
    );
  }

  /** Reads the neighbours' promises. Returns the instant before which nothing unknown can still arrive. */
  refreshHorizon(): number {
    let horizonPs = Number.POSITIVE_INFINITY;
    for (const port of this.#inbound) {
      const promisedPs = port.reader.refresh();
      if (promisedPs > port.promisedPs) port.promisedPs = promisedPs;
      const safePs = port.promisedPs + port.latencyPs;
      if (safePs < horizonPs) horizonPs = safePs;
    }
    return horizonPs;
  }

  /** Smallest latency of an inbound channel: how far past a common instant this process may always run. */
  get lookaheadPs(): number {
    let latencyPs = Number.POSITIVE_INFINITY;
    for (const port of this.#inbound) if (port.latencyPs < latencyPs) latencyPs = port.latencyPs;
    return latencyPs;
  }

  /** True when no published record waits to be delivered. */
  get isDrained(): boolean {
    return this.#inbound.every((port) => port.reader.isDrained);
  }

  /** Publishes all records sent, and promises to send no other before `promisePs`. */
  publish(promisePs: number): void {
    for (const writer of this.#outbound) writer.publish(promisePs);
  }

  /**
   * Runs everything due strictly before `limitPs`: then {@link aheadPs} says what is due next. Returns true when it
   * stopped because programs were resumed: the caller then awaits {@link settle} and calls again.
   */
  advance(limitPs: number): boolean {
    this.#limitPs = limitPs;
    const due = this.#due;
    const sourceCount = due.length;
    const portCount = this.#inbound.length;
    const queueSource = portCount + this.#clockDomains.length;
    for (;;) {
      // The first four by hand: most processes have no more, and a loop costs twice as much.
      let next = due[0]!;
      let first = 0;
      if (due[1]! < next) {
        next = due[1]!;
        first = 1;
      }
      if (due[2]! < next) {
        next = due[2]!;
        first = 2;
      }
      if (due[3]! < next) {
        next = due[3]!;
        first = 3;
      }
      for (let source = QUICK_SOURCES; source < sourceCount; source++) {
        if (due[source]! >= next) continue;
        next = due[source]!;
        first = source;
      }
      if (next >= this.#limitPs) {
        this.aheadPs = next;
        return false;
      }
      if (next < this.nowPs)
        throw new InvariantError(`next instant of ${this.name} in ps`, next, `at least ${this.nowPs}`);
      this.nowPs = next;
      if (this.#shuffle !== undefined) this.#runShuffled(next);
      else if (first < portCount) this.#deliver(this.#inbound[first]!);
      else if (first < queueSource) this.#clockDomains[first - portCount]!.runEdge();
      else this.queue.runNext();
      if (this.runningProgramCount > 0) return true;
    }
  }

  /** Lets resumed programs run, at a standing instant, until each waits for simulated time again or has ended. */
  async settle(): Promise<void> {
    for (let turn = 0; this.runningProgramCount > 0; turn++) {
      if (turn < 10_000) await null;
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Gives every source its place in the table of what is due. */
  #layOutDue(): void {
    const sourceCount = this.#inbound.length + this.#clockDomains.length + 1;
    const due = new Float64Array(Math.max(QUICK_SOURCES, sourceCount)).fill(Number.POSITIVE_INFINITY);
    let source = 0;
    for (const port of this.#inbound) port.reader.attachDue(due, source++);
    for (const domain of this.#clockDomains) domain.attachDue(due, source++);
    this.queue.attachDue(due, source);
    this.#due = due;
  }

  #deliver(port: InboundPort): void {
    this.recordCount++;
    port.deliver(port.reader.take());
  }

  /** Picks at random among all that is due at `instantPs`; software events stay last. */
  #runShuffled(instantPs: number): void {
    const ports = this.#inbound.filter((port) => port.reader.nextPs === instantPs);
    const domains = this.#clockDomains.filter((domain) => domain.nextPs === instantPs);
    const hasEvent = this.queue.nextPs === instantPs && this.queue.nextPhase === 0;
    const choices = ports.length + domains.length + (hasEvent ? 1 : 0);
    const choice = choices === 0 ? 0 : Math.floor(this.#shuffle!() * choices);
    if (choice < ports.length) this.#deliver(ports[choice]!);
    else if (choice < ports.length + domains.length) domains[choice - ports.length]!.runEdge();
    else this.queue.runNext();
  }
}
