/** Sequence numbers: 32 bits that wrap. Differences are signed, so "before" holds within half of the space (RFC 9293, 3.4). */

/** The number `count` after `sequence`. */
export const sequenceAdd = (sequence: number, count: number): number => (sequence + count) >>> 0;

/** Distance from `right` to `left`; negative if `left` is before it. */
export const sequenceDistance = (left: number, right: number): number => (left - right) | 0;

export const isBefore = (left: number, right: number): boolean => ((left - right) | 0) < 0;

export const isAfter = (left: number, right: number): boolean => ((left - right) | 0) > 0;
