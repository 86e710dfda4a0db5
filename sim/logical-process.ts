/**
 * A logical process is a part of the machine that keeps its own time: a host or an HCA. It owns an event queue, clock domains
 * and the ends of its channels, and shares nothing else with other logical processes (except memory for payload, on which no
 * result depends: SharedDevice of hw/pcie).
 *
 * At one instant it delivers records (in the order of its inbound ports), then runs clock edges (in the order of its clock
 * domains), then queued events (hardware before software). Records are known before their instant is reached. So this order,
 * and every result, is the same for every placement of logical processes on threads.
 */

import {
  ConfigurationError,
  InvariantError,
  NEVER,
  type Picoseconds,
  psPerUs,
  runtime,
  type Wide,
} from '../base/index.ts';
import { ChannelReader, type ChannelWriter, channelBufferBytes } from './channel.ts';
import { Clock } from './clock.ts';
import { ClockDomain } from './clock-domain.ts';
import { type ExactPs, exactPs, type Stopwatch, startStopwatch, type TimeKeeper } from './epoch.ts';
import { EventQueue } from './event-queue.ts';
import { InboundPort, type RecordHandler, type RecordReceiver } from './inbound-port.ts';
import { RunAhead } from './run-ahead.ts';
import { RunError } from './run-errors.ts';

/**
 * Sends records at its own instants, at which nothing else happens. It may send them later: before its next call, or at the end
 * of the turn. That saves an event.
 */
export interface LateSender {
  /** Sends the records due by now, and requests a call for later ones ({@link LogicalProcess.sendBy}). */
  sendDue(): void;
}

/** Represent members that a process does not have: they are never due. */
const NO_PORT = new InboundPort(
  new ChannelReader(new SharedArrayBuffer(channelBufferBytes(4096))),
  NEVER,
  () => undefined,
);
const NO_DOMAIN = new ClockDomain(new Clock(1));

/** Turns of {@link LogicalProcess.settle}: first for settled promises, then for due callbacks, then for real waiting. */
const microtaskTurns = 10_000;
const immediateTurns = 1000;
const timerTurnMs = 2;
const never = (): boolean => false;

export class LogicalProcess {
  readonly name: string;
  readonly queue: EventQueue;
  /** Work that this process may do ahead of the turn. */
  readonly runAhead: RunAhead;
  /** The current instant in picoseconds, counted from the epoch. */
  nowPs = 0;
  /** Begin of the epoch: microseconds since power-on. */
  epochUs: Wide = 0;
  /**
   * Exclusive bound up to which edges and events may run: no record can arrive earlier. At most `now` if tie-breaking is random
   * or several clock domains exist.
   */
  untilPs = Number.NEGATIVE_INFINITY;
  /** Limit of the turn: the instant up to which {@link takeTurn} runs. A field, not an argument: see build/README.md. */
  limitPs = Number.NEGATIVE_INFINITY;
  /** Earliest due instant when {@link advance} last ran up to its limit. */
  aheadPs = Number.POSITIVE_INFINITY;
  /** Earliest instant at which a {@link LateSender} has something to send, as of its request; Infinity if none has. */
  lateSendPs = NEVER;
  /** Records delivered so far. */
  recordCount = 0;
  /**
   * Resumed programs (async functions) that do not wait for simulated time again yet. While it is above zero, time stands still
   * and {@link settle} lets them run.
   */
  runningProgramCount = 0;

  /**
   * Error that ended a program of this process, if any: the run ends with it. The runner of the programs sets it before it
   * stops counting the program as running.
   */
  failure: unknown;
  /** Wall-clock time for which {@link settle} waits for programs before {@link stuckError} ends the run; Infinity: no limit. */
  patienceMs = NEVER;
  /** Whether the run was called off: {@link settle} then no longer waits for programs. */
  isCalledOff: () => boolean = never;
  /** The failure of programs that did not end within the patience. */
  stuckError: () => unknown = () => new RunError(`programs of ${this.name} wait for what is not simulated`);

  #inbound: InboundPort[] = [];
  #outbound: ChannelWriter[] = [];
  #lateSenders: LateSender[] = [];
  #timeKeepers: TimeKeeper[] = [];
  #memberCount = 0;
  #asideCount = 0;
  #endedPs = Number.NEGATIVE_INFINITY;
  #clockDomains: ClockDomain[] = [];
  #shuffle: (() => number) | undefined;
  /** The fastest clock whose cycles are counted since power-on. */
  #fastestMHz = 1;
  /** The first two inbound ports, their readers (read at each step) and the first clock domain: few processes have more. */
  #port0 = NO_PORT;
  #port1 = NO_PORT;
  #reader0 = NO_PORT.reader;
  #reader1 = NO_PORT.reader;
  #domain = NO_DOMAIN;
  #hasMorePorts = false;
  #hasOwnChannel = false;
  /** Whether there are more clock domains, or the order within an instant is random. */
  #isUnusual = false;

  /**
   * @param shuffle reorders events whose order within an instant is undefined; see {@link EventQueue}
   * @param runsAhead whether work may be done ahead of its turn, which changes no result
   */
  constructor(name: string, shuffle?: () => number, runsAhead = true) {
    this.name = name;
    this.runAhead = new RunAhead(this, runsAhead);
    this.#shuffle = shuffle;
    this.queue = new EventQueue(64, shuffle);
    this.#isUnusual = shuffle !== undefined;
  }

  /** Adds a clock domain of the given frequency. */
  addClockDomain(frequencyMHz: number): ClockDomain {
    const domain = new ClockDomain(new Clock(frequencyMHz));
    this.countCyclesOf(domain.clock);
    if (this.#clockDomains.push(domain) > 1) {
      this.#isUnusual = true;
      this.untilPs = Number.NEGATIVE_INFINITY;
    } else {
      this.#domain = domain;
    }
    return domain;
  }

  /** Cycles of this clock are counted since power-on: simulated time ends where a number cannot count them. */
  countCyclesOf({ frequencyMHz }: Clock): void {
    if (frequencyMHz > this.#fastestMHz) this.#fastestMHz = frequencyMHz;
  }

  /** Connects the reading end of a channel. Its latency from sending to effect is at least `latencyPs`. */
  addInbound(reader: ChannelReader, latencyPs: Picoseconds, receiver: RecordReceiver | RecordHandler): void {
    const port = new InboundPort(reader, latencyPs, receiver);
    const portCount = this.#inbound.push(port);
    if (portCount === 1) {
      this.#port0 = port;
      this.#reader0 = reader;
    } else if (portCount === 2) {
      this.#port1 = port;
      this.#reader1 = reader;
    } else {
      this.#hasMorePorts = true;
    }
  }

  /** A channel leads from this process to itself. */
  noteOwnChannel(): void {
    this.#hasOwnChannel = true;
  }

  /** Connects the writing end of a channel. */
  addOutbound(writer: ChannelWriter): void {
    this.#outbound.push(writer);
  }

  /** Adds a sender that may ask for {@link sendBy}. */
  addLateSender(sender: LateSender): void {
    this.#lateSenders.push(sender);
  }

  /** Adds an object that keeps instants of this process, which move when a new epoch begins; for edges, see ClockDomain.addEdgeKeeper. */
  addTimeKeeper(keeper: TimeKeeper): void {
    this.#timeKeepers.push(keeper);
  }

  /** A {@link LateSender} has something to send at `ps`. */
  sendBy(ps: Picoseconds): void {
    if (ps < this.lateSendPs) this.lateSendPs = ps;
  }

  /** Reading ends connected so far, in the order of connection. */
  get inbound(): readonly InboundPort[] {
    return this.#inbound;
  }

  /** Writing ends connected so far, in the order of connection. */
  get outbound(): readonly ChannelWriter[] {
    return this.#outbound;
  }

  /** Adds a member: a part of this process, e.g. a program, for which a run until the end waits. */
  addMember(): void {
    this.#memberCount++;
  }

  /** One member ends, now. */
  markEnded(): void {
    if (this.#asideCount > 0) {
      this.#asideCount--;
      return;
    }
    if (this.#memberCount === 0)
      throw new InvariantError(`members of ${this.name}`, 0, 'at least 1 at an end');
    this.#memberCount--;
    if (this.nowPs > this.#endedPs) this.#endedPs = this.nowPs;
  }

  /** Treats all members as ended now, so that runs end: until {@link takeMembersBack}, between two runs. */
  setMembersAside(): void {
    if (this.#memberCount === 0) return;
    this.#asideCount = this.#memberCount;
    this.#memberCount = 0;
    if (this.nowPs > this.#endedPs) this.#endedPs = this.nowPs;
  }

  /** Waits again for members that were set aside and have not ended. */
  takeMembersBack(): void {
    this.#memberCount += this.#asideCount;
    this.#asideCount = 0;
  }

  /** True if no member is left, or the process never had one. */
  get isEnded(): boolean {
    return this.#memberCount === 0;
  }

  /** Instant at which the last member ended so far, -Infinity if none has. */
  get endedPs(): Picoseconds {
    return this.#endedPs;
  }

  /** Earliest known due instant of this process; Infinity if nothing is due. */
  nextPs(): Picoseconds {
    const next = this.#nextToRunPs();
    return this.lateSendPs < next ? this.lateSendPs : next;
  }

  /** The same instant without records that may be sent late. */
  #nextToRunPs(): Picoseconds {
    let next = this.#earliestPort().reader.nextPs;
    if (this.#domain.nextPs < next) next = this.#domain.nextPs;
    if (this.queue.nextPs < next) next = this.queue.nextPs;
    for (let index = 1; index < this.#clockDomains.length; index++) {
      if (this.#clockDomains[index]!.nextPs < next) next = this.#clockDomains[index]!.nextPs;
    }
    return next;
  }

  /** Events, records and clock edges so far. */
  get stepCount(): number {
    const edgeCount = this.#clockDomains.reduce((sum, { activeEdgeCount }) => sum + activeEdgeCount, 0);
    return this.queue.firedCount + this.recordCount + edgeCount;
  }

  /** The present instant since power-on, exact. */
  get instantPs(): ExactPs {
    return exactPs(this.epochUs, this.nowPs);
  }

  /** Starts counting time. */
  stopwatch(): Stopwatch {
    return startStopwatch(this);
  }

  /**
   * Begins a new epoch, between two runs: subtracts `ps`, a whole number of microseconds up to now, from all kept instants.
   * Every process of a machine does so before any runs again.
   * @throws InvariantError for another number; ConfigurationError if it would count more than 2^53 cycles of a clock
   */
  rebase(ps: Picoseconds): void {
    const endUs = Math.floor(Number.MAX_SAFE_INTEGER / this.#fastestMHz);
    if (this.epochUs + ps / psPerUs > endUs) {
      const range = `at most ${endUs}: 2^53 cycles of its clock of ${this.#fastestMHz} MHz`;
      throw new ConfigurationError(
        `simulated microseconds of ${this.name}`,
        this.epochUs + ps / psPerUs,
        range,
      );
    }
    if (ps % psPerUs !== 0 || ps < 0 || ps > this.nowPs)
      throw new InvariantError('picoseconds of an epoch', ps, `whole microseconds, at most ${this.nowPs} ps`);
    this.epochUs += ps / psPerUs;
    this.nowPs -= ps;
    this.untilPs -= ps;
    this.limitPs -= ps;
    this.aheadPs -= ps;
    this.lateSendPs -= ps;
    this.#endedPs -= ps;
    for (const port of this.#inbound) port.rebase(ps);
    for (const writer of this.#outbound) writer.rebase(ps);
    this.queue.rebase(ps);
    for (const domain of this.#clockDomains) domain.rebase(ps);
    for (const keeper of this.#timeKeepers) keeper.rebase(ps);
  }

  /** Number of due items as far as is known: channels with a record, clock domains, late senders, and each event. */
  get dueCount(): number {
    const isDue = ({ nextPs }: { nextPs: Picoseconds }): boolean => nextPs < Number.POSITIVE_INFINITY;
    const ports = this.#inbound.filter(({ reader }) => isDue(reader));
    const lateCount = this.lateSendPs < NEVER ? 1 : 0;
    return ports.length + this.#clockDomains.filter(isDue).length + lateCount + this.queue.pendingCount;
  }

  /** Reads the neighbours' promises. Returns the instant before which no unknown record can arrive. */
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

  /** Smallest latency of an inbound channel: how far beyond a common instant this process may always run. */
  get lookaheadPs(): Picoseconds {
    let latencyPs = Number.POSITIVE_INFINITY;
    for (const port of this.#inbound) if (port.latencyPs < latencyPs) latencyPs = port.latencyPs;
    return latencyPs;
  }

  /** True if no published record waits to be delivered. */
  get isDrained(): boolean {
    return this.#inbound.every((port) => port.reader.isDrained);
  }

  /** Publishes all sent records, and promises to send no other before `promisePs`. */
  publish(promisePs: Picoseconds): void {
    for (const writer of this.#outbound) writer.publish(promisePs);
  }

  /**
   * Runs everything due strictly before `limitPs`; then {@link aheadPs} is the next due instant. Returns true if it stopped
   * because programs were resumed: the caller then awaits {@link settle} and calls again.
   */
  advance(limitPs: Picoseconds): boolean {
    this.limitPs = limitPs;
    return this.takeTurn();
  }

  /** Does {@link advance} up to {@link limitPs}. */
  takeTurn(): boolean {
    const { limitPs } = this;
    if (this.#isUnusual) return this.#advanceUnusual(limitPs);
    for (;;) {
      let port = this.#port0;
      let recordPs = this.#reader0.nextPs;
      if (this.#reader1.nextPs < recordPs) {
        port = this.#port1;
        recordPs = this.#reader1.nextPs;
      }
      if (this.#hasMorePorts) {
        port = this.#earliestPort();
        recordPs = port.reader.nextPs;
      }
      // Two stores without a branch: see build/README.md.
      if (recordPs < limitPs) this.untilPs = recordPs;
      else this.untilPs = limitPs;
      if (this.#runUntil()) return true;
      if (recordPs >= limitPs) {
        if (this.lateSendPs < limitPs) this.#sendLate();
        if (this.#hasOwnChannel) recordPs = this.#earliestPort().reader.nextPs;
        const { nextPs } = this.#domain;
        const eventPs = this.queue.nextPs;
        this.aheadPs = nextPs < eventPs ? nextPs : eventPs;
        if (recordPs < this.aheadPs) this.aheadPs = recordPs;
        if (this.lateSendPs < this.aheadPs) this.aheadPs = this.lateSendPs;
        return false;
      }
      // A stage may have taken records itself.
      if (port.reader.nextPs !== recordPs) continue;
      this.#passTo(recordPs);
      this.#deliver(port);
      if (this.runningProgramCount > 0) return true;
    }
  }

  /** Makes late senders send the records due before the end of the turn, after all other work. */
  #sendLate(): void {
    while (this.lateSendPs < this.limitPs) {
      if (this.nowPs < this.lateSendPs) this.nowPs = this.lateSendPs;
      this.lateSendPs = NEVER;
      for (const sender of this.#lateSenders) sender.sendDue();
    }
  }

  /** The port with the next record; if several have records for one instant, the first port. */
  #earliestPort(): InboundPort {
    let port = this.#port0;
    for (let index = 1; index < this.#inbound.length; index++) {
      const other = this.#inbound[index]!;
      if (other.reader.nextPs < port.reader.nextPs) port = other;
    }
    return port;
  }

  /**
   * Runs the edges and events before {@link untilPs}. No record due before that can arrive meanwhile: no other process runs,
   * and records that this process sends to itself arrive no earlier than the end of its turn. Returns true if programs were
   * resumed.
   */
  #runUntil(): boolean {
    for (;;) {
      const edgePs = this.#domain.nextPs;
      const eventPs = this.queue.nextPs;
      if (edgePs <= eventPs) {
        if (edgePs >= this.untilPs) return false;
        this.#passTo(edgePs);
        this.#domain.runEdge();
      } else {
        if (eventPs >= this.untilPs) return false;
        this.#passTo(eventPs);
        this.queue.runNext();
      }
      if (this.runningProgramCount > 0) return true;
    }
  }

  #passTo(instantPs: Picoseconds): void {
    if (instantPs < this.nowPs)
      throw new InvariantError(`next instant of ${this.name} in ps`, instantPs, `at least ${this.nowPs}`);
    this.nowPs = instantPs;
  }

  /** The form of {@link advance} for a process with several clock domains, or in random order. */
  #advanceUnusual(limitPs: Picoseconds): boolean {
    for (;;) {
      const next = this.#nextToRunPs();
      if (next >= limitPs) {
        this.#sendLate();
        this.aheadPs = this.nextPs();
        return false;
      }
      this.#passTo(next);
      if (this.#shuffle !== undefined) this.#runShuffled(next);
      else this.#runFirst(next);
      if (this.runningProgramCount > 0) return true;
    }
  }

  /**
   * Lets resumed programs run at a fixed instant, until each waits for simulated time again or has ended. A program that awaits
   * anything else has {@link patienceMs}. A turn counts for a few milliseconds regardless of its duration: computing between
   * two turns is not waiting.
   */
  async settle(): Promise<void> {
    let waitedMs = 0;
    for (let turn = 0; this.runningProgramCount > 0; turn++) {
      if (turn < microtaskTurns) await null;
      else if (turn < microtaskTurns + immediateTurns)
        await new Promise<void>((resolve) => runtime().defer(resolve));
      else if (this.failure !== undefined || this.isCalledOff()) return;
      else if (waitedMs >= this.patienceMs) {
        this.failure = this.stuckError();
        return;
      } else {
        await new Promise((resolve) => setTimeout(resolve, timerTurnMs));
        waitedMs += timerTurnMs;
      }
    }
  }

  #deliver(port: InboundPort): void {
    this.recordCount++;
    port.receiver.deliver(port.reader.take());
  }

  /** Runs the first of all items due at `instantPs`. */
  #runFirst(instantPs: Picoseconds): void {
    const port = this.#inbound.find(({ reader }) => reader.nextPs === instantPs);
    const domain = this.#clockDomains.find(({ nextPs }) => nextPs === instantPs);
    if (port !== undefined) this.#deliver(port);
    else if (domain !== undefined) domain.runEdge();
    else this.queue.runNext();
  }

  /** Picks at random among all items due at `instantPs`; software events stay last. */
  #runShuffled(instantPs: Picoseconds): void {
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
