/**
 * The data path as the command processor uses it ({@link DataPathControl}): it creates, changes and destroys objects,
 * writes their live fields into their contexts, changes translations, and resets the device. Every block is notified
 * when an object for which it keeps state is created or destroyed.
 */
import { QpState } from '../../../abi/index.ts';
import type { ClockDomain, Wakeable } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { CompletionWriter } from '../completion/index.ts';
import type { AsyncEvents } from '../events/index.ts';
import type { DataPathControl, KeyFormat } from '../host-interface/index.ts';
import { type KeyEntry, type KeySteps, type KeyStores, type KeyUnit, releaseRegion } from '../keys/index.ts';
import {
  AccessFence,
  type ContextCache,
  type ContextMemory,
  type ContextUser,
  DmaFence,
  type DmaReads,
  type DmaWrites,
  type PageFaults,
  type Translator,
} from '../memory/index.ts';
import {
  type CqSlot,
  type CqTable,
  noLine,
  noRecord,
  type QpSlot,
  type QpTable,
  type SrqSlot,
  type SrqTable,
  XRC_SERVICE,
} from '../objects/index.ts';
import type { ReceiveWqeFetch } from '../receive-queue/index.ts';
import type { RequestCompletion, Requester } from '../requester/index.ts';
import { PARKED_DRAINING, type SendScheduler, type WqeFetch } from '../send-queue/index.ts';
import type { DiagnosticCounters } from '../statistics/index.ts';
import type { InboundEnd, RequestLifecycle, ResponseSide } from '../transport/index.ts';
import type { Flusher } from './flusher.ts';
import type { QueuePairErrors } from './queue-pair-errors.ts';

export interface DataPathObjectPorts {
  /** All blocks of the data path. */
  readonly dataPath: { reset(): void };
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly requester: Requester;
  readonly completion: RequestCompletion;
  readonly requestTransport: RequestLifecycle;
  readonly transmitter: Wakeable;
  readonly receiver: InboundEnd;
  readonly receives: ReceiveWqeFetch;
  readonly responses: ResponseSide;
  readonly keys: KeyUnit;
  readonly completions: CompletionWriter;
  readonly asyncEvents: AsyncEvents;
  readonly flusher: Flusher;
  readonly errors: QueuePairErrors;
}

/** Parts of the device that {@link DataPathObjects} uses. */
export interface DataPathObjectsSetup {
  readonly domain: ClockDomain;
  readonly contextMemory: ContextMemory;
  readonly keyFormat: KeyFormat;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly cqcCache: ContextCache<ContextUser<'cqc'>>;
  readonly srqcCache: ContextCache<ContextUser<'srqc'>>;
  readonly diagnostics: DiagnosticCounters;
}

export class DataPathObjects implements DataPathControl {
  readonly #domain: ClockDomain;
  readonly #qps: QpTable;
  readonly #cqs: CqTable;
  readonly #srqs: SrqTable;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly #cqcCache: ContextCache<ContextUser<'cqc'>>;
  readonly #srqcCache: ContextCache<ContextUser<'srqc'>>;
  readonly #diagnostics: DiagnosticCounters;
  readonly #stores: KeyStores;
  #ports!: DataPathObjectPorts;
  readonly #fence: AccessFence;
  readonly #contextFence: DmaFence;
  /** All DMA but that of commands. */
  readonly #everything: DmaFence;

  constructor(setup: DataPathObjectsSetup) {
    this.#domain = setup.domain;
    this.#qps = setup.qps;
    this.#cqs = setup.cqs;
    this.#srqs = setup.srqs;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#qpcCache = setup.qpcCache;
    this.#cqcCache = setup.cqcCache;
    this.#srqcCache = setup.srqcCache;
    this.#diagnostics = setup.diagnostics;
    const { contextMemory, keyFormat, translator } = setup;
    this.#stores = { contextMemory, keyFormat, translator };
    const { dmaRead, dmaWrite } = setup;
    const { context, translation, command } = TrafficClass;
    this.#fence = new AccessFence(dmaRead, dmaWrite);
    this.#contextFence = new DmaFence(dmaRead, dmaWrite, [context, translation]);
    const all = Object.values(TrafficClass);
    this.#everything = new DmaFence(
      dmaRead,
      dmaWrite,
      all.filter((trafficClass) => trafficClass !== command),
    );
  }

  connect(ports: DataPathObjectPorts): void {
    this.#ports = ports;
    this.#fence.connect({ responses: ports.responses });
  }

  qpCreated(slot: QpSlot): void {
    this.#qps.create(slot);
    this.#translator.forgetMtt();
    this.#qpcCache.forget(slot);
    this.#ports.responses.open(slot);
    this.#ports.requestTransport.forget(slot);
    this.#ports.flusher.forget(slot);
    this.#pageFaults.forget(slot);
    this.#ports.receives.open(slot);
  }

  qpModified(slot: QpSlot, previousState: number): void {
    this.#qps.load(slot, previousState);
    const pair = this.#qps.rows[slot]!;
    const state = pair.state;
    const cycle = this.#domain.cycle;
    if (state === QpState.RTR && previousState === QpState.INIT) {
      const queue = this.#ports.receives.queueOf(slot);
      if (queue === slot) this.#ports.receives.prefetch(queue, cycle);
    }
    if (state !== QpState.RTS) return;
    if (pair.parkedFor === PARKED_DRAINING) this.#ports.scheduler.unpark(pair, cycle + 1);
    if (pair.hasDoorbell === 1) this.#ports.scheduler.makeReady(pair, cycle + 1);
  }

  qpToError(slot: QpSlot): void {
    this.#ports.errors.fail(slot, this.#domain.cycle);
    this.#ports.responses.dropRequests(slot);
  }

  qpDestroyed(slot: QpSlot): void {
    const pair = this.#qps.rows[slot]!;
    pair.state = QpState.RST;
    pair.sendGeneration++;
    this.#ports.scheduler.remove(pair);
    pair.messageKind = 0;
    this.#ports.completion.dropAll(pair);
    this.#ports.responses.drop(slot);
    this.#ports.requestTransport.forget(slot);
    this.#ports.flusher.forget(slot);
    this.#pageFaults.forget(slot);
    this.#ports.receives.close(slot);
    this.#ports.wqeFetch.release(pair, this.#domain.cycle);
    const line = pair.wqeLine;
    if (line !== noLine && line.isFetching === 0) line.free();
    pair.wqeLine = noLine;
    this.#qpcCache.forget(slot);
    this.#ports.requester.wake(this.#domain.cycle + 1);
    this.#ports.receiver.wake(this.#domain.cycle + 1);
  }

  qpSync(slot: QpSlot): void {
    this.#qps.sync(slot);
  }

  qpIsBusy(slot: QpSlot): boolean {
    return (
      this.#qps.rows[slot]!.inPipelineCount > 0 ||
      this.#ports.requester.isServing(slot) ||
      this.#ports.receiver.isServing(slot) ||
      this.#ports.responses.isBusy(slot) ||
      this.#ports.keys.isServing(slot) ||
      this.#ports.receives.isBusy(slot) ||
      !this.#ports.asyncEvents.isEmpty
    );
  }

  qpIsDraining(slot: QpSlot): boolean {
    const pair = this.#qps.rows[slot]!;
    const isWorking = pair.recordHead !== noRecord || pair.inPipelineCount > 0;
    return pair.state === QpState.SQD && isWorking;
  }

  qpIsInError(slot: QpSlot): boolean {
    const { state } = this.#qps.rows[slot]!;
    return state === QpState.ERR || state === QpState.SQER;
  }

  qpIsFlushing(slot: QpSlot): boolean {
    return this.#ports.flusher.isFlushingSends(slot);
  }

  cqCreated(slot: CqSlot): void {
    this.#cqs.create(slot);
    this.#translator.forgetMtt();
    this.#cqcCache.forget(slot);
  }

  cqDestroyed(slot: CqSlot): void {
    this.#cqs.rows[slot]!.armState = 0;
    this.#cqcCache.forget(slot);
  }

  cqResized(slot: CqSlot): void {
    const { logEntries, pageBytes, mttOffset } = this.#cqs.rows[slot]!;
    this.#cqs.load(slot);
    this.#translator.forgetMtt();
    this.#ports.completions.postResize(slot, logEntries, pageBytes, mttOffset);
  }

  cqModerated(slot: CqSlot): void {
    this.#cqs.load(slot);
  }

  cqSync(slot: CqSlot): void {
    this.#cqs.sync(slot);
  }

  cqIsBusy(slot: CqSlot): boolean {
    return this.#ports.completions.isBusy(slot) || !this.#ports.asyncEvents.isEmpty;
  }

  cqIsResizing(): boolean {
    return this.#ports.completions.isResizing;
  }

  srqCreated(slot: SrqSlot): void {
    this.#srqs.load(slot);
    this.#translator.forgetMtt();
    this.#srqcCache.forget(slot);
    this.#ports.receives.open(this.#ports.receives.srqQueue(slot));
  }

  srqDestroyed(slot: SrqSlot): void {
    this.#ports.receives.close(this.#ports.receives.srqQueue(slot));
    this.#srqcCache.forget(slot);
  }

  srqArmed(slot: SrqSlot): void {
    this.#srqs.load(slot);
  }

  /** A completion that names the SRQ must not arrive when another SRQ may have the number. */
  srqIsBusy(slot: SrqSlot): boolean {
    const { receives, receiver, asyncEvents, completions } = this.#ports;
    const isServed = (qp: QpSlot): boolean => receiver.isServing(qp);
    return (
      receives.isBusy(receives.srqQueue(slot)) ||
      !asyncEvents.isEmpty ||
      completions.holdsReceiveOf(this.#srqs.numberOf[slot]!) ||
      this.#targetsOf(slot).some(isServed)
    );
  }

  srqGone(slot: SrqSlot): void {
    for (const target of this.#targetsOf(slot)) this.#qps.leaveQueue(target);
  }

  /** XRC targets whose last message was for this SRQ. */
  #targetsOf(slot: SrqSlot): QpSlot[] {
    const srqn = this.#srqs.numberOf[slot]!;
    const isOf = (qp: QpSlot): boolean => {
      const pair = this.#qps.rows[qp]!;
      return pair.serviceBits === XRC_SERVICE && pair.srqn === srqn;
    };
    return [...this.#qps.liveSlots()].filter(isOf);
  }

  srqSync(slot: SrqSlot): void {
    this.#srqs.sync(slot);
  }

  mptChanged(index: number): void {
    this.#translator.forgetMpt(index);
  }

  pagesChanged(): void {
    this.#translator.forgetMtt();
  }

  translationChanged(): void {
    this.#translator.forgetAll();
  }

  beginFence(): void {
    this.#fence.begin();
  }

  isFencePassed(): boolean {
    return this.#fence.isPassed();
  }

  pagesResumed(token: number, isRefused: boolean): boolean {
    return this.#pageFaults.resume(token, isRefused, this.#domain.cycle);
  }

  claimMpts(): boolean {
    return this.#ports.keys.claim();
  }

  releaseMpts(): void {
    this.#ports.keys.release();
  }

  releaseRegionOf(window: KeyEntry): KeySteps<void> {
    return releaseRegion(this.#stores, window);
  }

  portChanged(_isUp: boolean): void {
    this.#ports.transmitter.wake(this.#domain.cycle + 1);
  }

  beginContextFence(): void {
    this.#contextFence.begin();
  }

  isContextFencePassed(): boolean {
    return this.#contextFence.isPassed;
  }

  halt(): void {
    for (const slot of this.#qps.liveSlots()) this.qpDestroyed(slot);
  }

  isQuiescent(): boolean {
    this.#everything.begin();
    return this.#everything.isPassed;
  }

  resetAll(): void {
    this.#ports.dataPath.reset();
  }

  get diagnostics(): DataPathControl['diagnostics'] {
    return this.#diagnostics.counts;
  }
}
