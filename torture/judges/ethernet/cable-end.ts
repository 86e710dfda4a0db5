/** Frames at one end of a cable of Ethernet, as a capture has them. */
import { readCapture } from '../../../analyser/capture/index.ts';

/** A frame without its FCS. */
export interface SeenFrame {
  /** When its last bit passed this end. */
  readonly atPs: bigint;
  readonly bytes: Uint8Array;
  /** Notes of the capture on its fate, separated by semicolons; empty for an ordinary frame. */
  readonly note: string;
}

export const copyNote = 'a copy, made by a fault';
export const lostNote = 'lost on the cable';
export const damagedNote = 'damaged on its way by a fault';

export const hasNote = (notes: string, note: string): boolean => notes.split('; ').includes(note);

/** Whether a packet or frame arrived as it had left; a congestion mark does not change its contents. */
export const isIntact = (notes: string): boolean => !/damaged|dropped|lost/.test(notes);

export interface CableEnd {
  readonly node: number;
  /** Whether all that passed is here. */
  readonly isWhole: boolean;
  readonly sent: readonly SeenFrame[];
  readonly received: readonly SeenFrame[];
}

/** @param file a capture of all ends, in the order of the nodes */
export function cableEndsOf(file: Uint8Array): CableEnd[] {
  const { interfaces, frames } = readCapture(file);
  return interfaces.map(({ droppedPackets }, node) => {
    const of = (direction: 'inbound' | 'outbound'): SeenFrame[] =>
      frames
        .filter((frame) => frame.interface === node && frame.direction === direction)
        .map(({ timePs, bytes, comment }) => ({ atPs: timePs, bytes, note: comment }));
    return { node, isWhole: droppedPackets === 0, sent: of('outbound'), received: of('inbound') };
  });
}
