/** Packet sequence numbers: 24 bits, wrapping. Source: InfiniBand Architecture Specification, volume 1, 9.7.2. */
import { mask24 } from '../base/index.ts';

export const PSN_MASK = mask24;

/**
 * PSNs that a requester may have outstanding: sent, or promised to READ responses, and not acknowledged (9.7.2). With one more a responder
 * could not distinguish a new request from a duplicate of the oldest.
 */
export const PSNS_OUTSTANDING_MAX = 2 ** 23 - 1;

export const psnAdd = (psn: number, count: number): number => (psn + count) & PSN_MASK;

/**
 * Distance from `other` to `psn`: -2^23 to 2^23 - 1. At half of the circle or more, a PSN counts as older; so a responder
 * distinguishes a duplicate from a gap.
 */
export const psnDistance = (psn: number, other: number): number => ((psn - other) << 8) >> 8;
