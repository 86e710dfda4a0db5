/**
 * The responder: executes inbound requests of connections. The checks are made in the specification's order
 * (IBTA vol 1, 9.7.4.1.1 and figure 84), each by a function of its own:
 *
 *   QP state ─> PSN ─> opcode sequence ─> resources ─> length ─> rights ─> payload to memory ─> completion ─> ACK
 *
 * A packet is worked on until it is finished; when something is not on chip (translation, receive WQE, DMA room) the
 * function returns WAIT and is entered again later, at the same step.
 *
 * An unreliable connection takes SENDs and WRITEs only and is never answered: a message of which a packet is missing or
 * breaks a rule is given up in silence, and the next one to begin takes its receive WQE (9.8.2).
 */
import { CqeSyndrome, ReceiveOpcode } from '../../abi/cqe.ts';
import { EventType } from '../../abi/eqe.ts';
import type { BlockAccount } from '../../sim/index.ts';
import { NakCode, nakSyndrome, rnrNakSyndrome } from '../../wire/aeth.ts';
import { endsMessage, hasImmediate, Opcode, startsMessage } from '../../wire/opcodes.ts';
import * as packetConstants from '../../wire/packet.ts';
import * as psnConstants from '../../wire/psn.ts';
import { psnDistance } from '../../wire/psn.ts';
import type { CompletionWriter } from './completion-writer.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import * as pageFaults from './page-faults.ts';
import * as qpTable from './qp-table.ts';
import * as receivePipeline from './receive-pipeline.ts';
import type { ReceiveScatter } from './receive-scatter.ts';
import * as receiveScatter from './receive-scatter.ts';
import type { ReceivedPackets } from './received-packets.ts';
import * as responderResources from './responder-resources.ts';
import type { ResponseEngine } from './response-engine.ts';
import * as translationCache from './translation-cache.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { FLAG_ACK_REQUEST, FLAG_SOLICITED, FLOAT_VIRTUAL_ADDRESS, PACKET_PAYLOAD_OFFSET } = packetConstants;
const { WORD_DMA_LENGTH, WORD_IMMEDIATE, WORD_LIDS, WORD_OPCODE, WORD_PACKET_FLAGS } = packetConstants;
const { WORD_PAYLOAD_BYTES, WORD_PSN, WORD_RKEY } = packetConstants;
const { PSN_MASK } = psnConstants;
const { PORT_RECEIVER } = coreConstants;
const { QP_RIGHT_ATOMIC, QP_RIGHT_READ, QP_RIGHT_WRITE, UC_OPCODE_BASE } = qpTable;
const { STALL_COMPLETION, STALL_TRANSLATION, WAIT } = receivePipeline;
const { LIST_ABSENT, LIST_FULL, LIST_REFUSED, NONE_POSTED, QUEUE_UNREADABLE } = receiveScatter;
const { RESPONDER_RESOURCES } = responderResources;
const { RIGHT_REMOTE_ATOMIC, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE } = translationCache;
const { BAD_KEY, PAGE_FAULT, PENDING } = translatorConstants;
const { SIDE_RESPONDER } = pageFaults;

const MESSAGE_NONE = 0;
const MESSAGE_SEND = 1;
const MESSAGE_WRITE = 2;

const STEP_CHECK = 0;
const STEP_RECEIVE_WQE = 1;
const STEP_RIGHTS = 2;
const STEP_PAYLOAD = 3;
const STEP_FINISH = 4;

/** Traits of an opcode, as bits of {@link traitsByOpcode}. */
const STARTS_MESSAGE = 1 << 0;
const ENDS_MESSAGE = 1 << 1;
const HAS_IMMEDIATE = 1 << 2;
/** The first packet of a SEND, the last one of a WRITE with immediate. */
const TAKES_RECEIVE_WQE = 1 << 3;
const COMPLETES_RECEIVE_WQE = 1 << 4;

const OPCODE_COUNT = 256;
const kindByOpcode = Int8Array.from({ length: OPCODE_COUNT }, (_, opcode) => messageKindOf(opcode));
const traitsByOpcode = Uint8Array.from({ length: OPCODE_COUNT }, (_, opcode) => traitsOf(opcode));

export interface ResponderListener {
  /** A request broke a rule: the NAK is queued; the QP goes to error, with the given asynchronous event. */
  qpRefused(qp: number, eventType: number, cycle: number): void;
  /** First packet on a QP in RTR. */
  communicationEstablished(qp: number, cycle: number): void;
}

export class Responder {
  readonly #core: HcaCore;
  readonly #port: ReceivedPackets;
  readonly #scatter: ReceiveScatter;
  readonly #responses: ResponseEngine;
  readonly #completions: CompletionWriter;
  readonly #account: BlockAccount;
  readonly #listener: ResponderListener;
  #step = STEP_CHECK;
  /** The packet being worked on: read once, when its check begins. */
  #opcode = 0;
  #kind = MESSAGE_NONE;
  #traits = 0;
  #psn = 0;
  #payloadBytes = 0;
  /** Payload bytes of the packet already on their way. */
  #placed = 0;
  /** CQE syndrome of a receive WQE that the message does not fit or whose memory is refused; 0 while all is well. */
  #receiveSyndrome = 0;

  constructor(
    core: HcaCore,
    port: ReceivedPackets,
    scatter: ReceiveScatter,
    responses: ResponseEngine,
    completions: CompletionWriter,
    account: BlockAccount,
    listener: ResponderListener,
  ) {
    this.#core = core;
    this.#port = port;
    this.#scatter = scatter;
    this.#responses = responses;
    this.#completions = completions;
    this.#account = account;
    this.#listener = listener;
  }

  /** Works on the request at `offset` for `qp`. Returns the payload bytes handled, or WAIT. */
  process(offset: number, qp: number, cycle: number): number {
    if (this.#step === STEP_CHECK) {
      this.#load(offset);
      if (!this.#check(offset, qp, cycle)) return this.#done(0);
      this.#placed = 0;
      this.#receiveSyndrome = 0;
      this.#step = STEP_RECEIVE_WQE;
    }
    if (this.#step === STEP_RECEIVE_WQE) {
      if ((this.#traits & TAKES_RECEIVE_WQE) !== 0) {
        const taken = this.#takeReceiveWqe(qp, cycle);
        if (taken !== 1) return taken === WAIT ? WAIT : this.#done(0);
      }
      this.#step = STEP_RIGHTS;
    }
    if (this.#step === STEP_RIGHTS) {
      const allowed = this.#checkRights(offset, qp, cycle);
      if (allowed !== 1) return allowed === WAIT ? WAIT : this.#done(0);
      this.#step = STEP_PAYLOAD;
    }
    if (this.#step === STEP_PAYLOAD) {
      const placed = this.#placePayload(offset, qp, cycle);
      if (placed !== 1) return placed === WAIT ? WAIT : this.#done(0);
      this.#step = STEP_FINISH;
    }
    if (!this.#finish(offset, qp, cycle)) return WAIT;
    return this.#done(this.#placed);
  }

  reset(): void {
    this.#step = STEP_CHECK;
  }

  #done(bytes: number): number {
    this.#step = STEP_CHECK;
    return bytes;
  }

  #load(offset: number): void {
    const words = this.#port.rxWords;
    const word = offset >> 2;
    const opcode = words[word + WORD_OPCODE]!;
    this.#opcode = opcode;
    this.#kind = kindByOpcode[opcode]!;
    this.#traits = traitsByOpcode[opcode]!;
    this.#psn = words[word + WORD_PSN]!;
    this.#payloadBytes = words[word + WORD_PAYLOAD_BYTES]!;
  }

  #word(offset: number, word: number): number {
    return this.#port.rxWords[(offset >> 2) + word]!;
  }

  /** PSN, opcode sequence and resources. False: the packet is dropped or refused. */
  #check(offset: number, qp: number, cycle: number): boolean {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    if (pair.hasCommunicated === 0) {
      pair.hasCommunicated = 1;
      this.#listener.communicationEstablished(qp, cycle);
    }
    const distance = psnDistance(this.#psn, pair.expectedPsn);
    if (pair.opcodeBase !== 0) return this.#checkUnreliable(offset, qp, distance);
    if (distance < 0) {
      this.#repeat(offset, qp, cycle);
      return false;
    }
    if (distance > 0) {
      this.#core.violations.count('packetOutOfSequence');
      if (pair.hasNakSent === 0) this.#refuse(qp, nakSyndrome(NakCode.PSN_SEQUENCE_ERROR), cycle);
      return false;
    }
    if (!this.#followsSequence(qp) || !this.#hasLegalLength(offset, qp)) {
      this.#refuseForGood(qp, NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return false;
    }
    return this.#kind !== MESSAGE_NONE || this.#hasResources(qp, cycle);
  }

  /** A gap ends the open message; only a packet that begins one is taken behind it. */
  #checkUnreliable(offset: number, qp: number, distance: number): boolean {
    const { qps, violations } = this.#core;
    if (distance !== 0) {
      violations.count('packetOutOfSequence');
      const pair = qps.rows[qp]!;
      pair.messageKind = MESSAGE_NONE;
      pair.expectedPsn = this.#psn;
    }
    if (this.#kind !== MESSAGE_NONE && this.#followsSequence(qp) && this.#hasLegalLength(offset, qp))
      return true;
    this.#giveUp(qp);
    return false;
  }

  /** The message is lost; the packet has been. */
  #giveUp(qp: number): void {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    pair.messageKind = MESSAGE_NONE;
    pair.expectedPsn = (this.#psn + 1) & PSN_MASK;
  }

  /** A duplicate (9.7.5.1.4): answered again, never executed again but for READ. */
  #repeat(offset: number, qp: number, cycle: number): void {
    const { qps } = this.#core;
    const opcode = this.#opcode;
    this.#core.violations.count('packetDuplicate');
    const pair = qps.rows[qp]!;
    if (opcode === Opcode.RC_RDMA_READ_REQUEST) {
      if (this.#responses.queuedCount(qp) < Math.min(pair.readResourcesMax, RESPONDER_RESOURCES))
        this.#acceptRead(offset, qp, 0, cycle);
    } else if (opcode === Opcode.RC_COMPARE_SWAP || opcode === Opcode.RC_FETCH_ADD) {
      this.#responses.replayAtomic(qp, this.#psn, cycle);
    } else {
      this.#responses.acknowledge(qp, (pair.expectedPsn - 1) & PSN_MASK, cycle);
    }
  }

  /** First and only start a message when none is open; middle and last continue one of the same kind. */
  #followsSequence(qp: number): boolean {
    const kind = this.#kind;
    if (kind === -1) return false;
    const open = this.#core.qps.rows[qp]!.messageKind;
    return (this.#traits & STARTS_MESSAGE) !== 0 ? open === MESSAGE_NONE : open === kind;
  }

  /** Middle packets fill the MTU, last ones are not empty, a WRITE brings what its header announced (9.7.4.1.6). */
  #hasLegalLength(offset: number, qp: number): boolean {
    const { qps } = this.#core;
    const kind = this.#kind;
    if (kind === MESSAGE_NONE) return true;
    const bytes = this.#payloadBytes;
    const starts = (this.#traits & STARTS_MESSAGE) !== 0;
    const ends = (this.#traits & ENDS_MESSAGE) !== 0;
    const pair = qps.rows[qp]!;
    const mtu = pair.mtuBytes;
    if (bytes > mtu || (!ends && bytes !== mtu) || (ends && !starts && bytes === 0)) return false;
    if (kind !== MESSAGE_WRITE) return true;
    const remaining = starts ? this.#word(offset, WORD_DMA_LENGTH) >>> 0 : pair.writeRemaining;
    return ends ? bytes === remaining : bytes < remaining;
  }

  /** Room for one more READ or atomic. */
  #hasResources(qp: number, cycle: number): boolean {
    const { qps } = this.#core;
    if (this.#responses.newCount(qp) < Math.min(qps.rows[qp]!.readResourcesMax, RESPONDER_RESOURCES)) {
      // Where repeated requests have taken all places, this one is dropped as if lost: it comes again.
      return this.#responses.queuedCount(qp) < RESPONDER_RESOURCES;
    }
    this.#refuseForGood(qp, NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
    return false;
  }

  /** The receive WQE of a SEND's first packet, or of a WRITE with immediate's last one. 1, 0 (refused) or WAIT. */
  #takeReceiveWqe(qp: number, cycle: number): number {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    if (pair.hasReceiveWqe === 1) {
      // Left by a message of an unreliable connection that was given up.
      this.#scatter.rewind(qp);
      return 1;
    }
    const taken = this.#scatter.take(qp, cycle);
    if (taken === NONE_POSTED && pair.opcodeBase !== 0) this.#core.violations.count('unreliableNoReceive');
    if (taken === NONE_POSTED) this.#refuse(qp, rnrNakSyndrome(pair.minRnrNakCode), cycle);
    if (taken === QUEUE_UNREADABLE)
      this.#refuseForGood(qp, NakCode.REMOTE_OPERATIONAL_ERROR, EventType.WQ_CATAS_ERROR, cycle);
    return taken === QUEUE_UNREADABLE ? 0 : taken;
  }

  /** Rights of WRITE, READ and atomics: of the QP first, then of the region. 1, 0 (refused) or WAIT. */
  #checkRights(offset: number, qp: number, cycle: number): number {
    const { qps } = this.#core;
    const kind = this.#kind;
    if (kind === MESSAGE_SEND || (this.#traits & STARTS_MESSAGE) === 0) return 1;
    const address = this.#port.rxFloats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS]!;
    const key = this.#word(offset, WORD_RKEY) >>> 0;
    if (kind === MESSAGE_WRITE) {
      const bytes = this.#word(offset, WORD_DMA_LENGTH) >>> 0;
      const allowed = this.#mayAccess(qp, QP_RIGHT_WRITE, key, address, bytes, RIGHT_REMOTE_WRITE, cycle);
      if (allowed !== 1) return allowed;
      const pair = qps.rows[qp]!;
      pair.writeAddress = address;
      pair.writeKey = key;
      pair.writeRemaining = bytes;
      pair.writeBytes = bytes;
      return 1;
    }
    if (this.#opcode === Opcode.RC_RDMA_READ_REQUEST) {
      const bytes = this.#word(offset, WORD_DMA_LENGTH) >>> 0;
      return this.#mayAccess(qp, QP_RIGHT_READ, key, address, bytes, RIGHT_REMOTE_READ, cycle);
    }
    if (address % 8 !== 0) {
      this.#refuseForGood(qp, NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return 0;
    }
    return this.#mayAccess(qp, QP_RIGHT_ATOMIC, key, address, 8, RIGHT_REMOTE_ATOMIC, cycle);
  }

  #mayAccess(
    qp: number,
    qpRight: number,
    key: number,
    address: number,
    bytes: number,
    right: number,
    cycle: number,
  ): number {
    const { qps, translator } = this.#core;
    const pair = qps.rows[qp]!;
    if ((pair.remoteRights & qpRight) === 0) {
      // A function that this QP does not support: an invalid request, not an access error (table 60).
      this.#refuseForGood(qp, NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return 0;
    }
    const found = bytes === 0 ? 0 : translator.translate(PORT_RECEIVER, key, pair.pd, address, bytes, right);
    if (found === PENDING) {
      this.#account.stall(cycle, STALL_TRANSLATION);
      return WAIT;
    }
    if (found < BAD_KEY) return 1;
    const isWrite = right === RIGHT_REMOTE_READ ? 0 : 1;
    if (found === PAGE_FAULT && this.#isAskedFor(qp, key, address, bytes, isWrite, cycle)) return 0;
    this.#refuseForGood(qp, NakCode.REMOTE_ACCESS_ERROR, EventType.WQ_ACCESS_ERROR, cycle);
    return 0;
  }

  /** Writes the packet's payload to memory, piece by piece. 1, 0 (refused) or WAIT. */
  #placePayload(offset: number, qp: number, cycle: number): number {
    const bytes = this.#payloadBytes;
    const source = offset + PACKET_PAYLOAD_OFFSET;
    while (this.#placed < bytes && this.#receiveSyndrome === 0) {
      const left = bytes - this.#placed;
      const placed =
        this.#kind === MESSAGE_WRITE
          ? this.#placeWrite(qp, left, source, cycle)
          : this.#placeSend(qp, left, source, cycle);
      if (placed !== 1) return placed;
    }
    return 1;
  }

  #placeWrite(qp: number, left: number, source: number, cycle: number): number {
    const { qps, translator } = this.#core;
    const pair = qps.rows[qp]!;
    const found = translator.translate(
      PORT_RECEIVER,
      pair.writeKey,
      pair.pd,
      pair.writeAddress,
      left,
      RIGHT_REMOTE_WRITE,
    );
    if (found >= BAD_KEY) {
      this.#refuseWrite(qp, found, cycle);
      return 0;
    }
    const moved = this.#scatter.write(found, left, this.#port.rxBytes, source + this.#placed, cycle);
    if (moved === WAIT) return WAIT;
    this.#placed += moved;
    pair.writeAddress += moved;
    pair.writeRemaining -= moved;
    return 1;
  }

  /** What the packet has written so far is written again when it comes again. */
  #refuseWrite(qp: number, found: number, cycle: number): void {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    const address = pair.writeAddress;
    const bytes = pair.writeRemaining;
    if (found === PAGE_FAULT && this.#isAskedFor(qp, pair.writeKey, address, bytes, 1, cycle)) {
      pair.writeAddress = address - this.#placed;
      pair.writeRemaining = bytes + this.#placed;
      return;
    }
    this.#refuseForGood(qp, NakCode.REMOTE_ACCESS_ERROR, EventType.WQ_ACCESS_ERROR, cycle);
  }

  /** Asks for a page of an on-demand region; the packet is to come again. False: the driver has refused it. */
  #isAskedFor(
    qp: number,
    key: number,
    address: number,
    bytes: number,
    isWrite: number,
    cycle: number,
  ): boolean {
    const isAsked = this.#core.pageFaults.meet(qp, SIDE_RESPONDER, key, address, bytes, isWrite, cycle);
    if (isAsked) this.#refuseForNow(qp, cycle);
    return isAsked;
  }

  /** The memory will be there later: RNR NAK, as mlx5 answers. */
  #refuseForNow(qp: number, cycle: number): void {
    const { qps, pageFaults: faults } = this.#core;
    const pair = qps.rows[qp]!;
    if (pair.opcodeBase === 0) faults.rnrNakCount++;
    else faults.droppedPacketCount++;
    this.#refuse(qp, rnrNakSyndrome(pair.minRnrNakCode), cycle);
  }

  /** Into the segments of the receive WQE; what does not fit or may not be written fails the message at its end. */
  #placeSend(qp: number, left: number, source: number, cycle: number): number {
    const moved = this.#scatter.place(qp, left, this.#port.rxBytes, source + this.#placed, cycle);
    if (moved === WAIT) return WAIT;
    if (moved === LIST_ABSENT) {
      this.#scatter.retreat(qp, this.#placed);
      this.#refuseForNow(qp, cycle);
      return 0;
    }
    if (moved === LIST_FULL) this.#receiveSyndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
    else if (moved === LIST_REFUSED) this.#receiveSyndrome = CqeSyndrome.LOCAL_PROT_ERR;
    else this.#placed += moved;
    return 1;
  }

  /** Completion, sequence and acknowledgement. False: there is no room for the CQE yet. */
  #finish(offset: number, qp: number, cycle: number): boolean {
    const { qps } = this.#core;
    const kind = this.#kind;
    const completes = this.#receiveSyndrome !== 0 || (this.#traits & COMPLETES_RECEIVE_WQE) !== 0;
    if (completes && this.#completions.isFull) {
      this.#account.stall(cycle, STALL_COMPLETION);
      return false;
    }
    if (this.#receiveSyndrome !== 0) {
      this.#failReceive(qp, cycle);
      return true;
    }
    const isEnd = (this.#traits & ENDS_MESSAGE) !== 0;
    const pair = qps.rows[qp]!;
    pair.messageKind = isEnd ? MESSAGE_NONE : kind;
    pair.hasNakSent = 0;
    if (isEnd) pair.msn = (pair.msn + 1) & PSN_MASK;
    pair.expectedPsn = (this.#psn + 1) & PSN_MASK;
    if (completes) this.#complete(offset, qp, cycle);
    if (kind === MESSAGE_NONE) this.#acceptSingle(offset, qp, cycle);
    else if (pair.opcodeBase === 0 && (this.#word(offset, WORD_PACKET_FLAGS) & FLAG_ACK_REQUEST) !== 0)
      this.#responses.acknowledge(qp, this.#psn, cycle);
    return true;
  }

  #complete(offset: number, qp: number, cycle: number): void {
    const { qps } = this.#core;
    const isWrite = this.#kind === MESSAGE_WRITE;
    const withImmediate = (this.#traits & HAS_IMMEDIATE) !== 0;
    const receiveOpcode = isWrite
      ? ReceiveOpcode.RDMA_WRITE_IMM
      : withImmediate
        ? ReceiveOpcode.SEND_IMM
        : ReceiveOpcode.SEND;
    const isSolicited = (this.#word(offset, WORD_PACKET_FLAGS) & FLAG_SOLICITED) !== 0 ? 1 : 0;
    const pair = qps.rows[qp]!;
    const bytes = isWrite ? pair.writeBytes : pair.messageBytes;
    const immediate = withImmediate ? this.#word(offset, WORD_IMMEDIATE) : 0;
    const sourceLid = this.#word(offset, WORD_LIDS) >>> 16;
    pair.hasReceiveWqe = 0;
    this.#completions.post(
      pair.receiveCqn,
      qp,
      -1,
      0,
      receiveOpcode,
      pair.receiveWqeCounter,
      bytes,
      immediate,
      isSolicited,
      0,
      sourceLid,
      cycle,
    );
  }

  /** The receive WQE completes in error, the sender learns of it, and the QP fails (9.9.3, class B and C). */
  #failReceive(qp: number, cycle: number): void {
    const { qps } = this.#core;
    const syndrome = this.#receiveSyndrome;
    const nak =
      syndrome === CqeSyndrome.LOCAL_LENGTH_ERR ? NakCode.INVALID_REQUEST : NakCode.REMOTE_OPERATIONAL_ERROR;
    const pair = qps.rows[qp]!;
    pair.hasReceiveWqe = 0;
    this.#completions.post(
      pair.receiveCqn,
      qp,
      -1,
      0,
      0,
      pair.receiveWqeCounter,
      0,
      0,
      0,
      syndrome,
      0,
      cycle,
    );
    pair.messageKind = MESSAGE_NONE;
    if (pair.opcodeBase === 0) this.#responses.refuse(qp, pair.expectedPsn, nakSyndrome(nak), cycle);
    this.#listener.qpRefused(qp, 0, cycle);
  }

  /** A READ or an atomic: one packet, answered by the response engine. */
  #acceptSingle(offset: number, qp: number, cycle: number): void {
    if (this.#opcode === Opcode.RC_RDMA_READ_REQUEST) this.#acceptNewRead(offset, qp, cycle);
    else this.#acceptAtomic(offset, qp, cycle);
  }

  #acceptNewRead(offset: number, qp: number, cycle: number): void {
    const { qps } = this.#core;
    const bytes = this.#word(offset, WORD_DMA_LENGTH) >>> 0;
    const pair = qps.rows[qp]!;
    const packets = Math.max(1, Math.ceil(bytes / pair.mtuBytes));
    pair.expectedPsn = (this.#psn + packets) & PSN_MASK;
    this.#acceptRead(offset, qp, 1, cycle);
  }

  #acceptRead(offset: number, qp: number, isNew: number, cycle: number): void {
    const address = this.#port.rxFloats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS]!;
    const key = this.#word(offset, WORD_RKEY) >>> 0;
    const bytes = this.#word(offset, WORD_DMA_LENGTH) >>> 0;
    this.#responses.addRead(qp, this.#psn, address, key, bytes, isNew, cycle);
  }

  #acceptAtomic(offset: number, qp: number, cycle: number): void {
    const address = this.#port.rxFloats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS]!;
    const key = this.#word(offset, WORD_RKEY) >>> 0;
    const operands = (offset + PACKET_PAYLOAD_OFFSET) >> 2;
    const { rxWords } = this.#port;
    this.#responses.addAtomic(qp, this.#psn, this.#opcode, address, key, rxWords, operands, cycle);
  }

  /** NAK or RNR NAK for the expected PSN; what follows is dropped in silence until it comes (9.7.5.2). */
  #refuse(qp: number, syndrome: number, cycle: number): void {
    const pair = this.#core.qps.rows[qp]!;
    if (pair.opcodeBase !== 0) return this.#giveUp(qp);
    pair.hasNakSent = 1;
    this.#responses.refuse(qp, pair.expectedPsn, syndrome, cycle);
  }

  #refuseForGood(qp: number, nakCode: number, eventType: number, cycle: number): void {
    this.#refuse(qp, nakSyndrome(nakCode), cycle);
    const isOwnFault = eventType === EventType.WQ_CATAS_ERROR;
    if (this.#core.qps.rows[qp]!.opcodeBase === 0 || isOwnFault)
      this.#listener.qpRefused(qp, eventType, cycle);
  }
}

/** SEND, WRITE, or none (READ and atomics are one packet); -1 for what is no request of a connection. */
function messageKindOf(opcode: number): number {
  if (opcode >= UC_OPCODE_BASE) {
    const isUnreliable = opcode <= Opcode.UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    return isUnreliable ? messageKindOf(opcode - UC_OPCODE_BASE) : -1;
  }
  if (opcode <= Opcode.RC_SEND_ONLY_WITH_IMMEDIATE) return MESSAGE_SEND;
  if (opcode <= Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE) return MESSAGE_WRITE;
  const isSingle =
    opcode === Opcode.RC_RDMA_READ_REQUEST ||
    opcode === Opcode.RC_COMPARE_SWAP ||
    opcode === Opcode.RC_FETCH_ADD;
  return isSingle ? MESSAGE_NONE : -1;
}

function traitsOf(opcode: number): number {
  const isSend = messageKindOf(opcode) === MESSAGE_SEND;
  const starts = startsMessage(opcode);
  const ends = endsMessage(opcode);
  const withImmediate = hasImmediate(opcode);
  return (
    (starts ? STARTS_MESSAGE : 0) |
    (ends ? ENDS_MESSAGE : 0) |
    (withImmediate ? HAS_IMMEDIATE : 0) |
    ((isSend ? starts : withImmediate) ? TAKES_RECEIVE_WQE : 0) |
    (ends && (isSend || withImmediate) ? COMPLETES_RECEIVE_WQE : 0)
  );
}
