/**
 * One connection of iWARP, either side: TCP by the card, MPA's request and reply by software, then the stream is the QP's.
 *
 *   active   Opening ─ESTABLISHED─► Asking ─reply─► Established          either  Established ─► Closing ─► Ended
 *   passive  Awaiting ─request─► Asked ─program accepts─► Established            any other ─► Ended
 *
 * The responder sends no FPDU before it has validated one of the initiator (RFC 5044, 7.1.2): the card sees to that. The program is told
 * that it is connected when its QP may send. Sources: RFC 5044, 7.1; RFC 6581; Linux 6.1, iwcm.c, cma.c (cma_iw_handler), cxgb4's cm.c.
 */
import { CloseTcp, TcpEvent } from '../../abi/index.ts';
import { psPerMs } from '../../base/index.ts';
import {
  agreementOfReply,
  checkRequest,
  concludeReply,
  encodeMpaFrame,
  type MpaAgreement,
  type MpaFrame,
  type MpaParameters,
  parseMpaFrame,
  replyOf,
  requestOf,
} from '../../protocol/iwarp/index.ts';
import type { SerialWork } from '../iwarp/serial-work.ts';
import type { TcpConnections, TcpOpening, TcpSink } from '../iwarp/tcp-connections.ts';
import { KernelError } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import type { ProtocolTimer, ProtocolTimers } from '../protocol-timers.ts';
import { noParameters, type RdmaConnParam } from '../rdma-cm.ts';
import { AccessFlag, errnoNumbers, QpAttrMask, QpStateVerb } from '../uapi.ts';
import type {
  CmDrop,
  ConnectionAddresses,
  ConnectionOwner,
  ConnectionParameters,
  IdConnection,
  QpAttributes,
  Side,
} from './connector.ts';
import type { Path } from './path.ts';
import { portOfService } from './service-id.ts';

export type IwState =
  | 'Idle'
  | 'Opening'
  | 'Asking'
  | 'Awaiting'
  | 'Asked'
  | 'Established'
  | 'Closing'
  | 'Ended';

/** Parts of the device's connections that each of them uses. */
export interface IwCore {
  readonly tcp: TcpConnections;
  readonly work: SerialWork;
  readonly timers: ProtocolTimers;
  /** Policy of this host; the IRD and ORD of a connection replace those in it. */
  readonly policy: MpaParameters;
  /** From the SYN to MPA's end. */
  readonly timeLimitPs: number;
  count(reason: CmDrop): void;
  /** The values of OPEN_TCP for a path. */
  openingOf(path: Path, addresses: ConnectionAddresses): TcpOpening;
  /** Takes a QP to RTS on a connection. @throws KernelError for a QP that does not exist, or is not in INIT */
  attach(cpu: Cpu, qpn: number, stream: StreamOfQp): Promise<void>;
  /** Hands a peer's request to its listener. @returns as {@link CmListener.requested} */
  requested(cpu: Cpu, request: IwRequest): Promise<'taken' | 'full' | number>;
  forget(connection: IwConnection): void;
}

/** A request that has arrived on a connection. */
export interface IwRequest {
  readonly connection: IwConnection;
  readonly conn: RdmaConnParam;
}

/** The stream that a QP gets. */
export interface StreamOfQp {
  readonly connection: number;
  readonly isInitiator: boolean;
  readonly agreement: MpaAgreement;
}

/** INIT with the rights of Linux's iwcm_init_qp_init_attr. An ID without a connection has them too; rdma_init_qp_attr gives it none. */
export const iwInitAttributes: QpAttributes = {
  attr: {
    qpState: QpStateVerb.IBV_QPS_INIT,
    qpAccessFlags: AccessFlag.IBV_ACCESS_REMOTE_WRITE | AccessFlag.IBV_ACCESS_REMOTE_READ,
  },
  mask: QpAttrMask.IBV_QP_STATE | QpAttrMask.IBV_QP_ACCESS_FLAGS,
};

const noConnection = -1;
/**
 * Retries of a send for which no memory is free: for one second, longer than a peer may delay the acknowledgement that frees some (RFC 1122,
 * 4.2.3.2: 500 ms).
 */
const sendRetryPs = psPerMs;
const sendTries = 1000;
const noBytes = new Uint8Array(0);

export class IwConnection implements IdConnection, TcpSink {
  readonly side: Side;
  readonly path: Path;
  readonly awaitsProgram = false;
  owner: ConnectionOwner | undefined;
  state: IwState = 'Idle';
  /** Number of the TCP connection; -1 without one. */
  connection: number;
  /** Service ID of the connection request; a passive connection has its listener's. */
  readonly serviceId: bigint;
  readonly #core: IwCore;
  #own: ConnectionParameters = { ...noParameters, qpn: 0 };
  /** Bytes that have arrived of the peer's request or reply. */
  #received = noBytes;
  /** The request: of this side, or of the peer. */
  #request: MpaFrame | undefined;
  #timer: ProtocolTimer | undefined;

  /** @param connection number that a listener has; left out on the active side, which opens its own */
  constructor(core: IwCore, side: Side, path: Path, connection = noConnection, serviceId = -1n) {
    this.#core = core;
    this.side = side;
    this.path = path;
    this.connection = connection;
    this.serviceId = serviceId;
    if (side === 'passive') {
      this.state = 'Awaiting';
      this.#limitTime();
    }
  }

  connect(_cpu: Cpu, serviceId: bigint, addresses: ConnectionAddresses, own: ConnectionParameters): void {
    this.#own = own;
    this.state = 'Opening';
    this.#limitTime();
    const { tcp, work, openingOf } = this.#core;
    const { src, dst } = addresses;
    const opening = openingOf(this.path, { src, dst: { ...dst, sinPort: portOfService(serviceId) } });
    work.run(async (cpu) => {
      if (this.state !== 'Opening') return this.#end();
      try {
        this.connection = await tcp.connect(cpu, opening, this);
      } catch (error) {
        this.#failed(cpu, error);
      }
    });
  }

  reply(_cpu: Cpu, own: ConnectionParameters): void {
    this.#own = own;
    this.#core.work.run((cpu) => this.#accept(cpu));
  }

  /** Only the IBTA's CM asks the active program for this. */
  readyToUse(): void {}

  reject(_cpu: Cpu, privateData: Uint8Array): void {
    this.#core.work.run((cpu) =>
      this.state === 'Asked' ? this.#decline(cpu, privateData) : this.#close(cpu, CloseTcp.ORDERLY),
    );
  }

  disconnect(): boolean {
    if (this.state !== 'Established') return this.state === 'Closing';
    this.state = 'Closing';
    this.#core.work.run((cpu) => this.#close(cpu, CloseTcp.ORDERLY));
    return true;
  }

  /** An established connection ends in agreement, one that is being made at once. */
  abandon(): void {
    this.owner = undefined;
    const form = this.state === 'Established' || this.state === 'Closing' ? CloseTcp.ORDERLY : CloseTcp.ABORT;
    if (this.state !== 'Ended') this.#core.work.run((cpu) => this.#close(cpu, form));
  }

  /** The kernel itself takes the QP further than INIT. */
  qpAttributes(state: QpStateVerb): QpAttributes {
    return state === QpStateVerb.IBV_QPS_INIT ? iwInitAttributes : { attr: { qpState: state }, mask: 0 };
  }

  /** See {@link TcpSink}: the kernel's thread does what has to be done. */
  tcpEvent(event: TcpEvent): void {
    this.#core.work.run((cpu) => this.#happened(cpu, event));
  }

  async #happened(cpu: Cpu, event: TcpEvent): Promise<void> {
    switch (event) {
      case TcpEvent.ESTABLISHED:
        return this.#ask(cpu);
      case TcpEvent.READABLE:
        return this.#read(cpu);
      case TcpEvent.PEER_CLOSED:
        return this.#peerClosed(cpu);
      case TcpEvent.CLOSED:
      case TcpEvent.RESET:
      case TcpEvent.TIMED_OUT:
        return this.#ended(cpu, event);
      default:
    }
  }

  /** TCP is there: the initiator sends its request. */
  async #ask(cpu: Cpu): Promise<void> {
    if (this.state !== 'Opening') return this.#close(cpu, CloseTcp.ABORT);
    this.state = 'Asking';
    this.#request = requestOf(this.#parameters, this.#own.privateData);
    await this.#send(cpu, this.#request, async () => {});
  }

  /**
   * Sends a frame of MPA, then does what follows. If the card's memory is full of segments that await their acknowledgement, it tries
   * again later; cxgb4's frame waits in the card's queue. When that lasts, the connection fails with ENOMEM.
   */
  async #send(
    cpu: Cpu,
    frame: MpaFrame,
    then: (cpu: Cpu) => Promise<void>,
    triesLeft = sendTries,
  ): Promise<void> {
    const { tcp, timers, work } = this.#core;
    const { state } = this;
    try {
      await tcp.send(cpu, this.connection, encodeMpaFrame(frame));
    } catch (error) {
      if (!(error instanceof KernelError) || error.code !== 'ENOMEM') throw error;
      if (triesLeft === 0) {
        this.#failed(cpu, error);
        return this.#close(cpu, CloseTcp.ABORT);
      }
      timers.after(sendRetryPs, () =>
        work.run(async (thread) => {
          if (this.state === state) await this.#send(thread, frame, then, triesLeft - 1);
        }),
      );
      return;
    }
    await then(cpu);
  }

  /**
   * Bytes of the peer's request or reply. After the reply, bytes are the QP's: an initiator's first FPDU may arrive before the stream is.
   * Before the reply an initiator sends none (RFC 5044, 7.1.2); Linux ignores them (6.1, cxgb4's cm.c: rx_data).
   */
  async #read(cpu: Cpu): Promise<void> {
    if (this.state === 'Asked') this.#core.count('unexpected');
    if (this.state !== 'Asking' && this.state !== 'Awaiting') return;
    const bytes = await this.#core.tcp.receive(cpu, this.connection);
    this.#received = Uint8Array.from([...this.#received, ...bytes]);
    const parsed = parseMpaFrame(this.#received, this.side === 'active');
    if (parsed.kind === 'incomplete') return;
    if (parsed.kind === 'invalid' || parsed.lengthBytes !== this.#received.length) {
      this.#core.count('malformed');
      return this.#refused(cpu, errnoNumbers.EPROTO);
    }
    this.#received = noBytes;
    if (this.side === 'active') await this.#takeReply(cpu, parsed.frame);
    else await this.#takeRequest(cpu, parsed.frame);
  }

  async #takeReply(cpu: Cpu, reply: MpaFrame): Promise<void> {
    const result = concludeReply(this.#parameters, this.#request!, reply);
    if (result.kind === 'rejected') return this.#refused(cpu, errnoNumbers.ECONNREFUSED, result.privateData);
    if (result.kind === 'close') return this.#refused(cpu, errnoNumbers.EPROTO);
    await this.#establish(
      cpu,
      result.agreement,
      reply.privateData,
      result.kind === 'terminate' ? result.error : 0,
    );
  }

  async #takeRequest(cpu: Cpu, request: MpaFrame): Promise<void> {
    this.#request = request;
    this.state = 'Asked';
    this.#stopTimer();
    const check = checkRequest(this.#core.policy, request);
    if (check === 'close') return this.#close(cpu, CloseTcp.ABORT);
    const answer =
      check === 'reject'
        ? 'full'
        : await this.#core.requested(cpu, { conn: parametersOfRequest(request), connection: this });
    if (answer === 'taken') return;
    if (answer === 'full' && check !== 'reject') this.#core.count('backlogFull');
    await this.#decline(cpu, noBytes);
  }

  /** The passive program accepts: the reply goes ahead of the QP's first FPDU. */
  async #accept(cpu: Cpu): Promise<void> {
    if (this.state !== 'Asked') return;
    const reply = replyOf(this.#parameters, this.#request!, 'accept', this.#own.privateData);
    const agreement = agreementOfReply(this.#parameters, this.#request!, reply);
    await this.#send(cpu, reply, (thread) => this.#establish(thread, agreement));
  }

  async #decline(cpu: Cpu, privateData: Uint8Array): Promise<void> {
    const reply = replyOf(this.#parameters, this.#request!, 'reject', privateData);
    await this.#send(cpu, reply, (thread) => this.#close(thread, CloseTcp.ORDERLY));
  }

  /** The stream becomes the QP's. @param terminate why it ends at once; 0: it does not */
  async #establish(
    cpu: Cpu,
    agreement: MpaAgreement,
    privateData: Uint8Array = noBytes,
    terminate = 0,
  ): Promise<void> {
    this.#stopTimer();
    const isInitiator = this.side === 'active';
    try {
      await this.#core.attach(cpu, this.#own.qpn, { connection: this.connection, isInitiator, agreement });
    } catch (error) {
      this.#failed(cpu, error);
      return this.#close(cpu, CloseTcp.ABORT);
    }
    if (terminate !== 0) {
      this.owner?.failed(cpu, errnoNumbers.ECONNRESET);
      this.owner = undefined;
      return this.#close(cpu, CloseTcp.TERMINATE, terminate);
    }
    this.state = 'Established';
    const { inboundReads: responderResources, outboundReads: initiatorDepth } = agreement;
    this.owner?.established(cpu, { ...noParameters, privateData, responderResources, initiatorDepth });
  }

  /** The peer's answer, or its lack of sense, ends the attempt. */
  async #refused(cpu: Cpu, errno: number, privateData: Uint8Array = noBytes): Promise<void> {
    if (this.side === 'active') this.owner?.rejected(cpu, -errno, privateData);
    this.owner = undefined;
    await this.#close(cpu, errno === errnoNumbers.ECONNREFUSED ? CloseTcp.ORDERLY : CloseTcp.ABORT);
  }

  async #peerClosed(cpu: Cpu): Promise<void> {
    if (this.state === 'Established') this.owner?.disconnected(cpu);
    else if (this.state !== 'Closing') this.#lost(cpu, errnoNumbers.ECONNRESET);
    await this.#close(cpu, CloseTcp.ORDERLY);
  }

  /** The last event of the connection. */
  async #ended(cpu: Cpu, event: TcpEvent): Promise<void> {
    const { connection, state } = this;
    if (state === 'Established' || state === 'Closing') this.owner?.disconnected(cpu);
    else if (event === TcpEvent.TIMED_OUT && state === 'Opening') this.owner?.unreachable(cpu);
    else this.#lost(cpu, state === 'Opening' ? errnoNumbers.ECONNREFUSED : errnoNumbers.ECONNRESET);
    this.owner = undefined;
    this.#end();
    if (connection !== noConnection) await this.#core.tcp.close(cpu, connection, CloseTcp.RELEASE);
  }

  /** The connection is gone before it was one. */
  #lost(cpu: Cpu, errno: number): void {
    this.owner?.rejected(cpu, -errno, noBytes);
    this.owner = undefined;
  }

  #failed(cpu: Cpu, error: unknown): void {
    if (!(error instanceof KernelError)) throw error;
    this.owner?.failed(cpu, error.errno);
    this.owner = undefined;
    if (this.connection === noConnection) this.#end();
  }

  /** The card tells the end of a connection by its last event; one that was never opened ends here. */
  async #close(cpu: Cpu, form: CloseTcp, terminate = 0): Promise<void> {
    if (this.state === 'Ended') return;
    this.#stopTimer();
    this.state = 'Closing';
    if (this.connection === noConnection) return this.#end();
    await this.#core.tcp.close(cpu, this.connection, form, terminate);
  }

  #end(): void {
    this.#stopTimer();
    this.state = 'Ended';
    this.#core.forget(this);
  }

  get #parameters(): MpaParameters {
    const { responderResources: inboundReads, initiatorDepth: outboundReads } = this.#own;
    return { ...this.#core.policy, inboundReads, outboundReads };
  }

  #limitTime(): void {
    const { timers, timeLimitPs, work } = this.#core;
    this.#timer = timers.after(timeLimitPs, (cpu) => {
      this.owner?.unreachable(cpu);
      this.owner = undefined;
      work.run((thread) => this.#close(thread, CloseTcp.ABORT));
    });
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** A request as the passive side sees it: its resources are the initiator's depth. Revision 1 exchanges neither. */
function parametersOfRequest({ privateData, enhanced }: MpaFrame): RdmaConnParam {
  return {
    ...noParameters,
    privateData,
    responderResources: enhanced?.outboundReads ?? 0,
    initiatorDepth: enhanced?.inboundReads ?? 0,
  };
}
