/**
 * Queue pair contexts. The configured fields are decoded from the context bytes once per command; what changes with
 * every packet lives only in the {@link QueuePair} of the slot and is written into the bytes by {@link QpTable.sync}.
 */

import {
  mtuBytesOf,
  PathMigration,
  PathMtu,
  QpState,
  qpc,
  ServiceType,
  serviceLevelOfScheduleQueue,
} from '../../../abi/index.ts';
import { asInteger } from '../../../base/index.ts';
import { FLAG_MIGRATED, SERVICE_LEVEL_SHIFT } from '../../../wire/index.ts';
import { ContextTable, enlarged } from './context-table.ts';
import type { Qpn, QpSlot } from './numbers.ts';
import { QueuePair } from './queue-pair.ts';

const QPC_BYTES = 256;
/** Most scatter entries of one receive WQE. */
export const SEGMENTS_MAX = 32;
const FIRST_SCATTER_LISTS = 16;
const NONE = -1;

const f = qpc.fields;
const path = f.primaryPath.fields;

type QpUser =
  | 'flusher'
  | 'keys'
  | 'pageFaults'
  | 'receives'
  | 'requester'
  | 'responses'
  | 'timers'
  | 'wqeFetch';

export class QpTable extends ContextTable<'QP', QpUser> {
  /** By slot, of those that were ever taken. */
  readonly rows: QueuePair[] = [];
  /** Scatter lists of the receive WQEs taken, {@link SEGMENTS_MAX} places for each QP that ever took one: see {@link scatterListOf}. */
  segmentAddress = new Float64Array(0);
  segmentAddressTop = new Uint16Array(0);
  segmentKey = new Float64Array(0);
  segmentBytes = new Float64Array(0);
  #scatterListCount = 0;
  readonly #frameBytesMax: number;
  readonly #hasRoce: boolean;

  /**
   * @param frameBytesMax of an Ethernet port's frames without FCS; left out on a port of InfiniBand
   * @param hasRoce whether an Ethernet port carries more than frames
   */
  constructor(capacity: number, frameBytesMax = 0, hasRoce = false) {
    super(QPC_BYTES, capacity);
    this.#frameBytesMax = frameBytesMax;
    this.#hasRoce = hasRoce;
  }

  /** Takes up a context just created by RST2INIT: everything live starts from nothing. */
  create(slot: QpSlot): void {
    this.rows[slot]!.begin();
    this.load(slot, QpState.RST);
  }

  /** Decodes what a command configured. PSNs are taken where the transition sets them. */
  load(slot: QpSlot, previousState: number): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    const state = f.state.get(view, at);
    const pair = this.rows[slot]!;
    pair.state = state;
    pair.qpn = f.localQpn.get(view, at);
    pair.allowsReservedKey = f.reservedLkeyEnabled.get(view, at);
    pair.allowsFastRegister = f.fastRegisterEnabled.get(view, at);
    pair.serviceType = f.serviceType.get(view, at);
    pair.pd = f.pd.get(view, at);
    pair.uarPage = f.uarPage.get(view, at);
    const mtuCode = f.pathMtu.get(view, at);
    pair.mtuBytes = mtuCode >= 1 && mtuCode <= 5 ? mtuBytesOf(mtuCode) : 256;
    pair.messageBytesMax = 2 ** f.logMaxMessage.get(view, at);
    pair.remoteQpn = f.remoteQpn.get(view, at);
    pair.opcodeBase = opcodeBaseOf(pair.serviceType);
    pair.serviceBits = pair.serviceType === ServiceType.XRC ? XRC_SERVICE : pair.opcodeBase;
    if (this.#isRing(pair.serviceType, mtuCode)) this.#loadRing(pair, at);
    pair.queueKey = f.qkey.get(view, at) | 0;
    this.#loadPath(slot, at);
    pair.sendCqn = f.sendCqn.get(view, at);
    this.#loadReceiver(pair, at, previousState);
    this.#loadBuffer(slot, at);
    this.#loadRequester(slot, at);
    this.#loadResponder(slot, at);
    if (previousState === QpState.INIT && state === QpState.RTR)
      pair.startReceiving(f.nextReceivePsn.get(view, at));
    if (previousState === QpState.RTR && state === QpState.RTS)
      pair.startSending(f.nextSendPsn.get(view, at));
  }

  /** With RoCE there are QPs for management beside the rings: they have an MTU of packets. */
  #isRing(serviceType: number, mtuCode: number): boolean {
    if (this.#frameBytesMax === 0 || serviceType !== ServiceType.MLX) return false;
    return !this.#hasRoce || mtuCode === 0 || mtuCode > PathMtu.MTU_4096;
  }

  /** An XRC target's messages name their SRQ, whose CQ it is: between the first packet and the last of one a command changes nothing of it. */
  #loadReceiver(pair: QueuePair, at: number, previousState: number): void {
    const view = this.view;
    const isXrc = pair.serviceBits === XRC_SERVICE;
    if (isXrc && previousState !== QpState.RST) return;
    pair.xrcDomain = f.xrcDomain.get(view, at);
    pair.receiveCqn = f.receiveCqn.get(view, at);
    pair.srqn = !isXrc && f.srqAttached.get(view, at) === 1 ? f.srqn.get(view, at) : -1;
  }

  /** The SRQ of an XRC target's message is gone, with the receive that was taken of it, and so may be its CQ. */
  leaveQueue(slot: QpSlot): void {
    const pair = this.rows[slot]!;
    pair.srqn = NONE;
    pair.hasReceiveWqe = 0;
    pair.receiveCqn = f.receiveCqn.get(this.view, this.offsetOf(slot));
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: QpSlot): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    const pair = this.rows[slot]!;
    f.state.set(view, at, pair.state);
    f.nextSendPsn.set(view, at, pair.nextPsn);
    f.lastAckedPsn.set(view, at, pair.lastAckedPsn);
    f.ssn.set(view, at, pair.ssn);
    f.nextReceivePsn.set(view, at, pair.expectedPsn);
    f.receiveMsn.set(view, at, pair.msn);
    f.sqWqeCounter.set(view, at, pair.sqCounter);
    f.currentRetry.set(view, at, pair.retryCountMax - pair.retriesLeft);
    f.currentRnrRetry.set(view, at, pair.rnrRetryCountMax - pair.rnrRetriesLeft);
  }

  #loadPath(slot: QpSlot, at: number): void {
    const view = this.view;
    const pair = this.rows[slot]!;
    pair.remoteLid = path.remoteLid.get(view, at);
    pair.hasGrh = path.grhPresent.get(view, at);
    pair.isForcedBack = path.forceLoopback.get(view, at);
    pair.sourcePathBits = path.sourcePathBits.get(view, at);
    pair.pkeyIndex = path.pkeyIndex.get(view, at);
    pair.serviceLevelBits =
      serviceLevelOfScheduleQueue(path.scheduleQueue.get(view, at)) << SERVICE_LEVEL_SHIFT;
    if (this.#hasRoce) loadRocePath(pair);
    pair.migrationFlag = f.pathMigration.get(view, at) === PathMigration.MIGRATED ? FLAG_MIGRATED : 0;
  }

  /** Flow counter that the context names. */
  counterOf(slot: QpSlot): number {
    return path.counterIndex.get(this.view, this.offsetOf(slot));
  }

  /** Place of the primary path in {@link bytes}. */
  pathOf(slot: QpSlot): number {
    return this.offsetOf(slot) + f.primaryPath.field.offset;
  }

  /** The queue with the larger stride comes first; with equal strides the send queue (interface sheet 6.1). */
  #loadBuffer(slot: QpSlot, at: number): void {
    const view = this.view;
    const pair = this.rows[slot]!;
    pair.bufferMttOffset = f.mttAddress.get(view, at);
    pair.bufferPageBytes = 2 ** (12 + f.logPageSize4k.get(view, at));
    const first = f.pageOffset64.get(view, at) * 64;
    const sqBytes = powerOfTwo(f.sqLogStride16.get(view, at) + 4);
    const rqBytes = powerOfTwo(f.rqLogStride16.get(view, at) + 4);
    pair.sqLogCount = f.sqLogCount.get(view, at);
    pair.sqStrideBytes = sqBytes;
    pair.rqLogCount = f.rqLogCount.get(view, at);
    pair.rqStrideBytes = rqBytes;
    pair.doorbellRecord = f.doorbellRecordAddress.getNumber(view, at);
    // Linux gives rings that only send a record, too, and no size.
    const isRing = pair.opcodeBase === ETHERNET_OPCODE_BASE;
    const hasNoSize = isRing && pair.rqLogCount === 0 && f.rqLogStride16.get(view, at) === 0;
    const isXrc = pair.serviceBits === XRC_SERVICE;
    const hasQueue = pair.srqn === -1 && pair.doorbellRecord !== 0 && !hasNoSize && !isXrc;
    pair.hasReceiveQueue = hasQueue ? 1 : 0;
    pair.receivesInline = hasQueue && !isRing ? f.inlineReceive.get(view, at) : 0;
    const isReceiveFirst = hasQueue && rqBytes > sqBytes;
    pair.sqOffset = first + (isReceiveFirst ? rqBytes * 2 ** pair.rqLogCount : 0);
    pair.rqOffset = first + (isReceiveFirst ? 0 : sqBytes * 2 ** pair.sqLogCount);
  }

  /** A frame is a message of one packet. */
  #loadRing(pair: QueuePair, at: number): void {
    pair.opcodeBase = ETHERNET_OPCODE_BASE;
    pair.mtuBytes = this.#frameBytesMax;
    pair.messageBytesMax = this.#frameBytesMax;
    pair.keepsTag = f.keepVlanTag.get(this.view, at);
    pair.keepsFcs = f.keepFcs.get(this.view, at);
    pair.isIndirect = f.isRssIndirection.get(this.view, at);
  }

  #loadRequester(slot: QpSlot, at: number): void {
    const view = this.view;
    const pair = this.rows[slot]!;
    pair.ackRequestEvery = powerOfTwo(f.ackRequestFrequency.get(view, at));
    pair.readsOutstandingMax = powerOfTwo(f.logMaxRequesterReads.get(view, at));
    pair.retryCountMax = f.retryCount.get(view, at);
    pair.rnrRetryCountMax = f.rnrRetryCount.get(view, at);
    pair.retriesLeft = pair.retryCountMax;
    pair.rnrRetriesLeft = pair.rnrRetryCountMax;
    pair.ackTimeoutCode = path.ackTimeout.get(view, at);
  }

  #loadResponder(slot: QpSlot, at: number): void {
    const view = this.view;
    const pair = this.rows[slot]!;
    pair.readResourcesMax = powerOfTwo(f.logMaxResponderReads.get(view, at));
    const isShared = pair.srqn !== -1 || pair.serviceBits === XRC_SERVICE;
    pair.creditsInvalid = f.ric.get(view, at) === 1 || isShared ? 1 : 0;
    pair.minRnrNakCode = f.minRnrNak.get(view, at);
    pair.remoteRights =
      f.remoteReadEnabled.get(view, at) |
      (f.remoteWriteEnabled.get(view, at) << 1) |
      (f.remoteAtomicEnabled.get(view, at) << 2);
  }

  /** See {@link ContextTable.allocate}: a slot that is taken for the first time gets its object. */
  override allocate(qpn: Qpn): QpSlot {
    const slot = super.allocate(qpn);
    if (slot === this.rows.length) this.rows.push(new QueuePair(slot));
    return slot;
  }

  /** Where a slot's scatter list begins in the arrays of segments. Most QPs of many receive nothing: it is made when first asked for. */
  scatterListOf(pair: QueuePair): number {
    if (pair.firstSegment === NONE) {
      pair.firstSegment = this.#scatterListCount++ * SEGMENTS_MAX;
      if (pair.firstSegment === this.segmentKey.length) this.#enlargeScatterLists();
    }
    return pair.firstSegment;
  }

  #enlargeScatterLists(): void {
    const places = Math.max(FIRST_SCATTER_LISTS * SEGMENTS_MAX, 2 * this.segmentKey.length);
    this.segmentAddress = enlarged(this.segmentAddress, places);
    this.segmentAddressTop = enlarged(this.segmentAddressTop, places);
    this.segmentKey = enlarged(this.segmentKey, places);
    this.segmentBytes = enlarged(this.segmentBytes, places);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    for (const pair of this.rows) pair.rebase(ps, cycles);
  }
}

export const QP_RIGHT_READ = 1;
export const QP_RIGHT_WRITE = 2;
export const QP_RIGHT_ATOMIC = 4;

/** No packet has an opcode of this base: the service is not transported. */
const NO_OPCODE_BASE = 0xff;
export const UC_OPCODE_BASE = 0x20;
export const UD_OPCODE_BASE = 0x60;
/** In the opcodes of XRC packets; inside the HCA they are those of a reliable connection. */
export const XRC_SERVICE = 0xa0;
/** Of the rings of an Ethernet port, whose frames have no opcode: one that no packet has. */
export const ETHERNET_OPCODE_BASE = 0xe0;

/** Packets of an Ethernet port always have a GRH, and no LIDs; what the bits of the source path say there is no LID's. */
function loadRocePath(pair: QueuePair): void {
  pair.hasGrh = 1;
  pair.remoteLid = 0;
  pair.sourcePathBits = 0;
}

/** Narrowed (build/README.md). */
function powerOfTwo(exponent: number): number {
  return asInteger(2 ** exponent);
}

function opcodeBaseOf(serviceType: number): number {
  if (serviceType === ServiceType.RC || serviceType === ServiceType.XRC) return 0;
  if (serviceType === ServiceType.UC) return UC_OPCODE_BASE;
  return serviceType === ServiceType.UD || serviceType === ServiceType.MLX ? UD_OPCODE_BASE : NO_OPCODE_BASE;
}
