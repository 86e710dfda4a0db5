/**
 * Transaction layer packets as channel records: kinds, flows, and where each word of a record lies.
 *
 * A record (see sim/channel.ts) of a TLP:
 *
 *     +0   f64  arrival, ps            +32  f64  address (memory), lower address (completion), register (config)
 *     +8   i32  record bytes           +40  i32  length in bytes, byte-granular: payload or requested
 *     +12  i32  kind                   +44  i32  byte count (completions: still to come, this one included)
 *     +16  i32  flags                  +48  i32  data word (configuration write, message)
 *     +20  i32  descriptor             +52  i32  aux: completer id, target of a configuration request, message code
 *     +24       not used               +56  i32  lent payload: its place, and its loan (payload-loans.ts)
 *                                      +64  payload, unless it is lent
 *
 * The transaction descriptor (2.2.6): requester id [31:16], tag [15:8], traffic class [7:0]. A completion has its request's.
 * Byte count, data word and aux hold anything in a TLP whose kind has none.
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
export type Flow = typeof POSTED | typeof NON_POSTED | typeof COMPLETION_FLOW;

/** Bits of the flags word. */
export const FLAG_POISONED = 1 << 0;
export const FLAG_RELAXED_ORDERING = 1 << 1;
export const FLAG_NO_SNOOP = 1 << 2;
/** Of a completion: its payload lies where its read lands already, and is not in the record. See EarlyPlaces. */
export const FLAG_LANDED = 1 << 3;
/** Of a memory write: the payload is not in the record, which says where it lies. */
export const FLAG_LENT = 1 << 4;
export const FLAG_STATUS_SHIFT = 8;
export const FLAG_STATUS_MASK = 7 << FLAG_STATUS_SHIFT;
/** From this bit on the receiving port notes what credits the TLP holds; the sender leaves these bits 0. */
export const HELD_CREDITS_SHIFT = 16;

/** Completion status, table 2-29. */
export const STATUS_SUCCESS = 0;
export const STATUS_UNSUPPORTED_REQUEST = 1;
export const STATUS_ABORT = 4;

/** Places in a record, as indices into the reader's or writer's `words` from `offset >> 2`. */
export const WORD_SIZE = 2;
export const WORD_KIND = 3;
export const WORD_FLAGS = 4;
export const WORD_DESCRIPTOR = 5;
export const WORD_LENGTH = 10;
export const WORD_BYTE_COUNT = 11;
export const WORD_DATA = 12;
export const WORD_AUX = 13;
export const WORD_LENT_OFFSET = 14;
export const WORD_LOAN = 15;
/** Places in a record, as indices into `floats` from `offset >> 3`. */
export const FLOAT_TIME = 0;
export const FLOAT_ADDRESS = 4;
/** Place of the payload, in bytes from `offset`. */
export const PAYLOAD_OFFSET = RECORD_HEADER_BYTES;

/** Words of an UPDATE_FC record: which flow, and its new limit as credits.ts counts. */
export const WORD_FC_FLOW = WORD_DESCRIPTOR;
export const WORD_FC_LIMIT = WORD_DATA;

/** Message codes, table 2-18: Assert_INTA … Assert_INTD, then Deassert_INTA …. */
export const MESSAGE_ASSERT_INTA = 0x20;
export const MESSAGE_DEASSERT_INTA = 0x24;
export const MESSAGE_ERR_COR = 0x30;
export const MESSAGE_ERR_NONFATAL = 0x31;
export const MESSAGE_ERR_FATAL = 0x33;
