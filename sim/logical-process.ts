/**
 * A logical process is a part of the machine that keeps its own time: a host or an HCA. It owns an event
 * queue, clock domains and the ends of its channels, and shares nothing else with other logical processes
 * (but memory for payload, which no result depends on: SharedDevice of hw/pcie).
 *
 * At one instant it delivers records (in the order of its inbound ports), then runs clock edges (in the order
 * of its clock domains), then queued events (hardware before software). Records are known before their instant
 * is reached, so this order, and with it every result, is the same however logical processes are placed on
 * threads.
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
 * Sends records at instants of its own, at which nothing else happens: it need not do so before it is next called, or the turn
 * ends. That spares an event.
 */
export interface LateSender {
  /** Sends what is due by now, and asks for what is due later ({@link LogicalProcess.sendBy}). */
  sendDue(): void;
}

/** Stand for what a process does not have: nothing is ever due there. */
const NO_PORT = new InboundPort(
  new ChannelReader(new SharedArrayBuffer(channelBufferBytes(4096))),
  NEVER,
  () => undefined,
);
const NO_DOMAIN = new ClockDomain(new Clock(1));

/** Turns of {@link LogicalProcess.settle}: promises that are settled already, callbacks that are due, then real waiting. */
const microtaskTurns = 10_000;
const immediateTurns = 1000;
const timerTurnMs = 2;
const never = (): boolean => false;

export class LogicalProcess {
  readonly name: string;
  readonly queue: EventQueue;
  /** What may be done here ahead of the turn. */
  readonly runAhead: RunAhead;
  /** The current instant in picoseconds, counted from the epoch. */
  nowPs = 0;
  /** Begin of the epoch: microseconds since power-on. */
  epochUs: Wide = 0;
  /** How far edges and events may run: no record comes in before. Always before now where chance or several domains decide. */
  untilPs = Number.NEGATIVE_INFINITY;
  /** Limit of the turn: the instant that {@link takeTurn} runs up to. A field and no argument: see build/README.md. */
  limitPs = Number.NEGATIVE_INFINITY;
  /** Earliest instant at which something was due when {@link advance} last ran up to its limit. */
  aheadPs = Number.POSITIVE_INFINITY;
  /** Earliest instant at which a {@link LateSender} has something to send, or had when it asked; Infinity when none has. */
  lateSendPs = NEVER;
  /** Records delivered so far. */
  recordCount = 0;
  /**
   * Programs (async functions) that have been resumed and have not yet asked to wait for simulated time again.
   * While it is above zero, time stands still and {@link settle} lets them run.
   */
  runningProgramCount = 0;

  /**
   * What ended a program of this process with an error, if anything did: the run ends with it. The runner of the programs
   * sets it, before the program stops being counted as running.
   */
  failure: unknown;
  /** How long {@link settle} waits for programs by the wall clock before it has {@link stuckError} end the run; Infinity: for ever. */
  patienceMs = NEVER;
  /** Whether the run was called off: then {@link settle} does not wait for programs any longer. */
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
  /** The first two inbound ports, their readers (what is asked of a port at each step) and the first clock domain: few processes have more. */
  #port0 = NO_PORT;
  #port1 = NO_PORT;
  #reader0 = NO_PORT.reader;
  #reader1 = NO_PORT.reader;
  #domain = NO_DOMAIN;
  #hasMorePorts = false;
  #hasOwnChannel = false;
  /** Whether there are more clock domains, or chance decides what comes first at an instant. */
  #isUnusual = false;

  /**
   * @param shuffle reorders what one instant leaves unordered; see {@link EventQueue}
   * @param runsAhead whether anything may be done ahead of its turn: it makes no difference to what happens
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

  /** Cycles of this clock are counted since power-on: simulated time ends where a number holds no more of them. */
  countCyclesOf({ frequencyMHz }: Clock): void {
    if (frequencyMHz > this.#fastestMHz) this.#fastestMHz = frequencyMHz;
  }

  /** Connects the reading end of a channel whose records take at least `latencyPs` from sending to effect. */
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

  /** Adds what keeps instants of this process, to be moved when a new epoch begins; of its edges, see ClockDomain.addEdgeKeeper. */
  addTimeKeeper(keeper: TimeKeeper): void {
    this.#timeKeepers.push(keeper);
  }

  /** A {@link LateSender} has something to send at `ps`. */
  sendBy(ps: Picoseconds): void {
    if (ps < this.lateSendPs) this.lateSendPs = ps;
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
    if (this.#asideCount > 0) {
      this.#asideCount--;
      return;
    }
    if (this.#memberCount === 0)
      throw new InvariantError(`members of ${this.name}`, 0, 'at least 1 at an end');
    this.#memberCount--;
    if (this.nowPs > this.#endedPs) this.#endedPs = this.nowPs;
  }

  /** Has runs end as if all members had ended, now: until {@link takeMembersBack}, between two runs. */
  setMembersAside(): void {
    if (this.#memberCount === 0) return;
    this.#asideCount = this.#memberCount;
    this.#memberCount = 0;
    if (this.nowPs > this.#endedPs) this.#endedPs = this.nowPs;
  }

  /** Members that were set aside and have not ended are waited for again. */
  takeMembersBack(): void {
    this.#memberCount += this.#asideCount;
    this.#asideCount = 0;
  }

  /** True when no member is left: also of a process that never had one. */
  get isEnded(): boolean {
    return this.#memberCount === 0;
  }

  /** Instant at which the last member ended so far, -Infinity when none has. */
  get endedPs(): Picoseconds {
    return this.#endedPs;
  }

  /** Earliest instant at which something is due here, as far as is known; Infinity when nothing is. */
  nextPs(): Picoseconds {
    const next = this.#nextToRunPs();
    return this.lateSendPs < next ? this.lateSendPs : next;
  }

  /** Likewise, but for what may be sent late. */
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

  /** The current instant since power-on, exact. */
  get instantPs(): ExactPs {
    return exactPs(this.epochUs, this.nowPs);
  }

  /** Counts the time from now on. */
  stopwatch(): Stopwatch {
    return startStopwatch(this);
  }

  /**
   * Begins a new epoch, between two runs: all that this process keeps is `ps` less, a whole number of microseconds up to now.
   * Every process of a machine does so before any runs again.
   * @throws InvariantError for another number; ConfigurationError when it would count more than 2^53 cycles of a clock
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

  /** How many things are due here, as far as is known: channels with a record, clock domains, late senders, and each event. */
  get dueCount(): number {
    const isDue = ({ nextPs }: { nextPs: Picoseconds }): boolean => nextPs < Number.POSITIVE_INFINITY;
    const ports = this.#inbound.filter(({ reader }) => isDue(reader));
    const lateCount = this.lateSendPs < NEVER ? 1 : 0;
    return ports.length + this.#clockDomains.filter(isDue).length + lateCount + this.queue.pendingCount;
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
  get lookaheadPs(): Picoseconds {
    let latencyPs = Number.POSITIVE_INFINITY;
    for (const port of this.#inbound) if (port.latencyPs < latencyPs) latencyPs = port.latencyPs;
    return latencyPs;
  }

  /** True when no published record waits to be delivered. */
  get isDrained(): boolean {
    return this.#inbound.every((port) => port.reader.isDrained);
  }

  /** Publishes all records sent, and promises to send no other before `promisePs`. */
  publish(promisePs: Picoseconds): void {
    for (const writer of this.#outbound) writer.publish(promisePs);
  }

  /**
   * Runs everything due strictly before `limitPs`: then {@link aheadPs} says what is due next. Returns true when it
   * stopped because programs were resumed: the caller then awaits {@link settle} and calls again.
   */
  advance(limitPs: Picoseconds): boolean {
    this.limitPs = limitPs;
    return this.takeTurn();
  }

  /** {@link advance} up to {@link limitPs}. */
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
      // Two stores and no choice: see build/README.md.
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

  /** Has late senders send what is due before the end of the turn, when all else has been done. */
  #sendLate(): void {
    while (this.lateSendPs < this.limitPs) {
      if (this.nowPs < this.lateSendPs) this.nowPs = this.lateSendPs;
      this.lateSendPs = NEVER;
      for (const sender of this.#lateSenders) sender.sendDue();
    }
  }

  /** The port with the next record; of several with records for one instant the first. */
  #earliestPort(): InboundPort {
    let port = this.#port0;
    for (let index = 1; index < this.#inbound.length; index++) {
      const other = this.#inbound[index]!;
      if (other.reader.nextPs < port.reader.nextPs) port = other;
    }
    return port;
  }

  /**
   * Runs the edges and events before {@link untilPs}. No record that is due before comes in meanwhile: no other process has
   * its turn, and what this one sends to itself comes no earlier than the end of its turn. Returns true when programs were resumed.
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

  /** What {@link advance} does for a process with several clock domains, or with things in random order. */
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
   * Lets resumed programs run, at a standing instant, until each waits for simulated time again or has ended. One that awaits
   * something else has {@link patienceMs}. A turn counts for a few milliseconds however long it took: what a program computes
   * between two of them is no waiting.
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

  /** Runs the first of all that is due at `instantPs`. */
  #runFirst(instantPs: Picoseconds): void {
    const port = this.#inbound.find(({ reader }) => reader.nextPs === instantPs);
    const domain = this.#clockDomains.find(({ nextPs }) => nextPs === instantPs);
    if (port !== undefined) this.#deliver(port);
    else if (domain !== undefined) domain.runEdge();
    else this.queue.runNext();
  }

  /** Picks at random among all that is due at `instantPs`; software events stay last. */
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
