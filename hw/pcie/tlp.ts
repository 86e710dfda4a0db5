/**
 * Transaction layer packets as channel records: kinds, flows, where each word of a record lies, and how many
 * bytes of the link a TLP takes.
 *
 * A record (see sim/channel.ts) of a TLP:
 *
 *     +0   f64  arrival, ps            +32  f64  address (memory), lower address (completion), register (config)
 *     +8   i32  record bytes           +40  i32  length in bytes, byte-granular: payload or requested
 *     +12  i32  kind                   +44  i32  byte count (completions: still to come, this one included)
 *     +16  i32  flags                  +48  i32  data word (configuration write, message)
 *     +20  i32  traffic class          +52  i32  aux: completer id, target of a configuration request, message code
 *     +24  i32  tag                    +56  f64  instant at which the TLP was handed to the link port, ps
 *     +28  i32  requester id           +64  payload
 *
 * Lengths are kept in bytes because a device writes bytes; the link carries dwords. A TLP carries every dword
 * that [address, address + length) touches, and byte enables say which bytes of the first and last one count
 * (PCI Express Base Specification 3.1, 2.2.5). The digest (ECRC) is off.
 */
import { RECORD_HEADER_BYTES } from '../../sim/channel.ts';

/** Kinds of record on a PCIe channel. */
export const MEMORY_WRITE = 1;
export const MEMORY_READ = 2;
export const COMPLETION_DATA = 3;
export const COMPLETION = 4;
export const CONFIG_READ = 5;
export const CONFIG_WRITE = 6;
export const MESSAGE = 7;
/** A DLLP, not a TLP: flow-control limits from the other end. Never reaches a receive listener. */
export const UPDATE_FC = 8;
/** First of the kinds that are neither TLP nor DLLP but wires beside the lanes (reset). */
export const SIDEBAND_BASE = 9;
/** Fundamental reset (PERST#): data word 1 asserts, 0 releases. */
export const SIDEBAND_RESET = 9;

export const TLP_KIND_NAMES = ['', 'MWr', 'MRd', 'CplD', 'Cpl', 'CfgRd0', 'CfgWr0', 'Msg'] as const;

/** Flow-control classes of 2.6.1. */
export const POSTED = 0;
export const NON_POSTED = 1;
export const COMPLETION_FLOW = 2;
export const FLOW_COUNT = 3;
export const FLOW_NAMES = ['posted', 'nonPosted', 'completion'] as const;
export type Flow = typeof POSTED | typeof NON_POSTED | typeof COMPLETION_FLOW;

/** Bits of the flags word. */
export const FLAG_POISONED = 1 << 0;
export const FLAG_RELAXED_ORDERING = 1 << 1;
export const FLAG_NO_SNOOP = 1 << 2;
export const FLAG_STATUS_SHIFT = 8;
export const FLAG_STATUS_MASK = 7 << FLAG_STATUS_SHIFT;

/** Completion status, table 2-29. */
export const STATUS_SUCCESS = 0;
export const STATUS_UNSUPPORTED_REQUEST = 1;
export const STATUS_RETRY = 2;
export const STATUS_ABORT = 4;

/** Completion status of a flags word. */
export const statusOf = (flags: number): number => (flags & FLAG_STATUS_MASK) >> FLAG_STATUS_SHIFT;

/** Places in a record, as indices into the reader's or writer's `words` from `offset >> 2`. */
export const WORD_SIZE = 2;
export const WORD_KIND = 3;
export const WORD_FLAGS = 4;
export const WORD_TRAFFIC_CLASS = 5;
export const WORD_TAG = 6;
export const WORD_REQUESTER_ID = 7;
export const WORD_LENGTH = 10;
export const WORD_BYTE_COUNT = 11;
export const WORD_DATA = 12;
export const WORD_AUX = 13;
/** Places in a record, as indices into `floats` from `offset >> 3`. */
export const FLOAT_TIME = 0;
export const FLOAT_ADDRESS = 4;
export const FLOAT_ISSUED = 7;
/** Place of the payload, in bytes from `offset`. */
export const PAYLOAD_OFFSET = RECORD_HEADER_BYTES;

/** Words of an UPDATE_FC record: which flow, and the new limits modulo their field sizes. */
export const WORD_FC_FLOW = WORD_TAG;
export const WORD_FC_HEADERS = WORD_BYTE_COUNT;
export const WORD_FC_DATA = WORD_DATA;

/** Message codes, table 2-18: Assert_INTA … Assert_INTD, then Deassert_INTA …. */
export const MESSAGE_ASSERT_INTA = 0x20;
export const MESSAGE_DEASSERT_INTA = 0x24;
export const MESSAGE_ERR_COR = 0x30;
export const MESSAGE_ERR_NONFATAL = 0x31;
export const MESSAGE_ERR_FATAL = 0x33;

/** No request may cross an address that is a multiple of this (2.2.7). */
export const REQUEST_BOUNDARY_BYTES = 4096;
const FOUR_GIB = 0x1_0000_0000;
const DWORD_BYTES = 4;
const SHORT_HEADER_BYTES = 12;
const LONG_HEADER_BYTES = 16;
/** One data credit stands for this many bytes (2.6.1). */
const CREDIT_DWORDS = 4;

const FLOW_OF_KIND = new Uint8Array([
  POSTED,
  POSTED,
  NON_POSTED,
  COMPLETION_FLOW,
  COMPLETION_FLOW,
  NON_POSTED,
  NON_POSTED,
  POSTED,
]);

/** Flow of a TLP kind. */
export const flowOf = (kind: number): number => FLOW_OF_KIND[kind]!;

/** True for TLPs; false for UPDATE_FC and sideband records. */
export const isTlp = (kind: number): boolean => kind < UPDATE_FC;

/** Dwords that [address, address + lengthBytes) touches; a zero-length request still names one (2.2.5). */
export function touchedDwords(address: number, lengthBytes: number): number {
  return lengthBytes === 0 ? 1 : ((address & 3) + lengthBytes + 3) >> 2;
}

/** First dword's byte enables: bit n for byte n. */
export function firstByteEnables(address: number, lengthBytes: number): number {
  if (lengthBytes === 0) return 0;
  const first = address & 3;
  const end = Math.min(first + lengthBytes, DWORD_BYTES);
  return ((1 << end) - 1) & ~((1 << first) - 1);
}

/** Last dword's byte enables: 0 when there is only one dword. */
export function lastByteEnables(address: number, lengthBytes: number): number {
  if (touchedDwords(address, lengthBytes) === 1) return 0;
  const tail = ((address & 3) + lengthBytes) & 3;
  return tail === 0 ? 0xf : (1 << tail) - 1;
}

/** Payload dwords that the TLP carries. */
export function dataDwordsOf(kind: number, address: number, lengthBytes: number): number {
  if (kind === MEMORY_WRITE || kind === COMPLETION_DATA || kind === CONFIG_WRITE) {
    return touchedDwords(address, lengthBytes);
  }
  return 0;
}

/** Header: 3 DW, or 4 DW for memory above 4 GiB (2.2.4.1) and for messages (2.2.8). */
export function headerBytesOf(kind: number, address: number): number {
  if (kind === MESSAGE) return LONG_HEADER_BYTES;
  return kind <= MEMORY_READ && address >= FOUR_GIB ? LONG_HEADER_BYTES : SHORT_HEADER_BYTES;
}

/** Header and payload, without framing. */
export function tlpBytesOf(kind: number, address: number, lengthBytes: number): number {
  return headerBytesOf(kind, address) + dataDwordsOf(kind, address, lengthBytes) * DWORD_BYTES;
}

/** Data credits (16-byte units) that a TLP with this many payload dwords takes. */
export const dataCreditsOf = (dataDwords: number): number => (dataDwords + CREDIT_DWORDS - 1) >> 2;

/** What the data link and physical layers put around a TLP. */
export interface TlpFraming {
  /** STP and END symbols, or the STP token. */
  readonly framingBytes: number;
  /** Sequence number where it is not part of the STP token. */
  readonly sequenceBytes: number;
  readonly lcrcBytes: number;
}

/** Generations 1 and 2: 3.5.2 and 4.2.1, one symbol each for STP and END. From 3 on: the STP token of 4.2.2.3. */
export function tlpFramingOf(generation: number): TlpFraming {
  return generation <= 2
    ? { framingBytes: 2, sequenceBytes: 2, lcrcBytes: 4 }
    : { framingBytes: 4, sequenceBytes: 0, lcrcBytes: 4 };
}

/** Sum of a framing's parts. */
export const totalFramingBytes = (framing: TlpFraming): number =>
  framing.framingBytes + framing.sequenceBytes + framing.lcrcBytes;
