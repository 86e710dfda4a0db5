/**
 * The words that programs, the verbs library and the kernel share, as Linux' user API headers do: enumerations with the
 * names and numbers of libibverbs, and the records that cross the system call boundary. No behaviour.
 * Source: libibverbs verbs.h, Linux include/uapi/rdma.
 */

import { Errno } from '../abi/index.ts';

/** The error codes system calls of this driver return, by their POSIX names, with Linux' numbers. */
export const errnoNumbers = {
  ...Errno,
  ENOENT: 2,
  EINTR: 4,
  ENODEV: 19,
  EPROTO: 71,
  EOPNOTSUPP: 95,
  EADDRINUSE: 98,
  ENETUNREACH: 101,
  ECONNRESET: 104,
  ENOBUFS: 105,
  ETIMEDOUT: 110,
  ECONNREFUSED: 111,
  EHOSTUNREACH: 113,
} as const;
export type ErrnoName = keyof typeof errnoNumbers;

/** QP states (ibv_qp_state); the numbers of the device (abi QpState) differ from 4 on. */
export const QpStateVerb = {
  IBV_QPS_RESET: 0,
  IBV_QPS_INIT: 1,
  IBV_QPS_RTR: 2,
  IBV_QPS_RTS: 3,
  IBV_QPS_SQD: 4,
  IBV_QPS_SQE: 5,
  IBV_QPS_ERR: 6,
} as const;
export type QpStateVerb = (typeof QpStateVerb)[keyof typeof QpStateVerb];

/** QP types (ibv_qp_type). */
export const QpTypeVerb = {
  IBV_QPT_RC: 2,
  IBV_QPT_UC: 3,
  IBV_QPT_UD: 4,
  IBV_QPT_XRC_SEND: 9,
  IBV_QPT_XRC_RECV: 10,
} as const;
export type QpTypeVerb = (typeof QpTypeVerb)[keyof typeof QpTypeVerb];

/** Types of shared receive queues (ibv_srq_type). */
export const SrqTypeVerb = { IBV_SRQT_BASIC: 0, IBV_SRQT_XRC: 1 } as const;
export type SrqTypeVerb = (typeof SrqTypeVerb)[keyof typeof SrqTypeVerb];

/** Flags with which the XRC domain of a file is opened, numbered like those of open(2) in Linux on x86. */
export const OpenFlag = { O_CREAT: 0o100, O_EXCL: 0o200 } as const;
export type OpenFlag = (typeof OpenFlag)[keyof typeof OpenFlag];

/** MTU codes (ibv_mtu). */
export const MtuVerb = {
  IBV_MTU_256: 1,
  IBV_MTU_512: 2,
  IBV_MTU_1024: 3,
  IBV_MTU_2048: 4,
  IBV_MTU_4096: 5,
} as const;
export type MtuVerb = (typeof MtuVerb)[keyof typeof MtuVerb];

/** Access rights of a region or a QP (ibv_access_flags), as a mask. */
export const AccessFlag = {
  IBV_ACCESS_LOCAL_WRITE: 1,
  IBV_ACCESS_REMOTE_WRITE: 2,
  IBV_ACCESS_REMOTE_READ: 4,
  IBV_ACCESS_REMOTE_ATOMIC: 8,
  IBV_ACCESS_MW_BIND: 16,
  /** The first byte of the window has address 0. */
  IBV_ACCESS_ZERO_BASED: 32,
  IBV_ACCESS_ON_DEMAND: 64,
} as const;
export type AccessFlag = (typeof AccessFlag)[keyof typeof AccessFlag];

/** Which attributes modifyQp takes (ibv_qp_attr_mask). */
export const QpAttrMask = {
  IBV_QP_STATE: 1 << 0,
  IBV_QP_CUR_STATE: 1 << 1,
  IBV_QP_EN_SQD_ASYNC_NOTIFY: 1 << 2,
  IBV_QP_ACCESS_FLAGS: 1 << 3,
  IBV_QP_PKEY_INDEX: 1 << 4,
  IBV_QP_PORT: 1 << 5,
  IBV_QP_QKEY: 1 << 6,
  IBV_QP_AV: 1 << 7,
  IBV_QP_PATH_MTU: 1 << 8,
  IBV_QP_TIMEOUT: 1 << 9,
  IBV_QP_RETRY_CNT: 1 << 10,
  IBV_QP_RNR_RETRY: 1 << 11,
  IBV_QP_RQ_PSN: 1 << 12,
  IBV_QP_MAX_QP_RD_ATOMIC: 1 << 13,
  IBV_QP_ALT_PATH: 1 << 14,
  IBV_QP_MIN_RNR_TIMER: 1 << 15,
  IBV_QP_SQ_PSN: 1 << 16,
  IBV_QP_MAX_DEST_RD_ATOMIC: 1 << 17,
  IBV_QP_PATH_MIG_STATE: 1 << 18,
  IBV_QP_CAP: 1 << 19,
  IBV_QP_DEST_QPN: 1 << 20,
} as const;
export type QpAttrMask = (typeof QpAttrMask)[keyof typeof QpAttrMask];

/** Which attributes modifySrq takes (ibv_srq_attr_mask). */
export const SrqAttrMask = { IBV_SRQ_MAX_WR: 1, IBV_SRQ_LIMIT: 2 } as const;
export type SrqAttrMask = (typeof SrqAttrMask)[keyof typeof SrqAttrMask];

/** Asynchronous events (ibv_event_type). */
export const AsyncEventType = {
  IBV_EVENT_CQ_ERR: 0,
  IBV_EVENT_QP_FATAL: 1,
  IBV_EVENT_QP_REQ_ERR: 2,
  IBV_EVENT_QP_ACCESS_ERR: 3,
  IBV_EVENT_COMM_EST: 4,
  IBV_EVENT_SQ_DRAINED: 5,
  IBV_EVENT_PATH_MIG: 6,
  IBV_EVENT_PATH_MIG_ERR: 7,
  IBV_EVENT_DEVICE_FATAL: 8,
  IBV_EVENT_PORT_ACTIVE: 9,
  IBV_EVENT_PORT_ERR: 10,
  IBV_EVENT_LID_CHANGE: 11,
  IBV_EVENT_PKEY_CHANGE: 12,
  IBV_EVENT_SM_CHANGE: 13,
  IBV_EVENT_SRQ_ERR: 14,
  IBV_EVENT_SRQ_LIMIT_REACHED: 15,
  IBV_EVENT_QP_LAST_WQE_REACHED: 16,
  IBV_EVENT_CLIENT_REREGISTER: 17,
  IBV_EVENT_GID_CHANGE: 18,
} as const;
export type AsyncEventType = (typeof AsyncEventType)[keyof typeof AsyncEventType];

/** Port states (ibv_port_state). */
export const PortStateVerb = {
  IBV_PORT_NOP: 0,
  IBV_PORT_DOWN: 1,
  IBV_PORT_INIT: 2,
  IBV_PORT_ARMED: 3,
  IBV_PORT_ACTIVE: 4,
} as const;
export type PortStateVerb = (typeof PortStateVerb)[keyof typeof PortStateVerb];

/** Link layer of a port (IBV_LINK_LAYER_…). */
export const LinkLayerVerb = {
  IBV_LINK_LAYER_UNSPECIFIED: 0,
  IBV_LINK_LAYER_INFINIBAND: 1,
  IBV_LINK_LAYER_ETHERNET: 2,
} as const;
export type LinkLayerVerb = (typeof LinkLayerVerb)[keyof typeof LinkLayerVerb];

/** The kind of a device (ibv_node_type). */
export const NodeTypeVerb = { IBV_NODE_CA: 1, IBV_NODE_RNIC: 4 } as const;
export type NodeTypeVerb = (typeof NodeTypeVerb)[keyof typeof NodeTypeVerb];

/** The transport of its connections (ibv_transport_type). */
export const TransportVerb = { IBV_TRANSPORT_IB: 0, IBV_TRANSPORT_IWARP: 1 } as const;
export type TransportVerb = (typeof TransportVerb)[keyof typeof TransportVerb];

/** Protocol of a GID's packets (ibv_gid_type). */
export const GidTypeVerb = {
  IBV_GID_TYPE_IB: 0,
  IBV_GID_TYPE_ROCE_V1: 1,
  IBV_GID_TYPE_ROCE_V2: 2,
} as const;
export type GidTypeVerb = (typeof GidTypeVerb)[keyof typeof GidTypeVerb];

/** An entry of a port's GID table (ibv_gid_entry). */
export interface GidEntry {
  /** 16 bytes. */
  readonly gid: Uint8Array;
  readonly gidIndex: number;
  readonly portNum: number;
  readonly gidType: GidTypeVerb;
}

/** Global route of packets (ibv_global_route). */
export interface GlobalRoute {
  /** 16 bytes. */
  readonly dgid: Uint8Array;
  readonly flowLabel: number;
  readonly sgidIndex: number;
  readonly hopLimit: number;
  readonly trafficClass: number;
}

/** Address of a peer (ibv_ah_attr). `grh` is used if isGlobal is 1. */
export interface AhAttr {
  readonly grh?: GlobalRoute;
  readonly dlid: number;
  readonly sl?: number;
  readonly srcPathBits?: number;
  readonly staticRate?: number;
  readonly isGlobal?: number;
  readonly portNum: number;
}

/** Queue capacities (ibv_qp_cap): as requested, and returned as granted. */
export interface QpCap {
  maxSendWr: number;
  maxRecvWr: number;
  maxSendSge: number;
  maxRecvSge: number;
  maxInlineData: number;
}

/** Attributes of a QP (ibv_qp_attr); the attribute mask says which ones are used. */
export interface QpAttr {
  qpState?: QpStateVerb;
  curQpState?: QpStateVerb;
  pathMtu?: MtuVerb;
  qkey?: number;
  rqPsn?: number;
  sqPsn?: number;
  destQpNum?: number;
  qpAccessFlags?: number;
  ahAttr?: AhAttr;
  pkeyIndex?: number;
  enSqdAsyncNotify?: number;
  sqDraining?: number;
  maxRdAtomic?: number;
  maxDestRdAtomic?: number;
  minRnrTimer?: number;
  portNum?: number;
  timeout?: number;
  retryCnt?: number;
  rnrRetry?: number;
}

/** Device limits (ibv_device_attr). */
export interface DeviceAttr {
  readonly fwVer: string;
  readonly nodeGuid: bigint;
  readonly sysImageGuid: bigint;
  /** 2^64 − 1: regions end at the end of the address space. */
  readonly maxMrSize: bigint;
  readonly pageSizeCap: number;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hwVer: number;
  readonly boardId: string;
  readonly maxQp: number;
  readonly maxQpWr: number;
  /** Mask of DeviceCapFlag. */
  readonly deviceCapFlags: number;
  readonly maxSge: number;
  /** Longest message that may be stored in its receive WQE (mlx4dv_query_device). */
  readonly maxInlRecvSz: number;
  /** Limit for a READ. */
  readonly maxSgeRd: number;
  readonly maxCq: number;
  readonly maxCqe: number;
  readonly maxMr: number;
  readonly maxPd: number;
  readonly maxQpRdAtom: number;
  readonly maxResRdAtom: number;
  readonly maxQpInitRdAtom: number;
  /** Atomicity: 0 none, 1 within the HCA, 2 also with the host's CPUs. */
  readonly atomicCap: number;
  /** The same for masked atomics (masked_atomic_cap of the kernel's attributes). */
  readonly maskedAtomicCap: number;
  readonly maxMcastGrp: number;
  readonly maxMcastQpAttach: number;
  readonly maxTotalMcastQpAttach: number;
  readonly maxAh: number;
  readonly maxSrq: number;
  readonly maxSrqWr: number;
  readonly maxSrqSge: number;
  readonly maxPkeys: number;
  readonly localCaAckDelay: number;
  /** Bits of a completion's time stamp, and the clock that counts it. */
  readonly completionTimestampMask: bigint;
  readonly hcaCoreClockKhz: number;
  /** Largest values of CQ moderation. */
  readonly maxCqModerationCount: number;
  readonly maxCqModerationPeriodUs: number;
  readonly physPortCnt: number;
}

/** Bits of deviceCapFlags (enum ibv_device_cap_flags), as far as this device has them. */
export const DeviceCapFlag = {
  BAD_PKEY_CNTR: 1 << 1,
  BAD_QKEY_CNTR: 1 << 2,
  CHANGE_PHY_PORT: 1 << 5,
  PORT_ACTIVE_EVENT: 1 << 10,
  SYS_IMAGE_GUID: 1 << 11,
  RC_RNR_NAK_GEN: 1 << 12,
  MEM_WINDOW: 1 << 17,
  XRC: 1 << 20,
  MEM_MGT_EXTENSIONS: 1 << 21,
  MEM_WINDOW_TYPE_2B: 1 << 24,
  RAW_IP_CSUM: 1 << 26,
} as const;
export type DeviceCapFlag = (typeof DeviceCapFlag)[keyof typeof DeviceCapFlag];

/** Types of memory windows (enum ibv_mw_type). */
export const MwType = { IBV_MW_TYPE_1: 1, IBV_MW_TYPE_2: 2 } as const;
export type MwType = (typeof MwType)[keyof typeof MwType];

/** State of a port (ibv_port_attr). */
export interface PortAttr {
  readonly state: PortStateVerb;
  readonly maxMtu: MtuVerb;
  readonly activeMtu: MtuVerb;
  readonly gidTblLen: number;
  readonly portCapFlags: number;
  readonly maxMsgSz: number;
  readonly badPkeyCntr: number;
  readonly qkeyViolCntr: number;
  readonly pkeyTblLen: number;
  readonly lid: number;
  readonly smLid: number;
  readonly lmc: number;
  readonly maxVlNum: number;
  readonly smSl: number;
  readonly subnetTimeout: number;
  readonly initTypeReply: number;
  /** Mask: 1 is 1x, 2 is 4x, 4 is 8x, 8 is 12x. */
  readonly activeWidth: number;
  /** 1 SDR, 2 DDR, 4 QDR, 8 FDR10, 16 FDR, 32 EDR. */
  readonly activeSpeed: number;
  readonly physState: number;
  readonly linkLayer: LinkLayerVerb;
}

/** Number of a kernel object of one open device; has no meaning elsewhere. */
export type Handle = number;

/** An asynchronous event as the kernel hands it out; `handle` is the object's, or the port number of a port event. */
export interface AsyncEventRecord {
  readonly eventType: AsyncEventType;
  readonly element: 'qp' | 'cq' | 'srq' | 'port' | 'device';
  readonly handle: Handle;
}
