/**
 * QPC, the queue pair context, and the mailbox that carries it. Source: interface sheet 5.1, 3.17.
 *
 * Fields marked (device) are written by the device alone and seen through QUERY_QP. A QP without a receive queue has 0xfc
 * at 09 (0 − 4 in a byte): ignore the sizes when an SRQ is attached or the doorbell record is 0.
 */

import {
  aligned,
  bits8,
  bits32,
  bits64,
  bytes,
  joined,
  layout,
  named,
  nested,
  notModelled,
  u8,
  u16,
  u32,
  u64,
} from '../base/index.ts';
import { addressPath } from './address-path.ts';

export const QpState = {
  RST: 0,
  INIT: 1,
  RTR: 2,
  RTS: 3,
  SQER: 4,
  SQD: 5,
  ERR: 6,
  /** Reported by QUERY_QP only. */
  SQ_DRAINING: 7,
} as const;
export type QpState = (typeof QpState)[keyof typeof QpState];

export const ServiceType = {
  RC: 0,
  UC: 1,
  RD: 2,
  UD: 3,
  XRC: 6,
  /** Special, raw packet and Ethernet QPs: software writes the headers. */
  MLX: 7,
} as const;
export type ServiceType = (typeof ServiceType)[keyof typeof ServiceType];

export const PathMigration = { ARMED: 0, REARM: 1, MIGRATED: 3 } as const;
export type PathMigration = (typeof PathMigration)[keyof typeof PathMigration];

/** Path MTU codes; 2^(code + 7) bytes. */
export const PathMtu = { MTU_256: 1, MTU_512: 2, MTU_1024: 3, MTU_2048: 4, MTU_4096: 5, RAW: 7 } as const;
export type PathMtu = (typeof PathMtu)[keyof typeof PathMtu];

/** Bytes of an MTU code from 1 to 5. */
export const mtuBytesOf = (code: number): number => 1 << (code + 7);

export const RoceMode = { V1: 0, V1_5: 1, V2: 2 } as const;
export type RoceMode = (typeof RoceMode)[keyof typeof RoceMode];

const identityAndQueues = {
  state: named(bits32(0x00, 31, 28), QpState),
  serviceType: named(bits32(0x00, 19, 16), ServiceType),
  isRssIndirection: bits32(0x00, 13, 13),
  pathMigration: named(bits32(0x00, 12, 11), PathMigration),
  pd: bits32(0x04, 23, 0),
  pathMtu: named(bits8(0x08, 7, 5), PathMtu),
  logMaxMessage: bits8(0x08, 4, 0, 'log2 of the longest message in bytes'),
  rqSizeBorrow: notModelled(bits8(0x09, 7, 7, 'set only in the 0xfc of a QP without an RQ')),
  rqLogCount: bits8(0x09, 6, 3),
  rqLogStride16: bits8(0x09, 2, 0, 'log2 of the stride in 16-byte units'),
  sqNoPrefetch: bits8(0x0a, 7, 7),
  sqLogCount: bits8(0x0a, 6, 3, 'log2 of the number of basic blocks'),
  sqLogStride16: bits8(0x0a, 2, 0, 'log2 of the stride in 16-byte units'),
  roceMode: named(bits8(0x0b, 7, 6), RoceMode),
  reservedLkeyEnabled: bits8(0x0b, 4, 4, 'kernel QPs'),
  uarPage: bits32(0x0c, 23, 0, 'page whose doorbells are for this QP'),
  localQpn: bits32(0x10, 23, 0),
  remoteQpn: bits32(0x14, 23, 0),
  primaryPath: nested(0x18, addressPath),
  alternatePath: nested(0x44, addressPath),
} as const;

const requester = {
  ackRequestFrequency: bits32(0x70, 31, 28, 'ask for an ACK at least every 2^n packets'),
  logMaxRequesterReads: bits32(0x70, 23, 21, 'sra_max: log2 of outstanding reads and atomics'),
  retryCount: bits32(0x70, 18, 16),
  rnrRetryCount: bits32(0x70, 15, 13, '7 is forever'),
  fastRegisterEnabled: bits32(0x70, 11, 11, 'fast register, local invalidate and reserved key allowed'),
  currentRnrRetry: bits32(0x70, 10, 8, '(device)'),
  currentRetry: bits32(0x70, 7, 5, '(device)'),
  nextSendPsn: bits32(0x78, 23, 0),
  sendCqn: bits32(0x7c, 23, 0),
  roceEntropy: u16(0x80, 'UDP source port of RoCE v2'),
  lastAckedPsn: bits32(0x88, 23, 0, '(device)'),
  ssn: bits32(0x8c, 23, 0, '(device)'),
} as const;

const responder = {
  physicalFunction: notModelled(bits32(0x90, 31, 24)),
  logMaxResponderReads: bits32(0x90, 23, 21, 'rra_max: log2 of outstanding reads and atomics'),
  remoteReadEnabled: bits32(0x90, 15, 15),
  remoteWriteEnabled: bits32(0x90, 14, 14),
  remoteAtomicEnabled: bits32(0x90, 13, 13),
  pageOffset64: bits32(0x90, 11, 6, 'first WQE in its page, in 64-byte units'),
  ric: bits32(0x90, 4, 4, 'end-to-end credits invalid'),
  forcePhysicalPort: bits32(0x90, 3, 3),
  minRnrNak: bits32(0x94, 28, 24, 'RNR NAK timer code'),
  nextReceivePsn: bits32(0x94, 23, 0),
  xrcDomain: bits32(0x98, 15, 0),
  receiveCqn: bits32(0x9c, 23, 0),
  doorbellRecordAddress: aligned(bits64(0xa0, 63, 2)),
  qkey: u32(0xa8),
  vxlan: notModelled(bits32(0xac, 30, 28)),
  srqAttached: bits32(0xac, 24, 24),
  srqn: bits32(0xac, 23, 0),
  receiveMsn: bits32(0xb0, 23, 0, '(device)'),
  rqWqeCounter: u16(0xb4, '(device)'),
  sqWqeCounter: u16(0xb6, '(device)'),
} as const;

const bufferAndOptions = {
  rateLimit: notModelled(u16(0xbc)),
  qosPort: notModelled(u8(0xbf)),
  keepVlanTag: bits32(0xc0, 30, 30, 'Linux names it strip VLAN; polarity inferred'),
  keepFcs: bits32(0xc0, 29, 29, 'received frames are written with their FCS'),
  inlineReceive: bits32(0xc0, 25, 25, 'small messages are put in their receive WQE'),
  headerSeparation: notModelled(bits32(0xc0, 24, 24)),
  baseKey: notModelled(u32(0xc4)),
  logPageSize4k: bits8(0xc8, 5, 0, 'log2 of the queue buffer page in 4 KiB'),
  mttAddress: joined(u8(0xcb), aligned(bits32(0xcc, 31, 3)), 'byte offset from the MTT base'),
} as const;

export const qpc = layout(
  'QPC',
  { sizeBytes: 0xf8, byteOrder: 'big', source: 'sheet 5.1' },
  { ...identityAndQueues, ...requester, ...responder, ...bufferAndOptions },
);

/** Mailbox of all QP transitions and of QUERY_QP. */
export const qpMailbox = layout(
  'QP mailbox',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.17' },
  { optionalParameterMask: u32(0x00, 'bits of OptionalParameter'), context: nested(0x08, qpc) },
);

/** Offset of the QPC in the mailbox. */
export const qpcOffsetInMailbox = 0x08;

/** Mailbox of UPDATE_QP. */
export const updateQpMailbox = layout(
  'UPDATE_QP mailbox',
  { sizeBytes: 0x118, byteOrder: 'big', source: 'sheet 3.17' },
  {
    qpMask: u64(0x00),
    primaryPathMask: u64(0x08),
    secondaryPathMask: u64(0x10),
    context: nested(0x20, qpc),
  },
);

/** The RSS part of an indirection QP, which overlays QPC 3c to 73. */
export const rssContext = layout(
  'RSS context',
  { sizeBytes: 0x38, byteOrder: 'big', source: 'sheet 5.1' },
  {
    logTableSize: bits32(0x00, 31, 24),
    baseQpn: bits32(0x00, 23, 0),
    defaultQpn: bits32(0x04, 23, 0),
    hashFunction: u8(0x0a, '0 XOR, 1 Toeplitz'),
    flags: u8(0x0b, '0 UDP/IPv6, 1 UDP/IPv4, 2 TCP/IPv6, 3 IPv6, 4 TCP/IPv4, 5 IPv4, [7:6] inner headers'),
    key: bytes(0x0c, 40),
    baseQpnUdp: bits32(0x34, 23, 0),
  },
);

/** Offset of the RSS part in the QPC. */
export const rssOffsetInQpc = 0x3c;

/** The special QPs of CONF_SPECIAL_QP, relative to its base. */
export const specialQpOffset = { qp0Port1: 0, qp0Port2: 1, qp1Port1: 2, qp1Port2: 3 } as const;
export const specialQpBlock = 8;

/**
 * The bit of a QPN that marks an XRC target by convention of Linux: libmlx4 then finds the receive queue by its SRQN.
 */
export const xrcTargetBit = 0x80_0000;
