/** A line of the send WQE cache: the next few WQEs of one QP, and the times of their fetches. */

import type { Cycles, Wide } from '../../../base/index.ts';
import type { SendFormat } from '../host-interface/index.ts';

export const WQE_LINE_BYTES = 1024;
/** WQEs of the smallest stride that a line has room for. */
const PLACES_MAX = WQE_LINE_BYTES / 16;
const LINE_MASK = WQE_LINE_BYTES - 1;
const PLACE_MASK = PLACES_MAX - 1;

/** Cycles at which the fetch of a WQE began and ended. */
class FetchTimes {
  begunCycle = 0;
  fetchedCycle = 0;
}

/** Placeholder where no WQE has been: most places of most lines. */
const noTimes = new FetchTimes();
const placesOfNone = (): FetchTimes[] => new Array<FetchTimes>(PLACES_MAX).fill(noTimes);
/** The places of all lines that no WQE has been in: never written to. */
const unused = placesOfNone();

/** Fields that are not Wide hold 32-bit integers. */
export class WqeLine {
  /** The line's number, and its offset in the HCA's memory. */
  readonly number: number;
  readonly sramOffset: number;
  /** QP of the line; -1 when free. */
  qp = -1;
  isFetching = 0;
  /** 1 if fetched, and not yet read by the requester: it must not be evicted. */
  isLocked = 0;
  /** 16-bit counter of the first WQE in the line, and how many valid WQEs are left from there. */
  firstCounter = 0;
  validCount = 0;
  /** True if the line was full of valid WQEs when fetched: more may follow in memory. */
  mayHaveMore = 0;
  /** Blocks on chip, after the valid WQEs, of a WQE of which only a part is on chip. */
  partBlocks = 0;
  /** When it was last used. */
  stamp: Wide = 0;
  /** Times of the WQEs, by their place in the line. */
  #times = unused;

  constructor(number: number, sramOffset: number) {
    this.number = number;
    this.sramOffset = sramOffset;
  }

  /** Place in the HCA's memory of the WQE with this counter: a line is a ring of as many WQEs as it has room for. */
  placeOf(counter: number, strideBytes: number): number {
    return this.sramOffset + (Math.imul(counter, strideBytes) & LINE_MASK);
  }

  /** Counter after the last valid WQE. */
  get endCounter(): number {
    return (this.firstCounter + this.validCount) & 0xffff;
  }

  /** Notes when the fetch of the WQE with this counter began and ended. */
  setTimes(counter: number, begunCycle: Cycles, fetchedCycle: Cycles): void {
    let times = this.#times[counter & PLACE_MASK]!;
    if (times === noTimes) {
      if (this.#times === unused) this.#times = placesOfNone();
      times = new FetchTimes();
      this.#times[counter & PLACE_MASK] = times;
    }
    times.begunCycle = begunCycle;
    times.fetchedCycle = fetchedCycle;
  }

  /** Times of the first valid WQE. */
  get firstTimes(): Readonly<FetchTimes> {
    return this.#times[this.firstCounter & PLACE_MASK]!;
  }

  /**
   * Counts the valid WQEs among those just read, which follow the valid ones of the line or replace them.
   * @param logCount log2 of the ring's blocks: bit `logCount` of a WQE's counter is its owner bit
   */
  scan(
    format: Pick<SendFormat, 'isPosted'>,
    view: DataView,
    firstCounter: number,
    blockCount: number,
    strideBytes: number,
    logCount: number,
  ): void {
    let valid = 0;
    while (valid < blockCount) {
      const passBit = ((firstCounter + valid) >>> logCount) & 1;
      if (!format.isPosted(view, this.placeOf(firstCounter + valid, strideBytes), passBit)) break;
      valid++;
    }
    if (this.validCount === 0) this.firstCounter = firstCounter;
    this.validCount += valid;
    this.mayHaveMore = valid === blockCount ? 1 : 0;
  }

  /**
   * {@link scan} for WQEs that give their length in blocks. The last WQE may be incomplete: its part is kept, and
   * becomes valid when the rest has been read.
   */
  scanBlocks(
    format: Pick<SendFormat, 'isPosted' | 'bytesAt'>,
    view: DataView,
    firstCounter: number,
    blockCount: number,
    strideBytes: number,
    logCount: number,
  ): void {
    if (this.validCount + this.partBlocks === 0) this.firstCounter = firstCounter;
    const begin = this.firstCounter + this.validCount;
    const read = this.partBlocks + blockCount;
    let valid = 0;
    let isPart = false;
    while (valid < read && !isPart) {
      const place = this.placeOf(begin + valid, strideBytes);
      if (!format.isPosted(view, place, ((begin + valid) >>> logCount) & 1)) break;
      const blocks = wqeBlocksOf(format.bytesAt(view, place), strideBytes);
      isPart = valid + blocks > read;
      if (!isPart) valid += blocks;
    }
    this.validCount += valid;
    this.partBlocks = isPart ? read - valid : 0;
    this.mayHaveMore = isPart || valid === read ? 1 : 0;
  }

  /** Moves past the first valid WQE, of `blocks` blocks. */
  advance(blocks = 1): void {
    this.firstCounter = (this.firstCounter + blocks) & 0xffff;
    this.validCount -= blocks;
  }

  /** Frees the line. */
  free(): void {
    this.qp = -1;
    this.validCount = 0;
    this.mayHaveMore = 0;
    this.partBlocks = 0;
    this.isLocked = 0;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const times of this.#times) {
      if (times === noTimes) continue;
      times.begunCycle -= cycles;
      times.fetchedCycle -= cycles;
    }
  }
}

/** Returns the blocks of the ring that a WQE of `wqeBytes` occupies. */
export const wqeBlocksOf = (wqeBytes: number, strideBytes: number): number =>
  wqeBytes <= strideBytes ? 1 : Math.ceil(wqeBytes / strideBytes);

/** Placeholder line of a QP without one: it is empty. */
export const noLine = new WqeLine(-1, -1);
