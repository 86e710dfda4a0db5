/**
 * One ID of rdma_cm: from an address to a connection, by the steps that programs take.
 *
 *   Idle ─bind─► Bound ─listen─► Listening ── request ──► a new ID, Requested ─accept─► Connecting ─► Connected
 *   Idle ─resolveAddr─► AddrResolved ─resolveRoute─► RouteResolved ─connect─► Connecting ─response─► Connected
 *   Connected ─disconnect, or the peer does─► Disconnected;  rejected, unreachable ─► Disconnected
 *
 * Source: Linux 6.1, drivers/infiniband/core/cma.c and ucma.c; for the private data IBTA annex A11.
 */

import { ipCmHeader } from '../../abi/index.ts';
import { mask24 } from '../../base/index.ts';
import { textOfGid } from '../address-text.ts';
import { require, requireWithin } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import {
  type CmEventRecord,
  RdmaCmEventType as Event,
  noParameters,
  privateDataMax,
  type RdmaConnParam,
  type SocketAddress,
} from '../rdma-cm.ts';
import {
  AccessFlag,
  type AhAttr,
  errnoNumbers,
  type Handle,
  QpAttrMask as Mask,
  type MtuVerb,
  type QpAttr,
  QpStateVerb,
} from '../uapi.ts';
import type { CmAttribute, CmMessage } from './cm-mad.ts';
import type { Connection, ConnectionOwner, ConnectionParameters } from './connection.ts';
import { gidOfAddress, isIpv4Address } from './internet-address.ts';
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

/** The values of rdma_conn_param, checked as the messages can carry them. */
function parametersOf(param: RdmaConnParam, maxBytes: number): ConnectionParameters {
  requireWithin('qpNum', param.qpNum, 0, mask24);
  requireWithin('responderResources', param.responderResources, 0, 0xff);
  requireWithin('initiatorDepth', param.initiatorDepth, 0, 0xff);
  requireWithin('flowControl', param.flowControl, 0, 1);
  requireWithin('retryCount', param.retryCount, 0, 7);
  requireWithin('rnrRetryCount', param.rnrRetryCount, 0, 7);
  requireWithin('srq', param.srq, 0, 1);
  requireWithin('privateDataLen', param.privateData.length, 0, maxBytes);
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
  connection: Connection | undefined;
  /** Service ID at which it listens. */
  serviceId = -1n;
  /** Requests it may still accept before the program fetches one; each fetch raises it. */
  backlog = 0;
  readonly #notify: Notify;

  constructor(handle: Handle, notify: Notify) {
    this.handle = handle;
    this.#notify = notify;
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

  connect(cpu: Cpu, serviceId: bigint, param: RdmaConnParam, make: (path: Path) => Connection): void {
    const own = parametersOf(param, privateDataMax.connect);
    const privateData = new Uint8Array(ipCmHeader.sizeBytes + own.privateData.length);
    ipCmHeader.encodeInto(ipHeader(this.src!, this.dst!), privateData);
    privateData.set(own.privateData, ipCmHeader.sizeBytes);
    const connection = make(this.path!);
    this.connection = connection;
    connection.owner = this;
    this.state = 'Connecting';
    connection.connect(cpu, serviceId, { ...own, privateData });
  }

  accept(cpu: Cpu, param: RdmaConnParam | undefined): void {
    if (param === undefined) {
      require(this.connection?.side === 'active', 'a request is accepted with parameters');
      this.expect('Connecting');
      require(this.connection.state === 'RepRcvd' ||
        this.connection.state === 'MraRepSent', 'the peer has not answered');
      this.connection.readyToUse(cpu);
      return;
    }
    const own = parametersOf(param, privateDataMax.accept);
    this.expect('Requested');
    this.state = 'Connecting';
    this.connection?.reply(cpu, own);
  }

  reject(cpu: Cpu, privateData: Uint8Array): void {
    requireWithin('privateDataLen', privateData.length, 0, privateDataMax.reject);
    this.expect('Requested', 'Connecting');
    this.state = 'Disconnected';
    this.connection?.reject(cpu, privateData);
  }

  disconnect(cpu: Cpu): void {
    this.expect('Connecting', 'Connected', 'Disconnected');
    const hasEnded = this.connection?.disconnect(cpu) ?? false;
    require(hasEnded || this.state === 'Disconnected', 'the ID has no connection yet');
  }

  replied(_cpu: Cpu, reply: CmMessage<typeof CmAttribute.REP>): void {
    this.event(Event.RDMA_CM_EVENT_CONNECT_RESPONSE, 0, {
      privateData: reply.privateData,
      responderResources: reply.initiatorDepth,
      initiatorDepth: reply.responderResources,
      flowControl: reply.endToEndFlowControl,
      retryCount: 0,
      rnrRetryCount: reply.rnrRetryCount,
      srq: reply.srq,
      qpNum: reply.localQpn,
    });
  }

  established(): void {
    this.state = 'Connected';
    this.event(Event.RDMA_CM_EVENT_ESTABLISHED);
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

  /** Attributes that move the ID's QP to a state: ib_cm_init_qp_attr. */
  qpAttributes(state: QpStateVerb): { readonly attr: QpAttr; readonly mask: number } {
    const { connection } = this;
    if (state === QpStateVerb.IBV_QPS_INIT) return initAttributes(connection);
    require(connection !== undefined &&
      connection.remoteQpn !== 0, `the ID is ${this.state}, expected one whose peer has answered`);
    if (state === QpStateVerb.IBV_QPS_RTR) return rtrAttributes(connection);
    require(state === QpStateVerb.IBV_QPS_RTS, `state is ${state}, expected INIT, RTR or RTS`);
    return rtsAttributes(connection);
  }
}

/** Parameters of a REQ as the passive side sees them: the sender's depth is the receiver's resources. */
export function parametersOfRequest(request: CmMessage<typeof CmAttribute.REQ>): RdmaConnParam {
  return {
    privateData: request.privateData.subarray(ipCmHeader.sizeBytes),
    responderResources: request.initiatorDepth,
    initiatorDepth: request.responderResources,
    flowControl: request.endToEndFlowControl,
    retryCount: request.retryCount,
    rnrRetryCount: request.rnrRetryCount,
    srq: request.srq,
    qpNum: request.localQpn,
  };
}

/** An IPv4 address is stored in the last four bytes, after zeros. */
const ipv4At = 12;
const ipBytes = ({ sinAddr }: SocketAddress): Uint8Array => {
  const gid = gidOfAddress(sinAddr);
  return isIpv4Address(sinAddr) ? gid.fill(0, 0, ipv4At) : gid;
};

const ipHeader = (src: SocketAddress, dst: SocketAddress) => ({
  ipVersion: isIpv4Address(dst.sinAddr) ? 4 : 6,
  sourcePort: src.sinPort,
  sourceAddress: ipBytes(src),
  destinationAddress: ipBytes(dst),
});

/** The sender's address, from the header before a REQ's private data; undefined if that header is missing or invalid. */
export function addressesOfRequest(
  privateData: Uint8Array,
): { readonly src: string; readonly srcPort: number; readonly dst: string } | undefined {
  const header = ipCmHeader.decode(privateData);
  const { majorVersion, ipVersion, sourceAddress, destinationAddress } = header;
  if (majorVersion !== 0 || (ipVersion !== 4 && ipVersion !== 6)) return undefined;
  const textOf = (bytes: Uint8Array): string =>
    ipVersion === 4 ? bytes.subarray(ipv4At).join('.') : textOfGid(bytes);
  return { src: textOf(sourceAddress), srcPort: header.sourcePort, dst: textOf(destinationAddress) };
}

const portNum = 1;
const pkeyIndex = 0;

function initAttributes(connection: Connection | undefined): { attr: QpAttr; mask: number } {
  const reads = AccessFlag.IBV_ACCESS_REMOTE_READ | AccessFlag.IBV_ACCESS_REMOTE_ATOMIC;
  const serves = (connection?.responderResources ?? 0) > 0;
  return {
    attr: {
      qpState: QpStateVerb.IBV_QPS_INIT,
      qpAccessFlags: AccessFlag.IBV_ACCESS_REMOTE_WRITE | (serves ? reads : 0),
      pkeyIndex,
      portNum,
    },
    mask: Mask.IBV_QP_STATE | Mask.IBV_QP_ACCESS_FLAGS | Mask.IBV_QP_PKEY_INDEX | Mask.IBV_QP_PORT,
  };
}

function addressOf({ remote, serviceLevel: sl, roce }: Path): AhAttr {
  if (roce === undefined) return { dlid: remote.lid, sl, srcPathBits: 0, isGlobal: 0, portNum };
  const { sgidIndex, hopLimit } = roce;
  const grh = { dgid: remote.gid, flowLabel: 0, sgidIndex, hopLimit, trafficClass: 0 };
  return { dlid: 0, sl, srcPathBits: 0, isGlobal: 1, grh, portNum };
}

function rtrAttributes(connection: Connection): { attr: QpAttr; mask: number } {
  const { path } = connection;
  return {
    attr: {
      qpState: QpStateVerb.IBV_QPS_RTR,
      ahAttr: addressOf(path),
      pathMtu: path.mtu as MtuVerb,
      destQpNum: connection.remoteQpn,
      rqPsn: connection.rqPsn,
      maxDestRdAtomic: connection.responderResources,
      minRnrTimer: 0,
    },
    mask:
      Mask.IBV_QP_STATE |
      Mask.IBV_QP_AV |
      Mask.IBV_QP_PATH_MTU |
      Mask.IBV_QP_DEST_QPN |
      Mask.IBV_QP_RQ_PSN |
      Mask.IBV_QP_MAX_DEST_RD_ATOMIC |
      Mask.IBV_QP_MIN_RNR_TIMER,
  };
}

function rtsAttributes(connection: Connection): { attr: QpAttr; mask: number } {
  return {
    attr: {
      qpState: QpStateVerb.IBV_QPS_RTS,
      sqPsn: connection.sqPsn,
      timeout: connection.ackTimeout,
      retryCnt: connection.retryCount,
      rnrRetry: connection.rnrRetryCount,
      maxRdAtomic: connection.initiatorDepth,
    },
    mask:
      Mask.IBV_QP_STATE |
      Mask.IBV_QP_SQ_PSN |
      Mask.IBV_QP_TIMEOUT |
      Mask.IBV_QP_RETRY_CNT |
      Mask.IBV_QP_RNR_RETRY |
      Mask.IBV_QP_MAX_QP_RD_ATOMIC,
  };
}
