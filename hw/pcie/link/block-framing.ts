/** Generations 3 to 5: blocks of 128b/130b with tokens. Source: PCI Express Base Specification 3.1, 4.2.2.3 and 4.2.7. */
import type { LinkFraming } from './link-framing.ts';

export const blockFraming: LinkFraming = {
  megatransfers: new Map([
    [3, 8_000],
    [4, 16_000],
    [5, 32_000],
  ]),
  code: { useful: 128, sent: 130 },
  // The ordered set is a block.
  skipShare: ({ skpIntervalBlocks }) => ({ useful: skpIntervalBlocks - 1, sent: skpIntervalBlocks }),
  // The STP token contains the sequence number and the length: an LCRC follows the TLP, no END.
  tlpBytes: 4 + 4,
  // The SDP token of two bytes, four of content and a CRC of two.
  dllpBytes: 2 + 4 + 2,
};
