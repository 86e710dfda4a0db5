/**
 * The three sets of capability bits in QUERY_DEV_CAP, as bit numbers. Source: interface sheet 3.7.1–3.7.3.
 */

/** Capability flags, the u64 at 40. */
export const CapabilityFlag = {
  RC: 0,
  UC: 1,
  UD: 2,
  XRC: 3,
  RMC: 4,
  FCOIB: 5,
  SRQ: 6,
  IPOIB_CSUM: 7,
  BAD_PKEY_CNTR: 8,
  BAD_QKEY_CNTR: 9,
  VMM: 10,
  FCOE: 11,
  /** Ports of different protocols. */
  DPDP: 12,
  RAW_ETY: 13,
  RAW_IPV6: 14,
  BIG_LSO_HDR: 15,
  MEM_WINDOW: 16,
  APM: 17,
  ATOMIC: 18,
  RAW_MCAST: 19,
  UD_AV_PORT: 20,
  UD_MCAST: 21,
  PAGING: 24,
  ROUTER: 25,
  /** RoCE. */
  IBOE: 30,
  UC_LOOPBACK: 32,
  FCS_KEEP: 34,
  WOL_PORT1: 37,
  WOL_PORT2: 38,
  UDP_RSS: 40,
  VEP_UC_STEER: 41,
  VEP_MC_STEER: 42,
  COUNTERS: 48,
  RSS_IP_FRAG: 52,
  SET_ETH_SCHED: 53,
  SENSE_SUPPORT: 55,
  PORT_MNG_CHG_EV: 59,
  EQE_64B: 61,
  CQE_64B: 62,
} as const;
export type CapabilityFlag = (typeof CapabilityFlag)[keyof typeof CapabilityFlag];

/** Memory-management flags, the dword at 94. */
export const MemoryManagementFlag = {
  /** Type-2 windows are of type 2B, else 2A. */
  TYPE_2_WIN_2B: 1,
  LOCAL_INV: 6,
  REMOTE_INV: 7,
  TYPE_2_WIN: 9,
  RESERVED_LKEY: 10,
  FAST_REG_WR: 11,
  SKIP_OUTER_VLAN: 14,
  PHV: 15,
  ROCE_V1_V2: 19,
  PORT_REMAP: 24,
  IGNORE_FCS: 26,
  SRC_MAC_VSD: 28,
  CONFIG_DEV: 29,
} as const;
export type MemoryManagementFlag = (typeof MemoryManagementFlag)[keyof typeof MemoryManagementFlag];

/** Extended flags 2, the dword at 70. */
export const ExtendedFlag = {
  UPDATE_QP: 16,
  UPDATE_QP_SRC_CHECK_LB: 18,
  LB_SRC_CHK: 19,
  FSM: 20,
  VF_80: 21,
  SW_CQ_INIT: 23,
  VLAN_CONTROL: 26,
  FLOWSTATS_EN: 28,
  /** Ours: TCP is offloaded, and connections of QPs are those of iWARP. Public drivers give this bit no meaning. */
  IWARP: 31,
} as const;
export type ExtendedFlag = (typeof ExtendedFlag)[keyof typeof ExtendedFlag];

/** A u64 of capability flags with the given bits set. */
export const capabilityFlagsOf = (...flags: readonly CapabilityFlag[]): bigint =>
  flags.reduce((word, bit) => word | (1n << BigInt(bit)), 0n);

/** A dword of memory-management or extended flags with the given bits set. */
export const flagsOf = (...flags: readonly (MemoryManagementFlag | ExtendedFlag)[]): number =>
  flags.reduce((word, bit) => (word | (1 << bit)) >>> 0, 0);

export const hasCapability = (flags: bigint, bit: CapabilityFlag): boolean =>
  ((flags >> BigInt(bit)) & 1n) === 1n;

export const hasFlag = (flags: number, bit: MemoryManagementFlag | ExtendedFlag): boolean =>
  ((flags >>> bit) & 1) === 1;
