/** Encodings by which a link puts packets on its lanes. Each framing has a file; link-framings.ts lists them. */

/** Useful bits, symbols or blocks among the transmitted ones. */
interface UsefulShare {
  readonly useful: number;
  readonly sent: number;
}

/** Intervals at which a lane sends an ordered set for clock compensation (SKP): see linkParameters. */
interface SkipIntervals {
  readonly skpIntervalSymbols: number;
  readonly skpIntervalBlocks: number;
}

export interface LinkFraming {
  /** Megatransfers per second of a lane, for each generation with this framing. */
  readonly megatransfers: ReadonlyMap<number, number>;
  /** Share of packet bits among the bits on a lane. */
  readonly code: UsefulShare;
  /** Share of a lane's time left by SKP ordered sets. */
  skipShare(intervals: SkipIntervals): UsefulShare;
  /** Link bytes around a TLP: tokens, sequence number, LCRC. */
  readonly tlpBytes: number;
  /** Total link bytes of a DLLP. */
  readonly dllpBytes: number;
}
