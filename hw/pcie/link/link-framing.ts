/** How a link puts packets on its lanes by one encoding. Each framing has a file; link-framings.ts lists them. */

/** Useful bits, symbols or blocks among those that are sent. */
interface UsefulShare {
  readonly useful: number;
  readonly sent: number;
}

/** How often a lane sends an ordered set for clock compensation (SKP): see linkParameters. */
interface SkipIntervals {
  readonly skpIntervalSymbols: number;
  readonly skpIntervalBlocks: number;
}

export interface LinkFraming {
  /** Megatransfers per second of a lane, by each generation that is sent so. */
  readonly megatransfers: ReadonlyMap<number, number>;
  /** Bits of packets among the bits on a lane. */
  readonly code: UsefulShare;
  /** The part of a lane's time that SKP ordered sets leave. */
  skipShare(intervals: SkipIntervals): UsefulShare;
  /** Bytes of the link around a TLP: tokens, sequence number, LCRC. */
  readonly tlpBytes: number;
  /** Bytes of the link that a DLLP takes, whole. */
  readonly dllpBytes: number;
}
