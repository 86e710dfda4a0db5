/**
 * Ring arithmetic. A *counter* runs freely and wraps at its own width (16, 24 or 32 bits); an *index* is the counter masked to
 * the ring. The bit just above the mask is the parity of the pass; it determines the ownership bit.
 *
 *   counter  0000 0000 0101 0011      ring of 64 entries: logEntries = 6
 *                      ^^ ^^^^^^      index = counter & 63
 *                       pass bit      ownership of this pass = bit 6
 *
 * Sources: interface sheet 6.2 (send queue), 6.6 (CQ), 6.7 (EQ).
 */

/** Width of free-running counters of the interface, as a mask; others have 24 bits (mask24). */
export const counterMask16 = 0xffff;

/** Position in a ring of 2^logEntries. */
export const ringIndex = (counter: number, logEntries: number): number => counter & ((1 << logEntries) - 1);

/** The bit above the index: 0 in the first pass over the ring, 1 in the second, and so on. */
export const passBit = (counter: number, logEntries: number): number => (counter >>> logEntries) & 1;

/** counter + step, wrapping at the counter's width. */
export const advance = (counter: number, step: number, counterMask: number): number =>
  (counter + step) & counterMask;

/** Distance by which the first counter leads the second one, modulo the counter's width: from 0 to counterMask. */
export const distance = (ahead: number, behind: number, counterMask: number): number =>
  (ahead - behind) & counterMask;
