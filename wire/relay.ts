/**
 * A switch's step for one packet: its record at one port becomes the record that another port sends. Headers and payload stay as they are;
 * counters of the sending port count it as any packet.
 */
import type { Picoseconds } from '../base/index.ts';
import { packetShapes } from './opcodes.ts';
import {
  DAMAGE_PLACE,
  FLAG_ACK_REQUEST,
  FLAG_CONGESTION,
  FLAG_DAMAGED_INSIDE,
  FLAG_GRH,
  FLAG_MIGRATED,
  FLAG_RETRANSMISSION,
  FLAG_SOLICITED,
  isDamagedInside,
  PACKET_PAYLOAD_OFFSET,
  packetBytesIn,
  SERVICE_LEVEL_SHIFT,
  virtualLaneOf,
  WORD_DESTINATION_QPN,
  WORD_LIDS,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_PSN,
} from './packet.ts';
import { placeOfPkey } from './record-bytes.ts';
import { bodyBytesOf } from './wire-observer.ts';
import type { WirePort } from './wire-port.ts';
import { NOT_SENT } from './wire-sender.ts';

/** Flags that belong to the packet or to its sender's counters; the others are set by the port that sends. A wrong ICRC stays wrong. */
const CARRIED_FLAGS =
  FLAG_ACK_REQUEST |
  FLAG_SOLICITED |
  FLAG_GRH |
  FLAG_RETRANSMISSION |
  FLAG_MIGRATED |
  FLAG_CONGESTION |
  FLAG_DAMAGED_INSIDE |
  DAMAGE_PLACE;

/** Memory that has the record of a packet: that of the port by which it came, or of a queue. */
export interface RecordPlace {
  readonly rxBytes: Uint8Array;
  readonly rxWords: Int32Array;
}

/** Whether `to` has credit in a lane for a packet of `from`, and is not busy; otherwise it calls its sender when it may be asked again. */
export function canRelay(from: RecordPlace, offset: number, to: WirePort, virtualLane: number): boolean {
  const word = offset >> 2;
  const source = from.rxWords;
  const flags = source[word + WORD_PACKET_FLAGS]! & CARRIED_FLAGS;
  return to.canTransmit(source[word + WORD_OPCODE]!, source[word + WORD_PAYLOAD_BYTES]!, flags, virtualLane);
}

/**
 * Sends a packet that has arrived at `from` by `to`.
 * @param offset of its record at `from`, which is not consumed yet
 * @param virtualLane in which it leaves
 * @param addedFlags FLAG_CONGESTION if the switch marks it
 * @returns false if `to` has no credit or is busy; it calls its sender when it may be asked again
 */
export function relayPacket(
  from: RecordPlace,
  offset: number,
  to: WirePort,
  atPs: Picoseconds,
  virtualLane: number,
  addedFlags = 0,
): boolean {
  const word = offset >> 2;
  const source = from.rxWords;
  const opcode = source[word + WORD_OPCODE]!;
  const payloadBytes = source[word + WORD_PAYLOAD_BYTES]!;
  const flagWord = source[word + WORD_PACKET_FLAGS]!;
  const flags = (flagWord & CARRIED_FLAGS) | addedFlags;
  to.outboundHeaders.destinationQpn = source[word + WORD_DESTINATION_QPN]!;
  to.outboundHeaders.psn = source[word + WORD_PSN]!;
  const sent = to.sendPacket(opcode, payloadBytes, flags, atPs, virtualLane);
  if (sent === NOT_SENT) return false;
  copyFields(source, word, to.txWords, sent >> 2);
  const bodyBytes = bodyBytesOf(packetShapes[opcode]!, payloadBytes, flags);
  const body = offset + PACKET_PAYLOAD_OFFSET;
  to.txBytes.set(from.rxBytes.subarray(body, body + bodyBytes), sent + PACKET_PAYLOAD_OFFSET);
  to.packetFilled(sent);
  return true;
}

/** Copies the words between the opcode and the payload that the sending port has not set itself. */
function copyFields(source: Int32Array, from: number, target: Int32Array, to: number): void {
  for (let at = WORD_DESTINATION_QPN; at <= WORD_LIDS; at++)
    if (at !== WORD_PACKET_FLAGS && at !== WORD_PAYLOAD_BYTES) target[to + at] = source[from + at]!;
}

/** Bytes of a received packet from LRH to VCRC. */
export const receivedPacketBytes = (port: WirePort, offset: number): number =>
  packetBytesIn(port.rxWords[(offset >> 2) + WORD_PACKET_FLAGS]!);

/** Whether a received packet's ICRC is wrong. */
export const isReceivedDamaged = (port: WirePort, offset: number): boolean =>
  isDamagedInside(port.rxWords[(offset >> 2) + WORD_PACKET_FLAGS]!);

export const receivedVirtualLane = (port: WirePort, offset: number): number =>
  virtualLaneOf(port.rxWords[(offset >> 2) + WORD_PACKET_FLAGS]!);

/** Service level of a received packet's LRH. */
export function receivedServiceLevel({ rxWords }: WirePort, offset: number): number {
  const word = offset >> 2;
  return (rxWords[word + placeOfPkey(rxWords[word + WORD_OPCODE]!)]! >> SERVICE_LEVEL_SHIFT) & 0xf;
}

/** Destination LID of a received packet's LRH. */
export const destinationLidOf = (port: WirePort, offset: number): number =>
  port.rxWords[(offset >> 2) + WORD_LIDS]! & 0xffff;
