/**
 * The Ethernet forms of SET_PORT (opcode modifier 1): the input modifier is sub-command << 8 | port. Tables are always
 * sent complete. And the filters of a port, SET_VLAN_FLTR and SET_MCAST_FLTR. Only Linux documents them. Source: interface
 * sheet 3.12, 3.18.
 */

import { array, bits8, bits32, bytes, joined, layout, nested, u8, u16, u32 } from '../base/index.ts';

export const SetPortEthernet = {
  GENERAL: 0x0,
  RQP_CALC: 0x1,
  MAC_TABLE: 0x2,
  VLAN_TABLE: 0x3,
  PRIO_MAP: 0x4,
  GID_TABLE: 0x5,
  PRIO2TC: 0x8,
  SCHEDULER: 0x9,
  VXLAN: 0xb,
  ROCE_ADDR: 0xd,
} as const;
export type SetPortEthernet = (typeof SetPortEthernet)[keyof typeof SetPortEthernet];

/** Entries of each per-port table. */
export const portTableEntries = 128;

const source = 'sheet 3.12';

export const setPortGeneral = layout(
  'SET_PORT general',
  { sizeBytes: 0x100, byteOrder: 'big', source },
  {
    userMacValid: bits8(0x02, 6, 6),
    userMtuValid: bits8(0x02, 5, 5),
    phvValid: bits8(0x02, 4, 4),
    ignoreFcsValid: bits8(0x02, 1, 1),
    roceModeValid: bits8(0x03, 4, 4),
    txPauseValid: bits8(0x03, 2, 2),
    rxPauseValid: bits8(0x03, 1, 1),
    mtuValid: bits8(0x03, 0, 0),
    roceMode: bits8(0x04, 7, 4, '2 is v1 and v2'),
    ignoreFcs: bits8(0x04, 0, 0),
    mtuBytes: u16(0x06, 'with Ethernet header and FCS'),
    txGlobalPause: bits8(0x08, 7, 7),
    txPriorityPause: u8(0x09, 'mask of priorities'),
    rxGlobalPause: bits8(0x0c, 7, 7),
    rxPriorityPause: u8(0x0d, 'mask of priorities'),
    phvEnable: bits8(0x14, 7, 7),
    userMtuBytes: u16(0x1a),
    userMac: bytes(0x1e, 6),
  },
);

export const setPortReceiveQps = layout(
  'SET_PORT receive QPs',
  { sizeBytes: 0x100, byteOrder: 'big', source },
  {
    baseQpn: u32(0x00),
    logMacs: u8(0x05),
    logVlans: u8(0x06),
    logPriorities: u8(0x07),
    macMissIndex: u8(0x0b),
    intraNoVlanIndex: u8(0x0c),
    noVlanIndex: u8(0x0d),
    intraVlanMissIndex: u8(0x0e),
    vlanMissIndex: u8(0x0f),
    noVlanPriority: u8(0x13),
    promiscuous: bits32(0x14, 31, 31),
    promiscuousQpn: bits32(0x14, 23, 0),
    multicastMode: bits32(0x18, 31, 30, '0 by table only, 1 by table, 2 default QPN'),
    multicastQpn: bits32(0x18, 23, 0),
  },
);

/** Values of `multicastMode`. */
export const MulticastMode = { TABLE_ONLY: 0, TABLE: 1, DEFAULT_QP: 2 } as const;
export type MulticastMode = (typeof MulticastMode)[keyof typeof MulticastMode];

const macEntry = layout(
  'MAC table entry',
  { sizeBytes: 8, byteOrder: 'big', source },
  {
    valid: bits8(0x00, 7, 7),
    mac: joined(u16(0x02), u32(0x04)),
  },
);

export const setPortMacTable = layout(
  'SET_PORT MAC table',
  { sizeBytes: 0x400, byteOrder: 'big', source },
  {
    entries: array(nested(0x00, macEntry), portTableEntries),
  },
);

const vlanEntry = layout(
  'VLAN table entry',
  { sizeBytes: 4, byteOrder: 'big', source },
  {
    valid: bits32(0x00, 31, 31),
    internalSwitch: bits32(0x00, 30, 30),
    vlanId: bits32(0x00, 11, 0),
  },
);

export const setPortVlanTable = layout(
  'SET_PORT VLAN table',
  { sizeBytes: 0x200, byteOrder: 'big', source },
  {
    entries: array(nested(0x00, vlanEntry), portTableEntries),
  },
);

export const setPortGidTable = layout(
  'SET_PORT GID table',
  { sizeBytes: 0x800, byteOrder: 'big', source },
  {
    gids: array(bytes(0x00, 16), portTableEntries),
  },
);

const roceAddress = layout(
  'RoCE address',
  { sizeBytes: 32, byteOrder: 'big', source },
  {
    gid: bytes(0x00, 16),
    type: u8(0x1a, '0 IPv4-mapped, 1 IPv6'),
    version: u8(0x1b, '0 v1, 2 v2'),
  },
);

export const setPortRoceAddresses = layout(
  'SET_PORT RoCE addresses',
  { sizeBytes: 0x1000, byteOrder: 'big', source },
  { entries: array(nested(0x00, roceAddress), portTableEntries) },
);

export const setPortPriorityToClass = layout(
  'SET_PORT priority to class',
  { sizeBytes: 4, byteOrder: 'big', source },
  { classPairs: array(u8(0x00), 4, 'two priorities per byte') },
);

export const setPortVxlan = layout(
  'SET_PORT VXLAN',
  { sizeBytes: 8, byteOrder: 'big', source },
  {
    modifyEnable: bits8(0x04, 7, 7),
    modifySteering: bits8(0x04, 6, 6),
    enable: bits8(0x06, 7, 7),
    steeringMode: u8(0x07),
  },
);

/** VIDs in a mask of SET_VLAN_FLTR, and the number of VIDs. */
const vidsPerMask = 32;
export const vlanIdCount = 4096;

/** Mailbox of SET_VLAN_FLTR: one bit for each VID; the last mask is that of VIDs 0 to 31. */
export const setVlanFilter = layout(
  'SET_VLAN_FLTR',
  { sizeBytes: vlanIdCount / 8, byteOrder: 'big', source: 'sheet 3.18' },
  { masks: array(u32(0x00), vlanIdCount / vidsPerMask) },
);

/** The mask of a VID, and its bit there, given by the VID's low five bits. */
export const vlanFilterMaskOf = (vlanId: number): number =>
  vlanIdCount / vidsPerMask - 1 - Math.floor(vlanId / vidsPerMask);

/** Opcode modifiers of SET_MCAST_FLTR. */
export const MulticastFilterForm = { CONFIGURE: 0, DISABLE: 1, ENABLE: 2 } as const;
export type MulticastFilterForm = (typeof MulticastFilterForm)[keyof typeof MulticastFilterForm];

/** The input parameter of SET_MCAST_FLTR with opcode modifier 0. */
export const multicastFilterEntry = layout(
  'SET_MCAST_FLTR entry',
  { sizeBytes: 8, byteOrder: 'big', source: 'sheet 3.18' },
  {
    clearsList: bits32(0x00, 31, 31, 'the list is emptied first'),
    mac: joined(u16(0x02), u32(0x04)),
  },
);
