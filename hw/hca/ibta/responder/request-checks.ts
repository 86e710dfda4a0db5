/**
 * Checks of a request before it is executed, in the specification's order (IBTA vol 1, 9.7.4.1.1 and figure 84):
 *
 *   PSN ─> opcode sequence ─> length ─> SRQ of XRC ─> resources      `check`; a receive WQE, where one is needed, is the responder's to take
 *   right of the QP ─> R_Key, bounds, right of the region      `checkRights`
 *
 * With selective repeat a request after a gap is kept (../packets/reorder-buffer.ts), instead of being dropped.
 *
 * An unreliable connection has no duplicates and no NAKs: after a gap only a packet that begins a message is accepted
 * (9.8.2).
 */

import { EventType, QueueStatus } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount, ClockDomain } from '../../../../sim/index.ts';
import { NakCode, nakSyndrome, Opcode, psnDistance } from '../../../../wire/index.ts';
import {
  type CheckAnswer,
  DONE,
  DROPPED,
  DUPLICATE,
  EXECUTE,
  REFUSED,
  type StepAnswer,
  WAIT,
} from '../../answers.ts';
import { ATOMIC_BYTES } from '../../atomics/index.ts';
import {
  BAD_KEY,
  PAGE_FAULT,
  PENDING,
  PORT_RECEIVER,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import {
  type Cqn,
  type CqTable,
  QP_RIGHT_ATOMIC,
  QP_RIGHT_READ,
  QP_RIGHT_WRITE,
  type SrqTable,
  XRC_SERVICE,
} from '../../objects/index.ts';
import { STALL_TRANSLATION } from '../../packets/index.ts';
import {
  ENDS_MESSAGE,
  MESSAGE_NONE,
  MESSAGE_SEND,
  MESSAGE_UNKNOWN,
  MESSAGE_WRITE,
  type ReorderBuffer,
  STARTS_MESSAGE,
  TAKES_RECEIVE_WQE,
  type TransportCounters,
} from '../packets/index.ts';
import type { InboundRequest } from './inbound-request.ts';
import { responderPlaces } from './responder-resources.ts';
import type { ResponseEngine } from './response-engine.ts';

/** Parts of the device that {@link RequestChecks} uses. */
export interface RequestChecksSetup {
  readonly domain: ClockDomain;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
  readonly translator: Translator;
  readonly transport: TransportCounters;
  readonly reorder: ReorderBuffer;
}

export class RequestChecks {
  readonly #cqs: CqTable;
  readonly #srqs: SrqTable;
  readonly #transport: TransportCounters;
  readonly #reorder: ReorderBuffer;
  readonly #request: InboundRequest;
  readonly #account: BlockAccount;
  readonly #translation: TranslationPort;
  /** Whether the pages of a READ are looked up ahead of its answer, not here. */
  readonly #isReadWalkedLater: boolean;
  #responses!: ResponseEngine;
  /** When the rights of the last WRITE were checked. */
  #checkedCycle = -1;

  /** @param account that of the receiver, whose stage works on requests */
  constructor(setup: RequestChecksSetup, request: InboundRequest, account: BlockAccount) {
    this.#cqs = setup.cqs;
    this.#srqs = setup.srqs;
    this.#transport = setup.transport;
    this.#reorder = setup.reorder;
    this.#request = request;
    this.#account = account;
    this.#translation = setup.translator.port(PORT_RECEIVER);
    this.#isReadWalkedLater = setup.translator.aheadPorts.length > 0;
    setup.domain.addEdgeKeeper(this);
  }

  connect({ responses }: { readonly responses: ResponseEngine }): void {
    this.#responses = responses;
  }

  /** Decides whether the request is executed, is a duplicate, or is dropped. */
  check(cycle: Cycles): CheckAnswer {
    const { pair, state, psn, kind } = this.#request;
    const distance = psnDistance(psn, state.expectedPsn);
    if (pair.opcodeBase !== 0) return this.#checkUnreliable(distance);
    if (distance < 0) return DUPLICATE;
    if (distance > 0) {
      this.#transport.count('requestOutOfSequence');
      if (this.#reorder.isOn) this.#hold(cycle);
      else if (state.hasNakSent === 0) this.#request.refuse(nakSyndrome(NakCode.PSN_SEQUENCE_ERROR), cycle);
      return DROPPED;
    }
    if (!this.#followsSequence() || !this.#hasLegalLength()) {
      this.#request.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return DROPPED;
    }
    if (pair.serviceBits === XRC_SERVICE && !this.#mayUseQueue(cycle)) return DROPPED;
    return kind !== MESSAGE_NONE || this.#hasResources(cycle) ? EXECUTE : DROPPED;
  }

  /** Keeps a request that came before its turn: its payload passes the receiver now, and again when its turn has come. */
  #hold(cycle: Cycles): void {
    const request = this.#request;
    this.#reorder.hold(request.pair, request.packet, cycle);
    request.placed = request.payloadBytes;
  }

  /** Checks the rights of WRITE, READ and atomics. Returns DONE if they are granted. */
  checkRights(cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { kind, pair } = request;
    if (kind === MESSAGE_SEND || (request.traits & STARTS_MESSAGE) === 0) return DONE;
    if (kind === MESSAGE_WRITE) {
      const bytes = request.dmaBytes;
      const allowed = this.#mayAccess(QP_RIGHT_WRITE, RIGHT_REMOTE_WRITE, bytes, cycle);
      if (allowed !== DONE) return allowed;
      pair.writeAddress = request.remoteAddress;
      pair.writeAddressTop = request.remoteAddressTop;
      pair.writeKey = request.remoteKey;
      pair.writeRemaining = bytes;
      pair.writeBytes = bytes;
      this.#checkedCycle = cycle;
      return DONE;
    }
    if (request.opcode === Opcode.RC_RDMA_READ_REQUEST)
      return this.#mayAccess(QP_RIGHT_READ, RIGHT_REMOTE_READ, request.dmaBytes, cycle);
    if (request.remoteAddress % ATOMIC_BYTES !== 0) {
      request.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return REFUSED;
    }
    return this.#mayAccess(QP_RIGHT_ATOMIC, RIGHT_REMOTE_ATOMIC, ATOMIC_BYTES, cycle);
  }

  /** The WRITE at hand had its rights checked in this very cycle: its first piece is translated. */
  isTranslated(cycle: Cycles): boolean {
    const { pair } = this.#request;
    return this.#checkedCycle === cycle && pair.writeRemaining === pair.writeBytes;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.#checkedCycle -= cycles;
  }

  /** A gap ends the open message. */
  #checkUnreliable(distance: number): CheckAnswer {
    const { pair, state, psn, kind } = this.#request;
    if (distance !== 0) {
      this.#transport.count('requestOutOfSequence');
      pair.messageKind = MESSAGE_NONE;
      state.expectedPsn = psn;
    }
    if (kind !== MESSAGE_NONE && this.#followsSequence() && this.#hasLegalLength()) return EXECUTE;
    this.#request.abandon();
    return DROPPED;
  }

  /**
   * True if the opcode follows the sequence: first and only start a message when none is open; middle and last continue
   * one of the same kind.
   */
  #followsSequence(): boolean {
    const { kind, traits, pair } = this.#request;
    if (kind === MESSAGE_UNKNOWN) return false;
    const open = pair.messageKind;
    return (traits & STARTS_MESSAGE) !== 0 ? open === MESSAGE_NONE : open === kind;
  }

  /**
   * Checks the payload length: middle packets fill the MTU, last ones are not empty, a WRITE has the length that its
   * header announced (9.7.4.1.6).
   */
  #hasLegalLength(): boolean {
    const { kind, traits, pair, payloadBytes: bytes } = this.#request;
    if (kind === MESSAGE_NONE) return true;
    const starts = (traits & STARTS_MESSAGE) !== 0;
    const ends = (traits & ENDS_MESSAGE) !== 0;
    const mtu = pair.mtuBytes;
    if (bytes > mtu || (!ends && bytes !== mtu) || (ends && !starts && bytes === 0)) return false;
    if (kind !== MESSAGE_WRITE) return true;
    const remaining = starts ? this.#request.dmaBytes : pair.writeRemaining;
    return ends ? bytes === remaining : bytes < remaining;
  }

  /**
   * An XRC request names an SRQ of the QP's domain, all packets of a message the same (annex A14). False: it is refused. The message is
   * that queue's from here on.
   */
  #mayUseQueue(cycle: Cycles): boolean {
    const srqs = this.#srqs;
    const { pair, traits, srq } = this.#request;
    const srqn = srq === -1 ? -1 : srqs.numberOf[srq]!;
    const isFree = (traits & STARTS_MESSAGE) !== 0 && pair.hasReceiveWqe === 0;
    if (srq === -1 || srqs.xrcDomain[srq] !== pair.xrcDomain || !(isFree || srqn === pair.srqn)) {
      this.#request.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_ACCESS_ERROR, cycle);
      return false;
    }
    pair.srqn = srqn;
    pair.receiveCqn = srqs.cqn[srq]!;
    if ((traits & TAKES_RECEIVE_WQE) === 0 || this.#isUsable(pair.receiveCqn)) return true;
    this.#request.refuseForGood(NakCode.REMOTE_OPERATIONAL_ERROR, EventType.WQ_CATAS_ERROR, cycle);
    return false;
  }

  /**
   * True if the CQ of an SRQ accepts completions: a failed CQ does not bring the QPs of other processes on the SRQ to
   * error.
   */
  #isUsable(cqn: Cqn): boolean {
    const cq = this.#cqs.slotOf(cqn);
    return cq !== -1 && this.#cqs.rows[cq]!.status === QueueStatus.OK;
  }

  /** Room for one more READ or atomic. */
  #hasResources(cycle: Cycles): boolean {
    const { qp, pair } = this.#request;
    if (this.#responses.newCount(qp) < pair.readResourcesMax) {
      // If repeated requests have taken all places, this request is dropped as if lost: the peer retransmits it.
      return this.#responses.queuedCount(qp) < responderPlaces(pair);
    }
    this.#request.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
    return false;
  }

  /** Checks that QP and region give this right to `bytes` bytes at the address in the header. */
  #mayAccess(qpRight: number, right: number, bytes: number, cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { pair } = request;
    if ((pair.remoteRights & qpRight) === 0) {
      // A function that this QP does not support: an invalid request, not an access error (table 60).
      request.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return REFUSED;
    }
    if (bytes === 0) return DONE;
    const { remoteKey, pd, remoteAddress, remoteAddressTop } = request;
    const translation = this.#translation;
    const found =
      this.#isReadWalkedLater && right === RIGHT_REMOTE_READ
        ? translation.check(remoteKey, pd, remoteAddress, remoteAddressTop, bytes, right, pair)
        : translation.translate(remoteKey, pd, remoteAddress, remoteAddressTop, bytes, right, pair);
    if (found === PENDING) {
      this.#account.stall(cycle, STALL_TRANSLATION);
      return WAIT;
    }
    if (found < BAD_KEY) {
      // WRITEs count their translations when they place payload.
      if (right !== RIGHT_REMOTE_WRITE) translation.used();
      return DONE;
    }
    const isWrite = right !== RIGHT_REMOTE_READ;
    const at = { key: remoteKey, address: remoteAddress, addressTop: remoteAddressTop };
    const wanted = { ...at, lengthBytes: bytes, isWrite };
    if (found === PAGE_FAULT && request.askForPage(wanted, cycle)) return REFUSED;
    request.refuseForGood(NakCode.REMOTE_ACCESS_ERROR, EventType.WQ_ACCESS_ERROR, cycle);
    return REFUSED;
  }
}
