/**
 * The words of connection management that programs, the library and the kernel share, and its system calls. One
 * {@link KernelEventChannel} is one open file of /dev/infiniband/rdma_cm; every ID belongs to a channel and ends with it.
 * Source: librdmacm rdma_cma.h, Linux include/uapi/rdma/rdma_user_cm.h.
 */
import type { Cpu } from './platform.ts';
import { type Handle, type QpAttr, type QpStateVerb, TransportVerb } from './uapi.ts';

/** Events (rdma_cm_event_type). */
export const RdmaCmEventType = {
  RDMA_CM_EVENT_ADDR_RESOLVED: 0,
  RDMA_CM_EVENT_ADDR_ERROR: 1,
  RDMA_CM_EVENT_ROUTE_RESOLVED: 2,
  RDMA_CM_EVENT_ROUTE_ERROR: 3,
  RDMA_CM_EVENT_CONNECT_REQUEST: 4,
  RDMA_CM_EVENT_CONNECT_RESPONSE: 5,
  RDMA_CM_EVENT_CONNECT_ERROR: 6,
  RDMA_CM_EVENT_UNREACHABLE: 7,
  RDMA_CM_EVENT_REJECTED: 8,
  RDMA_CM_EVENT_ESTABLISHED: 9,
  RDMA_CM_EVENT_DISCONNECTED: 10,
  RDMA_CM_EVENT_DEVICE_REMOVAL: 11,
  RDMA_CM_EVENT_TIMEWAIT_EXIT: 15,
} as const;
export type RdmaCmEventType = (typeof RdmaCmEventType)[keyof typeof RdmaCmEventType];

/** Supported port spaces (rdma_port_space). */
export const RdmaPortSpace = { RDMA_PS_TCP: 0x0106 } as const;
export type RdmaPortSpace = (typeof RdmaPortSpace)[keyof typeof RdmaPortSpace];

/** Longest private data of a program (bytes), by the message that carries them: IBTA 12.6, annex A11. */
export const privateDataMax = {
  [TransportVerb.IBV_TRANSPORT_IB]: { connect: 56, accept: 196, reject: 148 },
  /** MPA has room for 508 (RFC 6581, 9); the length of rdma_conn_param has 8 bits. */
  [TransportVerb.IBV_TRANSPORT_IWARP]: { connect: 255, accept: 255, reject: 255 },
} as const;

/** An address of IP and a port (sockaddr_in, sockaddr_in6). */
export interface SocketAddress {
  /** IPv4 or IPv6 as text; `0.0.0.0` and `::` are any of this host. */
  readonly sinAddr: string;
  /** 0 lets the kernel choose. */
  readonly sinPort: number;
}

/** Parameters of a connection (rdma_conn_param), as requested and as the peer sent them. */
export interface RdmaConnParam {
  readonly privateData: Uint8Array;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly flowControl: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly srq: number;
  readonly qpNum: number;
}

/** Defaults. */
export const noParameters: RdmaConnParam = {
  privateData: new Uint8Array(),
  responderResources: 0,
  initiatorDepth: 0,
  flowControl: 0,
  retryCount: 0,
  rnrRetryCount: 0,
  srq: 0,
  qpNum: 0,
};

/** An event as the kernel hands it out. */
export interface CmEventRecord {
  readonly event: RdmaCmEventType;
  readonly id: Handle;
  /** The listening ID of a CONNECT_REQUEST; -1 for other events. */
  readonly listenId: Handle;
  /** 0, a negative errno, or the reason of a REJECTED. */
  readonly status: number;
  /** Private data of requests, responses, rejections and established connections. */
  readonly conn: RdmaConnParam | undefined;
}

export interface IdAddresses {
  readonly src: SocketAddress;
  readonly dst: SocketAddress | undefined;
  /** 0 until the ID is bound to a device. */
  readonly portNum: number;
}

export interface KernelEventChannel {
  createId(cpu: Cpu, portSpace: number): Promise<Handle>;
  bindAddr(cpu: Cpu, id: Handle, address: SocketAddress): Promise<void>;
  resolveAddr(
    cpu: Cpu,
    id: Handle,
    src: SocketAddress | undefined,
    dst: SocketAddress,
    timeoutMs: number,
  ): Promise<void>;
  resolveRoute(cpu: Cpu, id: Handle, timeoutMs: number): Promise<void>;
  listen(cpu: Cpu, id: Handle, backlog: number): Promise<void>;
  connect(cpu: Cpu, id: Handle, param: RdmaConnParam): Promise<void>;
  /** Accepts a request if parameters are given; otherwise continues after a response, when the QP is ready. */
  accept(cpu: Cpu, id: Handle, param: RdmaConnParam | undefined): Promise<void>;
  reject(cpu: Cpu, id: Handle, privateData: Uint8Array): Promise<void>;
  disconnect(cpu: Cpu, id: Handle): Promise<void>;
  /** Attributes for modifyQp that move the ID's QP to a state. */
  initQpAttr(
    cpu: Cpu,
    id: Handle,
    state: QpStateVerb,
  ): Promise<{ readonly attr: QpAttr; readonly mask: number }>;
  queryAddresses(cpu: Cpu, id: Handle): Promise<IdAddresses>;
  /** Blocks until an event is present; undefined after `timeoutPs`. */
  getEvent(cpu: Cpu, timeoutPs?: number): Promise<CmEventRecord | undefined>;
  destroyId(cpu: Cpu, id: Handle): Promise<void>;
  /** EBUSY while it has IDs. */
  destroy(cpu: Cpu): Promise<void>;
  /** The process ends: its IDs are destroyed in their present state. */
  close(cpu: Cpu): Promise<void>;
}
