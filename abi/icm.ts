/**
 * ICM, the device's context memory in host pages: the tables that INIT_HCA places in one flat virtual address space. Entry
 * sizes are powers of two published by QUERY_DEV_CAP; these are this device's. Source: interface sheet 4.1, 4.4.
 */

export interface IcmTable {
  readonly entryBytes: number;
  /** Meaning of the entry number. */
  readonly indexedBy: string;
  /** log2 of the entries Linux configures by default. */
  readonly logEntriesByDefault: number;
}

export const icmTables = {
  qpc: { entryBytes: 256, indexedBy: 'QPN', logEntriesByDefault: 18 },
  auxc: { entryBytes: 64, indexedBy: 'QPN', logEntriesByDefault: 18 },
  altc: { entryBytes: 64, indexedBy: 'QPN', logEntriesByDefault: 18 },
  rdmarc: { entryBytes: 32, indexedBy: 'QPN × 2^log_rd + slot', logEntriesByDefault: 22 },
  srqc: { entryBytes: 64, indexedBy: 'SRQN', logEntriesByDefault: 16 },
  cqc: { entryBytes: 64, indexedBy: 'CQN', logEntriesByDefault: 16 },
  eqc: { entryBytes: 64, indexedBy: 'EQN', logEntriesByDefault: 7 },
  cmpt: { entryBytes: 64, indexedBy: 'object type × 2^24 + object number', logEntriesByDefault: 26 },
  dmpt: { entryBytes: 64, indexedBy: '(key >> 8) masked', logEntriesByDefault: 19 },
  mtt: { entryBytes: 8, indexedBy: 'MTT entry', logEntriesByDefault: 20 },
  mcg: { entryBytes: 1024, indexedBy: 'MCG entry', logEntriesByDefault: 13 },
} as const satisfies Readonly<Record<string, IcmTable>>;
export type IcmTableName = keyof typeof icmTables;

/** The four arrays of 2^24 entries inside the cMPT table. */
export const CmptType = { QP: 0, SRQ: 1, CQ: 2, EQ: 3 } as const;
export type CmptType = (typeof CmptType)[keyof typeof CmptType];

/** Byte offset of an object's entry from the cMPT base. */
export const cmptOffset = (type: CmptType, objectNumber: number, entryBytes: number): number =>
  (type * 2 ** 24 + objectNumber) * entryBytes;

/** Entries of EQC and cMPT-EQ mapped before INIT_HCA, although the profile has fewer EQs. */
export const eqEntriesMappedAtInit = 1024;

/** Linux maps further entries in chunks of this size. */
export const icmChunkBytes = 256 * 1024;
