/**
 * The system calls of the driver: what a verbs library may ask of the kernel. One {@link KernelContext} is one open
 * device file of one process; every object belongs to the context that made it, and dies with it.
 *
 * Each call takes the thread that makes it, and rejects with a KernelError (`code`, `errno`) that leaves everything as
 * it was. Queue memory and doorbell records are the process's own pages: the kernel pins them and gives their addresses to the device.
 */
import type { Cpu, ProcessMemory } from './platform.ts';
import type { KernelEventChannel } from './rdma-cm.ts';
import type {
  AhAttr,
  AsyncEventRecord,
  DeviceAttr,
  GidEntry,
  Handle,
  LinkLayerVerb,
  MwType,
  PortAttr,
  QpAttr,
  QpCap,
  QpTypeVerb,
  SrqAttrMask,
  TransportVerb,
} from './uapi.ts';

export type { Cpu, ProcessMemory } from './platform.ts';

/** Attributes of an open device that the library needs (mlx4's alloc_ucontext response, and the addresses of its pages). */
export interface ContextInfo {
  readonly deviceName: string;
  /** Entries of the QP table: a library's table of QPs has the same size. */
  readonly qpTableSize: number;
  /** Doorbell page of this context: number, and address in the process and on the bus. */
  readonly uarPage: number;
  readonly uarUserAddress: number;
  readonly uarBusAddress: number;
  /** Size of one BlueFlame register, whose halves are used in turn. 0: the device has none. */
  readonly blueFlameRegisterBytes: number;
  readonly blueFlameBusAddress: number;
  /** Bus address of the two dwords of the core clock, the high one first; -1 if the device does not show them to programs. */
  readonly coreClockBusAddress: number;
  /** Single requests always use BlueFlame, as in MLNX_OFED's library; otherwise only short ones, as in the upstream library. */
  readonly isBlueFlameForAll?: boolean;
  readonly cqeBytes: number;
  /** Completion vectors a CQ may choose from: 0 … count − 1. */
  readonly completionVectors: number;
  /** One for each port. */
  readonly linkLayers: readonly LinkLayerVerb[];
  readonly maxQpWr: number;
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxSrqWr: number;
  readonly maxSrqSge: number;
  readonly maxCqe: number;
}

export interface RegisterRegion {
  readonly pd: Handle;
  readonly address: number;
  readonly lengthBytes: number;
  /** Mask of AccessFlag. */
  readonly access: number;
}

export interface RegionKeys {
  readonly handle: Handle;
  readonly lkey: number;
  readonly rkey: number;
}

/** Changes of a region: -1 or left out means no change. */
export interface ReregisterRegion {
  readonly region: Handle;
  readonly pd: Handle;
  readonly access: number | undefined;
  readonly translation: { readonly address: number; readonly lengthBytes: number } | undefined;
}

export interface CreateCq {
  /** Entries of the ring: a power of two. */
  readonly entries: number;
  readonly bufferAddress: number;
  readonly doorbellRecordAddress: number;
  /** Completion channel, or -1. */
  readonly channel: Handle;
  readonly completionVector: number;
  /** Successful completions carry the core clock (IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION). */
  readonly hasTimestamps?: boolean;
}

export interface ResizeCq {
  readonly cq: Handle;
  readonly entries: number;
  readonly bufferAddress: number;
}

export interface CreateSrq {
  readonly pd: Handle;
  /** Domain of an XRC SRQ, and the CQ where its receives complete; both -1 for any other SRQ. */
  readonly xrcd: Handle;
  readonly cq: Handle;
  /** WQEs of the ring: a power of two. */
  readonly wqeCount: number;
  readonly wqeStrideBytes: number;
  readonly bufferAddress: number;
  readonly doorbellRecordAddress: number;
}

export interface CreateQp {
  readonly pd: Handle;
  readonly type: QpTypeVerb;
  readonly sendCq: Handle;
  readonly receiveCq: Handle;
  /** Shared receive queue, or -1. */
  readonly srq: Handle;
  readonly logSendWqes: number;
  readonly logSendStride: number;
  /** 0 WQEs with an SRQ. */
  readonly receiveWqes: number;
  readonly logReceiveStride: number;
  /** Longest message in bytes that may be stored in its receive WQE, which has room for it; 0 or left out: none. */
  readonly inlineReceiveBytes?: number;
  readonly bufferAddress: number;
  readonly bufferBytes: number;
  /** -1 without a receive queue. */
  readonly doorbellRecordAddress: number;
  readonly cap: QpCap;
  /** Multicast packets that the QP has sent are not looped back to it. */
  readonly blocksLoopback?: boolean;
}

export interface SrqAttr {
  readonly maxWr: number;
  readonly maxSge: number;
  readonly srqLimit: number;
}

/** Number of objects of a context, or of the whole driver; all 0 after removal. */
export interface ResourceCounts {
  readonly contexts: number;
  readonly pds: number;
  readonly regions: number;
  readonly cqs: number;
  readonly srqs: number;
  readonly qps: number;
  readonly channels: number;
  readonly uars: number;
  readonly mttEntries: number;
  readonly icmChunks: number;
}

export interface KernelContext {
  readonly info: ContextInfo;
  /** False after the device died or the file was closed: then only destroying and closing succeed. */
  readonly isUsable: boolean;
  queryDevice(cpu: Cpu): Promise<DeviceAttr>;
  queryPort(cpu: Cpu, port: number): Promise<PortAttr>;
  /** @returns 16 bytes */
  queryGid(cpu: Cpu, port: number, index: number): Promise<Uint8Array>;
  queryPkey(cpu: Cpu, port: number, index: number): Promise<number>;
  /** Sets P_Keys as a subnet manager of this host does through umad. */
  setPkeys(cpu: Cpu, port: number, index: number, pkeys: readonly number[]): Promise<void>;
  /** The entries of a port's GID table that are not empty. */
  queryGidTable(cpu: Cpu, port: number): Promise<GidEntry[]>;
  /** Resolves what an address needs besides its own fields: on Ethernet the MAC, 6 bytes; undefined on InfiniBand. */
  createAh(cpu: Cpu, attr: AhAttr): Promise<Uint8Array | undefined>;

  allocPd(cpu: Cpu): Promise<{ readonly handle: Handle; readonly pdn: number }>;
  deallocPd(cpu: Cpu, pd: Handle): Promise<void>;
  regMr(cpu: Cpu, region: RegisterRegion): Promise<RegionKeys>;
  /** The keys stay. A failure may leave a region that can only be deregistered. */
  reregMr(cpu: Cpu, request: ReregisterRegion): Promise<void>;
  deregMr(cpu: Cpu, region: Handle): Promise<void>;
  allocMw(cpu: Cpu, pd: Handle, type: MwType): Promise<{ readonly handle: Handle; readonly rkey: number }>;
  deallocMw(cpu: Cpu, window: Handle): Promise<void>;

  /** The XRC domain of a file of the host, which other processes may open, too; -1 for a private one. `flags` of OpenFlag. */
  openXrcd(cpu: Cpu, file: number, flags: number): Promise<Handle>;
  closeXrcd(cpu: Cpu, xrcd: Handle): Promise<void>;

  createCompletionChannel(cpu: Cpu): Promise<Handle>;
  destroyCompletionChannel(cpu: Cpu, channel: Handle): Promise<void>;
  /** Blocks until a CQ of the channel has an event. @returns the CQ's handle, or -1 after `timeoutPs`. */
  getCqEvent(cpu: Cpu, channel: Handle, timeoutPs?: number): Promise<Handle>;
  /** Blocks until an asynchronous event occurs; undefined after `timeoutPs`. */
  getAsyncEvent(cpu: Cpu, timeoutPs?: number): Promise<AsyncEventRecord | undefined>;

  createCq(cpu: Cpu, request: CreateCq): Promise<{ readonly handle: Handle; readonly cqn: number }>;
  resizeCq(cpu: Cpu, request: ResizeCq): Promise<void>;
  /** Moderates its events: one after `count` completions or `periodUs` µs. */
  modifyCq(cpu: Cpu, cq: Handle, count: number, periodUs: number): Promise<void>;
  /** @returns how many of its completion events were delivered */
  destroyCq(cpu: Cpu, cq: Handle): Promise<number>;

  createSrq(cpu: Cpu, request: CreateSrq): Promise<{ readonly handle: Handle; readonly srqn: number }>;
  modifySrq(cpu: Cpu, srq: Handle, attr: Partial<SrqAttr>, mask: SrqAttrMask | number): Promise<void>;
  /** Only `srqLimit` comes from the device; the rest is as created. */
  querySrq(cpu: Cpu, srq: Handle): Promise<SrqAttr>;
  destroySrq(cpu: Cpu, srq: Handle): Promise<void>;

  createQp(cpu: Cpu, request: CreateQp): Promise<{ readonly handle: Handle; readonly qpn: number }>;
  /** An XRC target. */
  createTargetQp(cpu: Cpu, xrcd: Handle): Promise<{ readonly handle: Handle; readonly qpn: number }>;
  /** Another handle of an XRC target of the domain, regardless of its creator. `type` must be that of an XRC target. */
  openQp(cpu: Cpu, xrcd: Handle, type: number, qpn: number): Promise<Handle>;
  modifyQp(cpu: Cpu, qp: Handle, attr: QpAttr, mask: number): Promise<void>;
  queryQp(cpu: Cpu, qp: Handle): Promise<QpAttr>;
  destroyQp(cpu: Cpu, qp: Handle): Promise<void>;
  /** `gid`: 16 bytes. The LID is used only on InfiniBand. */
  attachMcast(cpu: Cpu, qp: Handle, gid: Uint8Array, lid: number): Promise<void>;
  detachMcast(cpu: Cpu, qp: Handle, gid: Uint8Array, lid: number): Promise<void>;

  /** Destroys everything the process still has, users before the objects they depend on. */
  close(cpu: Cpu): Promise<void>;
}

/** One device the kernel drives. */
export interface KernelDevice {
  readonly name: string;
  /** False while it is away or being restarted: it is then in no device list, and has no GUID. */
  readonly isProbed: boolean;
  readonly nodeGuid: bigint;
  readonly transport: TransportVerb;
  openDevice(cpu: Cpu, process: ProcessMemory): Promise<KernelContext>;
  /** Opens an event channel of connection management (rdma_create_event_channel). */
  openEventChannel(cpu: Cpu): Promise<KernelEventChannel>;
  resourceCounts(): ResourceCounts;
}
