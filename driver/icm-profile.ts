/**
 * Positions of the ICM tables: each is rounded to a power of two and at least a page, sorted by falling size, packed
 * from address 0, so that every table is aligned to its size. Also their INIT_HCA parameters. Source: interface sheet
 * 4.1, 3.10.
 */
import {
  CapabilityFlag,
  CmptType,
  cmptOffset,
  eqEntriesMappedAtInit,
  hasCapability,
  hasFlag,
  icmPageBytes,
  type initHca,
  MemoryManagementFlag,
} from '../abi/index.ts';
import { type Initial, log2Exact } from '../base/index.ts';
import { type DeviceLimits, eqCountOf, hasIwarp, uarCountOf } from './capabilities.ts';
import type { IcmRegion } from './icm-table.ts';
import { KernelError } from './kernel-error.ts';
import type { DriverConfig } from './parameters.ts';

/** Tables in Linux' order, which decides between equal sizes. */
const tableOrder = [
  'qpc',
  'rdmarc',
  'altc',
  'auxc',
  'srqc',
  'cqc',
  'eqc',
  'dmpt',
  'cmpt',
  'mtt',
  'mcg',
] as const;
type TableName = (typeof tableOrder)[number];

/** Tables of MAP_ICM: those of INIT_HCA, with cMPT in four parts. Listed in the order of mapping. */
export const mappedTables = [
  'cmptQp',
  'cmptSrq',
  'cmptCq',
  'cmptEq',
  'eqc',
  'mtt',
  'dmpt',
  'qpc',
  'auxc',
  'altc',
  'rdmarc',
  'cqc',
  'srqc',
  'mcg',
] as const;
export type MappedTable = (typeof mappedTables)[number];

export interface IcmProfile {
  readonly regions: { readonly [Name in MappedTable]: IcmRegion };
  /** Entries of each table that are mapped before INIT_HCA. */
  readonly reserved: { readonly [Name in MappedTable]: number };
  /** Parameter of SET_ICM_SIZE. */
  readonly totalBytes: number;
  readonly bases: { readonly [Name in TableName]: number };
  readonly counts: { readonly [Name in TableName]: number };
}

export const mcgEntryBytes = 1024;
const cmptEntries = 4 * 2 ** 24;

/** Tables as the configuration requests them, none larger than the device offers. */
export function icmProfileOf(limits: DeviceLimits, config: DriverConfig, hostPages: number): IcmProfile {
  const logQps = Math.min(config.logQps, limits.logMaxQps);
  const qps = 2 ** logQps;
  const logMtts = Math.max(config.logMtts, Math.ceil(Math.log2(2 * hostPages)));
  const counts = {
    qpc: qps,
    rdmarc: qps * 2 ** Math.min(config.logRdmarcPerQp, limits.logMaxResponderReads),
    altc: qps,
    auxc: hasIwarp(limits) ? 2 ** Math.min(config.logTcpConnections, limits.logMaxTcpConnections) : qps,
    srqc: 2 ** Math.min(config.logSrqs, limits.logMaxSrqs),
    cqc: 2 ** Math.min(config.logCqs, limits.logMaxCqs),
    eqc: eqCountOf(limits),
    dmpt: 2 ** Math.min(config.logMpts, limits.logMaxMpts),
    cmpt: cmptEntries,
    mtt: 2 ** Math.min(logMtts, 31),
    mcg: 2 ** Math.min(config.logMcgs, limits.logMaxGroups),
  };
  const entryBytes = entryBytesOf(limits);
  const bases = {} as Record<TableName, number>;
  let totalBytes = 0;
  // At initialisation more entries of eqc are mapped than a small table has: no other table follows it.
  const sized = bySize(tableOrder, (table) => tableBytes(counts[table], entryBytes[table]));
  for (const name of [...sized.filter((table) => table !== 'eqc'), 'eqc'] as const) {
    bases[name] = totalBytes;
    totalBytes += tableBytes(counts[name], entryBytes[name]);
  }
  if (totalBytes > Number(limits.maxIcmBytes))
    throw new KernelError(
      'ENOMEM',
      `the ICM tables take ${totalBytes} bytes, expected at most ${limits.maxIcmBytes}`,
    );
  return {
    regions: regionsOf(bases, counts, entryBytes),
    reserved: reservedOf(limits, counts),
    totalBytes,
    bases,
    counts,
  };
}

/** Responder resources (reads and atomics) of one QP. */
export const responderResourcesOf = ({ counts }: Pick<IcmProfile, 'counts'>): number =>
  counts.rdmarc / counts.qpc;

/** Windows of either type. */
const hasWindows = ({ capabilityFlags, memoryManagementFlags }: DeviceLimits): boolean =>
  hasCapability(capabilityFlags, CapabilityFlag.MEM_WINDOW) ||
  hasFlag(memoryManagementFlags, MemoryManagementFlag.TYPE_2_WIN);

/** The mailbox of INIT_HCA for a profile. */
export function initHcaValues(limits: DeviceLimits, profile: IcmProfile): Initial<typeof initHca> {
  const { bases, counts } = profile;
  const cacheLineLog = 6;
  return {
    version: 2,
    logCacheLineMinus4: cacheLineLog - 4,
    cacheLineValid: 1,
    udAvPortCheck: hasCapability(limits.capabilityFlags, CapabilityFlag.UD_AV_PORT) ? 1 : 0,
    qpcBase: BigInt(bases.qpc),
    logQps: log2Exact(counts.qpc),
    srqcBase: BigInt(bases.srqc),
    logSrqs: log2Exact(counts.srqc),
    cqcBase: BigInt(bases.cqc),
    logCqs: log2Exact(counts.cqc),
    altcBase: BigInt(bases.altc),
    auxcBase: BigInt(bases.auxc),
    logTcpConnections: hasIwarp(limits) ? log2Exact(counts.auxc) : 0,
    eqcBase: BigInt(bases.eqc),
    logEqs: log2Exact(counts.eqc),
    rdmarcBase: BigInt(bases.rdmarc),
    logRdmarcPerQp: log2Exact(responderResourcesOf(profile)),
    mcgBase: BigInt(bases.mcg),
    logMcgEntryBytes: log2Exact(mcgEntryBytes),
    logMcgHashEntries: log2Exact(counts.mcg) - 1,
    logMcgEntries: log2Exact(counts.mcg),
    dmptBase: BigInt(bases.dmpt),
    memoryWindowsEnabled: hasWindows(limits) ? 1 : 0,
    logDmpts: log2Exact(counts.dmpt),
    mttBase: BigInt(bases.mtt),
    cmptBase: BigInt(bases.cmpt),
    logUars: log2Exact(uarCountOf(limits)),
  };
}

function entryBytesOf(limits: DeviceLimits): { readonly [Name in TableName]: number } {
  return {
    qpc: limits.qpcEntryBytes,
    rdmarc: limits.rdmarcEntryBytes,
    altc: limits.altcEntryBytes,
    auxc: limits.auxcEntryBytes,
    srqc: limits.srqcEntryBytes,
    cqc: limits.cqcEntryBytes,
    eqc: limits.eqcEntryBytes,
    dmpt: limits.dmptEntryBytes,
    cmpt: limits.cmptEntryBytes,
    mtt: limits.mttEntryBytes,
    mcg: mcgEntryBytes,
  };
}

const tableBytes = (count: number, entryBytes: number): number =>
  Math.max(2 ** Math.ceil(Math.log2(count * entryBytes)), icmPageBytes);

/** Largest first; equal ones keep their order. */
const bySize = <T>(names: readonly T[], size: (name: T) => number): T[] =>
  [...names].sort((left, right) => size(right) - size(left));

function regionsOf(
  bases: Record<TableName, number>,
  counts: Record<TableName, number>,
  entryBytes: { readonly [Name in TableName]: number },
): IcmProfile['regions'] {
  const plain = (name: Exclude<TableName, 'cmpt'>, entryCount = counts[name]): IcmRegion => ({
    name,
    baseAddress: bases[name],
    entryBytes: entryBytes[name],
    entryCount,
  });
  const cmpt = (name: MappedTable, type: CmptType, entryCount: number): IcmRegion => ({
    name,
    baseAddress: bases.cmpt + cmptOffset(type, 0, entryBytes.cmpt),
    entryBytes: entryBytes.cmpt,
    entryCount,
  });
  // The RDMARC table is used by QPN: one entry here is all the slots of a QP.
  const slots = counts.rdmarc / counts.qpc;
  const rdmarc = { ...plain('rdmarc', counts.qpc), entryBytes: entryBytes.rdmarc * slots };
  return {
    cmptQp: cmpt('cmptQp', CmptType.QP, counts.qpc),
    cmptSrq: cmpt('cmptSrq', CmptType.SRQ, counts.srqc),
    cmptCq: cmpt('cmptCq', CmptType.CQ, counts.cqc),
    cmptEq: cmpt('cmptEq', CmptType.EQ, eqEntriesMappedAtInit),
    eqc: plain('eqc', eqEntriesMappedAtInit),
    mtt: plain('mtt'),
    dmpt: plain('dmpt'),
    qpc: plain('qpc'),
    auxc: plain('auxc'),
    altc: plain('altc'),
    rdmarc,
    cqc: plain('cqc'),
    srqc: plain('srqc'),
    mcg: plain('mcg'),
  };
}

function reservedOf(limits: DeviceLimits, counts: Record<TableName, number>): IcmProfile['reserved'] {
  const qps = 2 ** limits.logReservedQps;
  const srqs = 2 ** limits.logReservedSrqs;
  const cqs = 2 ** limits.logReservedCqs;
  return {
    cmptQp: qps,
    cmptSrq: srqs,
    cmptCq: cqs,
    cmptEq: eqEntriesMappedAtInit,
    eqc: eqEntriesMappedAtInit,
    mtt: 2 ** limits.logReservedMtts,
    dmpt: 2 ** limits.logReservedMpts,
    qpc: qps,
    // With iWARP the device chooses the entries.
    auxc: hasIwarp(limits) ? counts.auxc : qps,
    altc: qps,
    rdmarc: qps,
    cqc: cqs,
    srqc: srqs,
    mcg: counts.mcg,
  };
}
