/**
 * One connection of the CM, either side: the states of IBTA volume 1, 12.9.7, and what each message does in them.
 *
 *   active   Idle ─REQ─► ReqSent ◄MRA► MraReqRcvd ─REP─► RepRcvd (MraRepSent) ─RTU─► Established
 *   passive  Idle ◄REQ─ ReqRcvd (MraReqSent) ─REP─► RepSent ◄MRA► MraRepRcvd ◄RTU─ Established
 *   both     Established ─DREQ─► DreqSent ─┐        Established ◄DREQ─ DreqRcvd ─DREP─┐
 *                                          └────────► Timewait ◄──────────────────────┘ ─► Idle
 *
 * Promises: a REQ, REP or DREQ is repeated until it is answered or its retries are used up. A repeated message receives the
 * same answer as the first one and changes nothing. A message that does not fit the state, the peer's communication ID or the
 * QP is counted and dropped. A connection that ends while the peer may still have packets in flight enters Timewait (12.9.8.4).
 * A comment marks each place where this code follows Linux instead of the standard.
 */

import { RejectReason } from '../../abi/index.ts';
import { mask24 } from '../../base/index.ts';
import { require } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import type { ProtocolTimer, ProtocolTimers } from '../protocol-timers.ts';
import { type QpAttr, QpStateVerb } from '../uapi.ts';
import {
  cmMaxRetries,
  cmResponseTimeout,
  cmTimePs,
  mraServiceTimeout,
  targetAckDelay,
} from './cm-constants.ts';
import { Answered, CmAttribute, type CmMessage, type CmValues, cmMad, transactionIdOf } from './cm-mad.ts';
import type {
  CmDrop,
  ConnectionAddresses,
  ConnectionOwner,
  ConnectionParameters,
  IdConnection,
  Side,
} from './connector.ts';
import { initAttributes, rtrAttributes, rtsAttributes } from './ibta-qp-attributes.ts';
import type { MadAddress } from './management-queue-pair.ts';
import { madAddressOf, type Path, permissiveLid } from './path.ts';
import { privateDataWith } from './request-addresses.ts';

export type CmState =
  | 'Idle'
  | 'ReqSent'
  | 'MraReqRcvd'
  | 'RepRcvd'
  | 'MraRepSent'
  | 'ReqRcvd'
  | 'MraReqSent'
  | 'RepSent'
  | 'MraRepRcvd'
  | 'Established'
  | 'DreqSent'
  | 'DreqRcvd'
  | 'Timewait';

/** Services that connections share. */
export interface CmCore {
  readonly timers: ProtocolTimers;
  readonly caGuid: bigint;
  randomBits(): number;
  /** Dropped messages, by reason. */
  count(reason: CmDrop): void;
  send(cpu: Cpu, bytes: Uint8Array, to: MadAddress): void;
  /** @returns the connection that already uses this ID or this QP of the peer; the new one is then not recorded */
  remember(connection: Connection): Connection | undefined;
  forget(connection: Connection): void;
}

/**
 * Code of twice the packet life time and the target's delay: exponents are added as in Linux' cm_ack_timeout, which rounds up
 * if both are about equal.
 */
function ackTimeoutOf(packetLifeTime: number, ackDelay: number): number {
  const twice = packetLifeTime + 1;
  const sum =
    twice >= ackDelay ? twice + (ackDelay >= twice - 1 ? 1 : 0) : ackDelay + (twice >= ackDelay - 1 ? 1 : 0);
  return Math.min(31, sum);
}

const copyInto = (bytes: Uint8Array, lengthBytes: number): Uint8Array => {
  const padded = new Uint8Array(lengthBytes);
  padded.set(bytes.subarray(0, lengthBytes));
  return padded;
};

export class Connection implements IdConnection {
  readonly localId: number;
  readonly side: Side;
  readonly path: Path;
  state: CmState = 'Idle';
  /** Undefined after the program has released it. */
  owner: ConnectionOwner | undefined;
  /** ID of the peer; 0 before its first answer. */
  remoteId = 0;
  remoteGuid = 0n;
  remoteQpn = 0;
  localQpn = 0;
  /** PSN of the first request that arrives here, and of the first that leaves. */
  rqPsn: number;
  sqPsn = 0;
  responderResources = 0;
  initiatorDepth = 0;
  retryCount = 0;
  rnrRetryCount = 0;
  readonly #core: CmCore;
  readonly #to: MadAddress;
  #transactionId: bigint;
  #timer: ProtocolTimer | undefined;
  #retriesLeft = 0;
  /** How long the peer may take to answer, as it reported. */
  #responsePs: number;
  /** The answer that is sent again when a message is repeated. */
  #lastAnswer: Uint8Array | undefined;

  constructor(core: CmCore, side: Side, localId: number, path: Path, transactionId: bigint) {
    this.#core = core;
    this.side = side;
    this.localId = localId;
    this.path = path;
    this.#to = madAddressOf(path);
    this.#transactionId = transactionId;
    this.#responsePs = 2 * cmTimePs(path.packetLifeTime) + cmTimePs(cmResponseTimeout);
    // Any number is allowed (12.7.31). Linux draws it at random (cma.c: seq_num), so that packets of an older connection match
    // only by chance.
    this.rqPsn = core.randomBits() & mask24;
  }

  /** The code of the QP's local ACK time-out. */
  get ackTimeout(): number {
    return ackTimeoutOf(this.path.packetLifeTime, targetAckDelay);
  }

  /** See {@link IdConnection.awaitsProgram}. */
  get awaitsProgram(): boolean {
    return this.state === 'RepRcvd' || this.state === 'MraRepSent';
  }

  /** See {@link IdConnection.qpAttributes}. */
  qpAttributes(state: QpStateVerb): { readonly attr: QpAttr; readonly mask: number } {
    if (state === QpStateVerb.IBV_QPS_INIT) return initAttributes(this);
    require(this.remoteQpn !== 0, `the connection is ${this.state}, expected one whose peer has answered`);
    if (state === QpStateVerb.IBV_QPS_RTR) return rtrAttributes(this);
    require(state === QpStateVerb.IBV_QPS_RTS, `state is ${state}, expected INIT, RTR or RTS`);
    return rtsAttributes(this);
  }

  /** Sends the REQ of the active side. */
  connect(cpu: Cpu, serviceId: bigint, addresses: ConnectionAddresses, own: ConnectionParameters): void {
    this.#takeOwn(own);
    this.retryCount = own.retryCount;
    this.rnrRetryCount = own.rnrRetryCount;
    const { local, remote, mtu, rate, serviceLevel, packetLifeTime, roce } = this.path;
    const request: CmValues<typeof CmAttribute.REQ> = {
      localCommId: this.localId,
      serviceId,
      localCaGuid: this.#core.caGuid,
      localQpn: own.qpn,
      responderResources: own.responderResources,
      initiatorDepth: own.initiatorDepth,
      remoteCmResponseTimeout: cmResponseTimeout,
      endToEndFlowControl: own.flowControl,
      startingPsn: this.rqPsn,
      localCmResponseTimeout: cmResponseTimeout,
      retryCount: own.retryCount,
      partitionKey: 0xffff,
      pathMtu: mtu,
      rnrRetryCount: own.rnrRetryCount,
      maxCmRetries: cmMaxRetries,
      srq: own.srq,
      primaryLocalLid: roce === undefined ? local.lid : permissiveLid,
      primaryRemoteLid: roce === undefined ? remote.lid : permissiveLid,
      primaryLocalGid: local.gid,
      primaryRemoteGid: remote.gid,
      primaryPacketRate: rate,
      primaryServiceLevel: serviceLevel,
      primarySubnetLocal: roce === undefined ? 1 : 0,
      primaryHopLimit: roce?.hopLimit ?? 0,
      primaryLocalAckTimeout: packetLifeTime + 1,
      privateData: copyInto(privateDataWith(addresses, own.privateData), 92),
    };
    this.state = 'ReqSent';
    this.#sendReliably(cpu, cmMad(CmAttribute.REQ, this.#transactionId, request), this.#responsePs);
  }

  /** Records the attributes of the REQ; its listener notifies the owner. */
  requested(request: CmMessage<typeof CmAttribute.REQ>): void {
    this.state = 'ReqRcvd';
    this.remoteId = request.localCommId;
    this.remoteGuid = request.localCaGuid;
    this.remoteQpn = request.localQpn;
    this.sqPsn = request.startingPsn;
    this.responderResources = request.initiatorDepth;
    this.initiatorDepth = request.responderResources;
    this.retryCount = request.retryCount;
    this.rnrRetryCount = request.rnrRetryCount;
    this.#responsePs = 2 * cmTimePs(this.path.packetLifeTime) + cmTimePs(request.localCmResponseTimeout);
  }

  /** The passive program accepts. */
  reply(cpu: Cpu, own: ConnectionParameters): void {
    this.#takeOwn(own);
    const reply: CmValues<typeof CmAttribute.REP> = {
      ...this.#ids,
      localQpn: own.qpn,
      startingPsn: this.rqPsn,
      responderResources: own.responderResources,
      initiatorDepth: own.initiatorDepth,
      targetAckDelay,
      endToEndFlowControl: own.flowControl,
      rnrRetryCount: own.rnrRetryCount,
      srq: own.srq,
      localCaGuid: this.#core.caGuid,
      privateData: copyInto(own.privateData, 196),
    };
    this.state = 'RepSent';
    this.#sendReliably(cpu, cmMad(CmAttribute.REP, this.#transactionId, reply), this.#responsePs);
  }

  /** The active program continues: its QP is ready to send. */
  readyToUse(cpu: Cpu): void {
    this.state = 'Established';
    this.#answer(cpu, cmMad(CmAttribute.RTU, this.#transactionId, this.#ids));
    this.owner?.established(cpu);
  }

  /** The program rejects a request or a response. */
  reject(cpu: Cpu, privateData: Uint8Array): void {
    this.#sendReject(cpu, RejectReason.CONSUMER_DEFINED, privateData);
    this.#endAtOnce();
  }

  /** Either program ends the connection; if the peer has already sent a DREQ, the answer is a DREP. @returns whether a connection was ended */
  disconnect(cpu: Cpu): boolean {
    if (this.state === 'Established' || this.state === 'RepSent' || this.state === 'MraRepRcvd') {
      this.state = 'DreqSent';
      this.#transactionId = transactionIdOf(this.localId);
      const request = { ...this.#ids, remoteQpn: this.remoteQpn };
      this.#sendReliably(cpu, cmMad(CmAttribute.DREQ, this.#transactionId, request), this.#responsePs);
      return true;
    }
    if (this.state !== 'DreqRcvd') return false;
    this.#answer(cpu, cmMad(CmAttribute.DREP, this.#transactionId, this.#ids));
    this.#wait();
    return true;
  }

  /** The program has ended, or has released the connection: notifies the peer once, as the state demands. */
  abandon(cpu: Cpu): void {
    this.owner = undefined;
    switch (this.state) {
      case 'ReqSent':
      case 'MraReqRcvd':
        this.#sendReject(cpu, RejectReason.TIMEOUT, new Uint8Array());
        this.#endAtOnce();
        break;
      case 'ReqRcvd':
      case 'MraReqSent':
      case 'RepSent':
      case 'MraRepRcvd':
      case 'RepRcvd':
      case 'MraRepSent':
        this.reject(cpu, new Uint8Array());
        break;
      case 'Established':
      case 'DreqRcvd':
        this.disconnect(cpu);
        this.#wait();
        break;
      case 'DreqSent':
        this.#wait();
        break;
      default:
    }
  }

  /** Ends without notifying the peer: for a request that was not accepted, so that the peer asks again. */
  drop(): void {
    this.#endAtOnce();
  }

  /**
   * The peer uses this connection's ID or QP for another one: it has lost this one (IBTA 12.9.8.3.1). A DREQ ends the old
   * connection (Linux 6.1, cm.c: cm_match_req, cm_rep_handler); a request or response that still waits for its program becomes
   * void.
   */
  becomeStale(cpu: Cpu): void {
    switch (this.state) {
      case 'Established':
      case 'RepSent':
      case 'MraRepRcvd':
      case 'DreqRcvd':
        this.disconnect(cpu);
        break;
      case 'DreqSent':
        this.#wait();
        this.owner?.disconnected(cpu);
        break;
      case 'ReqRcvd':
      case 'MraReqSent':
      case 'RepRcvd':
      case 'MraRepSent':
        this.#endAtOnce();
        this.owner?.rejected(cpu, RejectReason.STALE_CONN, new Uint8Array());
        break;
      default:
    }
  }

  /** Whether a REQ with this connection's ID is the REQ that created it. */
  isAskedBy({ localQpn, startingPsn }: CmMessage<typeof CmAttribute.REQ>): boolean {
    return this.side === 'passive' && localQpn === this.remoteQpn && startingPsn === this.sqPsn;
  }

  /** Handles a repeated REQ. */
  requestAgain(cpu: Cpu): void {
    this.#core.count('duplicate');
    if (this.state === 'ReqRcvd' || this.state === 'MraReqSent') {
      this.state = 'MraReqSent';
      this.#core.send(cpu, this.#more(Answered.REQ), this.#to);
    } else if (this.state === 'Timewait') this.#sendReject(cpu, RejectReason.STALE_CONN, new Uint8Array());
  }

  receivedMra({ messageMraed, serviceTimeout }: CmMessage<typeof CmAttribute.MRA>): void {
    // The time there and back, as Linux waits (cm.c: cm_mra_handler adds av.timeout, which is packet_life_time + 1).
    const longerPs = cmTimePs(serviceTimeout) + 2 * cmTimePs(this.path.packetLifeTime);
    if (messageMraed === Answered.REQ && (this.state === 'ReqSent' || this.state === 'MraReqRcvd'))
      this.state = 'MraReqRcvd';
    else if (messageMraed === Answered.REP && (this.state === 'RepSent' || this.state === 'MraRepRcvd'))
      this.state = 'MraRepRcvd';
    else return this.#core.count('unexpected');
    this.#repeatAfter(longerPs);
  }

  receivedRep(cpu: Cpu, reply: CmMessage<typeof CmAttribute.REP>): void {
    if (this.state !== 'ReqSent' && this.state !== 'MraReqRcvd') return this.#replyAgain(cpu, reply);
    this.remoteId = reply.localCommId;
    this.remoteGuid = reply.localCaGuid;
    this.remoteQpn = reply.localQpn;
    const old = this.#core.remember(this);
    if (old !== undefined) {
      // A peer uses this connection's QP for another connection: 12.9.8.3.1.
      this.#core.count('stale');
      this.#sendReject(cpu, RejectReason.STALE_CONN, new Uint8Array());
      this.#endAtOnce();
      this.owner?.rejected(cpu, RejectReason.STALE_CONN, new Uint8Array());
      return old.becomeStale(cpu);
    }
    this.#stopTimer();
    this.state = 'RepRcvd';
    this.sqPsn = reply.startingPsn;
    this.responderResources = reply.initiatorDepth;
    this.initiatorDepth = reply.responderResources;
    this.rnrRetryCount = reply.rnrRetryCount;
    this.owner?.replied(cpu, {
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

  receivedRtu(cpu: Cpu): void {
    if (this.state !== 'RepSent' && this.state !== 'MraRepRcvd')
      return this.#core.count(this.state === 'Established' ? 'duplicate' : 'unexpected');
    this.#stopTimer();
    this.state = 'Established';
    this.owner?.established(cpu);
  }

  receivedRej(cpu: Cpu, { reason, privateData }: CmMessage<typeof CmAttribute.REJ>): void {
    switch (this.state) {
      case 'Idle':
      case 'Timewait':
      case 'DreqSent':
      case 'DreqRcvd':
        return this.#core.count('unexpected');
      case 'Established':
        this.#wait();
        break;
      default:
        if (reason === RejectReason.STALE_CONN) this.#wait();
        else this.#endAtOnce();
    }
    this.owner?.rejected(cpu, reason, privateData);
  }

  receivedDreq(cpu: Cpu, { remoteQpn }: CmMessage<typeof CmAttribute.DREQ>, transactionId: bigint): void {
    if (remoteQpn !== this.localQpn) return this.#core.count('unmatched');
    switch (this.state) {
      case 'Timewait':
        // Also where its own DREQ went last: if that were answered, two sides that end at the same time would never stop.
        this.#core.count('duplicate');
        this.#core.send(cpu, cmMad(CmAttribute.DREP, transactionId, this.#ids), this.#to);
        break;
      case 'DreqRcvd':
        this.#core.count('duplicate');
        break;
      case 'Established':
      case 'RepSent':
      case 'MraRepRcvd':
        this.#stopTimer();
        this.#transactionId = transactionId;
        this.state = 'DreqRcvd';
        this.owner?.disconnected(cpu);
        break;
      case 'DreqSent':
        // Both sides end at the same time: each answers the other's DREQ, and neither waits for its own answer.
        this.#transactionId = transactionId;
        this.#answer(cpu, cmMad(CmAttribute.DREP, transactionId, this.#ids));
        this.#wait();
        this.owner?.disconnected(cpu);
        break;
      default:
        this.#core.count('unexpected');
    }
  }

  receivedDrep(cpu: Cpu): void {
    if (this.state !== 'DreqSent')
      return this.#core.count(this.state === 'Timewait' ? 'duplicate' : 'unexpected');
    this.#wait();
    this.owner?.disconnected(cpu);
  }

  get #ids(): { localCommId: number; remoteCommId: number } {
    return { localCommId: this.localId, remoteCommId: this.remoteId };
  }

  #takeOwn(own: ConnectionParameters): void {
    this.localQpn = own.qpn;
    this.responderResources = own.responderResources;
    this.initiatorDepth = own.initiatorDepth;
  }

  #replyAgain(cpu: Cpu, reply: CmMessage<typeof CmAttribute.REP>): void {
    if (this.side === 'passive' || reply.localCommId !== this.remoteId) return this.#core.count('unmatched');
    this.#core.count('duplicate');
    if (this.state === 'Established' && this.#lastAnswer !== undefined)
      this.#core.send(cpu, this.#lastAnswer, this.#to);
    if (this.state !== 'RepRcvd' && this.state !== 'MraRepSent') return;
    this.state = 'MraRepSent';
    this.#core.send(cpu, this.#more(Answered.REP), this.#to);
  }

  /** Sends an MRA: the program needs more time. */
  #more(messageMraed: Answered): Uint8Array {
    const values = { ...this.#ids, messageMraed, serviceTimeout: mraServiceTimeout };
    return cmMad(CmAttribute.MRA, this.#transactionId, values);
  }

  #answer(cpu: Cpu, bytes: Uint8Array): void {
    this.#stopTimer();
    this.#lastAnswer = bytes;
    this.#core.send(cpu, bytes, this.#to);
  }

  #sendReject(cpu: Cpu, reason: number, privateData: Uint8Array): void {
    const isOfReq = this.state === 'ReqRcvd' || this.state === 'MraReqSent';
    const isOfRep =
      this.state === 'RepRcvd' || this.state === 'MraRepSent' || reason === RejectReason.STALE_CONN;
    const messageRejected = isOfReq ? Answered.REQ : isOfRep ? Answered.REP : Answered.NONE;
    const hasGuid = reason === RejectReason.TIMEOUT;
    const additionalInformation = new Uint8Array(72);
    if (hasGuid) new DataView(additionalInformation.buffer).setBigUint64(0, this.#core.caGuid);
    const values = {
      ...this.#ids,
      messageRejected,
      reason,
      ...(hasGuid ? { rejectInfoLength: 8, additionalInformation } : {}),
      privateData: copyInto(privateData, 148),
    };
    this.#core.send(cpu, cmMad(CmAttribute.REJ, this.#transactionId, values), this.#to);
  }

  /** Sends, and repeats until the answer stops the timer. */
  #sendReliably(cpu: Cpu, bytes: Uint8Array, timeoutPs: number): void {
    this.#stopTimer();
    this.#retriesLeft = cmMaxRetries;
    this.#lastAnswer = bytes;
    this.#core.send(cpu, bytes, this.#to);
    this.#repeatAfter(timeoutPs);
  }

  #repeatAfter(timeoutPs: number): void {
    this.#stopTimer();
    this.#timer = this.#core.timers.after(timeoutPs, (cpu) => {
      if (this.#retriesLeft === 0) return this.#unanswered(cpu);
      this.#retriesLeft--;
      this.#core.send(cpu, this.#lastAnswer!, this.#to);
      this.#repeatAfter(this.#responsePs);
    });
  }

  /** All retries are used up. */
  #unanswered(cpu: Cpu): void {
    if (this.state === 'DreqSent') {
      this.#wait();
      this.owner?.disconnected(cpu);
      return;
    }
    this.#sendReject(cpu, RejectReason.TIMEOUT, new Uint8Array());
    this.#endAtOnce();
    this.owner?.unreachable(cpu);
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #endAtOnce(): void {
    this.#stopTimer();
    this.state = 'Idle';
    this.#core.forget(this);
  }

  /** Packets of the connection may still be in flight: its ID and QP stay reserved for that long. */
  #wait(): void {
    this.#stopTimer();
    this.state = 'Timewait';
    this.#timer = this.#core.timers.after(cmTimePs(this.ackTimeout), (cpu) => {
      this.#endAtOnce();
      this.owner?.timewaitEnded(cpu);
    });
  }
}
