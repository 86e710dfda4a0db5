/**
 * QUERY_DEV_CAP (0x003), out box: the limits and entry sizes of the device. `log…` fields are powers of two; "reserved"
 * numbers are those below which software allocates nothing. Source: interface sheet 3.7.
 */

import { layout } from '../base/layout.ts';
import { bits8, bits16, bits32, notModelled, u8, u16, u32, u64 } from '../base/layout-field.ts';

/** Queue, table and object limits, 10 to 4f. */
const limits = {
  logMaxSrqWqes: u8(0x10),
  logMaxQpWqes: u8(0x11),
  logReservedQps: bits8(0x12, 3, 0),
  logMaxQps: bits8(0x13, 4, 0),
  logReservedSrqs: bits8(0x14, 7, 4),
  logMaxSrqs: bits8(0x15, 4, 0),
  reservedSmallCqs: notModelled(bits32(0x14, 13, 8)),
  logMaxSmallCqs: notModelled(bits32(0x14, 3, 0)),
  reservedEqs: u8(0x18, 'plain count'),
  logMaxCqEntries: u8(0x19),
  logReservedCqs: bits8(0x1a, 3, 0),
  logMaxCqs: bits8(0x1b, 4, 0),
  logMaxEqEntries: u8(0x1c),
  logMaxMpts: bits8(0x1d, 5, 0),
  logReservedEqs: bits8(0x1e, 3, 0),
  logMaxEqs: bits8(0x1f, 3, 0),
  logReservedMtts: bits8(0x20, 7, 4),
  logMaxRegionBytes: bits8(0x21, 6, 0),
  logReservedMpts: bits8(0x22, 3, 0),
  logMaxMtts: bits8(0x23, 5, 0),
  systemEqs: bits16(0x26, 11, 0, 'non-zero switches to another EQ scheme'),
  logMaxRequesterReads: bits8(0x29, 5, 0, 'outstanding RDMA reads and atomics per QP'),
  logMaxResponderReads: bits8(0x2b, 5, 0),
  logMaxLsoBytes: bits8(0x2d, 4, 0, '0 is none'),
  rssXor: bits8(0x2e, 5, 5),
  rssToeplitz: bits8(0x2e, 4, 4),
  logRssTable: bits8(0x2e, 3, 0),
  logMaxResponderResources: bits8(0x2f, 5, 0, 'of the whole device'),
  srqResize: bits8(0x33, 0, 0),
  portBeacon: bits8(0x34, 7, 7),
  localCaAckDelay: bits8(0x35, 4, 0),
  ibMtu: bits8(0x36, 7, 4, 'command revision below 3 only'),
  ibWidth: bits8(0x36, 3, 0, 'command revision below 3 only'),
  maxVls: bits8(0x37, 7, 4, 'command revision below 3 only'),
  ports: bits8(0x37, 3, 0),
  logMaxMessageBytes: bits8(0x38, 4, 0),
  logGids: bits8(0x3b, 3, 0, 'command revision below 3 only'),
  staticRates: u16(0x3c, 'bit per rate code'),
  cqeTimestamps: bits8(0x3e, 7, 7),
  logPkeys: bits8(0x3f, 3, 0, 'command revision below 3 only'),
  capabilityFlags: u64(0x40, 'see CapabilityFlag'),
  reservedUars: bits8(0x48, 7, 4, 'plain count'),
  logUarAreaMib: bits8(0x49, 5, 0, 'the UAR area has 2^(n+20) bytes'),
  logMinPageBytes: u8(0x4b),
  blueFlame: bits8(0x4c, 7, 7),
  logBlueFlameRegisterBytes: bits8(0x4d, 4, 0),
  logBlueFlameRegistersPerPage: bits8(0x4e, 5, 0),
  logMaxBlueFlamePages: bits8(0x4f, 5, 0),
} as const;

/** Descriptors, groups, domains and features, 51 to 7b. */
const features = {
  maxSendScatterGather: u8(0x51),
  maxSendDescriptorBytes: u16(0x52),
  maxReceiveScatterGather: u8(0x55),
  maxReceiveDescriptorBytes: u16(0x56),
  userMac: bits8(0x5c, 2, 2),
  sVlanByQp: bits8(0x5d, 0, 0),
  logMaxQpsPerGroup: u8(0x61),
  reservedGroups: bits8(0x62, 3, 0, 'plain count'),
  logMaxGroups: u8(0x63),
  reservedPds: bits8(0x64, 7, 4, 'plain count'),
  logMaxPds: bits8(0x65, 5, 0),
  reservedXrcDomains: bits8(0x66, 7, 4, 'plain count'),
  logMaxXrcDomains: bits8(0x67, 4, 0),
  flowCounters: u32(0x68),
  extendedFlags: u32(0x70, 'see ExtendedFlag'),
  steeringForIpoib: bits8(0x74, 7, 7),
  flowSteering: bits8(0x76, 7, 7),
  flowSteeringSniffer: bits8(0x76, 5, 5),
  logUnicastQpRange: bits8(0x76, 4, 0),
  maxQpsPerSteeringEntry: u8(0x77),
  slToVlChangeEvent: bits8(0x78, 5, 5),
  eqeStride: bits8(0x7a, 7, 7, 'with the CQE stride: entries of a CPU cache line'),
  cqeStride: bits8(0x7a, 6, 6),
  ethernetProtocolControl: bits8(0x7a, 5, 5),
  qosVpp: bits8(0x7a, 4, 4),
  quantizedCongestionNotification: bits8(0x7b, 0, 0),
} as const;

/** Entry sizes in bytes, 80 to 93: powers of two. */
const entrySizes = {
  rdmarcEntryBytes: u16(0x80),
  qpcEntryBytes: u16(0x82),
  auxcEntryBytes: u16(0x84),
  altcEntryBytes: u16(0x86),
  eqcEntryBytes: u16(0x88),
  cqcEntryBytes: u16(0x8a),
  srqcEntryBytes: u16(0x8c),
  cmptEntryBytes: u16(0x8e),
  mttEntryBytes: u16(0x90, 'must be 8'),
  dmptEntryBytes: u16(0x92, 'must be 64: Linux edits entries in place'),
} as const;

/** Memory management and the rest, 94 to e7. */
const memoryAndRates = {
  memoryManagementFlags: u32(0x94, 'see MemoryManagementFlag'),
  reservedLkey: u32(0x98),
  perPortDiagnostics: bits32(0x9c, 17, 17),
  firmwareReassignsMac: bits32(0x9c, 22, 22),
  etsConfigurable: bits32(0x9c, 13, 13),
  vxlanOffload: bits32(0x9c, 11, 11),
  driverVersionInInitHca: bits32(0x9c, 8, 8),
  recoverableErrorEvents: bits32(0x9c, 7, 7),
  backplaneAutonegotiation: bits32(0x9c, 0, 0),
  maxIcmBytes: u64(0xa0),
  highRateQpnBase: bits32(0xa8, 23, 0),
  highRateQpnRange: bits32(0xac, 23, 0),
  madDemux: bits32(0xb0, 0, 0),
  clockPageInUserSpace: bits8(0xc1, 7, 7),
  nvconfigAvailability: notModelled(bits32(0xc0, 5, 0)),
  rateLimits: u16(0xcc, 'count, 0 is none'),
  rateLimitMaxUnit: bits16(0xd0, 15, 14),
  rateLimitMax: bits16(0xd0, 11, 0),
  rateLimitMinUnit: bits16(0xd2, 15, 14),
  rateLimitMin: bits16(0xd2, 11, 0),
  healthBufferOffset: u32(0xe4, 'in CR space; for crash dumps only'),
} as const;

export const queryDevCap = layout(
  'QUERY_DEV_CAP',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.7' },
  { ...limits, ...features, ...entrySizes, ...memoryAndRates },
);
