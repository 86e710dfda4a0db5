/**
 * Limits of the time for which packets wait in a switch. One of them is that of an output: a packet that has been the
 * first of its queue for longer than HOQLife is dropped there. After VLStallCount such drops of a lane without a packet
 * that left in between, the lane is stalled for eight times as long: all of its packets are dropped as soon as they are
 * the first.
 *
 *     passing ──VLStallCount drops in sequence──▶ stalled ──8 x HOQLife──▶ passing
 *
 * Promise: the lane that a drop stalls is stalled from the next instant on. VLStallCount of 0, which opensm calls
 * undefined, stalls nothing.
 *
 * Source: InfiniBand Architecture Specification, volume 1, 14.2.5.6 and 18.2.5.4.
 */
import { NEVER, type Picoseconds } from '../../base/index.ts';

/** Codes above this one mean no limit. */
const codeMax = 19;
const stallFactor = 8;

/**
 * 4.096 us times two to the power of a code: HOQLife of PortInfo, LifeTimeValue of SwitchInfo; NEVER without a limit.
 */
export const lifetimePsOf = (code: number): Picoseconds => (code > codeMax ? NEVER : 4_096_000 * 2 ** code);

export interface HeadOfQueueSetting {
  /** Code of {@link lifetimePsOf}. */
  readonly hoqLife: number;
  /** Drops in sequence that stall a lane; 0: no number does. */
  readonly vlStallCount: number;
}

export class HeadOfQueueLimit {
  #setting: HeadOfQueueSetting;
  #limitPs: Picoseconds;
  /** By data lane: drops since a packet left, and the instants between which the lane is stalled. */
  readonly #drops: Int32Array;
  readonly #stalledSincePs: Float64Array;
  readonly #stalledUntilPs: Float64Array;

  constructor(laneCount: number, setting: HeadOfQueueSetting) {
    this.#setting = setting;
    this.#limitPs = lifetimePsOf(setting.hoqLife);
    this.#drops = new Int32Array(laneCount);
    this.#stalledSincePs = new Float64Array(laneCount).fill(NEVER);
    this.#stalledUntilPs = new Float64Array(laneCount).fill(NEVER);
  }

  get setting(): HeadOfQueueSetting {
    return this.#setting;
  }

  /** Changes the limit, from this instant on. A lane that is stalled stays so. */
  set(setting: HeadOfQueueSetting): void {
    this.#setting = setting;
    this.#limitPs = lifetimePsOf(setting.hoqLife);
  }

  /** Whether packets of a lane are dropped without a wait. Lane 15, which has no credits, is never stalled. */
  isStalled(lane: number, nowPs: Picoseconds): boolean {
    return nowPs > this.#stalledSincePs[lane]! && nowPs <= this.#stalledUntilPs[lane]!;
  }

  /** The last instant of the latest stall of a lane. */
  stalledUntilPs(lane: number): Picoseconds {
    return this.#stalledUntilPs[lane]!;
  }

  /**
   * The last instant at which a packet may still wait. In a stalled lane, that is the one after the packet became the
   * first, or after the drop that stalled the lane.
   * @param sincePs when it became the first of its queue, ready to leave
   */
  lastPs(lane: number, sincePs: Picoseconds, nowPs: Picoseconds): Picoseconds {
    const limitPs = sincePs + this.#limitPs;
    const stallPs = Math.max(sincePs, this.#stalledSincePs[lane]!) + 1;
    return this.isStalled(lane, Math.max(nowPs, stallPs + 1)) ? Math.min(limitPs, stallPs) : limitPs;
  }

  /**
   * A packet of a lane was dropped because its time was up. Drops of the instant that stalls the lane count no more.
   */
  expired(lane: number, nowPs: Picoseconds): void {
    if (this.#stalledSincePs[lane] === nowPs) return;
    const { vlStallCount } = this.#setting;
    if (lane >= this.#drops.length || vlStallCount === 0 || ++this.#drops[lane]! < vlStallCount) return;
    this.#drops[lane] = 0;
    this.#stalledSincePs[lane] = nowPs;
    this.#stalledUntilPs[lane] = nowPs + stallFactor * this.#limitPs;
  }

  /** A packet of a lane left. */
  left(lane: number): void {
    if (lane < this.#drops.length) this.#drops[lane] = 0;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const instants of [this.#stalledSincePs, this.#stalledUntilPs])
      for (let lane = 0; lane < instants.length; lane++) instants[lane]! -= ps;
  }
}
