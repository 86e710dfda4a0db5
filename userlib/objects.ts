/**
 * The objects of the library, as a program holds them (struct ibv_context, ibv_pd, ibv_mr, ibv_cq, ibv_qp, ibv_srq …). Fields
 * that libibverbs has keep its names in camelCase; the other fields are internal.
 *
 * An object belongs to the thread that made it. Another thread takes it over by setting its `cpu`; two threads must not use the
 * same object at the same time, as with libibverbs without locks.
 */
import type {
  AhAttr,
  ContextInfo,
  Handle,
  KernelContext,
  KernelDevice,
  MwType,
  NodeTypeVerb,
  QpStateVerb,
  QpTypeVerb,
  TransportVerb,
} from '../driver/index.ts';
import type { CompletionRing } from './completion-ring.ts';
import type { VerbsCpu, VerbsPlatform } from './platform.ts';
import type { RecordPool } from './queue-memory.ts';
import type { ReceiveRing } from './receive-ring.ts';
import type { SendRing } from './send-ring.ts';
import type { SharedRing } from './shared-ring.ts';

/** A device that can be opened. */
export interface IbvDevice {
  readonly name: string;
  readonly guid: bigint;
  readonly nodeType: NodeTypeVerb;
  readonly transportType: TransportVerb;
  /** @internal */
  readonly kernel: KernelDevice;
  /** @internal */
  readonly platform: VerbsPlatform;
}

/** An open device. */
export interface IbvContext {
  readonly device: IbvDevice;
  cpu: VerbsCpu;
  readonly numCompVectors: number;
  /** @internal */
  readonly platform: VerbsPlatform;
  /** @internal */
  readonly kernel: KernelContext;
  /** @internal */
  readonly info: ContextInfo;
  /** @internal QPs by number, in pages of 256. */
  readonly qpTable: QpTable;
  /** @internal */
  readonly cqRecords: RecordPool;
  /** @internal */
  readonly receiveRecords: RecordPool;
  /** @internal Objects by kernel handle, for events. */
  readonly cqs: Map<Handle, IbvCq>;
  /** @internal */
  readonly qps: Map<Handle, IbvQp | IbvTargetQp>;
  /** @internal */
  readonly srqs: Map<Handle, IbvSrq>;
  /** @internal SRQs for XRC by number, for their completions. */
  readonly xrcSrqs: Map<number, IbvSrq>;
  /** @internal Half of the BlueFlame register that the next post uses: 0 or 1. */
  blueFlameHalf: number;
  /** @internal Removes the exit hook. */
  forgetExit: () => void;
}

export interface IbvPd {
  readonly context: IbvContext;
  readonly handle: Handle;
  /** @internal */
  readonly pdn: number;
}

export interface IbvMr {
  readonly context: IbvContext;
  pd: IbvPd;
  addr: number;
  length: number;
  readonly handle: Handle;
  readonly lkey: number;
  readonly rkey: number;
}

/** A memory window (ibv_mw). */
export interface IbvMw {
  readonly context: IbvContext;
  readonly pd: IbvPd;
  readonly handle: Handle;
  readonly type: MwType;
  /** Key: for type 1 as the last bind left it; for type 2 the program owns the low byte. */
  rkey: number;
}

/** Region and range to which a window is bound (ibv_mw_bind_info). `length` 0 unbinds a window of type 1. */
export interface IbvMwBindInfo {
  mr: IbvMr;
  addr: number;
  length: number;
  /** Mask of IBV_ACCESS_REMOTE_… and IBV_ACCESS_ZERO_BASED. */
  mwAccessFlags: number;
}

/** A bind of a window of type 1 (ibv_mw_bind). */
export interface IbvMwBind {
  wrId: number;
  sendFlags: number;
  bindInfo: IbvMwBindInfo;
}

/** An XRC domain (ibv_xrcd). */
export interface IbvXrcd {
  readonly context: IbvContext;
  readonly handle: Handle;
}

export interface IbvCompChannel {
  readonly context: IbvContext;
  readonly handle: Handle;
  cpu: VerbsCpu;
}

export interface IbvCq {
  readonly context: IbvContext;
  readonly channel: IbvCompChannel | null;
  readonly cqContext: unknown;
  readonly handle: Handle;
  /** Entries it holds. */
  cqe: number;
  cpu: VerbsCpu;
  /** @internal */
  readonly ring: CompletionRing;
  /** @internal Delivered events that were not acknowledged yet. */
  eventsUnacked: number;
}

/** Values that queryRtValuesEx reads (ibv_values_ex). */
export interface IbvValuesEx {
  /** Mask of IBV_VALUES_MASK_…: as requested, and returned as read. */
  compMask: number;
  /** Cycles of the HCA's core clock since power-on; libmlx4 returns them as tv_nsec of raw_clock. */
  rawClock: number;
}

/** A CQ that is polled entry by entry (ibv_cq_ex). */
export interface IbvCqEx extends IbvCq {
  /** ID of the entry dequeued last. */
  wrId: number;
  status: number;
  /** @internal For the entry dequeued last, in a CQ with timestamps. */
  timestamp: number;
  /** @internal */
  readonly current: IbvWc;
  /** @internal Its IBV_WC_EX_WITH_… flags at creation. */
  readonly wcFlags: number;
  /** @internal Between start_poll and end_poll. */
  isPolling: boolean;
  /** @internal Cycles of the entries dequeued since start_poll. */
  polledCycles: number;
}

export interface IbvSrq {
  readonly context: IbvContext;
  readonly srqContext: unknown;
  readonly pd: IbvPd;
  readonly handle: Handle;
  cpu: VerbsCpu;
  /** Number of an XRC SRQ that initiators use, and the CQ of its receives. */
  readonly xrc: { readonly srqNum: number; readonly cq: IbvCq; readonly xrcd: IbvXrcd } | null;
  /** @internal */
  readonly ring: SharedRing;
}

/** An XRC target (a QP of type IBV_QPT_XRC_RECV): its messages consume WQEs of SRQs. */
export interface IbvTargetQp {
  readonly context: IbvContext;
  readonly qpContext: unknown;
  readonly xrcd: IbvXrcd;
  readonly handle: Handle;
  readonly qpNum: number;
  readonly qpType: typeof QpTypeVerb.IBV_QPT_XRC_RECV;
  state: QpStateVerb;
  cpu: VerbsCpu;
}

export interface IbvQp {
  readonly context: IbvContext;
  readonly qpContext: unknown;
  readonly pd: IbvPd;
  readonly sendCq: IbvCq;
  readonly recvCq: IbvCq;
  readonly srq: IbvSrq | null;
  readonly handle: Handle;
  readonly qpNum: number;
  readonly qpType: QpTypeVerb;
  readonly sqSigAll: number;
  /** The library's own view; queryQp reads the device's. */
  state: QpStateVerb;
  cpu: VerbsCpu;
  /** @internal */
  readonly sendRing: SendRing;
  /** @internal Null with an SRQ, and for an XRC initiator. */
  readonly receiveRing: ReceiveRing | null;
}

export interface IbvAh {
  readonly context: IbvContext;
  readonly pd: IbvPd;
  readonly attr: AhAttr;
  /** @internal The 32 bytes of the address vector. */
  readonly addressVector: Uint8Array;
  /** @internal 6 bytes, if the port is Ethernet. */
  readonly destinationMac?: Uint8Array | undefined;
}

/** QPs by number: the upper bits find a page, the low eight the entry. */
export class QpTable {
  private readonly pages: (IbvQp | undefined)[][] = [];
  private readonly mask: number;

  /** `size` is the size of the device's table, a power of two. */
  constructor(size: number) {
    this.mask = size - 1;
    for (let page = 0; page < size >>> 8; page++) this.pages.push([]);
  }

  get(qpn: number): IbvQp | undefined {
    return this.pages[(qpn & this.mask) >>> 8]![qpn & 0xff];
  }

  set(qpn: number, qp: IbvQp | undefined): void {
    this.pages[(qpn & this.mask) >>> 8]![qpn & 0xff] = qp;
  }
}

/** A buffer of a work request (ibv_sge). */
export interface IbvSge {
  addr: number;
  length: number;
  lkey: number;
}

/** A send work request (ibv_send_wr). Opcodes use `wr.rdma`, `wr.atomic` or `wr.ud` as in libibverbs. */
export interface IbvSendWr {
  wrId: number;
  next?: IbvSendWr | null;
  sgList: readonly IbvSge[];
  numSge: number;
  opcode: number;
  sendFlags: number;
  /** Immediate data as a number; sent in network order. */
  immData?: number;
  /** Key to invalidate, for LOCAL_INV and SEND_WITH_INV. */
  invalidateRkey?: number;
  /** The window and its new key, for BIND_MW. */
  bindMw?: { mw: IbvMw; rkey: number; bindInfo: IbvMwBindInfo };
  wr?: {
    /** A peer's address may have all 64 bits, as those of Linux's kernel do: as a bigint. */
    rdma?: { remoteAddr: number | bigint; rkey: number };
    atomic?: {
      remoteAddr: number | bigint;
      compareAdd: bigint;
      swap: bigint;
      rkey: number;
      /**
       * Masks of masked atomics: the mask of compared bits, or the highest bit of each field; and the mask of replaced
       * bits.
       */
      compareAddMask?: bigint;
      swapMask?: bigint;
    };
    ud?: { ah: IbvAh; remoteQpn: number; remoteQkey: number };
  };
  /** The peer's SRQ, for an XRC initiator. */
  qpType?: { xrc: { remoteSrqn: number } };
}

/** A receive work request (ibv_recv_wr). */
export interface IbvRecvWr {
  wrId: number;
  next?: IbvRecvWr | null;
  sgList: readonly IbvSge[];
  numSge: number;
}

/** Position of a failed post: the caller's own object, filled on error. Earlier work requests are posted. */
export interface BadWr<T> {
  wr: T | null;
  /** The segment's index in the list. */
  index: number;
}

/** A work completion (struct ibv_wc); the caller owns and reuses them. */
export class IbvWc {
  wrId = 0;
  status = 0;
  opcode = 0;
  vendorErr = 0;
  byteLen = 0;
  /** Immediate data, as a number; valid with IBV_WC_WITH_IMM. */
  immData = 0;
  qpNum = 0;
  srcQp = 0;
  wcFlags = 0;
  pkeyIndex = 0;
  slid = 0;
  sl = 0;
  dlidPathBits = 0;
  /** Counter of the WQE that completed, from the CQE; not part of libibverbs. */
  wqeCounter = 0;
}
