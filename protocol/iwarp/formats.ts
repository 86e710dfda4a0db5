/**
 * The formats of iWARP, declared once: the request and reply of MPA, the headers of DDP, the headers and payloads of RDMAP. Fields are big-endian
 * on the wire; only the CRC of an FPDU is sent low byte first. The analyser has declarations of its own, as the independent judge.
 */
import {
  bits8,
  bits16,
  bits32,
  bytes,
  layout,
  named,
  reserved,
  u8,
  u16,
  u32,
  u64,
} from '../../base/index.ts';

/** Request or reply that opens a connection; private data follows. */
export const mpaFrame = layout(
  'MPA request or reply',
  { sizeBytes: 20, byteOrder: 'big', source: 'RFC 5044, 7.1.1; RFC 6581, 6' },
  {
    key: bytes(0, 16, 'MPA ID Req Frame or MPA ID Rep Frame'),
    wantsMarkers: bits8(16, 7, 7, 'the sender wants markers in the FPDUs that it receives'),
    wantsCrc: bits8(16, 6, 6, 'set by either side: both sides generate and check CRCs'),
    isRejected: bits8(16, 5, 5, 'replies only'),
    isEnhanced: bits8(16, 4, 4, 'revision 2: the private data begins with the enhanced data'),
    reserved16: reserved(bits8(16, 3, 0)),
    revision: u8(17),
    privateBytes: u16(18, '0 to 512'),
  },
);

/** First bytes of the private data of revision 2. */
export const enhancedData = layout(
  'MPA enhanced connection data',
  { sizeBytes: 4, byteOrder: 'big', source: 'RFC 6581, 9' },
  {
    isPeerToPeer: bits16(0, 15, 15, 'A: the initiator begins with a ready-to-receive message'),
    readyBySend: bits16(0, 14, 14, 'B: by a SEND without payload'),
    inboundReads: bits16(0, 13, 0, 'IRD: READs that the sender of this frame serves at once'),
    readyByWrite: bits16(2, 15, 15, 'C: by a WRITE without payload'),
    readyByRead: bits16(2, 14, 14, 'D: by a READ of no bytes'),
    outboundReads: bits16(2, 13, 0, 'ORD: READs that the sender of this frame wants outstanding'),
  },
);

/** Operations of RDMAP: RFC 5040, 4.2; from IMMEDIATE on RFC 7306, 4. */
export const RdmapOpcode = {
  WRITE: 0,
  READ_REQUEST: 1,
  READ_RESPONSE: 2,
  SEND: 3,
  SEND_INVALIDATE: 4,
  SEND_SOLICITED: 5,
  SEND_SOLICITED_INVALIDATE: 6,
  TERMINATE: 7,
  IMMEDIATE: 8,
  IMMEDIATE_SOLICITED: 9,
  ATOMIC_REQUEST: 10,
  ATOMIC_RESPONSE: 11,
} as const;

/** Queues of untagged messages: RFC 5040, 4.3; RFC 7306, 5. */
export const DdpQueue = { SEND: 0, READ_REQUEST: 1, TERMINATE: 2, ATOMIC_RESPONSE: 3 } as const;

/** Header of a tagged segment: DDP's fields and RDMAP's control byte. */
export const taggedHeader = layout(
  'tagged DDP header',
  { sizeBytes: 14, byteOrder: 'big', source: 'RFC 5041, 4.2' },
  {
    isTagged: bits8(0, 7, 7, '1'),
    isLast: bits8(0, 6, 6, 'last segment of its message'),
    reserved0: reserved(bits8(0, 5, 2)),
    ddpVersion: bits8(0, 1, 0, '1'),
    rdmapVersion: bits8(1, 7, 6, '1'),
    reserved1: reserved(bits8(1, 5, 4)),
    opcode: named(bits8(1, 3, 0), RdmapOpcode),
    steeringTag: u32(2),
    offset: u64(6, 'tagged offset of the first byte of the payload'),
  },
);

/** Header of an untagged segment. */
export const untaggedHeader = layout(
  'untagged DDP header',
  { sizeBytes: 18, byteOrder: 'big', source: 'RFC 5041, 4.3' },
  {
    isTagged: bits8(0, 7, 7, '0'),
    isLast: bits8(0, 6, 6, 'last segment of its message'),
    reserved0: reserved(bits8(0, 5, 2)),
    ddpVersion: bits8(0, 1, 0, '1'),
    rdmapVersion: bits8(1, 7, 6, '1'),
    reserved1: reserved(bits8(1, 5, 4)),
    opcode: named(bits8(1, 3, 0), RdmapOpcode),
    invalidated: u32(2, 'STag that the receiver invalidates; 0 in other messages'),
    queue: u32(6),
    message: u32(10, 'MSN: from 1 on each queue and direction'),
    messageOffset: u32(14, 'MO: place of the payload in its message'),
  },
);

export const readRequest = layout(
  'RDMAP READ request',
  { sizeBytes: 28, byteOrder: 'big', source: 'RFC 5040, 4.4' },
  {
    sinkTag: u32(0),
    sinkOffset: u64(4),
    lengthBytes: u32(12),
    sourceTag: u32(16),
    sourceOffset: u64(20),
  },
);

/** Operations of an atomic request: RFC 7306, 5.1. */
export const AtomicOperation = { FETCH_ADD: 0, COMPARE_SWAP: 2 } as const;

export const atomicRequest = layout(
  'RDMAP atomic request',
  { sizeBytes: 52, byteOrder: 'big', source: 'RFC 7306, 5.2.1' },
  {
    reserved0: reserved(bits32(0, 31, 4)),
    operation: named(bits32(0, 3, 0), AtomicOperation),
    requestId: u32(4, 'repeated by the response'),
    steeringTag: u32(8),
    offset: u64(12),
    data: u64(20, 'to add, or to store'),
    dataMask: u64(28),
    compareData: u64(36),
    compareMask: u64(44),
  },
);

export const atomicResponse = layout(
  'RDMAP atomic response',
  { sizeBytes: 12, byteOrder: 'big', source: 'RFC 7306, 5.2.2' },
  { requestId: u32(0), originalData: u64(4) },
);

/** Payload of IMMEDIATE and IMMEDIATE with solicited event. */
export const immediateData = layout(
  'RDMAP immediate data',
  { sizeBytes: 8, byteOrder: 'big', source: 'RFC 7306, 6.1' },
  { data: u64(0) },
);

/** First bytes of a Terminate; the quoted headers that its flags name follow without gaps. */
export const terminateControl = layout(
  'RDMAP terminate control',
  { sizeBytes: 4, byteOrder: 'big', source: 'RFC 5040, 4.8' },
  {
    layer: bits8(0, 7, 4, '0 RDMAP, 1 DDP, 2 MPA'),
    type: bits8(0, 3, 0),
    code: u8(1),
    hasSegmentLength: bits8(2, 7, 7, 'M: length of the DDP segment in error, 16 bits'),
    hasDdpHeader: bits8(2, 6, 6, 'D: its DDP header'),
    hasRdmapHeader: bits8(2, 5, 5, 'R: the READ request'),
    reserved2: reserved(bits16(2, 12, 0)),
  },
);
