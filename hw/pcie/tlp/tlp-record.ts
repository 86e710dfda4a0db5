/**
 * Transaction layer packets as channel records: kinds, flows, and the offset of each field of a record.
 *
 * The transaction descriptor (2.2.6) is the word of requester id, tag and traffic class. A completion has its request's
 * descriptor. Byte count, data word and aux are undefined in a TLP whose kind lacks them. The payload follows the record,
 * unless it is zero-copy.
 */
import { bits32, f64, floatIndexOf, layout, named, u32, wordIndexOf } from '../../../base/index.ts';
import { RECORD_HEADER_BYTES, recordHeaderFields } from '../../../sim/index.ts';

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
/** First of the kinds that are neither TLP nor DLLP but wires next to the lanes (reset). */
export const SIDEBAND_BASE = 9;
/** Fundamental reset (PERST#): data word 1 asserts, 0 releases. */
export const SIDEBAND_RESET = 9;
/**
 * Not wires of a card: they save the simulation reads that find nothing new (root-complex/word-monitor.ts). From a device:
 * report when the dword at `address` differs from `data`; or cancel that. To a device: it differs. `aux` names the monitor.
 */
export const SIDEBAND_MONITOR = 10;
export const SIDEBAND_MONITOR_END = 11;
export const SIDEBAND_WORD_CHANGED = 12;

export const TLP_KIND_NAMES = ['', 'MWr', 'MRd', 'CplD', 'Cpl', 'CfgRd0', 'CfgWr0', 'Msg'] as const;

/** Flow-control classes of 2.6.1. */
export const POSTED = 0;
export const NON_POSTED = 1;
export const COMPLETION_FLOW = 2;
export const FLOW_COUNT = 3;
export type Flow = typeof POSTED | typeof NON_POSTED | typeof COMPLETION_FLOW;

/** Completion status, table 2-29. */
export const STATUS_SUCCESS = 0;
export const STATUS_UNSUPPORTED_REQUEST = 1;
export const STATUS_ABORT = 4;

const completionStatus = {
  success: STATUS_SUCCESS,
  unsupportedRequest: STATUS_UNSUPPORTED_REQUEST,
  abort: STATUS_ABORT,
} as const;

const kindByName = Object.fromEntries(TLP_KIND_NAMES.map((name, kind) => [name, kind]));

const source = 'hw/pcie, after PCI Express Base Specification 3.1, 2.2';
const header = { sizeBytes: RECORD_HEADER_BYTES, byteOrder: 'little', source } as const;

/** The record of a TLP. */
export const tlpRecord = layout('TLP record', header, {
  ...recordHeaderFields,
  kind: named(recordHeaderFields.kind, kindByName),
  isPoisoned: bits32(0x10, 0, 0, 'EP'),
  isRelaxedOrdering: bits32(0x10, 1, 1, 'Attr[1]'),
  isNoSnoop: bits32(0x10, 2, 2, 'Attr[0]'),
  isPlacedEarly: bits32(
    0x10,
    3,
    3,
    'of a completion: its payload lies at its place already, and is not in the record',
  ),
  isReference: bits32(
    0x10,
    4,
    4,
    'of a memory write: the payload is not in the record, which says where it lies',
  ),
  status: named(bits32(0x10, 10, 8, 'of a completion'), completionStatus),
  heldCredits: bits32(0x10, 31, 16, 'noted by the receiving port: what credits the TLP holds'),
  requesterId: bits32(0x14, 31, 16),
  tag: bits32(0x14, 15, 8),
  trafficClass: bits32(0x14, 7, 0, 'accounting only: TC is 0 on the link'),
  address: f64(0x20, 'memory; lower address of a completion; register of a configuration request'),
  lengthBytes: u32(0x28, 'byte-granular: payload or requested'),
  byteCount: u32(0x2c, 'of a completion: still to come, this one included'),
  data: u32(0x30, 'of a configuration write or a message; of a monitor, the dword as it was read'),
  aux: u32(0x34, 'completer id; target of a configuration request; message code; number of a monitor'),
  referencedOffset: u32(0x38, 'place of zero-copy payload'),
  reference: u32(0x3c, 'its reference: payload-references.ts'),
});

/** The record of an UpdateFC: flow and new limit, as flow-control.ts counts. */
export const updateFcRecord = layout('UpdateFC record', header, {
  ...recordHeaderFields,
  flow: u32(0x14),
  limit: u32(0x30),
});

const { fields } = tlpRecord;

/** Bits of the flags word. */
export const FLAG_POISONED = fields.isPoisoned.mask;
export const FLAG_RELAXED_ORDERING = fields.isRelaxedOrdering.mask;
/** Flag of a completion whose payload is already at its destination, and not in the record. See EarlyPlacement. */
export const FLAG_PLACED_EARLY = fields.isPlacedEarly.mask;
/** Flag of a memory write whose payload is not in the record, which gives its position. */
export const FLAG_REFERENCE = fields.isReference.mask;
export const FLAG_STATUS_SHIFT = fields.status.shift;
export const FLAG_STATUS_MASK = fields.status.mask;
/** From this bit on, the receiving port stores the credits that the TLP holds; the sender leaves these bits 0. */
export const HELD_CREDITS_SHIFT = fields.heldCredits.shift;

/** Shifts of the parts of a transaction descriptor. */
export const REQUESTER_ID_SHIFT = fields.requesterId.shift;
export const TAG_SHIFT = fields.tag.shift;
export const TAG_MAX = fields.tag.mask >>> fields.tag.shift;
export const TRAFFIC_CLASS_MAX = fields.trafficClass.mask;

/** Positions in a record, as indices into the reader's or writer's `words` from `offset >> 2`. */
export const WORD_KIND = wordIndexOf(fields.kind);
export const WORD_FLAGS = wordIndexOf(fields.isPoisoned);
export const WORD_DESCRIPTOR = wordIndexOf(fields.requesterId);
export const WORD_LENGTH = wordIndexOf(fields.lengthBytes);
export const WORD_BYTE_COUNT = wordIndexOf(fields.byteCount);
export const WORD_DATA = wordIndexOf(fields.data);
export const WORD_AUX = wordIndexOf(fields.aux);
export const WORD_REFERENCE_OFFSET = wordIndexOf(fields.referencedOffset);
export const WORD_REFERENCE = wordIndexOf(fields.reference);
/** Positions in a record, as indices into `floats` from `offset >> 3`. */
export const FLOAT_TIME = floatIndexOf(fields.arrivalPs);
export const FLOAT_ADDRESS = floatIndexOf(fields.address);
/** Offset of the payload from `offset`, in bytes. */
export const PAYLOAD_OFFSET = RECORD_HEADER_BYTES;

/** Words of an UPDATE_FC record. */
export const WORD_FC_FLOW = wordIndexOf(updateFcRecord.fields.flow);
export const WORD_FC_LIMIT = wordIndexOf(updateFcRecord.fields.limit);

/** Message codes, table 2-18: Assert_INTA … Assert_INTD, then Deassert_INTA …. */
export const MESSAGE_ASSERT_INTA = 0x20;
export const MESSAGE_DEASSERT_INTA = 0x24;
export const MESSAGE_ERR_COR = 0x30;
export const MESSAGE_ERR_NONFATAL = 0x31;
export const MESSAGE_ERR_FATAL = 0x33;
