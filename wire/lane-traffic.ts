/**
 * Traffic of single data lanes of a port, and their waits for credits. The port as a whole waits only while nothing leaves (send-wait.ts); a lane waits from the refusal
 * of a packet until one of its packets leaves, although packets of other lanes leave meanwhile.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';

/** Packets of a data lane, and their bytes from LRH to VCRC. */
export class LaneCount {
  packets = 0;
  bytes = 0;

  count(packetBytes: number): void {
    this.packets++;
    this.bytes += packetBytes;
  }
}

export class LaneTraffic {
  /** Packets put on the link, by lane. */
  readonly sent: readonly LaneCount[];
  /** Picoseconds for which each lane has waited, without a wait that has not ended. */
  readonly waitedPs: Float64Array;
  /** Begin of each lane's wait; NEVER if it does not wait. */
  readonly #sincePs: Float64Array;
  #waitingCount = 0;

  constructor(laneCount: number) {
    this.sent = Array.from({ length: laneCount }, () => new LaneCount());
    this.waitedPs = new Float64Array(laneCount);
    this.#sincePs = new Float64Array(laneCount).fill(NEVER);
  }

  get isAnyWaiting(): boolean {
    return this.#waitingCount > 0;
  }

  isWaiting(lane: number): boolean {
    return this.#sincePs[lane]! < NEVER;
  }

  /** A packet of a data lane was refused for lack of credits. */
  begin(lane: number, nowPs: Picoseconds): void {
    if (this.isWaiting(lane)) return;
    this.#sincePs[lane] = nowPs;
    this.#waitingCount++;
  }

  /** A packet of a lane leaves, or no packet of it waits any longer. */
  end(lane: number, nowPs: Picoseconds): void {
    if (lane >= this.waitedPs.length || !this.isWaiting(lane)) return;
    this.waitedPs[lane]! += nowPs - this.#sincePs[lane]!;
    this.#sincePs[lane] = NEVER;
    this.#waitingCount--;
  }

  /** No packet waits but of these lanes, as bits. */
  endBut(lanes: number, nowPs: Picoseconds): void {
    if (this.#waitingCount === 0) return;
    for (let lane = 0; lane < this.waitedPs.length; lane++)
      if ((lanes & (1 << lane)) === 0) this.end(lane, nowPs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (let lane = 0; lane < this.waitedPs.length; lane++) this.#sincePs[lane]! -= ps;
  }
}
