/** QPC: the context of a queue pair. Source: interface sheet 5.1, 6.1. */

import {
  icmTables,
  mtuBytesOf,
  PathMigration,
  PathMtu,
  portOfScheduleQueue,
  QpState,
  qpc,
  rateCodeOf,
  ServiceType,
  serviceLevelOfScheduleQueue,
} from '../../../abi/index.ts';
import { asInteger } from '../../../base/index.ts';
import { FLAG_MIGRATED, SERVICE_LEVEL_SHIFT } from '../../../wire/index.ts';
import type { PortTraits, QueuePairFormat } from '../host-interface/index.ts';
import {
  type Cqn,
  ETHERNET_OPCODE_BASE,
  NO_OPCODE_BASE,
  type QueuePair,
  UC_OPCODE_BASE,
  UD_OPCODE_BASE,
  XRC_SERVICE,
} from '../objects/index.ts';
import type { ConnectionStates } from '../transport/index.ts';
import { pageBytesOf } from './queue-pages.ts';

const f = qpc.fields;
const path = f.primaryPath.fields;

export class QpContext implements QueuePairFormat {
  readonly contextBytes = icmTables.qpc.entryBytes;
  readonly storedBytes = icmTables.qpc.entryBytes;
  readonly pathOffset = f.primaryPath.field.offset;
  readonly #frameBytesMax: number;
  readonly #hasRoce: boolean;
  readonly #packetPortCount: number;

  constructor({ frameBytesMax, hasRoce, packetPortCount = 1 }: PortTraits) {
    this.#frameBytesMax = frameBytesMax;
    this.#hasRoce = hasRoce;
    this.#packetPortCount = packetPortCount;
  }

  load(
    view: DataView,
    at: number,
    pair: QueuePair,
    previousState: number,
    connections: ConnectionStates,
  ): void {
    const state = f.state.get(view, at);
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
    if (this.#isRing(pair.serviceType, mtuCode)) this.#loadRing(view, at, pair);
    pair.queueKey = f.qkey.get(view, at) | 0;
    this.#loadPath(view, at, pair);
    pair.sendCqn = f.sendCqn.get(view, at);
    loadReceiver(view, at, pair, previousState);
    loadBuffer(view, at, pair);
    loadRequester(view, at, pair);
    loadResponder(view, at, pair);
    if (previousState === QpState.INIT && state === QpState.RTR)
      connections.startReceiving(pair.slot, f.nextReceivePsn.get(view, at));
    if (previousState === QpState.RTR && state === QpState.RTS)
      connections.startSending(pair.slot, f.nextSendPsn.get(view, at));
  }

  /** With RoCE there are QPs for management in addition to the rings: they have a packet MTU. */
  #isRing(serviceType: number, mtuCode: number): boolean {
    if (this.#frameBytesMax === 0 || serviceType !== ServiceType.MLX) return false;
    return !this.#hasRoce || mtuCode === 0 || mtuCode > PathMtu.MTU_4096;
  }

  #loadPath(view: DataView, at: number, pair: QueuePair): void {
    pair.remoteLid = path.remoteLid.get(view, at);
    pair.hasGrh = path.grhPresent.get(view, at);
    pair.isForcedBack = path.forceLoopback.get(view, at);
    pair.sourcePathBits = path.sourcePathBits.get(view, at);
    pair.pkeyIndex = path.pkeyIndex.get(view, at);
    pair.staticRateCode = rateCodeOf(path.staticRate.get(view, at));
    const scheduleQueue = path.scheduleQueue.get(view, at);
    pair.portIndex = Math.min(portOfScheduleQueue(scheduleQueue), this.#packetPortCount) - 1;
    pair.serviceLevelBits = serviceLevelOfScheduleQueue(scheduleQueue) << SERVICE_LEVEL_SHIFT;
    if (this.#hasRoce) loadRocePath(pair);
    pair.migrationFlag = f.pathMigration.get(view, at) === PathMigration.MIGRATED ? FLAG_MIGRATED : 0;
  }

  /** Loads the limits of a ring, whose frames are messages of one packet. */
  #loadRing(view: DataView, at: number, pair: QueuePair): void {
    pair.opcodeBase = ETHERNET_OPCODE_BASE;
    pair.mtuBytes = this.#frameBytesMax;
    pair.messageBytesMax = this.#frameBytesMax;
    pair.keepsTag = f.keepVlanTag.get(view, at);
    pair.keepsFcs = f.keepFcs.get(view, at);
    pair.isIndirect = f.isRssIndirection.get(view, at);
  }

  sync(view: DataView, at: number, pair: QueuePair, connections: ConnectionStates): void {
    const numbers = connections.numbersOf(pair.slot);
    f.state.set(view, at, pair.state);
    f.nextSendPsn.set(view, at, numbers.nextSend);
    f.lastAckedPsn.set(view, at, numbers.lastAcknowledged);
    f.ssn.set(view, at, numbers.sentMessages);
    f.nextReceivePsn.set(view, at, numbers.nextReceive);
    f.receiveMsn.set(view, at, numbers.receivedMessages);
    f.sqWqeCounter.set(view, at, pair.sqCounter);
    f.currentRetry.set(view, at, pair.retryCountMax - pair.retriesLeft);
    f.currentRnrRetry.set(view, at, pair.rnrRetryCountMax - pair.rnrRetriesLeft);
  }

  receiveCqnAt(view: DataView, at: number): Cqn {
    return f.receiveCqn.get(view, at);
  }

  flowCounterAt(view: DataView, at: number): number {
    return path.counterIndex.get(view, at);
  }
}

/** Messages of an XRC target name their SRQ, whose CQ receives their completions: a command changes neither in the middle of a message. */
function loadReceiver(view: DataView, at: number, pair: QueuePair, previousState: number): void {
  const isXrc = pair.serviceBits === XRC_SERVICE;
  if (isXrc && previousState !== QpState.RST) return;
  pair.xrcDomain = f.xrcDomain.get(view, at);
  pair.receiveCqn = f.receiveCqn.get(view, at);
  pair.srqn = !isXrc && f.srqAttached.get(view, at) === 1 ? f.srqn.get(view, at) : -1;
}

/** The queue with the larger stride comes first; with equal strides the send queue (interface sheet 6.1). */
function loadBuffer(view: DataView, at: number, pair: QueuePair): void {
  pair.bufferMttOffset = f.mttAddress.get(view, at);
  pair.bufferPageBytes = pageBytesOf(f.logPageSize4k.get(view, at));
  const first = f.pageOffset64.get(view, at) * 64;
  const sqBytes = powerOfTwo(f.sqLogStride16.get(view, at) + 4);
  const rqBytes = powerOfTwo(f.rqLogStride16.get(view, at) + 4);
  pair.sqLogCount = f.sqLogCount.get(view, at);
  pair.sqStrideBytes = sqBytes;
  pair.rqLogCount = f.rqLogCount.get(view, at);
  pair.rqStrideBytes = rqBytes;
  pair.doorbellRecord = f.doorbellRecordAddress.getNumber(view, at);
  // Linux sets a doorbell record, and no size, for rings that only send, too.
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

function loadRequester(view: DataView, at: number, pair: QueuePair): void {
  pair.ackRequestEvery = powerOfTwo(f.ackRequestFrequency.get(view, at));
  pair.readsOutstandingMax = powerOfTwo(f.logMaxRequesterReads.get(view, at));
  pair.retryCountMax = f.retryCount.get(view, at);
  pair.rnrRetryCountMax = f.rnrRetryCount.get(view, at);
  pair.retriesLeft = pair.retryCountMax;
  pair.rnrRetriesLeft = pair.rnrRetryCountMax;
  pair.ackTimeoutCode = path.ackTimeout.get(view, at);
}

function loadResponder(view: DataView, at: number, pair: QueuePair): void {
  pair.readResourcesMax = powerOfTwo(f.logMaxResponderReads.get(view, at));
  const isShared = pair.srqn !== -1 || pair.serviceBits === XRC_SERVICE;
  pair.creditsInvalid = f.ric.get(view, at) === 1 || isShared ? 1 : 0;
  pair.minRnrNakCode = f.minRnrNak.get(view, at);
  pair.remoteRights =
    f.remoteReadEnabled.get(view, at) |
    (f.remoteWriteEnabled.get(view, at) << 1) |
    (f.remoteAtomicEnabled.get(view, at) << 2);
}

/**
 * Loads a path of an Ethernet port, whose packets always have a GRH and no LIDs: the source path bits do not belong to
 * a LID.
 */
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
