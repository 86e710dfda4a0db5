/** Addresses, QPs and P_Key of a received packet, as a switch reports a packet that it did not accept. */
import { GRH_BYTES, grh } from './headers.ts';
import { bytesBeforeGrh } from './opcodes.ts';
import {
  FLAG_GRH,
  grhPlace,
  SERVICE_LEVEL_SHIFT,
  WORD_DATAGRAM_PKEY,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_DESTINATION_QPN,
  WORD_LIDS,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from './packet.ts';
import { placeOfPkey } from './record-bytes.ts';
import type { RecordPlace } from './relay.ts';

export interface PacketIdentity {
  readonly sourceLid: number;
  readonly destinationLid: number;
  readonly pkey: number;
  readonly serviceLevel: number;
  readonly destinationQpn: number;
  /** Source QP in the DETH; undefined for a packet without a DETH. */
  readonly sourceQpn: number | undefined;
  /** Addresses in the GRH; undefined for a packet without a GRH. */
  readonly gids: { readonly source: Uint8Array; readonly destination: Uint8Array } | undefined;
}

/** P_Key of a received packet's BTH. */
export function receivedPkey({ rxWords }: RecordPlace, offset: number): number {
  const word = offset >> 2;
  return rxWords[word + placeOfPkey(rxWords[word + WORD_OPCODE]!)]! & 0xffff;
}

export function receivedIdentity(from: RecordPlace, offset: number): PacketIdentity {
  const { rxWords } = from;
  const word = offset >> 2;
  const place = placeOfPkey(rxWords[word + WORD_OPCODE]!);
  const lids = rxWords[word + WORD_LIDS]!;
  return {
    sourceLid: lids >>> 16,
    destinationLid: lids & 0xffff,
    pkey: receivedPkey(from, offset),
    serviceLevel: (rxWords[word + place]! >> SERVICE_LEVEL_SHIFT) & 0xf,
    destinationQpn: rxWords[word + WORD_DESTINATION_QPN]!,
    sourceQpn: place === WORD_DATAGRAM_PKEY ? rxWords[word + WORD_DATAGRAM_SOURCE_QPN]! : undefined,
    gids: gidsOf(from, offset),
  };
}

function gidsOf({ rxWords, rxBytes }: RecordPlace, offset: number): PacketIdentity['gids'] {
  const word = offset >> 2;
  if ((rxWords[word + WORD_PACKET_FLAGS]! & FLAG_GRH) === 0) return undefined;
  const before = bytesBeforeGrh(rxWords[word + WORD_OPCODE]!, rxWords[word + WORD_PAYLOAD_BYTES]!);
  const at = grhPlace(offset, before);
  const { sourceGid, destinationGid } = grh.decode(rxBytes.slice(at, at + GRH_BYTES));
  return { source: sourceGid, destination: destinationGid };
}
