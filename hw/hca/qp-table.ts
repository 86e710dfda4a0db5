/**
 * Queue pair contexts. The configured fields are decoded from the context bytes once per command; what changes with
 * every packet lives only in the typed arrays and is written into the bytes by {@link QpTable.sync}.
 *
 * Fields are grouped by their user: identity (both sides), send side, receive side, and the acknowledgement side
 * between them. Counters are free-running unless named otherwise; PSN, SSN and MSN are 24 bits.
 */
import { mtuBytesOf, QpState, qpc, ServiceType } from '../../abi/qpc.ts';
import { ContextTable } from './context-table.ts';

export const QPC_BYTES = 256;
/** Most scatter/gather entries of one work request. */
export const SEGMENTS_MAX = 32;
const NO_CREDIT_LIMIT = -1;

const f = qpc.fields;
const path = f.primaryPath.fields;

export class QpTable extends ContextTable {
  // Identity and configuration
  readonly state: Uint8Array;
  readonly serviceType: Uint8Array;
  readonly pd: Int32Array;
  readonly uarPage: Int32Array;
  readonly mtuBytes: Int32Array;
  readonly messageBytesMax: Float64Array;
  readonly remoteQpn: Int32Array;
  readonly remoteLid: Int32Array;
  /** What the service adds to an RC opcode: 0, 0x20 for UC, 0x60 for datagrams. Not 0 is unreliable. */
  readonly opcodeBase: Uint8Array;
  /** Whether packets carry a GRH, built from the path in the context bytes; and are for this very port whatever the LID. */
  readonly hasGrh: Uint8Array;
  readonly isForcedBack: Uint8Array;
  readonly sourcePathBits: Uint8Array;
  readonly pkeyIndex: Uint8Array;
  readonly queueKey: Int32Array;
  readonly bufferMttOffset: Float64Array;
  readonly bufferPageBytes: Float64Array;
  /** Byte offset of the send queue and of the receive queue from the first page of the buffer. */
  readonly sqOffset: Float64Array;
  readonly rqOffset: Float64Array;
  readonly sqLogCount: Uint8Array;
  readonly sqStrideBytes: Int32Array;
  readonly rqLogCount: Uint8Array;
  readonly rqStrideBytes: Int32Array;
  readonly hasReceiveQueue: Uint8Array;
  readonly sendCqn: Int32Array;
  readonly receiveCqn: Int32Array;
  /** SRQ number, or -1. */
  readonly srqn: Int32Array;
  readonly doorbellRecord: Float64Array;
  /** Raised whenever the work in flight becomes void: what carries an older value is dropped. */
  readonly epoch: Int32Array;
  /** Things in the pipelines that refer to this QP. */
  readonly inPipelineCount: Int32Array;

  // Send side
  /** 16-bit counter of the next send WQE to execute. */
  readonly sqCounter: Int32Array;
  readonly nextPsn: Int32Array;
  /** Send sequence number of the next message; limit from the responder's credits, -1 for none. */
  readonly ssn: Int32Array;
  readonly ssnLimit: Int32Array;
  readonly hasDoorbell: Uint8Array;
  /** Whether and where the scheduler holds the QP; 0 is nowhere. */
  readonly isScheduled: Uint8Array;
  /** Why the QP is not scheduled though it has work: see SendScheduler. */
  readonly parkedFor: Uint8Array;
  readonly wqeLine: Int32Array;
  readonly isFetching: Uint8Array;
  /** Oldest and newest record of an executed WQE, the one being sent, and its next packet. */
  readonly recordHead: Int32Array;
  readonly recordTail: Int32Array;
  readonly recordCursor: Int32Array;
  readonly packetCursor: Int32Array;
  readonly recordCount: Int32Array;
  readonly readsOutstanding: Int32Array;
  readonly readsOutstandingMax: Int32Array;
  readonly sinceAckRequest: Int32Array;
  readonly ackRequestEvery: Int32Array;
  readonly retryCountMax: Uint8Array;
  readonly rnrRetryCountMax: Uint8Array;
  readonly retriesLeft: Uint8Array;
  readonly rnrRetriesLeft: Uint8Array;
  /** Local ACK timeout in picoseconds; 0 is never. */
  readonly ackTimeoutPs: Float64Array;
  readonly lastProgressPs: Float64Array;
  readonly hasTimer: Uint8Array;
  readonly isWaitingRnr: Uint8Array;
  readonly lastAckedPsn: Int32Array;

  // Receive side
  readonly expectedPsn: Int32Array;
  readonly msn: Int32Array;
  readonly remoteRights: Uint8Array;
  readonly minRnrNakCode: Uint8Array;
  readonly readResourcesMax: Int32Array;
  readonly creditsInvalid: Uint8Array;
  readonly hasNakSent: Uint8Array;
  /** Opcode class of the message being received: 0 none, 1 SEND, 2 WRITE. */
  readonly messageKind: Uint8Array;
  readonly messageBytes: Float64Array;
  readonly writeAddress: Float64Array;
  readonly writeKey: Float64Array;
  readonly writeRemaining: Float64Array;
  /** Length that the WRITE's header announced. */
  readonly writeBytes: Float64Array;
  /** A receive WQE was taken and not yet completed. */
  readonly hasReceiveWqe: Uint8Array;
  readonly receiveWqeCounter: Int32Array;
  readonly segmentCount: Uint8Array;
  readonly segmentIndex: Uint8Array;
  readonly segmentUsed: Float64Array;
  readonly segmentAddress: Float64Array;
  readonly segmentKey: Float64Array;
  readonly segmentBytes: Float64Array;
  readonly hasCommunicated: Uint8Array;

  constructor(capacity: number) {
    super(QPC_BYTES, capacity);
    const bytes = (): Uint8Array => new Uint8Array(capacity);
    const ints = (): Int32Array => new Int32Array(capacity);
    const floats = (): Float64Array => new Float64Array(capacity);
    this.state = bytes();
    this.serviceType = bytes();
    this.pd = ints();
    this.uarPage = ints();
    this.mtuBytes = ints();
    this.messageBytesMax = floats();
    this.remoteQpn = ints();
    this.remoteLid = ints();
    this.opcodeBase = bytes();
    this.hasGrh = bytes();
    this.isForcedBack = bytes();
    this.sourcePathBits = bytes();
    this.pkeyIndex = bytes();
    this.queueKey = ints();
    this.bufferMttOffset = floats();
    this.bufferPageBytes = floats();
    this.sqOffset = floats();
    this.rqOffset = floats();
    this.sqLogCount = bytes();
    this.sqStrideBytes = ints();
    this.rqLogCount = bytes();
    this.rqStrideBytes = ints();
    this.hasReceiveQueue = bytes();
    this.sendCqn = ints();
    this.receiveCqn = ints();
    this.srqn = ints();
    this.doorbellRecord = floats();
    this.epoch = ints();
    this.inPipelineCount = ints();
    this.sqCounter = ints();
    this.nextPsn = ints();
    this.ssn = ints();
    this.ssnLimit = ints();
    this.hasDoorbell = bytes();
    this.isScheduled = bytes();
    this.parkedFor = bytes();
    this.wqeLine = ints();
    this.isFetching = bytes();
    this.recordHead = ints();
    this.recordTail = ints();
    this.recordCursor = ints();
    this.packetCursor = ints();
    this.recordCount = ints();
    this.readsOutstanding = ints();
    this.readsOutstandingMax = ints();
    this.sinceAckRequest = ints();
    this.ackRequestEvery = ints();
    this.retryCountMax = bytes();
    this.rnrRetryCountMax = bytes();
    this.retriesLeft = bytes();
    this.rnrRetriesLeft = bytes();
    this.ackTimeoutPs = floats();
    this.lastProgressPs = floats();
    this.hasTimer = bytes();
    this.isWaitingRnr = bytes();
    this.lastAckedPsn = ints();
    this.expectedPsn = ints();
    this.msn = ints();
    this.remoteRights = bytes();
    this.minRnrNakCode = bytes();
    this.readResourcesMax = ints();
    this.creditsInvalid = bytes();
    this.hasNakSent = bytes();
    this.messageKind = bytes();
    this.messageBytes = floats();
    this.writeAddress = floats();
    this.writeKey = floats();
    this.writeRemaining = floats();
    this.writeBytes = floats();
    this.hasReceiveWqe = bytes();
    this.receiveWqeCounter = ints();
    this.segmentCount = bytes();
    this.segmentIndex = bytes();
    this.segmentUsed = floats();
    this.segmentAddress = new Float64Array(capacity * SEGMENTS_MAX);
    this.segmentKey = new Float64Array(capacity * SEGMENTS_MAX);
    this.segmentBytes = new Float64Array(capacity * SEGMENTS_MAX);
    this.hasCommunicated = bytes();
  }

  /** Takes up a context just created by RST2INIT: everything live starts from nothing. */
  create(slot: number): void {
    this.nextPsn[slot] = 0;
    this.ssn[slot] = 0;
    this.ssnLimit[slot] = NO_CREDIT_LIMIT;
    this.sqCounter[slot] = 0;
    this.expectedPsn[slot] = 0;
    this.msn[slot] = 0;
    this.readsOutstanding[slot] = 0;
    this.recordCount[slot] = 0;
    this.inPipelineCount[slot] = 0;
    this.lastProgressPs[slot] = 0;
    this.messageBytes[slot] = 0;
    for (const flags of [this.hasDoorbell, this.isScheduled, this.parkedFor, this.isFetching, this.hasTimer])
      flags[slot] = 0;
    for (const flags of [
      this.isWaitingRnr,
      this.hasNakSent,
      this.hasReceiveWqe,
      this.messageKind,
      this.hasCommunicated,
    ])
      flags[slot] = 0;
    for (const links of [this.wqeLine, this.recordHead, this.recordTail, this.recordCursor]) links[slot] = -1;
    this.packetCursor[slot] = 0;
    this.sinceAckRequest[slot] = 0;
    this.load(slot, QpState.RST);
  }

  /** Decodes what a command configured. PSNs are taken where the transition sets them. */
  load(slot: number, previousState: number): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    const state = f.state.get(view, at);
    this.state[slot] = state;
    this.serviceType[slot] = f.serviceType.get(view, at);
    this.pd[slot] = f.pd.get(view, at);
    this.uarPage[slot] = f.uarPage.get(view, at);
    const mtuCode = f.pathMtu.get(view, at);
    this.mtuBytes[slot] = mtuCode >= 1 && mtuCode <= 5 ? mtuBytesOf(mtuCode) : 256;
    this.messageBytesMax[slot] = 2 ** f.logMaxMessage.get(view, at);
    this.remoteQpn[slot] = f.remoteQpn.get(view, at);
    this.opcodeBase[slot] = opcodeBaseOf(this.serviceType[slot]!);
    this.queueKey[slot] = f.qkey.get(view, at);
    this.#loadPath(slot, at);
    this.sendCqn[slot] = f.sendCqn.get(view, at);
    this.receiveCqn[slot] = f.receiveCqn.get(view, at);
    this.srqn[slot] = f.srqAttached.get(view, at) === 1 ? f.srqn.get(view, at) : -1;
    this.#loadBuffer(slot, at);
    this.#loadRequester(slot, at);
    this.#loadResponder(slot, at);
    if (previousState === QpState.INIT && state === QpState.RTR)
      this.expectedPsn[slot] = f.nextReceivePsn.get(view, at);
    if (previousState === QpState.RTR && state === QpState.RTS) {
      this.nextPsn[slot] = f.nextSendPsn.get(view, at);
      this.lastAckedPsn[slot] = (this.nextPsn[slot]! - 1) & 0xffffff;
    }
  }

  /** Writes the live fields into the context bytes. */
  sync(slot: number): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    f.state.set(view, at, this.state[slot]!);
    f.nextSendPsn.set(view, at, this.nextPsn[slot]!);
    f.lastAckedPsn.set(view, at, this.lastAckedPsn[slot]!);
    f.ssn.set(view, at, this.ssn[slot]!);
    f.nextReceivePsn.set(view, at, this.expectedPsn[slot]!);
    f.receiveMsn.set(view, at, this.msn[slot]!);
    f.sqWqeCounter.set(view, at, this.sqCounter[slot]!);
    f.currentRetry.set(view, at, this.retryCountMax[slot]! - this.retriesLeft[slot]!);
    f.currentRnrRetry.set(view, at, this.rnrRetryCountMax[slot]! - this.rnrRetriesLeft[slot]!);
  }

  #loadPath(slot: number, at: number): void {
    const view = this.view;
    this.remoteLid[slot] = path.remoteLid.get(view, at);
    this.hasGrh[slot] = path.grhPresent.get(view, at);
    this.isForcedBack[slot] = path.forceLoopback.get(view, at);
    this.sourcePathBits[slot] = path.sourcePathBits.get(view, at);
    this.pkeyIndex[slot] = path.pkeyIndex.get(view, at);
  }

  /** Place of the primary path in {@link bytes}. */
  pathOf(slot: number): number {
    return this.offsetOf(slot) + f.primaryPath.field.offset;
  }

  /** The queue with the larger stride comes first; with equal strides the send queue (interface sheet 6.1). */
  #loadBuffer(slot: number, at: number): void {
    const view = this.view;
    this.bufferMttOffset[slot] = f.mttAddress.get(view, at);
    this.bufferPageBytes[slot] = 2 ** (12 + f.logPageSize4k.get(view, at));
    const first = f.pageOffset64.get(view, at) * 64;
    const sqBytes = 2 ** (f.sqLogStride16.get(view, at) + 4);
    const rqBytes = 2 ** (f.rqLogStride16.get(view, at) + 4);
    this.sqLogCount[slot] = f.sqLogCount.get(view, at);
    this.sqStrideBytes[slot] = sqBytes;
    this.rqLogCount[slot] = f.rqLogCount.get(view, at);
    this.rqStrideBytes[slot] = rqBytes;
    this.doorbellRecord[slot] = f.doorbellRecordAddress.getNumber(view, at);
    const hasQueue = this.srqn[slot] === -1 && this.doorbellRecord[slot] !== 0;
    this.hasReceiveQueue[slot] = hasQueue ? 1 : 0;
    const isReceiveFirst = hasQueue && rqBytes > sqBytes;
    this.sqOffset[slot] = first + (isReceiveFirst ? rqBytes * 2 ** this.rqLogCount[slot]! : 0);
    this.rqOffset[slot] = first + (isReceiveFirst ? 0 : sqBytes * 2 ** this.sqLogCount[slot]!);
  }

  #loadRequester(slot: number, at: number): void {
    const view = this.view;
    this.ackRequestEvery[slot] = 2 ** f.ackRequestFrequency.get(view, at);
    this.readsOutstandingMax[slot] = 2 ** f.logMaxRequesterReads.get(view, at);
    this.retryCountMax[slot] = f.retryCount.get(view, at);
    this.rnrRetryCountMax[slot] = f.rnrRetryCount.get(view, at);
    this.retriesLeft[slot] = this.retryCountMax[slot]!;
    this.rnrRetriesLeft[slot] = this.rnrRetryCountMax[slot]!;
    const timeoutCode = path.ackTimeout.get(view, at);
    this.ackTimeoutPs[slot] = timeoutCode === 0 ? 0 : 4_096_000 * 2 ** timeoutCode;
  }

  #loadResponder(slot: number, at: number): void {
    const view = this.view;
    this.readResourcesMax[slot] = 2 ** f.logMaxResponderReads.get(view, at);
    this.creditsInvalid[slot] = f.ric.get(view, at) === 1 || this.srqn[slot] !== -1 ? 1 : 0;
    this.minRnrNakCode[slot] = f.minRnrNak.get(view, at);
    this.remoteRights[slot] =
      f.remoteReadEnabled.get(view, at) |
      (f.remoteWriteEnabled.get(view, at) << 1) |
      (f.remoteAtomicEnabled.get(view, at) << 2);
  }
}

export const QP_RIGHT_READ = 1;
export const QP_RIGHT_WRITE = 2;
export const QP_RIGHT_ATOMIC = 4;

/** No packet has an opcode of this base: the service is not transported. */
export const NO_OPCODE_BASE = 0xff;
export const UC_OPCODE_BASE = 0x20;
export const UD_OPCODE_BASE = 0x60;

function opcodeBaseOf(serviceType: number): number {
  if (serviceType === ServiceType.RC) return 0;
  if (serviceType === ServiceType.UC) return UC_OPCODE_BASE;
  return serviceType === ServiceType.UD || serviceType === ServiceType.MLX ? UD_OPCODE_BASE : NO_OPCODE_BASE;
}
