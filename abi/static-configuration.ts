/**
 * Commands that configure the device as a whole or describe it: MOD_STAT_CFG, CONFIG_DEV, QUERY_FUNC, SET_NODE,
 * QUERY_IF_STAT, DIAG_RPRT. Source: interface sheet 3.8, 3.19.
 */

import { bits8, bits16, bits32, bytes, layout, notModelled, u8, u16, u32, u64 } from '../base/index.ts';

/** Opcode modifiers of MOD_STAT_CFG. Modifier 0 must succeed, or Linux ends its probe. */
export const ModStatCfgForm = {
  /** Linux requests the smallest page; iPXE queries by offset. */
  SET_PAGE_SIZE: 0,
  WRITE: 1,
  /** Out box: the physical port id. */
  PORT_ID: 2,
  READ: 3,
} as const;
export type ModStatCfgForm = (typeof ModStatCfgForm)[keyof typeof ModStatCfgForm];

/** The parts of the 0x100-byte record that drivers use. */
export const modStatCfg = layout(
  'MOD_STAT_CFG',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.8' },
  {
    logPageSizeModify: bits8(0x02, 0, 0, 'mask for the next byte'),
    logPageSize: u8(0x03, '0 asks for the smallest page'),
    portGuidHigh: u32(0x14),
    portGuidLow: u32(0x1c),
    nodeGuidHigh: u32(0x24),
    nodeGuidLow: u32(0x2c),
    portProtocol: notModelled(u32(0x40)),
    firmwareRevisionHigh: notModelled(u32(0x78)),
    firmwareRevisionLow: notModelled(u32(0x7c)),
    macModify: bits32(0x90, 31, 31),
    macHigh: bits32(0x90, 15, 0),
    macLow: u32(0x94),
  },
);

export const configDev = layout(
  'CONFIG_DEV',
  { sizeBytes: 0x84, byteOrder: 'big', source: 'sheet 3.19' },
  {
    updateVxlanPort: bits32(0x00, 0, 0),
    updateRocePort: bits32(0x00, 3, 3),
    updateRxPortCheck: bits32(0x00, 18, 18),
    vxlanUdpPort: u16(0x10),
    roceEntropy: u16(0x14),
    roceUdpPort: u16(0x16),
    flags: u32(0x18),
    rxChecksumModePort2: bits8(0x83, 6, 4, '0 to 3'),
    rxChecksumModePort1: bits8(0x83, 2, 0, '0 to 3'),
  },
);

export const queryFunc = layout(
  'QUERY_FUNC',
  { sizeBytes: 0x10, byteOrder: 'big', source: 'sheet 3.19' },
  {
    bus: bits8(0x00, 3, 0),
    device: bits8(0x01, 7, 3),
    function: bits8(0x01, 2, 0),
    physicalFunction: bits8(0x03, 3, 0),
    reservedEqs: u16(0x04),
    maxEqs: u16(0x06),
    reservedUars: bits8(0x0b, 3, 0),
  },
);

/** Input mailbox of SET_NODE. */
export const setNode = layout(
  'SET_NODE',
  { sizeBytes: 64, byteOrder: 'big', source: 'sheet 3.19' },
  { description: bytes(0x00, 64) },
);

export const queryIfStat = layout(
  'QUERY_IF_STAT',
  { sizeBytes: 0x30, byteOrder: 'big', source: 'sheet 3.19' },
  {
    mode: u8(0x03, '0 basic'),
    interfaces: u32(0x04),
    rxFrames: u64(0x10),
    rxBytes: u64(0x18),
    txFrames: u64(0x20),
    txBytes: u64(0x28),
  },
);

/**
 * Counters of DIAG_RPRT; all are u32, for the receive (rq) or send (sq) side. Counters that the sheet leaves out are at Linux'
 * offsets (drivers/infiniband/hw/mlx4/main.c: tables diag_basic, diag_ext, diag_device_only).
 */
export const diagnosticReport = layout(
  'DIAG_RPRT',
  { sizeBytes: 0x1a4, byteOrder: 'big', source: 'sheet 3.19, Linux mlx4_ib' },
  {
    rqLocalLength: u32(0x00),
    sqLocalLength: u32(0x04),
    rqLocalQpOperation: u32(0x08),
    sqLocalQpOperation: u32(0x0c),
    rqLocalProtection: u32(0x18),
    sqLocalProtection: u32(0x1c),
    rqFlushed: u32(0x20),
    sqFlushed: u32(0x24),
    sqWindowBind: u32(0x2c),
    sqBadResponse: u32(0x34),
    sqRemoteInvalidRequest: u32(0x44),
    rqRemoteInvalidRequest: u32(0x48),
    sqRemoteAccess: u32(0x4c),
    rqRemoteAccess: u32(0x50),
    sqRemoteOperation: u32(0x54),
    sqTransportRetriesExceeded: u32(0x5c),
    sqRnrRetriesExceeded: u32(0x64),
    rqRnr: u32(0x68, 'RNR NAKs sent'),
    sqRnr: u32(0x6c, 'RNR NAKs received'),
    rqOutOfSequence: u32(0x100, 'NAKs for a sequence error sent'),
    sqOutOfSequence: u32(0x104, 'the same received'),
    rqDatagramsDropped: u32(0x118, 'datagrams without a receive WQE'),
    rqDuplicate: u32(0x130, 'requests that had been executed before'),
    sqTimeout: u32(0x134, 'local ACK time-outs'),
    cqOverflow: u32(0x1a0),
  },
);

/** Input mailbox of MGID_HASH. */
export const mgidHash = layout(
  'MGID_HASH',
  { sizeBytes: 16, byteOrder: 'big', source: 'sheet 3.18' },
  { mgid: bytes(0x00, 16) },
);

/** Input mailbox of ACCESS_REG; only PTYS (0x5004) is used. */
export const accessReg = layout(
  'ACCESS_REG',
  { sizeBytes: 0x14, byteOrder: 'big', source: 'sheet 3.19' },
  {
    constant: u16(0x00, '0x0804'),
    status: u8(0x02),
    registerId: u16(0x04),
    method: u8(0x06, '1 query, 2 write'),
    type: u8(0x07, '1'),
    lengthType: bits16(0x10, 15, 12, '3'),
    lengthDwords: bits16(0x10, 11, 0, 'dwords of data + 1'),
  },
);
