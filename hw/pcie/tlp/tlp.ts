/**
 * The link bytes of a TLP, and its flow; tlp-record.ts declares its record.
 *
 * Lengths are kept in bytes because a device writes bytes; the link carries dwords. A TLP carries every dword that [address,
 * address + length) touches, and byte enables select the valid bytes of the first and last one (PCI Express Base Specification
 * 3.1, 2.2.5). The digest (ECRC) is off.
 */
import type { BusAddress } from '../../../base/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  COMPLETION_FLOW,
  CONFIG_WRITE,
  FLAG_PLACED_EARLY,
  FLAG_REFERENCE,
  FLAG_STATUS_MASK,
  FLAG_STATUS_SHIFT,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  NON_POSTED,
  POSTED,
  REQUESTER_ID_SHIFT,
  TAG_MAX,
  TAG_SHIFT,
  TRAFFIC_CLASS_MAX,
  UPDATE_FC,
} from './tlp-record.ts';

export * from './tlp-record.ts';

/** Completion status of a flags word. */
export const statusOf = (flags: number): number => (flags & FLAG_STATUS_MASK) >> FLAG_STATUS_SHIFT;

/** Transaction descriptor of a request, which its completions carry, too. */
export const descriptorOf = (requesterId: number, tag: number, trafficClass: number): number =>
  (requesterId << REQUESTER_ID_SHIFT) | (tag << TAG_SHIFT) | trafficClass;
/** Number of traffic classes that fit a descriptor. */
export const TRAFFIC_CLASS_COUNT_MAX = TRAFFIC_CLASS_MAX + 1;
export const tagOf = (descriptor: number): number => (descriptor >> TAG_SHIFT) & TAG_MAX;
export const trafficClassOf = (descriptor: number): number => descriptor & TRAFFIC_CLASS_MAX;

/** No request may cross an address that is a multiple of this (2.2.7). */
export const REQUEST_BOUNDARY_BYTES = 4096;
const FOUR_GIB = 0x1_0000_0000;
export const DWORD_BYTES = 4;
/** A completion carries the low seven bits of its first byte's address (2.2.9). */
export const LOWER_ADDRESS_MASK = 0x7f;
export const SHORT_HEADER_BYTES = 12;
const LONG_HEADER_BYTES = 16;
/** One data credit represents this many bytes (2.6.1). */
const CREDIT_DWORDS = 4;

/** Flow of a TLP kind. */
export function flowOf(kind: number): number {
  if (kind === MEMORY_WRITE || kind === MESSAGE) return POSTED;
  return kind === COMPLETION_DATA || kind === COMPLETION ? COMPLETION_FLOW : NON_POSTED;
}

/** True for TLPs; false for UPDATE_FC and sideband records. */
export const isTlp = (kind: number): boolean => kind < UPDATE_FC;

/** Dwords that [address, address + lengthBytes) touches; a zero-length request still includes one (2.2.5). */
export function touchedDwords(address: BusAddress, lengthBytes: number): number {
  return lengthBytes === 0 ? 1 : ((address & 3) + lengthBytes + 3) >> 2;
}

/** First dword's byte enables: bit n for byte n. */
export function firstByteEnables(address: BusAddress, lengthBytes: number): number {
  if (lengthBytes === 0) return 0;
  const first = address & 3;
  const end = Math.min(first + lengthBytes, DWORD_BYTES);
  return ((1 << end) - 1) & ~((1 << first) - 1);
}

/** Last dword's byte enables: 0 if the TLP has only one dword. */
export function lastByteEnables(address: BusAddress, lengthBytes: number): number {
  if (touchedDwords(address, lengthBytes) === 1) return 0;
  const tail = ((address & 3) + lengthBytes) & 3;
  return tail === 0 ? 0xf : (1 << tail) - 1;
}

/** Kinds with data on the link, and those whose data are a payload after the record, as bit sets. */
const KINDS_WITH_DATA = (1 << MEMORY_WRITE) | (1 << COMPLETION_DATA) | (1 << CONFIG_WRITE);
const KINDS_WITH_PAYLOAD = (1 << MEMORY_WRITE) | (1 << COMPLETION_DATA);

/** Data dwords that the TLP carries. */
export const dataDwordsOf = (kind: number, address: BusAddress, lengthBytes: number): number =>
  (KINDS_WITH_DATA & (1 << kind)) === 0 ? 0 : touchedDwords(address, lengthBytes);

/** Payload bytes of the TLP's record. */
export const payloadBytesOf = (kind: number, lengthBytes: number): number =>
  (KINDS_WITH_PAYLOAD & (1 << kind)) === 0 ? 0 : lengthBytes;

/** Bytes of payload for which the TLP's record has room. */
export const carriedBytesOf = (flags: number, payloadBytes: number): number =>
  (flags & (FLAG_REFERENCE | FLAG_PLACED_EARLY)) === 0 ? payloadBytes : 0;

/** Header: 3 DW, or 4 DW for memory above 4 GiB (2.2.4.1) and for messages (2.2.8). */
export function headerBytesOf(kind: number, address: BusAddress): number {
  if (kind === MESSAGE) return LONG_HEADER_BYTES;
  return kind <= MEMORY_READ && address >= FOUR_GIB ? LONG_HEADER_BYTES : SHORT_HEADER_BYTES;
}

/** Header and payload, without framing. */
export function tlpBytesOf(kind: number, address: BusAddress, lengthBytes: number): number {
  return headerBytesOf(kind, address) + dataDwordsOf(kind, address, lengthBytes) * DWORD_BYTES;
}

/** Data credits (16-byte units) that a TLP with this many payload dwords takes. */
export const dataCreditsOf = (dataDwords: number): number => (dataDwords + CREDIT_DWORDS - 1) >> 2;
