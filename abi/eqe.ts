/**
 * EQE, the event queue entry, 32 bytes; owner rule and order as for CQEs. Each event type has its own layout over the same 32
 * bytes. In a 64-byte EQE this layout is the second half. Source: interface sheet 6.7.
 */

import { bits8, bits32, bytes, layout, named, u8, u16, u32, u64 } from '../base/index.ts';

export const EventType = {
  COMP: 0x00,
  PATH_MIG: 0x01,
  COMM_EST: 0x02,
  SQ_DRAINED: 0x03,
  CQ_ERROR: 0x04,
  WQ_CATAS_ERROR: 0x05,
  EEC_CATAS_ERROR: 0x06,
  PATH_MIG_FAILED: 0x07,
  LOCAL_CATAS_ERROR: 0x08,
  PORT_CHANGE: 0x09,
  CMD: 0x0a,
  /** Emulator-specific, with the number of mlx5's page fault event: a ConnectX-3 has none. */
  PAGE_REQUEST: 0x0d,
  ECC_DETECT: 0x0e,
  EQ_OVERFLOW: 0x0f,
  WQ_INVAL_REQ_ERROR: 0x10,
  WQ_ACCESS_ERROR: 0x11,
  SRQ_CATAS_ERROR: 0x12,
  SRQ_QP_LAST_WQE: 0x13,
  SRQ_LIMIT: 0x14,
  COMM_CHANNEL: 0x18,
  VEP_UPDATE: 0x19,
  OP_REQUIRED: 0x1a,
  FATAL_WARNING: 0x1b,
  FLR_EVENT: 0x1c,
  PORT_MNG_CHG_EVENT: 0x1d,
  /** Ours: something happened to a TCP connection (tcp-connection.ts). */
  TCP: 0x30,
  RECOVERABLE_ERROR_EVENT: 0x3e,
} as const;
export type EventType = (typeof EventType)[keyof typeof EventType];

/** Subtypes of PORT_CHANGE. */
export const PortChange = { DOWN: 1, ACTIVE: 4 } as const;
export type PortChange = (typeof PortChange)[keyof typeof PortChange];

/** Subtypes of PORT_MNG_CHG_EVENT. */
export const PortManagementChange = {
  GUID_INFO: 0x14,
  PORT_INFO: 0x15,
  PKEY_TABLE: 0x16,
  SL_TO_VL: 0x17,
} as const;
export type PortManagementChange = (typeof PortManagementChange)[keyof typeof PortManagementChange];

/** Syndromes of CQ_ERROR. */
export const CqErrorSyndrome = { OVERRUN: 1, ACCESS: 2 } as const;
export type CqErrorSyndrome = (typeof CqErrorSyndrome)[keyof typeof CqErrorSyndrome];

/** Bits of the changed mask of a port-info event. */
export const PortInfoChange = { SM_LID: 1, GID_PREFIX: 2, LID: 4, CLIENT_REREGISTER: 8, SM_SL: 16 } as const;
export type PortInfoChange = (typeof PortInfoChange)[keyof typeof PortInfoChange];

const header = { sizeBytes: 32, byteOrder: 'big', source: 'sheet 6.7' } as const;
export const eqeBytes = header.sizeBytes;

/** Offset of the byte that is written last. */
export const eqeOwnerOffset = 0x1f;

const common = {
  type: named(u8(0x01), EventType),
  subtype: u8(0x03),
  slaveId: u8(0x1c, 'multi-function only'),
  owner: bits8(eqeOwnerOffset, 7, 7, 'pass bit of the producer counter'),
} as const;

/** Any event, with its data as bytes. */
export const eqe = layout('EQE', header, { ...common, data: bytes(0x04, 0x18) });

export const completionEqe = layout('completion EQE', header, { ...common, cqn: bits32(0x04, 23, 0) });

/** QP events: path migration, communication established, drained, errors, last WQE. */
export const qpEqe = layout('QP EQE', header, { ...common, qpn: bits32(0x04, 23, 0) });

export const srqEqe = layout('SRQ EQE', header, { ...common, srqn: bits32(0x04, 23, 0) });

export const cqErrorEqe = layout('CQ error EQE', header, {
  ...common,
  cqn: bits32(0x04, 23, 0),
  syndrome: named(u8(0x0f), CqErrorSyndrome),
});

export const portChangeEqe = layout('port change EQE', header, { ...common, port: bits32(0x0c, 31, 28) });

export const commandEqe = layout('command EQE', header, {
  ...common,
  token: u16(0x06),
  status: u8(0x0f),
  outParam: u64(0x10),
});

export const fatalWarningEqe = layout('fatal warning EQE', header, {
  ...common,
  temperature: u16(0x04),
  threshold: u16(0x06),
});

/** Port management: a change of the GUID or P_Key table. */
export const tableChangeEqe = layout('table change EQE', header, {
  ...common,
  port: u8(0x07),
  block: u32(0x08),
  entryMask: u32(0x0c),
});

/** Port management: a change of the SL-to-VL table. */
export const slToVlChangeEqe = layout('SL-to-VL change EQE', header, {
  ...common,
  port: u8(0x07),
  slToVl: bytes(0x08, 8),
});

/** Port management: a change in PortInfo. */
export const portInfoChangeEqe = layout('port info change EQE', header, {
  ...common,
  port: u8(0x07),
  smLid: u16(0x08),
  lid: u16(0x0a),
  changed: u32(0x0c, 'bits of PortInfoChange'),
  smSl: u8(0x13),
  gidPrefix: u64(0x14),
});

/** Waiting side of a page request: subtype bits 1 and 0. */
export const PageRequestSide = { REQUESTER: 0, RESPONDER: 1, RESPONSE: 2 } as const;
export type PageRequestSide = (typeof PageRequestSide)[keyof typeof PageRequestSide];
/** Subtype bit 7 of a page request: the device is about to write. */
export const pageRequestIsWrite = 0x80;

/** The device found a page of an on-demand region absent. Emulator-specific, after mlx5's event of the same number. */
export const pageRequestEqe = layout(
  'page request EQE',
  { ...header, source: 'this project' },
  {
    ...common,
    qpn: bits32(0x04, 23, 0),
    key: u32(0x08),
    lengthBytes: u32(0x0c, 'from the address on: what the operation will touch'),
    address: u64(0x10),
    token: bits32(0x18, 31, 0, 'to be given back by PAGE_FAULT_RESUME'),
  },
);

/** The events that Linux maps to its asynchronous EQ, without those that depend on capabilities (0x1d, 0x3e). */
export const asyncEventMask = [
  EventType.PATH_MIG,
  EventType.COMM_EST,
  EventType.SQ_DRAINED,
  EventType.CQ_ERROR,
  EventType.WQ_CATAS_ERROR,
  EventType.EEC_CATAS_ERROR,
  EventType.PATH_MIG_FAILED,
  EventType.PORT_CHANGE,
  EventType.CMD,
  EventType.ECC_DETECT,
  EventType.WQ_INVAL_REQ_ERROR,
  EventType.WQ_ACCESS_ERROR,
  EventType.SRQ_CATAS_ERROR,
  EventType.SRQ_QP_LAST_WQE,
  EventType.SRQ_LIMIT,
  EventType.COMM_CHANNEL,
  EventType.OP_REQUIRED,
  EventType.FATAL_WARNING,
  EventType.FLR_EVENT,
].reduce((mask, type) => mask | (1n << BigInt(type)), 0n);
