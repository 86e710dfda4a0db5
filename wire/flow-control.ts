/**
 * Flow control of an Ethernet port by PAUSE frames, in both directions: the MAC control sublayer.
 *
 *     receive fifo ─ frames held ─▶ XOFF reached? ─▶ PAUSE, 65535 quanta, again at half the time ═▶ the other end
 *                                   down to XON?  ─▶ PAUSE, 0 quanta                             ═▶
 *     the other end ═▶ PAUSE, n quanta ─▶ nothing of the sender's begins for n × 512 bit times, or until PAUSE, 0 quanta
 *
 * Promises:
 * - A PAUSE frame goes before anything that the port has not taken yet, and is never held up by a pause itself: two ends that have stopped
 *   each other go on as soon as either has room.
 * - The newest PAUSE frame counts, whether it is longer or shorter than what was left of the one before.
 * - What a pause, the fifo's fill and software's settings are is decided by what they were at the end of an instant, from the next picosecond
 *   on: calls and records of one instant commute. While the link is busy the fifo may pass both thresholds: then nothing is sent.
 * - With the link down nothing is known of the other end, and nothing is asked of it.
 *
 * What the port has taken before a pause came still leaves; `pauseHeadroomFrames` of ethernet-sizing.ts has room for it at the far end.
 * Source: IEEE 802.3-2018, annex 31B.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';
import type { BlockState, LogicalProcess } from '../sim/index.ts';
import {
  isControlFrame,
  MALFORMED,
  pauseFrame,
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

const PS_GIGABITS_PER_BIT = 1000;
/** In place of quanta: no frame is due. */
const NONE = -1;
const NOT_WAITING = -1;

export interface FlowControlPorts {
  readonly port: {
    /** A PAUSE frame may be due: {@link FlowControl.nextFrame} says so. */
    controlDue(): void;
    /** The pause ends earlier than it was to: what waited for that may go on from `fromPs` on. */
    pauseEnds(fromPs: Picoseconds): void;
  };
}

export class FlowControl {
  readonly counters = new FlowControlCounters();
  /** Instant from which {@link nextFrame} is to be asked. */
  duePs = NEVER;
  /** Undefined: the port has no MAC control sublayer, to which MAC control frames are frames as any. */
  readonly #mac: number | undefined;
  readonly #lp: Pick<LogicalProcess, 'nowPs' | 'queue'>;
  readonly #gigabitsPerSecond: number;
  readonly #pauseQuanta: number;
  readonly #xoffFrames: number;
  readonly #xonFrames: number;
  readonly #dueEvent: number;
  #ports!: FlowControlPorts;
  /** What software has set: PAUSE frames are sent; received ones are heeded. */
  readonly #sends = new Deferred(false);
  readonly #heeds = new Deferred(false);
  /** Frames in the receive fifo; whether they are too many; whether the other end has been stopped, since when, and when it is again. */
  readonly #fill = new Deferred(0);
  #isFull = false;
  #isStopping = false;
  #stoppingSincePs = 0;
  #refreshPs = NEVER;
  /** End of the pause that the other end has asked for; whether there is one, and its begin. */
  readonly #until = new Deferred(0);
  #isPaused = false;
  #pausedSincePs = 0;
  /** Where there is none: from when on the last one stopped nothing. */
  #overPs = 0;
  /** Since when the sender has waited for the end of a pause. */
  #waitingSincePs = NOT_WAITING;

  /** @param mac of the station; left out: it has no flow control */
  constructor(lp: Pick<LogicalProcess, 'nowPs' | 'queue'>, config: EthernetConfig, mac: number | undefined) {
    this.#lp = lp;
    this.#mac = mac;
    this.#gigabitsPerSecond = config.gigabitsPerSecond;
    this.#pauseQuanta = config.pauseQuanta;
    this.#xoffFrames = xoffFramesOf(config);
    this.#xonFrames = xonFramesOf(config);
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

  /** As software sets it. Who sends them no longer lets the other end go on, and who heeds them no longer goes on itself. */
  set(sends: boolean, heeds: boolean): void {
    const { nowPs } = this.#lp;
    this.#sends.set(sends, nowPs);
    this.#heeds.set(heeds, nowPs);
    this.#wakeBy(nowPs + 1);
  }

  /** What software has set last. */
  get setting(): { readonly sends: boolean; readonly heeds: boolean } {
    return { sends: this.#sends.latest, heeds: this.#heeds.latest };
  }

  /** Whether the port sends PAUSE frames, so that the fifo has its headroom. */
  get isSending(): boolean {
    return this.#sends.at(this.#lp.nowPs);
  }

  /** The link has come up or gone down: nothing is left of what either end asked of the other. */
  linkChanged(): void {
    const { nowPs } = this.#lp;
    this.#endPause();
    this.#isFull = false;
    this.#isStopping = false;
    this.#refreshPs = NEVER;
    this.#wakeBy(nowPs + 1);
  }

  // ---- the other end is to stop ----

  /** The receive fifo holds so many frames. */
  fifoHolds(frames: number): void {
    if (!this.isThere) return;
    const { nowPs } = this.#lp;
    this.#fill.set(frames, nowPs);
    if (this.#isBeyond(frames)) this.#wakeBy(nowPs + 1);
  }

  /** The frame that is to leave now, which is counted as sent; or nothing. To be asked while the link is up and free. */
  nextFrame(): Uint8Array | undefined {
    const quanta = this.#quantaDue();
    return quanta === NONE ? undefined : this.#frameOf(quanta);
  }

  /** The link is taken: {@link nextFrame} is asked again at `atPs`. */
  postpone(atPs: Picoseconds): void {
    this.duePs = NEVER;
    this.#wakeBy(atPs);
  }

  // ---- this end is to stop ----

  /** Whether a frame that has come is the MAC control sublayer's. */
  takes(bytes: Uint8Array, at: number): boolean {
    return this.isThere && isControlFrame(bytes, at);
  }

  /** Takes a MAC control frame of `frameBytes` without FCS. */
  receive(bytes: Uint8Array, at: number, frameBytes: number): void {
    const { counters } = this;
    counters.receivedFrames++;
    counters.receivedBytes += frameBytes + ETHERNET_FCS_BYTES;
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

  /** Whether a MAC control frame is a PAUSE for this station. */
  isPause(bytes: Uint8Array, at: number, frameBytes: number): boolean {
    return this.#quantaIn(bytes, at, frameBytes) >= 0;
  }

  /** End of the pause of this instant; what lies behind is none. */
  get pausedUntilPs(): Picoseconds {
    return this.#until.at(this.#lp.nowPs);
  }

  /** Whether nothing of the sender's may begin now. */
  get isPaused(): boolean {
    return this.#lp.nowPs < this.pausedUntilPs;
  }

  /** The sender has been refused for the pause. */
  waits(): void {
    if (this.#waitingSincePs === NOT_WAITING) this.#waitingSincePs = this.#lp.nowPs;
  }

  /** The pause is over: what the sender waits for, if it does, is something else. */
  goesOn(): void {
    if (this.#waitingSincePs === NOT_WAITING) return;
    this.#endIfOver();
    this.counters.pauseWaitPs += this.#overPs - this.#waitingSincePs;
    this.#waitingSincePs = NOT_WAITING;
  }

  // ---- reports ----

  /** The counters, with what lasts as it is now. */
  totals(): FlowControlCounters {
    this.#endIfOver();
    const { nowPs } = this.#lp;
    const totals = Object.assign(new FlowControlCounters(), this.counters);
    if (this.#isPaused) totals.pausedPs += nowPs - this.#pausedSincePs;
    if (this.#isStopping) totals.stoppingPs += nowPs - this.#stoppingSincePs;
    return totals;
  }

  inspect(): BlockState {
    return { isStopping: this.#isStopping, isPaused: this.isPaused };
  }

  /** A new epoch: see TimeKeeper. */
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
  }

  // ---- inside ----

  #wakeBy(ps: Picoseconds): void {
    if (!this.isThere || ps >= this.duePs) return;
    this.duePs = ps;
    this.#lp.queue.schedule(ps, this.#dueEvent);
  }

  /** Whether so many frames are a reason to change one's mind. */
  #isBeyond(frames: number): boolean {
    return this.#isFull ? frames <= this.#xonFrames : frames >= this.#xoffFrames;
  }

  /** Quanta of the PAUSE that is due; else it is noted when to ask again. */
  #quantaDue(): number {
    const { nowPs } = this.#lp;
    this.duePs = NEVER;
    if (!this.#heeds.at(nowPs)) this.#endPause();
    if (this.#isBeyond(this.#fill.at(nowPs))) this.#isFull = !this.#isFull;
    if (this.#isBeyond(this.#fill.latest)) this.#wakeBy(nowPs + 1);
    const isToStop = this.#isFull && this.isSending;
    if (!isToStop) return this.#isStopping ? 0 : NONE;
    if (!this.#isStopping || nowPs >= this.#refreshPs) return this.#pauseQuanta;
    this.#wakeBy(this.#refreshPs);
    return NONE;
  }

  #frameOf(quanta: number): Uint8Array {
    const { nowPs } = this.#lp;
    const { counters } = this;
    counters.sentFrames++;
    counters.sentBytes += ETHERNET_FRAME_MIN_BYTES + ETHERNET_FCS_BYTES;
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

  /** The pause, if there is one, ends now. */
  #endPause(): void {
    this.#endIfOver();
    if (!this.#isPaused) return;
    const { nowPs } = this.#lp;
    this.#pauseEnded(nowPs, nowPs + 1);
    this.#until.set(nowPs, nowPs);
    this.#ports.port.pauseEnds(this.#overPs);
  }

  /** A pause whose time has run out is one no more. */
  #endIfOver(): void {
    const untilPs = this.#until.latest;
    if (this.#isPaused && this.#lp.nowPs >= untilPs) this.#pauseEnded(untilPs, untilPs);
  }

  #pauseEnded(endPs: Picoseconds, overPs: Picoseconds): void {
    this.#isPaused = false;
    this.#overPs = overPs;
    this.counters.pausedPs += endPs - this.#pausedSincePs;
    this.counters.receivedTransitions++;
  }
}
