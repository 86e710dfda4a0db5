/**
 * One ID of rdma_cm: from an address to a connection, by the steps that programs take.
 *
 *   Idle ─bind─► Bound ─listen─► Listening ── request ──► a new ID, Requested ─accept─► Connecting ─► Connected
 *   Idle ─resolveAddr─► AddrResolved ─resolveRoute─► RouteResolved ─connect─► Connecting ─response─► Connected
 *   Connected ─disconnect, or the peer does─► Disconnected;  rejected, unreachable ─► Disconnected
 *
 * Source: Linux 6.1, drivers/infiniband/core/cma.c and ucma.c.
 */

import { mask24 } from '../../base/index.ts';
import { require, requireWithin } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import {
  type CmEventRecord,
  RdmaCmEventType as Event,
  noParameters,
  type RdmaConnParam,
  type SocketAddress,
} from '../rdma-cm.ts';
import { errnoNumbers, type Handle, QpStateVerb } from '../uapi.ts';
import type {
  ConnectionOwner,
  ConnectionParameters,
  Connector,
  IdConnection,
  ParameterLimits,
  QpAttributes,
} from './connector.ts';
import type { Path } from './path.ts';

export type RdmaIdState =
  | 'Idle'
  | 'Bound'
  | 'Listening'
  | 'AddrResolving'
  | 'AddrResolved'
  | 'RouteResolving'
  | 'RouteResolved'
  | 'Requested'
  | 'Connecting'
  | 'Connected'
  | 'Disconnected';

export type Notify = (event: CmEventRecord) => void;

/** The values of rdma_conn_param, checked as the messages can carry them and the connector allows. */
function parametersOf(
  param: RdmaConnParam,
  message: 'connect' | 'accept',
  limits: ParameterLimits,
): ConnectionParameters {
  requireWithin('qpNum', param.qpNum, 0, mask24);
  requireWithin('responderResources', param.responderResources, 0, limits.responderResources);
  requireWithin('initiatorDepth', param.initiatorDepth, 0, limits.initiatorDepth);
  requireWithin('flowControl', param.flowControl, 0, 1);
  requireWithin('retryCount', param.retryCount, 0, 7);
  requireWithin('rnrRetryCount', param.rnrRetryCount, 0, 7);
  requireWithin('srq', param.srq, 0, 1);
  requireWithin('privateDataLen', param.privateData.length, 0, limits.privateDataBytes[message]);
  return { ...param, qpn: param.qpNum, privateData: Uint8Array.from(param.privateData) };
}

export class RdmaId implements ConnectionOwner {
  readonly handle: Handle;
  state: RdmaIdState = 'Idle';
  src: SocketAddress | undefined;
  dst: SocketAddress | undefined;
  destinationGid: Uint8Array | undefined;
  path: Path | undefined;
  /** Port that it holds; -1 for the ID of a request, which uses its listener's. */
  ownPort = -1;
  connection: IdConnection | undefined;
  /** Service ID at which it listens. */
  serviceId = -1n;
  /** Requests it may still accept before the program fetches one; each fetch raises it. */
  backlog = 0;
  readonly #notify: Notify;
  readonly #network: Pick<Connector, 'limits' | 'initAttributes'>;

  constructor(handle: Handle, notify: Notify, network: Pick<Connector, 'limits' | 'initAttributes'>) {
    this.handle = handle;
    this.#notify = notify;
    this.#network = network;
  }

  /** Checks that the ID is in one of these states. @throws KernelError EINVAL */
  expect(...states: readonly RdmaIdState[]): void {
    require(states.includes(this.state), `the ID is ${this.state}, expected ${states.join(' or ')}`);
  }

  event(event: Event, status = 0, conn?: RdmaConnParam, listenId: Handle = -1): void {
    this.#notify({ event, id: this.handle, listenId, status, conn });
  }

  /** Handles the result of resolveAddr: a neighbour's answer, or an errno. If the device was removed, the ID gets another event. */
  addressFound(outcome: Uint8Array | number): void {
    if (this.state !== 'AddrResolving' || outcome === errnoNumbers.ENODEV) return;
    if (typeof outcome === 'number') {
      this.state = 'Bound';
      return this.event(Event.RDMA_CM_EVENT_ADDR_ERROR, -outcome);
    }
    this.destinationGid = outcome;
    this.state = 'AddrResolved';
    this.event(Event.RDMA_CM_EVENT_ADDR_RESOLVED);
  }

  /** Handles the result of resolveRoute's query: the path, or an errno. */
  routeFound(outcome: Path | number): void {
    if (typeof outcome === 'number') {
      this.state = 'AddrResolved';
      return this.event(Event.RDMA_CM_EVENT_ROUTE_ERROR, -outcome);
    }
    this.path = outcome;
    this.state = 'RouteResolved';
    this.event(Event.RDMA_CM_EVENT_ROUTE_RESOLVED);
  }

  connect(cpu: Cpu, serviceId: bigint, param: RdmaConnParam, make: (path: Path) => IdConnection): void {
    const own = parametersOf(param, 'connect', this.#network.limits);
    const connection = make(this.path!);
    this.connection = connection;
    connection.owner = this;
    this.state = 'Connecting';
    connection.connect(cpu, serviceId, { src: this.src!, dst: this.dst! }, own);
  }

  accept(cpu: Cpu, param: RdmaConnParam | undefined): void {
    if (param === undefined) {
      require(this.connection?.side === 'active', 'a request is accepted with parameters');
      this.expect('Connecting');
      require(this.connection.awaitsProgram, 'the peer has not answered');
      this.connection.readyToUse(cpu);
      return;
    }
    const own = parametersOf(param, 'accept', this.#network.limits);
    this.expect('Requested');
    this.state = 'Connecting';
    this.connection?.reply(cpu, own);
  }

  reject(cpu: Cpu, privateData: Uint8Array): void {
    requireWithin('privateDataLen', privateData.length, 0, this.#network.limits.privateDataBytes.reject);
    this.expect('Requested', 'Connecting');
    this.state = 'Disconnected';
    this.connection?.reject(cpu, privateData);
  }

  disconnect(cpu: Cpu): void {
    this.expect('Connecting', 'Connected', 'Disconnected');
    const hasEnded = this.connection?.disconnect(cpu) ?? false;
    require(hasEnded || this.state === 'Disconnected', 'the ID has no connection yet');
  }

  replied(_cpu: Cpu, reply: RdmaConnParam): void {
    this.event(Event.RDMA_CM_EVENT_CONNECT_RESPONSE, 0, reply);
  }

  established(_cpu: Cpu, conn?: RdmaConnParam): void {
    this.state = 'Connected';
    this.event(Event.RDMA_CM_EVENT_ESTABLISHED, 0, conn);
  }

  rejected(_cpu: Cpu, reason: number, privateData: Uint8Array): void {
    const wasConnected = this.state === 'Connected';
    this.state = 'Disconnected';
    if (wasConnected) this.event(Event.RDMA_CM_EVENT_DISCONNECTED);
    else this.event(Event.RDMA_CM_EVENT_REJECTED, reason, { ...noParameters, privateData });
  }

  unreachable(): void {
    this.state = 'Disconnected';
    this.event(Event.RDMA_CM_EVENT_UNREACHABLE, -errnoNumbers.ETIMEDOUT);
  }

  failed(_cpu: Cpu, errno: number): void {
    this.state = 'Disconnected';
    this.event(Event.RDMA_CM_EVENT_CONNECT_ERROR, -errno);
  }

  disconnected(): void {
    if (this.state === 'Disconnected') return;
    this.state = 'Disconnected';
    this.event(Event.RDMA_CM_EVENT_DISCONNECTED);
  }

  /** The device was removed, and its connections with it. */
  deviceRemoved(): void {
    this.state = 'Disconnected';
    this.connection = undefined;
    this.event(Event.RDMA_CM_EVENT_DEVICE_REMOVAL);
  }

  timewaitEnded(): void {
    this.event(Event.RDMA_CM_EVENT_TIMEWAIT_EXIT);
  }

  /** Attributes that take the ID's QP to a state (rdma_init_qp_attr). */
  qpAttributes(state: QpStateVerb): QpAttributes {
    const { connection } = this;
    require(connection !== undefined ||
      state === QpStateVerb.IBV_QPS_INIT, `the ID is ${this.state}, expected one whose peer has answered`);
    return connection?.qpAttributes(state) ?? this.#network.initAttributes;
  }
}
