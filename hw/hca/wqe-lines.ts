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

/** A field that begins as NaN may hold any number, the others hold 32-bit integers. */
export class WqeLine {
  /** QP of the line; -1 when free. */
  qp = -1;
  isFetching = 0;
  /** Fetched, and not yet looked at by the requester: not to be given up. */
  isLocked = 0;
  /** 16-bit counter of the first WQE in the line, and how many valid WQEs are left from there. */
  firstCounter = 0;
  validCount = 0;
  /** True while the line was full of valid WQEs when fetched: more may lie behind it in memory. */
  mayHaveMore = 0;
  /** When it was last used. */
  stamp = Number.NaN;

  constructor() {
    this.stamp = 0;
  }
}

export class WqeLines {
  readonly count: number;
  readonly sramOffset: number;
  hitCount = 0;
  missCount = 0;
  evictionCount = 0;
  readonly rows: readonly WqeLine[];
  /** By line and place: when the fetch that brought the WQE was begun, and when it was there. */
  readonly #fetchBegunCycle: Float64Array;
  readonly #fetchedCycle: Float64Array;
  #clock = 0;

  constructor(count: number, sramOffset: number) {
    this.count = count;
    this.sramOffset = sramOffset;
    this.rows = Array.from({ length: count }, () => new WqeLine());
    this.#fetchBegunCycle = new Float64Array(count * PLACES_MAX);
    this.#fetchedCycle = new Float64Array(count * PLACES_MAX);
  }

  /** Line to fill for `qp`: its own, a free one, or the least recently used. -1 when all are being filled or locked. */
  claim(qp: number, own: number, onEvict: (qp: number) => void): number {
    let victim = own;
    if (victim === -1) {
      for (let line = 0; line < this.count; line++) {
        const candidate = this.rows[line]!;
        if (candidate.isFetching === 1 || candidate.isLocked === 1) continue;
        if (candidate.qp === -1) {
          victim = line;
          break;
        }
        if (victim === -1 || candidate.stamp < this.rows[victim]!.stamp) victim = line;
      }
    }
    if (victim === -1) return -1;
    const held = this.rows[victim]!;
    const loser = held.qp;
    if (loser !== -1 && loser !== qp) {
      if (held.validCount > 0) this.evictionCount++;
      onEvict(loser);
    }
    if (loser !== qp) {
      held.qp = qp;
      held.validCount = 0;
      held.mayHaveMore = 0;
    }
    this.touch(victim);
    return victim;
  }

  touch(line: number): void {
    this.rows[line]!.stamp = ++this.#clock;
  }

  free(line: number): void {
    const held = this.rows[line]!;
    held.qp = -1;
    held.validCount = 0;
    held.mayHaveMore = 0;
    held.isLocked = 0;
  }

  /** Forgets all lines. */
  reset(): void {
    for (let line = 0; line < this.count; line++) this.free(line);
    for (const held of this.rows) held.isFetching = 0;
  }

  /** Place in the HCA's memory of the WQE with this counter: a line is a ring of as many WQEs as it has room for. */
  placeOf(line: number, counter: number, strideBytes: number): number {
    return this.sramOffset + line * WQE_LINE_BYTES + ((counter * strideBytes) & (WQE_LINE_BYTES - 1));
  }

  /** Place of the first valid WQE. */
  firstPlace(line: number, strideBytes: number): number {
    return this.placeOf(line, this.rows[line]!.firstCounter, strideBytes);
  }

  /** Notes when the WQE with this counter was asked for and when it came. */
  setTimes(line: number, counter: number, begunCycle: number, fetchedCycle: number): void {
    const at = line * PLACES_MAX + (counter & (PLACES_MAX - 1));
    this.#fetchBegunCycle[at] = begunCycle;
    this.#fetchedCycle[at] = fetchedCycle;
  }

  /** Cycle at which the fetch of the first valid WQE was begun. */
  fetchBegunCycle(line: number): number {
    return this.#fetchBegunCycle[line * PLACES_MAX + (this.rows[line]!.firstCounter & (PLACES_MAX - 1))]!;
  }

  /** Cycle at which the first valid WQE was on chip. */
  fetchedCycle(line: number): number {
    return this.#fetchedCycle[line * PLACES_MAX + (this.rows[line]!.firstCounter & (PLACES_MAX - 1))]!;
  }

  /** Counter behind the last valid WQE. */
  endCounter(line: number): number {
    const held = this.rows[line]!;
    return (held.firstCounter + held.validCount) & 0xffff;
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
    const held = this.rows[line]!;
    if (held.validCount === 0) held.firstCounter = firstCounter;
    held.validCount += valid;
    held.mayHaveMore = valid === blockCount ? 1 : 0;
  }

  /** The first valid WQE has been taken up. */
  use(line: number): void {
    this.hitCount++;
    this.touch(line);
    this.advance(line);
  }

  /** Moves past the first valid WQE. */
  advance(line: number): void {
    const held = this.rows[line]!;
    held.firstCounter = (held.firstCounter + 1) & 0xffff;
    held.validCount--;
  }
}
