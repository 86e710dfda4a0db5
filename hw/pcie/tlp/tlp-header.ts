/**
 * The real header of a TLP as the standard defines it on the link, rebuilt from a channel record: four dwords, the first byte
 * of the header in the most significant byte of the first dword, as the header log shows them.
 *
 *     dword 0   Fmt [31:29]  Type [28:24]  TC [22:20]  EP [14]  Attr [13:12]  Length in dwords [9:0]
 *     dword 1   requests: Requester ID [31:16]  Tag [15:8]  Last BE [7:4]  First BE [3:0]
 *               completions: Completer ID [31:16]  Status [15:13]  Byte Count [11:0]
 *               messages: Requester ID [31:16]  Tag [15:8]  Message Code [7:0]
 *     dword 2   address (its upper half in a 4 DW header), or target id and register, or requester id, tag, lower address
 *
 * The traffic class of a record is an accounting label, so TC is 0 on the link. Source: PCI Express Base
 * Specification 3.1, 2.2.1 to 2.2.9.
 */

import { type BusAddress, type Decoded, highWordOf, lowWordOf } from '../../../base/index.ts';
import type { ChannelReader } from '../../../sim/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  firstByteEnables,
  headerBytesOf,
  lastByteEnables,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  tlpRecord,
  touchedDwords,
} from './tlp.ts';

/** The part of a channel reader that the header log uses. */
type RecordBytes = Pick<ChannelReader, 'bytes'>;

export type TlpHeader = readonly [number, number, number, number];

const FMT_WITH_DATA = 2;
const FMT_LONG_HEADER = 1;
const LONG_HEADER_BYTES = 16;

/** Fmt (without the long-header bit) and Type of each kind, table 2-3. Messages route to the local receiver. */
const formatAndType: Readonly<Record<number, readonly [fmt: number, type: number]>> = {
  [MEMORY_WRITE]: [FMT_WITH_DATA, 0b00000],
  [MEMORY_READ]: [0, 0b00000],
  [COMPLETION_DATA]: [FMT_WITH_DATA, 0b01010],
  [COMPLETION]: [0, 0b01010],
  [CONFIG_READ]: [0, 0b00100],
  [CONFIG_WRITE]: [FMT_WITH_DATA, 0b00100],
  [MESSAGE]: [0, 0b10100],
};

/** The header of the record at `offset`; the fourth dword is 0 for a 3 DW header. */
export function tlpHeaderOf({ bytes }: RecordBytes, offset: number): TlpHeader {
  const tlp = tlpRecord.decode(bytes, offset);
  const { address, lengthBytes, aux } = tlp;
  const kind: number = tlp.kind;
  const isLong = headerBytesOf(kind, address) === LONG_HEADER_BYTES;
  const dword0 = firstDword(tlp, isLong, dwordCount(kind, address, lengthBytes));
  const sender = tlp.requesterId << 16;
  const tag = tlp.tag << 8;
  if (kind === COMPLETION || kind === COMPLETION_DATA) {
    const dword1 = ((aux & 0xffff) << 16) | (tlp.status << 13) | (tlp.byteCount & 0xfff);
    return [dword0, dword1 >>> 0, (sender | tag | (address & 0x7f)) >>> 0, 0];
  }
  if (kind === MESSAGE) return [dword0, (sender | tag | (aux & 0xff)) >>> 0, 0, 0];
  const enables = (lastByteEnables(address, lengthBytes) << 4) | firstByteEnables(address, lengthBytes);
  const dword1 = (sender | tag | enables) >>> 0;
  if (kind === CONFIG_READ || kind === CONFIG_WRITE) {
    return [dword0, dword1, (((aux & 0xffff) << 16) | (address & 0xffc)) >>> 0, 0];
  }
  const low = (lowWordOf(address) & ~3) >>> 0;
  return isLong ? [dword0, dword1, highWordOf(address), low] : [dword0, dword1, low, 0];
}

function firstDword(tlp: Decoded<typeof tlpRecord>, isLong: boolean, lengthDwords: number): number {
  const [fmt, type] = formatAndType[tlp.kind] ?? [0, 0b11111];
  const attributes = (tlp.isRelaxedOrdering << 1) | tlp.isNoSnoop;
  const format = fmt | (isLong ? FMT_LONG_HEADER : 0);
  return (
    ((format << 29) | (type << 24) | (tlp.isPoisoned << 14) | (attributes << 12) | (lengthDwords & 0x3ff)) >>>
    0
  );
}

function dwordCount(kind: number, address: BusAddress, lengthBytes: number): number {
  return kind === COMPLETION || kind === MESSAGE ? 0 : touchedDwords(address, lengthBytes);
}
