/** The words of a record that its sender knows when it begins a packet. */
import { padBytes } from './opcodes.ts';
import {
  PACKET_BYTES_SHIFT,
  PAD_SHIFT,
  VIRTUAL_LANE_SHIFT,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from './packet.ts';

/** Writes opcode, flags and payload bytes; the sender fills in the other words. */
export function openPacket(
  words: Int32Array,
  word: number,
  opcode: number,
  payloadBytes: number,
  flags: number,
  virtualLane: number,
  packetBytes: number,
): void {
  words[word + WORD_OPCODE] = opcode;
  words[word + WORD_PACKET_FLAGS] = flagWordOf(flags, payloadBytes, virtualLane, packetBytes);
  words[word + WORD_PAYLOAD_BYTES] = payloadBytes;
}

/** The word of flags, with the pad count, virtual lane and length of the packet. */
export const flagWordOf = (
  flags: number,
  payloadBytes: number,
  virtualLane: number,
  packetBytes: number,
): number =>
  flags |
  (padBytes(payloadBytes) << PAD_SHIFT) |
  (virtualLane << VIRTUAL_LANE_SHIFT) |
  (packetBytes << PACKET_BYTES_SHIFT);
