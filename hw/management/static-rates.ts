/**
 * Static rates of paths: a sender does not send faster than a slower link on the way can carry (IBTA vol 1, 9.11). A path has the
 * code of a rate; a QP or datagram without one uses the line.
 */

/** Signalling rates by their code: PathRecord.Rate (IBTA vol 1, 15.2.5.16), enum ib_rate of Linux. In Mb/s. */
const signallingMbpsByCode: Readonly<Record<number, number>> = {
  2: 2500,
  3: 10_000,
  4: 30_000,
  5: 5000,
  6: 20_000,
  7: 40_000,
  8: 60_000,
  9: 80_000,
  10: 120_000,
};
/** All of them have 8b/10b codes: SDR, DDR and QDR of 1 to 12 lanes. */
const DATA_SHARE = 0.8;

/** Codes that a card with static rates keeps. */
export const staticRateCodes: readonly number[] = Object.keys(signallingMbpsByCode).map(Number);

/** Data rate of a path in Mb/s, with the bytes of its packets' headers; Infinity for the line's rate, and for unknown codes. */
export function staticRateMbps(code: number): number {
  const signallingMbps = signallingMbpsByCode[code];
  return signallingMbps === undefined ? Number.POSITIVE_INFINITY : signallingMbps * DATA_SHARE;
}
