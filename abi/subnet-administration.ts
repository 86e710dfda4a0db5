/**
 * MADs of subnet administration (SA): the headers after the common one, and the records of queries. A query selects records by
 * components, each of which has a bit in the component mask. Source: InfiniBand Architecture volume 1, 13.6.2 (RMPP), 15.2.1,
 * 15.2.5; the same offsets are in Linux include/rdma/ib_sa.h.
 */

import { bits8, bits16, bits32, bytes, layout, u8, u16, u32, u64 } from '../base/index.ts';
import { madBytes } from './mad.ts';

export const SubnetAttribute = {
  CLASS_PORT_INFO: 0x0001,
  INFORM_INFO: 0x0003,
  NODE_RECORD: 0x0011,
  PORT_INFO_RECORD: 0x0012,
  PATH_RECORD: 0x0035,
  MC_MEMBER_RECORD: 0x0038,
} as const;
export type SubnetAttribute = (typeof SubnetAttribute)[keyof typeof SubnetAttribute];

/** Methods of this class besides Get and Set: 15.2.2. */
export const SubnetMethod = { GET_TABLE: 0x12, DELETE: 0x15 } as const;
export type SubnetMethod = (typeof SubnetMethod)[keyof typeof SubnetMethod];

/** Status of the class, in the upper half of the MAD's status: 15.2.3. */
export const SubnetStatus = {
  NO_RESOURCES: 0x0100,
  REQUEST_INVALID: 0x0200,
  NO_RECORDS: 0x0300,
  TOO_MANY_RECORDS: 0x0400,
  INVALID_GID: 0x0500,
  INSUFFICIENT_COMPONENTS: 0x0600,
} as const;
export type SubnetStatus = (typeof SubnetStatus)[keyof typeof SubnetStatus];

export const RmppType = { DATA: 1, ACK: 2, STOP: 3, ABORT: 4 } as const;
export const RmppFlag = { ACTIVE: 1, FIRST: 2, LAST: 4 } as const;

export const subnetDataOffset = 0x38;
export const subnetDataBytes = 200;
/** Bytes that an RMPP payload length includes before the data: SM_Key, attribute offset, component mask. */
export const subnetHeaderBytes = 20;

/** Header between the common header and the data. */
export const subnetAdministration = layout(
  'SA MAD',
  { sizeBytes: madBytes, byteOrder: 'big', source: 'IBA 13.6.2.1, 15.2.1.1' },
  {
    rmppVersion: u8(0x18),
    rmppType: u8(0x19),
    rmppFlags: bits8(0x1a, 2, 0),
    rmppStatus: u8(0x1b),
    segmentNumber: u32(0x1c),
    payloadLength: u32(0x20),
    smKey: u64(0x24),
    attributeOffset: u16(0x2c, 'distance of records, in units of 8 bytes'),
    componentMask: u64(0x30),
    data: bytes(subnetDataOffset, subnetDataBytes),
  },
);

const record = { byteOrder: 'big' } as const;

export const pathRecord = layout(
  'PathRecord',
  { ...record, sizeBytes: 64, source: 'IBA 15.2.5.16' },
  {
    destinationGid: bytes(8, 16),
    sourceGid: bytes(24, 16),
    destinationLid: u16(40),
    sourceLid: u16(42),
    hopLimit: u8(47),
    reversible: bits8(49, 7, 7),
    pathCount: bits8(49, 6, 0),
    pkey: u16(50),
    serviceLevel: bits16(52, 3, 0),
    mtuSelector: bits8(54, 7, 6),
    mtu: bits8(54, 5, 0),
    rateSelector: bits8(55, 7, 6),
    rate: bits8(55, 5, 0),
    packetLifeTimeSelector: bits8(56, 7, 6),
    packetLifeTime: bits8(56, 5, 0, '4.096 us times two to this power'),
  },
);

/** Bits of the component mask of a PathRecord. */
export const PathComponent = {
  DESTINATION_GID: 1n << 2n,
  SOURCE_GID: 1n << 3n,
  DESTINATION_LID: 1n << 4n,
  SOURCE_LID: 1n << 5n,
  REVERSIBLE: 1n << 11n,
  PATH_COUNT: 1n << 12n,
  PKEY: 1n << 13n,
  MTU: 1n << 17n,
  RATE: 1n << 19n,
} as const;

export const mcMemberRecord = layout(
  'MCMemberRecord',
  { ...record, sizeBytes: 52, source: 'IBA 15.2.5.17' },
  {
    mgid: bytes(0, 16),
    portGid: bytes(16, 16),
    queueKey: u32(32),
    mlid: u16(36),
    mtuSelector: bits8(38, 7, 6),
    mtu: bits8(38, 5, 0),
    trafficClass: u8(39),
    pkey: u16(40),
    rateSelector: bits8(42, 7, 6),
    rate: bits8(42, 5, 0),
    packetLifeTimeSelector: bits8(43, 7, 6),
    packetLifeTime: bits8(43, 5, 0),
    serviceLevel: bits32(44, 31, 28),
    flowLabel: bits32(44, 27, 8),
    hopLimit: bits32(44, 7, 0),
    scope: bits8(48, 7, 4),
    joinState: bits8(48, 3, 0),
  },
);

/** Bits of the component mask of an MCMemberRecord. */
export const McMemberComponent = {
  MGID: 1n << 0n,
  PORT_GID: 1n << 1n,
  QUEUE_KEY: 1n << 2n,
  MTU: 1n << 5n,
  TRAFFIC_CLASS: 1n << 6n,
  PKEY: 1n << 7n,
  RATE: 1n << 9n,
  PACKET_LIFE_TIME: 1n << 11n,
  SERVICE_LEVEL: 1n << 12n,
  FLOW_LABEL: 1n << 13n,
  HOP_LIMIT: 1n << 14n,
  JOIN_STATE: 1n << 16n,
} as const;

/** NodeInfo and NodeDescription, after a LID. */
export const nodeRecord = layout(
  'NodeRecord',
  { ...record, sizeBytes: 108, source: 'IBA 15.2.5.2' },
  { lid: u16(0), nodeInfo: bytes(4, 40), description: bytes(44, 64) },
);

/** PortInfo, after the LID and port number. */
export const portInfoRecord = layout(
  'PortInfoRecord',
  { ...record, sizeBytes: 68, source: 'IBA 15.2.5.3' },
  { lid: u16(0), portNumber: u8(2), portInfo: bytes(4, 64) },
);

/** Bits of the component masks of NodeRecord and PortInfoRecord. */
export const NodeComponent = { LID: 1n << 0n, NODE_GUID: 1n << 7n, PORT_GUID: 1n << 8n } as const;
export const PortInfoComponent = { LID: 1n << 0n, PORT_NUMBER: 1n << 1n } as const;

/** States of a subnet manager, as SMInfo has them: 14.2.5.13. */
export const SmState = { NOT_ACTIVE: 0, DISCOVERING: 1, STANDBY: 2, MASTER: 3 } as const;

/** Attribute modifiers of Set(SMInfo): 14.4.1. */
export const SmControl = { HANDOVER: 1, ACKNOWLEDGE: 2, DISABLE: 3, STANDBY: 4, DISCOVER: 5 } as const;

/** SMInfo, in requests and answers; an attribute of subnet management: 14.2.5.13. */
export const smInfo = layout(
  'SMInfo',
  { sizeBytes: 64, byteOrder: 'big', source: 'IBA 14.2.5.13' },
  {
    guid: u64(0),
    smKey: u64(8),
    activityCount: u32(16),
    priority: bits8(20, 7, 4),
    state: bits8(20, 3, 0, '3 is master'),
  },
);
