/** Generations 1 and 2: symbols of 8b/10b. Source: PCI Express Base Specification 3.1, 3.5.2, 4.2.1 and 4.2.7. */
import type { LinkFraming } from './link-framing.ts';

/** COM and three SKP. */
const SKP_SYMBOLS = 4;

export const symbolFraming: LinkFraming = {
  megatransfers: new Map([
    [1, 2_500],
    [2, 5_000],
  ]),
  code: { useful: 8, sent: 10 },
  skipShare: ({ skpIntervalSymbols }) => ({
    useful: skpIntervalSymbols - SKP_SYMBOLS,
    sent: skpIntervalSymbols,
  }),
  // STP and END of one symbol each, a sequence number of two, and an LCRC of four.
  tlpBytes: 2 + 2 + 4,
  // SDP and END around four bytes of content and a CRC of two.
  dllpBytes: 2 + 4 + 2,
};
