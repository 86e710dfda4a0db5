/**
 * The framings of a link, by generation:
 *
 *     generation ──► framingOf ──► symbols (1, 2) · blocks (3 to 5) ──► rate of a lane, bytes around a TLP, bytes of a DLLP
 *
 * Another encoding is one more file and an entry in the list; no other code depends on a generation's encoding.
 */
import { blockFraming } from './block-framing.ts';
import type { LinkFraming } from './link-framing.ts';
import { symbolFraming } from './symbol-framing.ts';

const framings: readonly LinkFraming[] = [symbolFraming, blockFraming];

/** Generations with a framing, ascending. */
export const linkGenerations: readonly number[] = framings.flatMap(({ megatransfers }) => [
  ...megatransfers.keys(),
]);

/** The framing of a generation, which checkLinkConfig has accepted. */
export const framingOf = (generation: number): LinkFraming =>
  framings.find(({ megatransfers }) => megatransfers.has(generation))!;
