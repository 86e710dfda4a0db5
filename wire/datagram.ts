/**
 * A whole datagram (UD, SEND only) of a port's record, for a node that answers it itself: the management port of a switch.
 * A GRH is not read, and never sent.
 */
import type { Picoseconds } from '../base/index.ts';
import { Opcode } from './opcodes.ts';
import {
  PACKET_PAYLOAD_OFFSET,
  SERVICE_LEVEL_SHIFT,
  virtualLaneOf,
  WORD_DATAGRAM_PKEY,
  WORD_DATAGRAM_QKEY,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_DESTINATION_QPN,
  WORD_IMMEDIATE,
  WORD_LIDS,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_PSN,
} from './packet.ts';
import type { WirePort } from './wire-port.ts';
import { NOT_SENT } from './wire-sender.ts';

export interface Datagram {
  readonly virtualLane: number;
  readonly serviceLevel: number;
  readonly sourceLid: number;
  readonly destinationLid: number;
  readonly partitionKey: number;
  readonly queueKey: number;
  readonly sourceQpn: number;
  readonly destinationQpn: number;
  readonly psn: number;
  /** A copy. */
  readonly payload: Uint8Array;
}

const low16 = 0xffff;
const low4 = 0xf;

/** @returns undefined for a packet of another opcode */
export function receivedDatagram({ rxWords, rxBytes }: WirePort, offset: number): Datagram | undefined {
  const word = offset >> 2;
  if (rxWords[word + WORD_OPCODE] !== Opcode.UD_SEND_ONLY) return undefined;
  const lids = rxWords[word + WORD_LIDS]!;
  const keys = rxWords[word + WORD_DATAGRAM_PKEY]!;
  const start = offset + PACKET_PAYLOAD_OFFSET;
  return {
    virtualLane: virtualLaneOf(rxWords[word + WORD_PACKET_FLAGS]!),
    serviceLevel: (keys >> SERVICE_LEVEL_SHIFT) & low4,
    sourceLid: lids >>> 16,
    destinationLid: lids & low16,
    partitionKey: keys & low16,
    queueKey: rxWords[word + WORD_DATAGRAM_QKEY]! >>> 0,
    sourceQpn: rxWords[word + WORD_DATAGRAM_SOURCE_QPN]!,
    destinationQpn: rxWords[word + WORD_DESTINATION_QPN]!,
    psn: rxWords[word + WORD_PSN]!,
    payload: rxBytes.slice(start, start + rxWords[word + WORD_PAYLOAD_BYTES]!),
  };
}

/** Sends a datagram by a port. @returns false if the port has no credit or is busy: see WirePort.sendPacket */
export function sendDatagram(to: WirePort, datagram: Datagram, atPs: Picoseconds): boolean {
  const { payload, virtualLane, destinationQpn, psn } = datagram;
  to.outboundHeaders.destinationQpn = destinationQpn;
  to.outboundHeaders.psn = psn;
  const offset = to.sendPacket(Opcode.UD_SEND_ONLY, payload.length, 0, atPs, virtualLane);
  if (offset === NOT_SENT) return false;
  const [words, word] = [to.txWords, offset >> 2];
  words[word + WORD_DESTINATION_QPN] = destinationQpn;
  words[word + WORD_PSN] = psn;
  words[word + WORD_DATAGRAM_PKEY] = datagram.partitionKey | (datagram.serviceLevel << SERVICE_LEVEL_SHIFT);
  words[word + WORD_DATAGRAM_QKEY] = datagram.queueKey | 0;
  words[word + WORD_DATAGRAM_SOURCE_QPN] = datagram.sourceQpn;
  words[word + WORD_IMMEDIATE] = 0;
  words[word + WORD_LIDS] = (datagram.sourceLid << 16) | datagram.destinationLid;
  to.txBytes.set(payload, offset + PACKET_PAYLOAD_OFFSET);
  to.packetFilled(offset);
  return true;
}
