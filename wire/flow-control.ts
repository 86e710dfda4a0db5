/**
 * Flow control of an Ethernet port by PAUSE frames, in both directions: the MAC control sublayer.
 *
 *     receive fifo ─ frames held ─▶ XOFF reached? ─▶ PAUSE, 65535 quanta, again at half the time ═▶ the other end
 *                                   down to XON?  ─▶ PAUSE, 0 quanta                             ═▶
 *     the other end ═▶ PAUSE, n quanta ─▶ the sender begins nothing for n × 512 bit times, or until PAUSE, 0 quanta
 *
 * Promises:
 * - A PAUSE frame precedes all frames that the port has not accepted yet, and is never delayed by a pause itself: two ends that
 *   have paused each other resume as soon as either has room.
 * - The newest PAUSE frame counts, whether it is longer or shorter than what was left of the one before.
 * - A pause, the fifo's level and software's settings count as of the end of an instant, from the next picosecond on: calls and
 *   records of one instant commute. While the link is busy the fifo may pass both thresholds: then nothing is sent.
 * - With the link down the other end's state is unknown, and no request is sent to it.
 *
 * Frames accepted before a pause arrived still leave; `pauseHeadroomFrames` of ethernet-sizing.ts has room for it at the far
 * end. Source: IEEE 802.3-2018, annex 31B.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';
import type { BlockState, LogicalProcess } from '../sim/index.ts';
import {
  isControlFrame,
  MALFORMED,
  pauseFrame,
  priorityQuantaOf,
  QUANTUM_BITS,
  quantaOf,
  UNKNOWN_OPCODE,
} from './control-frames.ts';
import { Deferred } from './deferred.ts';
import { FlowControlCounters } from './ethernet-counters.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import {
  ETHERNET_FCS_BYTES,
  ETHERNET_FRAME_MIN_BYTES,
  xoffFramesOf,
  xonFramesOf,
} from './ethernet-sizing.ts';
import { ANY_PRIORITY, PriorityPauses } from './priority-pauses.ts';

const PS_GIGABITS_PER_BIT = 1000;
/** Used instead of quanta: no frame is due. */
const NONE = -1;
const NOT_WAITING = -1;

export interface FlowControlPorts {
  readonly port: {
    /** A PAUSE frame may be due: {@link FlowControl.nextFrame} returns it. */
    controlDue(): void;
    /** The pause ends earlier than announced: waiting frames may continue from `fromPs` on. */
    pauseEnds(fromPs: Picoseconds): void;
  };
}

export class FlowControl {
  readonly counters = new FlowControlCounters();
  /** Pauses of single priorities; off until software sets them. */
  readonly priorities: PriorityPauses;
  /** Instant from which {@link nextFrame} must be called. */
  duePs = NEVER;
  /** Undefined: the port has no MAC control sublayer, and treats MAC control frames as any other. */
  readonly #mac: number | undefined;
  readonly #lp: Pick<LogicalProcess, 'nowPs' | 'queue'>;
  readonly #gigabitsPerSecond: number;
  readonly #pauseQuanta: number;
  readonly #xoffFrames: number;
  readonly #xonFrames: number;
  readonly #dueEvent: number;
  #ports!: FlowControlPorts;
  /** Settings by software: whether PAUSE frames are sent; whether received ones are obeyed. */
  readonly #sends = new Deferred(false);
  readonly #heeds = new Deferred(false);
  /** Frames in the receive fifo; whether they are too many; whether the other end is paused, since when, and when the PAUSE is repeated. */
  readonly #fill = new Deferred(0);
  #isFull = false;
  #isStopping = false;
  #stoppingSincePs = 0;
  #refreshPs = NEVER;
  /** End of the pause requested by the other end; whether a pause exists, and its beginning. */
  readonly #until = new Deferred(0);
  #isPaused = false;
  #pausedSincePs = 0;
  /** Instant from which the last pause stopped nothing, while there is no pause. */
  #overPs = 0;
  /** Instant since which the sender waits for the end of a pause. */
  #waitingSincePs = NOT_WAITING;

  /** @param mac of the station; left out: it has no flow control */
  constructor(lp: Pick<LogicalProcess, 'nowPs' | 'queue'>, config: EthernetConfig, mac: number | undefined) {
    this.#lp = lp;
    this.#mac = mac;
    this.#gigabitsPerSecond = config.gigabitsPerSecond;
    this.#pauseQuanta = config.pauseQuanta;
    this.#xoffFrames = xoffFramesOf(config);
    this.#xonFrames = xonFramesOf(config);
    this.priorities = new PriorityPauses({
      now: () => this.#lp.nowPs,
      durationPs: (quanta) => this.#durationPs(quanta),
      pauseQuanta: config.pauseQuanta,
      wakeBy: (ps) => this.#wakeBy(ps),
      pauseEnds: (fromPs) => this.#ports.port.pauseEnds(fromPs),
    });
    this.#dueEvent = lp.queue.addHandler(() => {
      if (this.#lp.nowPs >= this.duePs) this.#ports.port.controlDue();
    });
  }

  connect(ports: FlowControlPorts): void {
    this.#ports = ports;
  }

  get isThere(): boolean {
    return this.#mac !== undefined;
  }

  /**
   * Sets it by software. A station that stops sending PAUSE frames no longer lets the other end resume; one that stops obeying
   * them no longer resumes itself.
   */
  set(sends: boolean, heeds: boolean): void {
    const { nowPs } = this.#lp;
    this.#sends.set(sends, nowPs);
    this.#heeds.set(heeds, nowPs);
    this.#wakeBy(nowPs + 1);
  }

  /** The last settings by software. */
  get setting(): { readonly sends: boolean; readonly heeds: boolean } {
    return { sends: this.#sends.latest, heeds: this.#heeds.latest };
  }

  /** Whether the port sends PAUSE frames, so that the fifo uses its headroom. */
  get isSending(): boolean {
    return this.#sends.at(this.#lp.nowPs) || this.priorities.isSending;
  }

  /** Handles a link that came up or went down: forgets the pauses that either end requested of the other. */
  linkChanged(): void {
    const { nowPs } = this.#lp;
    this.#endPause();
    this.#isFull = false;
    this.#isStopping = false;
    this.#refreshPs = NEVER;
    this.priorities.linkChanged();
    this.#wakeBy(nowPs + 1);
  }

  // ---- the other end is to stop ----

  /** Stops the other end, or lets it resume: for a station that holds frames elsewhere than in the receive fifo. */
  stop(isToStop: boolean): void {
    this.fifoHolds(isToStop ? this.#xoffFrames : 0);
  }

  /** The receive fifo holds this many frames. */
  fifoHolds(frames: number): void {
    if (!this.isThere) return;
    const { nowPs } = this.#lp;
    this.#fill.set(frames, nowPs);
    if (this.#isBeyond(frames)) this.#wakeBy(nowPs + 1);
  }

  /** The frame that must leave now, counted as sent; or nothing. Called while the link is up and free. */
  nextFrame(): Uint8Array | undefined {
    const quanta = this.#quantaDue();
    if (quanta !== NONE) {
      if (this.priorities.isSending) this.#wakeBy(this.#lp.nowPs + 1);
      return this.#frameOf(quanta);
    }
    const frame = this.priorities.nextFrame(this.#mac!);
    if (frame !== undefined) this.#countSent();
    return frame;
  }

  /** The link is busy: {@link nextFrame} is called again at `atPs`. */
  postpone(atPs: Picoseconds): void {
    this.duePs = NEVER;
    this.#wakeBy(atPs);
  }

  // ---- this end is to stop ----

  /** Whether a received frame belongs to the MAC control sublayer. */
  takes(bytes: Uint8Array, at: number): boolean {
    return this.isThere && isControlFrame(bytes, at);
  }

  /** Handles a MAC control frame of `frameBytes` without FCS. */
  receive(bytes: Uint8Array, at: number, frameBytes: number): void {
    const { counters } = this;
    counters.receivedFrames++;
    counters.receivedBytes += frameBytes + ETHERNET_FCS_BYTES;
    const byPriority = this.#priorityQuantaIn(bytes, at, frameBytes);
    if (byPriority !== undefined) return this.priorities.receive(byPriority);
    const quanta = this.#quantaIn(bytes, at, frameBytes);
    if (quanta === UNKNOWN_OPCODE) {
      counters.unknownOpcodes++;
    } else if (quanta === MALFORMED) {
      counters.malformedFrames++;
    } else {
      counters.receivedPauses++;
      if (this.#heeds.at(this.#lp.nowPs)) this.#paused(quanta);
    }
  }

  /** Whether a MAC control frame is a PAUSE for this station, or of PFC if the port has it. */
  isPause(bytes: Uint8Array, at: number, frameBytes: number): boolean {
    return (
      this.#priorityQuantaIn(bytes, at, frameBytes) !== undefined ||
      this.#quantaIn(bytes, at, frameBytes) >= 0
    );
  }

  /** End of the pause as of this instant; a past end means no pause. */
  get pausedUntilPs(): Picoseconds {
    return this.#until.at(this.#lp.nowPs);
  }

  /** The same of all traffic and of single priorities: end of the last. */
  get anyPausedUntilPs(): Picoseconds {
    const { pausedUntilPs, priorities } = this;
    return priorities.isHeeding
      ? Math.max(pausedUntilPs, priorities.pausedUntilPs(ANY_PRIORITY))
      : pausedUntilPs;
  }

  /** Whether a sender that knows no priorities must not begin a frame now. */
  get isPaused(): boolean {
    return this.#lp.nowPs < this.anyPausedUntilPs;
  }

  /** The sender was refused because of the pause. */
  waits(): void {
    if (this.#waitingSincePs === NOT_WAITING) this.#waitingSincePs = this.#lp.nowPs;
  }

  /** The pause has ended: the sender now waits, if at all, for another reason. */
  goesOn(): void {
    if (this.#waitingSincePs === NOT_WAITING) return;
    this.#endIfOver();
    this.#waitEnds(this.#overPs);
  }

  /** The sender has nothing left to send: its wait ends before the pause does. */
  givesUp(): void {
    this.priorities.goesOn();
    if (this.#waitingSincePs === NOT_WAITING) return;
    this.#endIfOver();
    this.#waitEnds(this.#isPaused ? this.#lp.nowPs : this.#overPs);
  }

  // ---- reports ----

  /** The counters, with running intervals up to now. */
  totals(): FlowControlCounters {
    this.#endIfOver();
    const { nowPs } = this.#lp;
    const totals = Object.assign(new FlowControlCounters(), this.counters);
    if (this.#isPaused) totals.pausedPs += nowPs - this.#pausedSincePs;
    if (this.#isStopping) totals.stoppingPs += nowPs - this.#stoppingSincePs;
    return totals;
  }

  inspect(): BlockState {
    return {
      isStopping: this.#isStopping,
      isPaused: this.isPaused,
      ...(this.priorities.isHeeding ? { priorities: this.priorities.inspect() } : {}),
    };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.duePs -= ps;
    this.#refreshPs -= ps;
    this.#stoppingSincePs -= ps;
    this.#pausedSincePs -= ps;
    if (this.#waitingSincePs !== NOT_WAITING) this.#waitingSincePs -= ps;
    this.#overPs -= ps;
    this.#sends.rebase(ps);
    this.#heeds.rebase(ps);
    this.#fill.rebase(ps);
    this.#until.rebase(ps, (untilPs) => untilPs - ps);
    this.priorities.rebase(ps);
  }

  // ---- inside ----

  #wakeBy(ps: Picoseconds): void {
    if (!this.isThere || ps >= this.duePs) return;
    this.duePs = ps;
    this.#lp.queue.schedule(ps, this.#dueEvent);
  }

  /** Whether this number of frames changes the state. */
  #isBeyond(frames: number): boolean {
    return this.#isFull ? frames <= this.#xonFrames : frames >= this.#xoffFrames;
  }

  /** Quanta of the due PAUSE; otherwise records when to ask again. */
  #quantaDue(): number {
    const { nowPs } = this.#lp;
    this.duePs = NEVER;
    if (!this.#heeds.at(nowPs)) this.#endPause();
    if (this.#isBeyond(this.#fill.at(nowPs))) {
      this.#isFull = !this.#isFull;
      if (this.priorities.isSending) this.priorities.stopAll(this.#isFull);
    }
    if (this.#isBeyond(this.#fill.latest)) this.#wakeBy(nowPs + 1);
    const isToStop = this.#isFull && this.#sends.at(nowPs);
    if (!isToStop) return this.#isStopping ? 0 : NONE;
    if (!this.#isStopping || nowPs >= this.#refreshPs) return this.#pauseQuanta;
    this.#wakeBy(this.#refreshPs);
    return NONE;
  }

  #countSent(): void {
    this.counters.sentFrames++;
    this.counters.sentBytes += ETHERNET_FRAME_MIN_BYTES + ETHERNET_FCS_BYTES;
  }

  #frameOf(quanta: number): Uint8Array {
    const { nowPs } = this.#lp;
    const { counters } = this;
    this.#countSent();
    if (quanta === 0) {
      counters.sentTransitions++;
      counters.stoppingPs += nowPs - this.#stoppingSincePs;
      this.#isStopping = false;
      this.#refreshPs = NEVER;
    } else {
      if (!this.#isStopping) this.#stoppingSincePs = nowPs;
      this.#isStopping = true;
      this.#refreshPs = nowPs + this.#durationPs(quanta / 2);
      this.#wakeBy(this.#refreshPs);
    }
    return pauseFrame(this.#mac!, quanta);
  }

  #quantaIn(bytes: Uint8Array, at: number, frameBytes: number): number {
    return quantaOf(bytes, at, frameBytes, this.#mac!);
  }

  /** A PFC frame is an unknown control frame to a port without PFC. */
  #priorityQuantaIn(bytes: Uint8Array, at: number, frameBytes: number) {
    return this.priorities.isHeeding ? priorityQuantaOf(bytes, at, frameBytes) : undefined;
  }

  #durationPs(quanta: number): Picoseconds {
    return Math.floor((quanta * QUANTUM_BITS * PS_GIGABITS_PER_BIT) / this.#gigabitsPerSecond);
  }

  #paused(quanta: number): void {
    const { nowPs } = this.#lp;
    if (quanta === 0) return this.#endPause();
    this.#endIfOver();
    if (!this.#isPaused) this.#pausedSincePs = nowPs;
    this.#isPaused = true;
    const untilPs = nowPs + this.#durationPs(quanta);
    const isShorter = untilPs < this.#until.latest;
    this.#until.set(untilPs, nowPs);
    if (isShorter) this.#ports.port.pauseEnds(untilPs);
  }

  /** Ends the present pause, if any. */
  #endPause(): void {
    this.#endIfOver();
    if (!this.#isPaused) return;
    const { nowPs } = this.#lp;
    this.#pauseEnded(nowPs, nowPs + 1);
    this.#until.set(nowPs, nowPs);
    this.#ports.port.pauseEnds(this.#overPs);
  }

  /** A pause whose time has elapsed has ended. */
  #endIfOver(): void {
    const untilPs = this.#until.latest;
    if (this.#isPaused && this.#lp.nowPs >= untilPs) this.#pauseEnded(untilPs, untilPs);
  }

  #waitEnds(endPs: Picoseconds): void {
    this.counters.pauseWaitPs += endPs - this.#waitingSincePs;
    this.#waitingSincePs = NOT_WAITING;
  }

  #pauseEnded(endPs: Picoseconds, overPs: Picoseconds): void {
    this.#isPaused = false;
    this.#overPs = overPs;
    this.counters.pausedPs += endPs - this.#pausedSincePs;
    this.counters.receivedTransitions++;
  }
}
