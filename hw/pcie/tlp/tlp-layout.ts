/**
 * TLP headers as bytes on the link, each format declared once: for traces, tests and tools. The data path never
 * builds them; it keeps the same facts in a record's words.
 *
 * Bytes are in link order: byte 0 holds Fmt and Type. Source: PCI Express Base Specification 3.1, 2.2.
 */
import {
  aligned,
  bits32,
  type Decoded,
  type FieldTable,
  type Layout,
  layout,
  lowWordOf,
  notModelled,
  reserved,
  u8,
  u16,
  u32,
} from '../../../base/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_NO_SNOOP,
  FLAG_POISONED,
  FLAG_RELAXED_ORDERING,
  FLOAT_ADDRESS,
  firstByteEnables,
  headerBytesOf,
  lastByteEnables,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  requesterIdOf,
  statusOf,
  TLP_KIND_NAMES,
  tagOf,
  touchedDwords,
  WORD_AUX,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_KIND,
  WORD_LENGTH,
} from './tlp.ts';
import type { RecordView } from './tlp-header.ts';

const SHORT_HEADER_BYTES = 12;
const LONG_HEADER_BYTES = 16;

/** Dword 0 of every header, figure 2-5. */
const common = {
  format: bits32(0, 31, 29, 'Fmt: bit 0 4 DW header, bit 1 with data'),
  type: bits32(0, 28, 24),
  reserved23: reserved(bits32(0, 23, 23)),
  trafficClass: bits32(0, 22, 20, 'TC'),
  reserved19: reserved(bits32(0, 19, 19)),
  idBasedOrdering: notModelled(bits32(0, 18, 18, 'Attr[2]')),
  reserved17: reserved(bits32(0, 17, 17)),
  processingHints: notModelled(bits32(0, 16, 16, 'TH')),
  digest: notModelled(bits32(0, 15, 15, 'TD')),
  poisoned: bits32(0, 14, 14, 'EP'),
  relaxedOrdering: bits32(0, 13, 13, 'Attr[1]'),
  noSnoop: bits32(0, 12, 12, 'Attr[0]'),
  addressType: notModelled(bits32(0, 11, 10, 'AT')),
  lengthDwords: bits32(0, 9, 0, 'Length, 0 is 1024'),
} as const;

/** Dword 1 of every request but messages, figure 2-13. */
const request = {
  ...common,
  requesterId: u16(4),
  tag: u8(6),
  lastByteEnables: bits32(4, 7, 4),
  firstByteEnables: bits32(4, 3, 0),
} as const;

const header = <const F extends FieldTable>(
  name: string,
  sizeBytes: number,
  figure: string,
  table: F,
): Layout<F> =>
  layout(name, { sizeBytes, byteOrder: 'big', source: `PCIe base specification 3.1, ${figure}` }, table);

const memoryRequest32 = header('MemoryRequest32', SHORT_HEADER_BYTES, 'figure 2-16', {
  ...request,
  address: aligned(bits32(8, 31, 2)),
  processingHint: notModelled(bits32(8, 1, 0, 'PH')),
});

const memoryRequest64 = header('MemoryRequest64', LONG_HEADER_BYTES, 'figure 2-15', {
  ...request,
  addressHigh: u32(8),
  addressLow: aligned(bits32(12, 31, 2)),
  processingHint: notModelled(bits32(12, 1, 0, 'PH')),
});

const configRequest = header('ConfigRequest', SHORT_HEADER_BYTES, 'figure 2-18', {
  ...request,
  targetId: u16(8, 'bus, device, function'),
  reserved12: reserved(bits32(8, 15, 12)),
  register: aligned(bits32(8, 11, 2, 'extended register number and register number')),
  reserved0: reserved(bits32(8, 1, 0)),
});

const messageRequest = header('MessageRequest', LONG_HEADER_BYTES, 'figure 2-19', {
  ...common,
  requesterId: u16(4),
  tag: u8(6),
  messageCode: u8(7),
  words2: notModelled(u32(8)),
  words3: notModelled(u32(12)),
});

const completionHeader = header('Completion', SHORT_HEADER_BYTES, 'figure 2-29', {
  ...common,
  completerId: u16(4),
  status: bits32(4, 15, 13),
  byteCountModified: notModelled(bits32(4, 12, 12, 'BCM')),
  byteCount: bits32(4, 11, 0, '0 is 4096'),
  requesterId: u16(8),
  tag: u8(10),
  reserved7: reserved(bits32(8, 7, 7)),
  lowerAddress: bits32(8, 6, 0),
});

/** Fmt without its long-header bit, and Type, table 2-3. */
const FORMAT_LONG = 1;
const FORMAT_DATA = 2;
const TYPE_MEMORY = 0b00000;
const TYPE_CONFIG0 = 0b00100;
const TYPE_COMPLETION = 0b01010;
/** Msg, routed to the other end of the link ("local, terminate at receiver"). */
const TYPE_MESSAGE = 0b10100;

const kindOfFormat: Readonly<Record<string, number>> = {
  [`${FORMAT_DATA} ${TYPE_MEMORY}`]: MEMORY_WRITE,
  [`0 ${TYPE_MEMORY}`]: MEMORY_READ,
  [`${FORMAT_DATA} ${TYPE_COMPLETION}`]: COMPLETION_DATA,
  [`0 ${TYPE_COMPLETION}`]: COMPLETION,
  [`0 ${TYPE_CONFIG0}`]: CONFIG_READ,
  [`${FORMAT_DATA} ${TYPE_CONFIG0}`]: CONFIG_WRITE,
  [`0 ${TYPE_MESSAGE}`]: MESSAGE,
};

/** A decoded header: the kind says which fields there are. */
export type DecodedTlp =
  | { readonly kind: 'memory32'; readonly tlp: number; readonly fields: Decoded<typeof memoryRequest32> }
  | { readonly kind: 'memory64'; readonly tlp: number; readonly fields: Decoded<typeof memoryRequest64> }
  | { readonly kind: 'config'; readonly tlp: number; readonly fields: Decoded<typeof configRequest> }
  | { readonly kind: 'message'; readonly tlp: number; readonly fields: Decoded<typeof messageRequest> }
  | { readonly kind: 'completion'; readonly tlp: number; readonly fields: Decoded<typeof completionHeader> };

/** Reads a header; undefined when it is of no kind that the model has. `tlp` is the kind of tlp.ts. */
export function decodeTlpHeader(bytes: Uint8Array): DecodedTlp | undefined {
  const { format, type } = memoryRequest32.decode(bytes);
  const tlp = kindOfFormat[`${format & ~FORMAT_LONG} ${type}`];
  switch (tlp) {
    case undefined:
      return undefined;
    case MEMORY_READ:
    case MEMORY_WRITE:
      return (format & FORMAT_LONG) === 0
        ? { kind: 'memory32', tlp, fields: memoryRequest32.decode(bytes) }
        : { kind: 'memory64', tlp, fields: memoryRequest64.decode(bytes) };
    case CONFIG_READ:
    case CONFIG_WRITE:
      return { kind: 'config', tlp, fields: configRequest.decode(bytes) };
    case MESSAGE:
      return { kind: 'message', tlp, fields: messageRequest.decode(bytes) };
    default:
      return { kind: 'completion', tlp, fields: completionHeader.decode(bytes) };
  }
}

/** Header bytes of the record at `offset`. The record's traffic class is accounting, not TC: TC is 0. */
export function encodeTlpHeader(view: RecordView, offset: number): Uint8Array<ArrayBuffer> {
  const word = (place: number): number => view.words[(offset >> 2) + place]!;
  const kind = word(WORD_KIND);
  const address = view.floats[(offset >> 3) + FLOAT_ADDRESS]!;
  const lengthBytes = word(WORD_LENGTH);
  const tag = tagOf(word(WORD_DESCRIPTOR));
  const requesterId = requesterIdOf(word(WORD_DESCRIPTOR));
  const aux = word(WORD_AUX);
  const isLong = headerBytesOf(kind, address) === LONG_HEADER_BYTES;
  const start = startOf(kind, isLong, word(WORD_FLAGS), touchedDwords(address, lengthBytes));
  if (kind === MESSAGE) return messageRequest.encode({ ...start, requesterId, tag, messageCode: aux & 0xff });
  if (kind === COMPLETION || kind === COMPLETION_DATA) {
    return completionHeader.encode({
      ...start,
      completerId: aux & 0xffff,
      status: statusOf(word(WORD_FLAGS)),
      byteCount: word(WORD_BYTE_COUNT) & 0xfff,
      requesterId,
      tag,
      lowerAddress: address & 0x7f,
    });
  }
  const enables = {
    lastByteEnables: lastByteEnables(address, lengthBytes),
    firstByteEnables: firstByteEnables(address, lengthBytes),
  };
  if (kind === CONFIG_READ || kind === CONFIG_WRITE) {
    const register = address & 0xffc;
    return configRequest.encode({ ...start, requesterId, tag, ...enables, targetId: aux & 0xffff, register });
  }
  const low = (lowWordOf(address) & ~3) >>> 0;
  if (!isLong) return memoryRequest32.encode({ ...start, requesterId, tag, ...enables, address: low });
  const addressHigh = Math.floor(address / 2 ** 32);
  return memoryRequest64.encode({ ...start, requesterId, tag, ...enables, addressHigh, addressLow: low });
}

/** One line of a trace: kind name and the fields that are not zero. */
export function formatTlpHeader(bytes: Uint8Array): string {
  const decoded = decodeTlpHeader(bytes);
  if (decoded === undefined) return 'unknown TLP';
  const fields = Object.entries(decoded.fields).filter(([, value]) => value !== 0);
  const shown = fields.filter(([name]) => name !== 'format' && name !== 'type');
  const text = shown.map(([name, value]) => `${name}=0x${value.toString(16)}`).join(' ');
  return `${TLP_KIND_NAMES[decoded.tlp]} ${text}`;
}

function startOf(kind: number, isLong: boolean, flags: number, dwords: number) {
  const carriesData = kind === MEMORY_WRITE || kind === COMPLETION_DATA || kind === CONFIG_WRITE;
  const isMessageOrStatus = kind === MESSAGE || kind === COMPLETION;
  return {
    format: (carriesData ? FORMAT_DATA : 0) | (isLong ? FORMAT_LONG : 0),
    type: typeOf(kind),
    poisoned: (flags & FLAG_POISONED) === 0 ? 0 : 1,
    relaxedOrdering: (flags & FLAG_RELAXED_ORDERING) === 0 ? 0 : 1,
    noSnoop: (flags & FLAG_NO_SNOOP) === 0 ? 0 : 1,
    lengthDwords: isMessageOrStatus ? 0 : dwords & 0x3ff,
  };
}

function typeOf(kind: number): number {
  if (kind === MESSAGE) return TYPE_MESSAGE;
  if (kind === CONFIG_READ || kind === CONFIG_WRITE) return TYPE_CONFIG0;
  return kind === COMPLETION || kind === COMPLETION_DATA ? TYPE_COMPLETION : TYPE_MEMORY;
}
