/**
 * The send WQE cache: lines of WQE bytes, each belonging to one QP and holding the next few of its WQEs, fetched by one
 * DMA read or copied from a BlueFlame post. A line is evicted, least recently used first, when another QP needs it; its
 * QP then fetches again. A line just fetched is kept until the requester has read it; otherwise QPs that outnumber the
 * lines would evict each other's lines indefinitely.
 */
import { noLine, type QpSlot, type QueuePair, WQE_LINE_BYTES, WqeLine } from '../objects/index.ts';

export class WqeLines {
  /** WQEs taken from the lines, and reads that filled them. */
  useCount = 0;
  readCount = 0;
  evictionCount = 0;
  /** The lines by their numbers. */
  readonly rows: readonly WqeLine[];
  readonly #pairs: readonly QueuePair[];
  #clock = 0;

  /**
   * @param pairs by slot: a QP that loses its line is notified
   */
  constructor(count: number, sramOffset: number, pairs: readonly QueuePair[]) {
    this.#pairs = pairs;
    this.rows = Array.from(
      { length: count },
      (_, number) => new WqeLine(number, sramOffset + number * WQE_LINE_BYTES),
    );
  }

  /** Lines that belong to a QP. */
  get heldCount(): number {
    return this.rows.filter(({ qp }) => qp !== -1).length;
  }

  /**
   * Line to fill for `qp`: its own, a free one, or the least recently used. {@link noLine} when all are being filled or
   * locked.
   */
  claim(qp: QpSlot, own: WqeLine): WqeLine {
    const victim = own === noLine ? this.#victim() : own;
    if (victim === noLine) return noLine;
    const loser = victim.qp;
    if (loser !== -1 && loser !== qp) {
      if (victim.validCount > 0) this.evictionCount++;
      loseLine(this.#pairs[loser]!);
    }
    if (loser !== qp) {
      victim.qp = qp;
      victim.validCount = 0;
      victim.mayHaveMore = 0;
      victim.partBlocks = 0;
    }
    this.#touch(victim);
    return victim;
  }

  /** Notes that the first valid WQE, of `blocks` blocks, has been started. */
  use(line: WqeLine, blocks = 1): void {
    this.useCount++;
    this.#touch(line);
    line.advance(blocks);
  }

  /** Forgets all lines. */
  reset(): void {
    for (const line of this.rows) {
      line.free();
      line.isFetching = 0;
    }
  }

  #touch(line: WqeLine): void {
    line.stamp = ++this.#clock;
  }

  #victim(): WqeLine {
    let victim = noLine;
    for (const candidate of this.rows) {
      if (candidate.isFetching === 1 || candidate.isLocked === 1) continue;
      if (candidate.qp === -1) return candidate;
      if (victim === noLine || candidate.stamp < victim.stamp) victim = candidate;
    }
    return victim;
  }
}

/** A QP that loses its line reads its WQEs from memory when it is next served. */
function loseLine(pair: QueuePair): void {
  const { validCount, mayHaveMore } = pair.wqeLine;
  if (validCount > 0 || mayHaveMore === 1) pair.hasDoorbell = 1;
  pair.wqeLine = noLine;
}
