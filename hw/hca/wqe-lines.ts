/**
 * The send WQE cache: lines of WQE bytes, each belonging to one QP and holding the next few of its WQEs, fetched
 * by one DMA read or copied from a BlueFlame post. A line is given up, least recently used first, when another QP
 * needs it; its QP then fetches again. A line just fetched is kept until the requester has looked at it, or QPs that
 * outnumber the lines would take them from each other for ever.
 */
import { controlSegment } from '../../abi/wqe.ts';

export const WQE_LINE_BYTES = 1024;
/** WQEs of the smallest stride that a line has room for. */
const PLACES_MAX = WQE_LINE_BYTES / 16;

export class WqeLines {
  readonly count: number;
  readonly sramOffset: number;
  hitCount = 0;
  missCount = 0;
  evictionCount = 0;
  /** QP of each line; -1 when free. */
  readonly qp: Int32Array;
  readonly isFetching: Uint8Array;
  /** Fetched, and not yet looked at by the requester: not to be given up. */
  readonly isLocked: Uint8Array;
  /** 16-bit counter of the first WQE in the line, and how many valid WQEs are left from there. */
  readonly firstCounter: Int32Array;
  readonly validCount: Int32Array;
  /** By line and place: when the fetch that brought the WQE was begun, and when it was there. */
  readonly #fetchBegunCycle: Float64Array;
  readonly #fetchedCycle: Float64Array;
  /** True while the line was full of valid WQEs when fetched: more may lie behind it in memory. */
  readonly mayHaveMore: Uint8Array;
  readonly #stamp: Float64Array;
  #clock = 0;

  constructor(count: number, sramOffset: number) {
    this.count = count;
    this.sramOffset = sramOffset;
    this.qp = new Int32Array(count).fill(-1);
    this.isFetching = new Uint8Array(count);
    this.isLocked = new Uint8Array(count);
    this.firstCounter = new Int32Array(count);
    this.validCount = new Int32Array(count);
    this.#fetchBegunCycle = new Float64Array(count * PLACES_MAX);
    this.#fetchedCycle = new Float64Array(count * PLACES_MAX);
    this.mayHaveMore = new Uint8Array(count);
    this.#stamp = new Float64Array(count);
  }

  /** Line to fill for `qp`: its own, a free one, or the least recently used. -1 when all are being filled or locked. */
  claim(qp: number, own: number, onEvict: (qp: number) => void): number {
    let victim = own;
    if (victim === -1) {
      for (let line = 0; line < this.count; line++) {
        if (this.isFetching[line] === 1 || this.isLocked[line] === 1) continue;
        if (this.qp[line] === -1) {
          victim = line;
          break;
        }
        if (victim === -1 || this.#stamp[line]! < this.#stamp[victim]!) victim = line;
      }
    }
    if (victim === -1) return -1;
    const loser = this.qp[victim]!;
    if (loser !== -1 && loser !== qp) {
      if (this.validCount[victim]! > 0) this.evictionCount++;
      onEvict(loser);
    }
    if (loser !== qp) {
      this.qp[victim] = qp;
      this.validCount[victim] = 0;
      this.mayHaveMore[victim] = 0;
    }
    this.touch(victim);
    return victim;
  }

  touch(line: number): void {
    this.#stamp[line] = ++this.#clock;
  }

  free(line: number): void {
    this.qp[line] = -1;
    this.validCount[line] = 0;
    this.mayHaveMore[line] = 0;
    this.isLocked[line] = 0;
  }

  /** Forgets all lines. */
  reset(): void {
    for (let line = 0; line < this.count; line++) this.free(line);
    this.isFetching.fill(0);
  }

  /** Place in the HCA's memory of the WQE with this counter: a line is a ring of as many WQEs as it has room for. */
  placeOf(line: number, counter: number, strideBytes: number): number {
    return this.sramOffset + line * WQE_LINE_BYTES + ((counter * strideBytes) & (WQE_LINE_BYTES - 1));
  }

  /** Place of the first valid WQE. */
  firstPlace(line: number, strideBytes: number): number {
    return this.placeOf(line, this.firstCounter[line]!, strideBytes);
  }

  /** Notes when the WQE with this counter was asked for and when it came. */
  setTimes(line: number, counter: number, begunCycle: number, fetchedCycle: number): void {
    const at = line * PLACES_MAX + (counter & (PLACES_MAX - 1));
    this.#fetchBegunCycle[at] = begunCycle;
    this.#fetchedCycle[at] = fetchedCycle;
  }

  /** Cycle at which the fetch of the first valid WQE was begun. */
  fetchBegunCycle(line: number): number {
    return this.#fetchBegunCycle[line * PLACES_MAX + (this.firstCounter[line]! & (PLACES_MAX - 1))]!;
  }

  /** Cycle at which the first valid WQE was on chip. */
  fetchedCycle(line: number): number {
    return this.#fetchedCycle[line * PLACES_MAX + (this.firstCounter[line]! & (PLACES_MAX - 1))]!;
  }

  /** Counter behind the last valid WQE. */
  endCounter(line: number): number {
    return (this.firstCounter[line]! + this.validCount[line]!) & 0xffff;
  }

  /**
   * Takes up freshly read WQEs, which follow the valid ones of the line or begin it anew: as many as are valid.
   * @param logCount log2 of the ring's blocks: bit `logCount` of a WQE's counter is its owner bit
   */
  scan(
    line: number,
    view: DataView,
    firstCounter: number,
    blockCount: number,
    strideBytes: number,
    logCount: number,
  ): void {
    const owner = controlSegment.fields.owner;
    let valid = 0;
    while (valid < blockCount) {
      const passBit = ((firstCounter + valid) >>> logCount) & 1;
      if (owner.get(view, this.placeOf(line, firstCounter + valid, strideBytes)) !== passBit) break;
      valid++;
    }
    if (this.validCount[line] === 0) this.firstCounter[line] = firstCounter;
    this.validCount[line] = this.validCount[line]! + valid;
    this.mayHaveMore[line] = valid === blockCount ? 1 : 0;
  }

  /** Moves past the first valid WQE. */
  advance(line: number): void {
    this.firstCounter[line] = (this.firstCounter[line]! + 1) & 0xffff;
    this.validCount[line] = this.validCount[line]! - 1;
  }
}
