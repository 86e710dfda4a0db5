/**
 * WQE segments: the 16-byte units of a work queue entry. Source: interface sheet 6.1–6.3, 6.5.
 *
 *   control 16 | [datagram 48 on UD] | [remote address 16] | [atomic 16 or 32] | data pointers 16 each, or inline data
 *
 * `ds` counts 16-byte units including the control segment. A WQE occupies ceil(ds × 16 / stride) basic blocks.
 */

import {
  bits8,
  bits32,
  bytes,
  layout,
  named,
  nested,
  notModelled,
  reserved,
  u16,
  u32,
  u64,
} from '../base/index.ts';
import { WqeOpcode } from './wqe-opcodes.ts';

const bigEndian16 = { sizeBytes: 16, byteOrder: 'big', source: 'sheet 6.3' } as const;
const bigEndian32 = { ...bigEndian16, sizeBytes: 32 } as const;

/** A WQE's size unit and its largest size in units. */
export const wqeUnitBytes = 16;
export const wqeUnitsMax = 63;

/** Dword that means "not written yet", at every 64-byte boundary after a WQE. */
export const wqeStamp = 0xffff_ffff;

const controlHead = {
  owner: bits32(0x00, 31, 31, 'valid when equal to the pass bit of the counter'),
  noErrorCompletion: bits32(0x00, 29, 29),
  innerIpChecksum: notModelled(bits32(0x00, 28, 28)),
  innerL4Checksum: notModelled(bits32(0x00, 27, 27)),
  wqeCounter: bits32(0x00, 23, 8, 'only in WQEs posted through BlueFlame'),
  longLsoHeader: notModelled(bits32(0x00, 6, 6, 'BLH: the LSO header passes the first 64 bytes')),
  opcode: named(bits32(0x00, 4, 0), WqeOpcode),
} as const;

const controlSize = {
  fence: bits8(0x07, 6, 6),
  ds: bits8(0x07, 5, 0, 'WQE size in 16-byte units'),
} as const;

/** Value of `completion` that requests a CQE; with 0 only an error generates one. */
export const completionRequested = 3;

export const controlSegment = layout('control segment', bigEndian16, {
  ...controlHead,
  qpn: bits32(0x04, 31, 8, 'only in WQEs posted through BlueFlame'),
  ...controlSize,
  remoteSrqn: bits32(0x08, 31, 8, 'XRC'),
  strongOrder: bits32(0x08, 7, 7, 'local invalidate, bind, fast register'),
  tcpUdpChecksum: bits32(0x08, 5, 5),
  ipChecksum: bits32(0x08, 4, 4),
  completion: bits32(0x08, 3, 2, '3 writes a CQE, 0 only on error'),
  solicited: bits32(0x08, 1, 1),
  forceLoopback: bits32(0x08, 0, 0),
  immediate: u32(0x0c, 'immediate data, or the key to invalidate remotely'),
});

/** Control segment of raw-packet and Ethernet QPs. */
export const ethernetControlSegment = layout('Ethernet control segment', bigEndian16, {
  ...controlHead,
  vlanTag: u16(0x04),
  insertSVlan: bits8(0x06, 7, 7),
  insertCVlan: bits8(0x06, 6, 6),
  /** Linux stores the whole QPN in bytes 4 to 6 of BlueFlame posts to rings whose numbers have bits 6 and 7 clear. */
  blueFlameQpn: bits8(0x06, 5, 0, 'bits of the QPN, of a BlueFlame post'),
  ...controlSize,
  destinationMacHigh: u16(0x08, 'bytes 0 and 1'),
  tcpUdpChecksum: bits32(0x08, 5, 5),
  ipChecksum: bits32(0x08, 4, 4),
  completion: bits32(0x08, 3, 2),
  noIcrc: bits32(0x08, 1, 1),
  forceLoopback: bits32(0x08, 0, 0),
  destinationMacLow: u32(0x0c, 'bytes 2 to 5'),
});

/** Control segment of QP0 and QP1: the rest of the WQE is the complete packet headers inline, then data, then an ICRC. */
export const mlxControlSegment = layout('MLX control segment', bigEndian16, {
  ...controlHead,
  schedulingPriority: u16(0x04),
  ...controlSize,
  destinationMacHigh: bits32(0x08, 31, 18, 'RoCE: the MAC begins here; its bytes 0 and 1 end at bit 16'),
  vl15: bits32(0x08, 17, 17),
  slr: bits32(0x08, 16, 16, 'the destination LID is permissive'),
  staticRate: bits32(0x08, 15, 12),
  serviceLevel: bits32(0x08, 11, 8),
  icrc: notModelled(bits32(0x08, 4, 4)),
  completion: bits32(0x08, 3, 2),
  forceLoopback: bits32(0x08, 0, 0),
  remoteLid: u16(0x0c, 'RoCE: bytes 2 and 3 of the MAC'),
  destinationMacLow: u16(0x0e, 'RoCE: bytes 4 and 5 of the MAC'),
});

export const remoteAddressSegment = layout('remote address segment', bigEndian16, {
  address: u64(0x00),
  rkey: u32(0x08),
  reserved: reserved(u32(0x0c)),
});

export const atomicSegment = layout('atomic segment', bigEndian16, {
  swapOrAdd: u64(0x00),
  compare: u64(0x08, 'for masked fetch and add: the field-boundary mask'),
});

export const maskedCompareSwapSegment = layout('masked compare and swap segment', bigEndian32, {
  swap: u64(0x00),
  compare: u64(0x08),
  swapMask: u64(0x10),
  compareMask: u64(0x18),
});

/** Address vector, also the kernel's address handle. */
export const addressVector = layout('address vector', bigEndian32, {
  forceLoopback: bits32(0x00, 31, 31),
  insertTag: bits32(0x00, 29, 29, 'on Ethernet; libmlx4 sets it with the VLAN of the datagram segment'),
  port: bits32(0x00, 25, 24),
  pd: bits32(0x00, 23, 0),
  grhPresent: bits8(0x05, 7, 7),
  sourcePathBits: bits8(0x05, 6, 0, 'source-MAC index on Ethernet'),
  destinationLid: u16(0x06),
  sourceGidIndex: bits8(0x09, 6, 0),
  staticRate: bits8(0x0a, 3, 0),
  hopLimit: bits8(0x0b, 7, 0),
  serviceLevel: bits32(0x0c, 31, 28),
  trafficClass: bits32(0x0c, 27, 20),
  flowLabel: bits32(0x0c, 19, 0),
  destinationGid: bytes(0x10, 16),
});

export const datagramSegment = layout(
  'datagram segment',
  { ...bigEndian16, sizeBytes: 48 },
  {
    addressVector: nested(0x00, addressVector),
    destinationQpn: bits32(0x20, 23, 0),
    qkey: u32(0x24, 'bit 31 set: the QP’s own'),
    vlan: u16(0x28, 'with insertTag'),
    destinationMac: bytes(0x2a, 6),
  },
);

/** A Q_Key with this bit set means the QP's own Q_Key. */
export const qkeyOfQp = 0x8000_0000;

export const dataPointer = layout('data pointer', bigEndian16, {
  byteCount: bits32(0x00, 30, 0),
  lkey: u32(0x04),
  address: u64(0x08),
});

/** A receive list ends at the stride or at a data pointer with this lkey and count 0. */
export const invalidLkey = 0x0000_0100;

export const inlineHeader = layout(
  'inline segment header',
  { ...bigEndian16, sizeBytes: 4 },
  {
    isInline: bits32(0x00, 31, 31, '1; distinguishes it from a data pointer'),
    byteCount: bits32(0x00, 9, 0),
  },
);

export const lsoHeader = layout(
  'LSO segment header',
  { ...bigEndian16, sizeBytes: 4 },
  {
    mss: bits32(0x00, 31, 16),
    headerBytes: bits32(0x00, 9, 0),
  },
);

export const bindSegment = layout('bind segment', bigEndian32, {
  atomicEnabled: bits32(0x00, 31, 31),
  remoteWriteEnabled: bits32(0x00, 30, 30),
  remoteReadEnabled: bits32(0x00, 29, 29),
  length64: bits32(0x00, 25, 25),
  isType2: bits32(0x04, 31, 31),
  zeroBased: bits32(0x04, 30, 30),
  newRkey: u32(0x08),
  lkey: u32(0x0c),
  address: u64(0x10),
  lengthBytes: u64(0x18, '0 unbinds'),
});

export const localInvalidateSegment = layout('local invalidate segment', bigEndian32, {
  key: u32(0x08, 'as given by verbs, not rotated'),
});

/** Most pages of a fast registration: the list is shorter than a page of the host. */
export const pageListEntriesMax = 511;

export const fastRegisterSegment = layout(
  'fast register segment',
  { ...bigEndian16, sizeBytes: 48 },
  {
    atomicEnabled: bits32(0x00, 31, 31),
    remoteWriteEnabled: bits32(0x00, 30, 30),
    remoteReadEnabled: bits32(0x00, 29, 29),
    localWriteEnabled: bits32(0x00, 28, 28),
    localReadEnabled: bits32(0x00, 27, 27),
    key: u32(0x04),
    pageListAddress: u64(0x08, 'DMA address of u64 entries, bit 0 present, at most 511'),
    startAddress: u64(0x10),
    lengthBytes: u64(0x18),
    firstByteOffset: u32(0x20),
    logPageSize: u32(0x24, 'plain log2 of bytes'),
  },
);

/** First segment of an SRQ WQE; data pointers follow. */
export const srqNextSegment = layout('SRQ next segment', bigEndian16, {
  nextWqeIndex: u16(0x02, 'read at consumption'),
});

/** Bytes at the head of a receive list that UD, QP0 and QP1 keep for the GRH. */
export const grhBytes = 40;
