/**
 * The seam between the IDs of rdma_cm and the network that connects them: the IBTA's CM by MADs (connection-manager.ts), or
 * iWARP's by TCP and MPA (iwarp-connector.ts), as Linux's cma.c stands above ib_cm and iw_cm.
 */
import type { Cpu } from '../platform.ts';
import type { privateDataMax, RdmaConnParam, SocketAddress } from '../rdma-cm.ts';
import type { QpAttr, QpStateVerb, TransportVerb } from '../uapi.ts';
import type { Path } from './path.ts';

export type Side = 'active' | 'passive';

/** The parameters that both sides exchange. */
export interface ConnectionParameters {
  readonly qpn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly flowControl: number;
  /** Only the active side sends the two counts. */
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly srq: number;
  readonly privateData: Uint8Array;
}

/** Notified of what happens to a connection. None of these may wait. */
export interface ConnectionOwner {
  /** The peer has accepted, and the program has to make its QP ready. */
  replied(cpu: Cpu, reply: RdmaConnParam): void;
  /** @param conn the peer's parameters, where no `replied` brought them */
  established(cpu: Cpu, conn?: RdmaConnParam): void;
  /** @param reason of the IBTA's REJ, or a negative errno */
  rejected(cpu: Cpu, reason: number, privateData: Uint8Array): void;
  /** No answer after all retries. */
  unreachable(cpu: Cpu): void;
  /** The attempt failed on this side. @param errno positive */
  failed(cpu: Cpu, errno: number): void;
  disconnected(cpu: Cpu): void;
  timewaitEnded(cpu: Cpu): void;
}

/** The addresses of a connection. */
export interface ConnectionAddresses {
  readonly src: SocketAddress;
  readonly dst: SocketAddress;
}

/** The attributes of one transition of a QP. */
export interface QpAttributes {
  readonly attr: QpAttr;
  readonly mask: number;
}

/** A connection as an ID uses it. */
export interface IdConnection {
  readonly side: Side;
  readonly path: Path;
  /** Undefined when the program has released it. */
  owner: ConnectionOwner | undefined;
  /** The peer has replied, and the program has not said that it is ready. */
  readonly awaitsProgram: boolean;
  /** Asks the peer: of the active side. */
  connect(cpu: Cpu, serviceId: bigint, addresses: ConnectionAddresses, own: ConnectionParameters): void;
  /** The passive program accepts. */
  reply(cpu: Cpu, own: ConnectionParameters): void;
  /** The active program's QP is ready to send. */
  readyToUse(cpu: Cpu): void;
  reject(cpu: Cpu, privateData: Uint8Array): void;
  /** Either program ends the connection. @returns whether there was one to end */
  disconnect(cpu: Cpu): boolean;
  /** The program is gone, or wants nothing more of it. */
  abandon(cpu: Cpu): void;
  /** Attributes that take the ID's QP to a state (ib_cm_init_qp_attr, iw_cm_init_qp_attr). @throws KernelError EINVAL */
  qpAttributes(state: QpStateVerb): QpAttributes;
}

/** A request of a peer. */
export interface IncomingRequest {
  /** Address of this host that it names. */
  readonly ownAddress: string;
  readonly peer: SocketAddress;
  /** As this side sees it: its resources are the peer's depth. */
  readonly conn: RdmaConnParam;
}

/** Listens at a service ID. It must not wait. @template C the connections of its network */
export interface CmListener<C extends IdConnection = IdConnection> {
  /** A new request. @returns 'taken', 'full' to have the peer ask again, or the reason for which it is refused */
  requested(cpu: Cpu, request: IncomingRequest, connection: C): 'taken' | 'full' | number;
}

/** Messages and connections since the device was brought up. */
export interface ConnectorCounts {
  readonly sent: number;
  readonly received: number;
  /** Messages of a class without a consumer. */
  readonly unclaimed: number;
  readonly failed: number;
  /** Too many to wait for room in the send queue. */
  readonly overflowed: number;
  /** In any state. */
  readonly connections: number;
  /** Messages that had no effect, by reason. */
  readonly dropped: Readonly<Record<CmDrop, number>>;
}

/** Reasons for which a message has no effect, or is only answered again. */
export type CmDrop =
  | 'malformed'
  | 'unmatched'
  | 'unexpected'
  | 'duplicate'
  | 'stale'
  | 'backlogFull'
  | 'noListener';

/** Largest values of the parameters of rdma_connect and rdma_accept. */
export interface ParameterLimits {
  readonly privateDataBytes: (typeof privateDataMax)[keyof typeof privateDataMax];
  readonly responderResources: number;
  readonly initiatorDepth: number;
}

/** The connections of a device. */
export interface Connector {
  readonly transport: TransportVerb;
  readonly limits: ParameterLimits;
  /** Attributes with which a QP goes to INIT before its ID has a connection. */
  readonly initAttributes: QpAttributes;
  readonly counts: ConnectorCounts;
  newConnection(path: Path): IdConnection;
  /** Has the device take requests for a service ID's listener; returns when it does. @throws KernelError when it cannot */
  listen(cpu: Cpu, serviceId: bigint): Promise<void>;
  /** The service ID has no listener any longer. */
  stopListening(serviceId: bigint): void;
  /** The device is gone: nothing is sent, no timer runs, no connection is left. @param notify called then, before what it held is given back */
  close(cpu: Cpu, notify: () => void): Promise<void>;
}
