/**
 * INIT_HCA (0x007) in box and QUERY_HCA (0x00b) out box: one layout. A table is an ICM base address whose low bits carry
 * log2 of its entries, declared here as two fields. QUERY_HCA returns what INIT_HCA set. Source: interface sheet 3.10.
 */

import {
  aligned,
  bits8,
  bits16,
  bits32,
  bits64,
  bytes,
  layout,
  notModelled,
  u8,
  u16,
  u32,
  u64,
} from '../base/index.ts';

const general = {
  version: u8(0x00, 'Linux writes 2'),
  globalCapabilities: u32(0x04, 'query only'),
  coreClockMhz: u16(0x0c, 'query only'),
  logCacheLineMinus4: bits8(0x0e, 7, 5, 'log2 of the CPU cache line − 4'),
  cacheLineValid: bits8(0x0e, 4, 4),
  phvCheckEnabled: bits8(0x0e, 1, 1, 'query only'),
  rssIpFragments: bits32(0x14, 13, 13),
  deviceManagedSteering: bits32(0x14, 6, 6),
  counters: bits32(0x14, 4, 4),
  checksum: bits32(0x14, 3, 3),
  qos: bits32(0x14, 2, 2),
  hostIsBigEndian: bits32(0x14, 1, 1),
  udAvPortCheck: bits32(0x14, 0, 0),
  recoverableErrorEvents: bits32(0x18, 31, 31),
} as const;

const queueTables = {
  qpcBase: aligned(bits64(0x30, 63, 5)),
  logQps: bits8(0x37, 4, 0),
  srqcBase: aligned(bits64(0x48, 63, 5)),
  logSrqs: bits8(0x4f, 4, 0),
  cqcBase: aligned(bits64(0x50, 63, 5)),
  logCqs: bits8(0x57, 4, 0),
  cqe64: bits32(0x58, 30, 30),
  eqe64: bits32(0x58, 29, 29),
  logEqeStrideMinus5: bits8(0x5b, 7, 4),
  logCqeStrideMinus5: bits8(0x5b, 3, 0),
  altcBase: u64(0x60),
  auxcBase: u64(0x70),
  logTcpConnections: bits8(0x7f, 4, 0, 'ours, with iWARP: entries of the table at auxcBase'),
  eqcBase: aligned(bits64(0x80, 63, 5)),
  logEqs: bits8(0x87, 4, 0),
  systemEqs: bits16(0x8a, 11, 0),
  rdmarcBase: aligned(bits64(0x90, 63, 3)),
  logRdmarcPerQp: bits8(0x97, 2, 0),
} as const;

const multicastTables = {
  mcgBase: u64(0xc0),
  logMcgEntryBytes: bits8(0xd3, 4, 0),
  logMcgHashEntries: bits8(0xd7, 4, 0),
  unicastSteering: bits8(0xd8, 3, 3, 'steering mode B0'),
  logMcgEntries: bits8(0xdb, 4, 0),
} as const;

const memoryTables = {
  dmptBase: u64(0xf0),
  memoryWindowsEnabled: bits8(0xf8, 7, 7),
  logDmpts: bits8(0xfb, 5, 0),
  mttBase: u64(0x100),
  cmptBase: u64(0x108),
  logUars: bits8(0x12a, 3, 0, 'in pages of the size in 12b'),
  logUarPage4k: u8(0x12b, 'log2 of the UAR page in 4 KiB'),
  driverVersion: bytes(0x140, 64),
} as const;

const flowSteering = {
  flowSteeringBase: u64(0x1d0),
  logFlowSteeringEntryBytes: u8(0x1e3),
  highRateSteering: notModelled(bits8(0x1e8, 7, 6)),
  logFlowSteeringEntries: u8(0x1eb),
  ethernetSteering: notModelled(u8(0x1f1)),
  ethernetL2Addresses: notModelled(u16(0x1f2)),
  ipoibSteering: notModelled(u8(0x1f5)),
  ipoibL2Addresses: notModelled(u16(0x1f6)),
} as const;

export const initHca = layout(
  'INIT_HCA',
  { sizeBytes: 0x200, byteOrder: 'big', source: 'sheet 3.10' },
  { ...general, ...queueTables, ...multicastTables, ...memoryTables, ...flowSteering },
);
