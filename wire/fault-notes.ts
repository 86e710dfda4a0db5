/** Capture comments on fault effects that the bytes of packets and frames do not show. */
import type { Picoseconds } from '../base/index.ts';

export const MARKED_NOTE = 'marked for congestion by a fault';

const PS_PER_US = 1e6;

export const lateNote = (delayPs: Picoseconds): string =>
  delayPs > 0 ? `held up for ${delayPs / PS_PER_US} us by a fault` : '';

/** @param passes packets or frames sent before it */
export const overtakenNote = (passes: number): string =>
  `held back by a fault: ${passes} ${passes === 1 ? 'other' : 'others'} passed it`;

export const joinedNotes = (...notes: readonly string[]): string =>
  notes.filter((note) => note !== '').join('; ');
