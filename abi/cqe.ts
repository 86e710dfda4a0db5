/**
 * CQE, the completion queue entry, 32 bytes. The byte at 1f is written last: its owner bit hands the entry over. Entry number
 * and owner come from the producer counter (base/ring-index.ts). In a 64-byte CQE this layout is the second half. Source:
 * interface sheet 6.6.
 */

import {
  bits8,
  bits16,
  bits32,
  bytes,
  joined,
  layout,
  named,
  notModelled,
  u8,
  u16,
  u32,
} from '../base/index.ts';

/** Opcodes of receive CQEs; a send CQE has the WQE's opcode. */
export const ReceiveOpcode = { RDMA_WRITE_IMM: 0x00, SEND: 0x01, SEND_IMM: 0x02, SEND_INVAL: 0x03 } as const;
export type ReceiveOpcode = (typeof ReceiveOpcode)[keyof typeof ReceiveOpcode];

/** Opcodes of both sides. */
export const CqeOpcode = { RESIZE: 0x16, ERROR: 0x1e } as const;
export type CqeOpcode = (typeof CqeOpcode)[keyof typeof CqeOpcode];

/** Reasons for a failed work request. */
export const CqeSyndrome = {
  LOCAL_LENGTH_ERR: 0x01,
  LOCAL_QP_OP_ERR: 0x02,
  LOCAL_PROT_ERR: 0x04,
  WR_FLUSH_ERR: 0x05,
  MW_BIND_ERR: 0x06,
  BAD_RESP_ERR: 0x10,
  LOCAL_ACCESS_ERR: 0x11,
  REMOTE_INVAL_REQ_ERR: 0x12,
  REMOTE_ACCESS_ERR: 0x13,
  REMOTE_OP_ERR: 0x14,
  TRANSPORT_RETRY_EXC_ERR: 0x15,
  RNR_RETRY_EXC_ERR: 0x16,
  REMOTE_ABORTED_ERR: 0x22,
} as const;
export type CqeSyndrome = (typeof CqeSyndrome)[keyof typeof CqeSyndrome];

/** Bits of `ipStatus`. */
export const CqeIpStatus = {
  IPV4: 1 << 6,
  IPV4_FRAGMENT: 1 << 7,
  IPV6: 1 << 8,
  IPV4_OPTIONS: 1 << 9,
  TCP: 1 << 10,
  UDP: 1 << 11,
  IP_OK: 1 << 12,
} as const;
export type CqeIpStatus = (typeof CqeIpStatus)[keyof typeof CqeIpStatus];

const header = { sizeBytes: 32, byteOrder: 'big', source: 'sheet 6.6' } as const;
export const cqeBytes = header.sizeBytes;

/** Offset of the byte that is written last. */
export const cqeOwnerOffset = 0x1f;

const head = {
  qpn: bits32(0x00, 23, 0, 'a live local QPN: Linux does not check'),
  innerIpOk: notModelled(bits32(0x00, 31, 31)),
  sVlanPresent: bits32(0x00, 30, 30),
  cVlanPresent: bits32(0x00, 29, 29),
  tunnelled: notModelled(bits32(0x00, 27, 27)),
  innerL4Ok: notModelled(bits32(0x00, 26, 26)),
  innerIpv4: notModelled(bits32(0x00, 25, 25)),
  immediate: u32(0x04, 'immediate, invalidated rkey or RSS hash; P_Key index for UD without immediate'),
  grhPresent: bits32(0x08, 31, 31),
  destinationPathBits: bits32(0x08, 30, 24),
  sourceQpn: bits32(0x08, 23, 0, 'UD; SRQN for an XRC target'),
} as const;

const ipFlags = {
  ipStatus: u16(0x10, 'bits of CqeIpStatus'),
  ipv6ExtensionMask: u8(0x12),
  badFcs: bits8(0x13, 4, 4),
  l4ChecksumOk: bits8(0x13, 2, 2),
  snap: bits8(0x13, 1, 1),
  llc: bits8(0x13, 0, 0),
} as const;

const counts = {
  byteCount: u32(0x14, 'receive, and RDMA READ on the requester'),
  wqeCounter: u16(0x18, 'SQ block counter, RQ counter or SRQ WQE index'),
} as const;

const ownership = {
  owner: bits8(cqeOwnerOffset, 7, 7, 'pass bit of the producer counter'),
  isSend: bits8(cqeOwnerOffset, 6, 6),
  inlineScatter: bits8(cqeOwnerOffset, 5, 5, 'the message is in the receive WQE'),
  opcode: bits8(cqeOwnerOffset, 4, 0),
} as const;

/** A CQE of an InfiniBand port. */
export const cqe = layout('CQE', header, {
  ...head,
  serviceLevel: bits16(0x0c, 15, 12),
  sourceLid: u16(0x0e),
  ...ipFlags,
  ...counts,
  checksum: u16(0x1a, '0xffff with IP ok: L4 verified'),
  ...ownership,
});

/** A CQE of an Ethernet ring or raw-packet QP. */
export const ethernetCqe = layout('Ethernet CQE', header, {
  ...head,
  vlanPriority: bits16(0x0c, 15, 13),
  vlanId: bits16(0x0c, 11, 0),
  ...ipFlags,
  ...counts,
  checksum: u16(0x1a),
  ...ownership,
});

/** A CQE of a UD receive on a RoCE port. */
export const roceUdCqe = layout('RoCE UD CQE', header, {
  ...head,
  vlanPriority: bits16(0x0c, 15, 13),
  vlanId: bits16(0x0c, 11, 0),
  sourceMac: bytes(0x0e, 6),
  ...counts,
  checksum: u16(0x1a),
  ...ownership,
});

/** A CQE with timestamp (CQC bit 19): service level and source LID are lost. */
export const timestampCqe = layout('timestamp CQE', header, {
  ...head,
  timestamp: joined(u32(0x0c), u16(0x1d), 'core clock, 48 bits'),
  ...ipFlags,
  ...counts,
  checksum: u16(0x1a),
  ...ownership,
});

/** A CQE with opcode ERROR. */
export const errorCqe = layout('error CQE', header, {
  qpn: bits32(0x00, 23, 0),
  srqn: bits32(0x08, 23, 0, 'of an XRC target: by it libmlx4 finds the queue'),
  wqeCounter: u16(0x18),
  vendorSyndrome: u8(0x1a, 'reported only: vendor-syndromes.ts'),
  syndrome: named(u8(0x1b), CqeSyndrome),
  owner: bits8(cqeOwnerOffset, 7, 7),
  isSend: bits8(cqeOwnerOffset, 6, 6),
  opcode: bits8(cqeOwnerOffset, 4, 0),
});
