/**
 * MPT entry (dMPT): one memory region or window, at dmpt_base + index × entry size in ICM, in host memory. The driver edits
 * entries there (re-registration), so the device reads them from memory or flushes its cache at SYNC_TPT. Source: interface
 * sheet 5.4, 3.15.
 */

import { aligned, bits32, joined, layout, named, notModelled, u32, u64 } from '../base/index.ts';

/** Ownership nibble. */
export const MptStatus = {
  /** Owned by hardware, usable. */
  VALID: 0x0,
  /** A valid slot, but not registered yet or invalidated: fast-register regions, type-2 windows. */
  FREE: 0x3,
  SOFTWARE: 0xf,
} as const;
export type MptStatus = (typeof MptStatus)[keyof typeof MptStatus];

export const mpt = layout(
  'MPT',
  { sizeBytes: 0x40, byteOrder: 'big', source: 'sheet 5.4' },
  {
    status: named(bits32(0x00, 31, 28), MptStatus),
    noSnoop: notModelled(bits32(0x00, 19, 19)),
    isOnDemand: bits32(
      0x00,
      18,
      18,
      'ours: absent pages are asked for by event, see docs/reference/deviations.md',
    ),
    mio: notModelled(bits32(0x00, 17, 17, 'Linux sets it on every region')),
    atcRequest: notModelled(bits32(0x00, 16, 16)),
    bindEnabled: bits32(0x00, 15, 15, 'windows may be bound'),
    atomicEnabled: bits32(0x00, 14, 14),
    remoteWriteEnabled: bits32(0x00, 13, 13),
    remoteReadEnabled: bits32(0x00, 12, 12),
    localWriteEnabled: bits32(0x00, 11, 11),
    localReadEnabled: bits32(0x00, 10, 10),
    isPhysical: bits32(0x00, 9, 9, 'no translation: the VA is the DMA address'),
    isRegion: bits32(0x00, 8, 8, '1 region, 0 window'),
    boundQpn: bits32(0x04, 31, 8, 'type-2 windows'),
    isBoundToQp: bits32(0x04, 7, 7),
    keyIndexForm: u32(0x08, 'the key rotated right by 8, see keys.ts'),
    memoryDif: notModelled(bits32(0x0c, 30, 30)),
    wireDif: notModelled(bits32(0x0c, 29, 29)),
    fastRegisterRemoteAccess: bits32(0x0c, 28, 28),
    fastRegisterEnabled: bits32(0x0c, 27, 27),
    noCache: notModelled(bits32(0x0c, 26, 26)),
    localInvalidateEnabled: bits32(0x0c, 25, 25),
    remoteInvalidateEnabled: bits32(0x0c, 24, 24),
    pd: bits32(0x0c, 23, 0),
    startAddress: u64(0x10, 'virtual address of the first byte'),
    lengthBytes: u64(0x18, 'all ones: all memory'),
    lkey: u32(0x20, 'of the region under a window'),
    boundWindows: bits32(0x24, 23, 0),
    firstByteOffsetEnabled: bits32(0x28, 23, 23),
    length64: bits32(0x28, 22, 22),
    blockMode: notModelled(bits32(0x28, 21, 21)),
    mttReplication: notModelled(bits32(0x28, 3, 0)),
    mttAddress: joined(bits32(0x2c, 7, 0), aligned(bits32(0x30, 31, 3)), 'byte offset from the MTT base'),
    mttEntries: u32(0x34, 'reserved for fast register'),
    logPageSize: bits32(0x38, 20, 0, 'entity size: plain log2 of bytes, unlike the queue contexts'),
    firstByteOffset: u32(0x3c, 'Linux names 21 bits; windows in larger pages use them all'),
  },
);

/** Access rights as bits of the first dword, in one mask, for comparison in checks. */
export const MptAccess = {
  LOCAL_READ: 1 << 10,
  LOCAL_WRITE: 1 << 11,
  REMOTE_READ: 1 << 12,
  REMOTE_WRITE: 1 << 13,
  ATOMIC: 1 << 14,
  BIND: 1 << 15,
} as const;
export type MptAccess = (typeof MptAccess)[keyof typeof MptAccess];

/** Offset of the byte whose high nibble is the status; the driver clears it to hand an edited entry back. */
export const mptStatusOffset = 0x00;
