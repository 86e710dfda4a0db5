/**
 * The data path as the command processor uses it ({@link DataPathControl}): objects come, change and go, their live fields
 * are written into their contexts, translations change, the device is reset. Every block is notified when an object it
 * keeps state for is created or destroyed.
 */
import { QpState } from '../../../abi/index.ts';
import type { Wakeable } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DataPathControl } from '../commands/index.ts';
import type { CompletionWriter } from '../completion/index.ts';
import type { HcaCore } from '../core.ts';
import type { AsyncEvents } from '../events/index.ts';
import { type KeyEntry, type KeySteps, type KeyUnit, releaseRegion } from '../keys/index.ts';
import { AccessFence, DmaFence } from '../memory/index.ts';
import { type CqSlot, noLine, noRecord, type QpSlot, type SrqSlot, XRC_SERVICE } from '../objects/index.ts';
import type { ReceiveWqeFetch } from '../receive-queue/index.ts';
import type { RequestCompletion, Requester, RetryTimers } from '../requester/index.ts';
import type { ResponseEngine } from '../responder/index.ts';
import { PARKED_DRAINING, type SendScheduler, type WqeFetch } from '../send-queue/index.ts';
import type { Flusher } from './flusher.ts';
import type { QueuePairErrors } from './queue-pair-errors.ts';

export interface DataPathObjectPorts {
  /** All blocks of the data path. */
  readonly dataPath: { reset(): void };
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly requester: Requester;
  readonly completion: RequestCompletion;
  readonly timers: RetryTimers;
  readonly transmitter: Wakeable;
  readonly receiver: Wakeable & { isServing(qp: QpSlot): boolean };
  readonly receives: ReceiveWqeFetch;
  readonly responses: ResponseEngine;
  readonly keys: KeyUnit;
  readonly completions: CompletionWriter;
  readonly asyncEvents: AsyncEvents;
  readonly flusher: Flusher;
  readonly errors: QueuePairErrors;
}

export class DataPathObjects implements DataPathControl {
  readonly #core: HcaCore;
  #ports!: DataPathObjectPorts;
  readonly #fence: AccessFence;
  readonly #icmFence: DmaFence;
  /** All DMA but that of commands. */
  readonly #everything: DmaFence;

  constructor(core: HcaCore) {
    this.#core = core;
    const { dmaRead, dmaWrite } = core;
    const { context, translation, command } = TrafficClass;
    this.#fence = new AccessFence(dmaRead, dmaWrite);
    this.#icmFence = new DmaFence(dmaRead, dmaWrite, [context, translation]);
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
    this.#core.qps.create(slot);
    this.#core.translator.forgetMtt();
    this.#core.qpcCache.forget(slot);
    this.#ports.responses.open(slot);
    this.#ports.timers.forget(slot);
    this.#ports.flusher.forget(slot);
    this.#core.pageFaults.forget(slot);
    this.#ports.receives.open(slot);
  }

  qpModified(slot: QpSlot, previousState: number): void {
    const { qps, domain } = this.#core;
    qps.load(slot, previousState);
    const pair = qps.rows[slot]!;
    const state = pair.state;
    const cycle = domain.cycle;
    if (state === QpState.RTR && previousState === QpState.INIT) {
      const queue = this.#ports.receives.queueOf(slot);
      if (queue === slot) this.#ports.receives.prefetch(queue, cycle);
    }
    if (state !== QpState.RTS) return;
    if (pair.parkedFor === PARKED_DRAINING) this.#ports.scheduler.unpark(pair, cycle + 1);
    if (pair.hasDoorbell === 1) this.#ports.scheduler.makeReady(pair, cycle + 1);
  }

  qpToError(slot: QpSlot): void {
    this.#ports.errors.fail(slot, this.#core.domain.cycle);
    this.#ports.responses.dropRequests(slot);
  }

  qpDestroyed(slot: QpSlot): void {
    const { qps } = this.#core;
    const pair = qps.rows[slot]!;
    pair.state = QpState.RST;
    pair.sendGeneration++;
    this.#ports.scheduler.remove(pair);
    pair.messageKind = 0;
    this.#ports.completion.dropAll(pair);
    this.#ports.responses.drop(slot);
    this.#ports.timers.forget(slot);
    this.#ports.flusher.forget(slot);
    this.#core.pageFaults.forget(slot);
    this.#ports.receives.close(slot);
    this.#ports.wqeFetch.release(pair, this.#core.domain.cycle);
    const line = pair.wqeLine;
    if (line !== noLine && line.isFetching === 0) line.free();
    pair.wqeLine = noLine;
    this.#core.qpcCache.forget(slot);
    this.#ports.requester.wake(this.#core.domain.cycle + 1);
    this.#ports.receiver.wake(this.#core.domain.cycle + 1);
  }

  qpSync(slot: QpSlot): void {
    this.#core.qps.sync(slot);
  }

  qpIsBusy(slot: QpSlot): boolean {
    return (
      this.#core.qps.rows[slot]!.inPipelineCount > 0 ||
      this.#ports.requester.isServing(slot) ||
      this.#ports.receiver.isServing(slot) ||
      this.#ports.responses.isBusy(slot) ||
      this.#ports.keys.isServing(slot) ||
      this.#ports.receives.isBusy(slot) ||
      !this.#ports.asyncEvents.isEmpty
    );
  }

  qpIsDraining(slot: QpSlot): boolean {
    const { qps } = this.#core;
    const pair = qps.rows[slot]!;
    const isWorking = pair.recordHead !== noRecord || pair.inPipelineCount > 0;
    return pair.state === QpState.SQD && isWorking;
  }

  qpIsInError(slot: QpSlot): boolean {
    const { state } = this.#core.qps.rows[slot]!;
    return state === QpState.ERR || state === QpState.SQER;
  }

  qpIsFlushing(slot: QpSlot): boolean {
    return this.#ports.flusher.isFlushingSends(slot);
  }

  cqCreated(slot: CqSlot): void {
    this.#core.cqs.create(slot);
    this.#core.translator.forgetMtt();
    this.#core.cqcCache.forget(slot);
  }

  cqDestroyed(slot: CqSlot): void {
    this.#core.cqs.rows[slot]!.armState = 0;
    this.#core.cqcCache.forget(slot);
  }

  cqResized(slot: CqSlot, oldLogSize: number, oldLogPageSize: number, oldMttAddress: number): void {
    this.#core.cqs.load(slot);
    this.#core.translator.forgetMtt();
    this.#ports.completions.postResize(slot, oldLogSize, 2 ** (12 + oldLogPageSize), oldMttAddress);
  }

  cqModerated(slot: CqSlot): void {
    this.#core.cqs.load(slot);
  }

  cqSync(slot: CqSlot): void {
    this.#core.cqs.sync(slot);
  }

  cqIsBusy(slot: CqSlot): boolean {
    return this.#ports.completions.isBusy(slot) || !this.#ports.asyncEvents.isEmpty;
  }

  cqIsResizing(): boolean {
    return this.#ports.completions.isResizing;
  }

  srqCreated(slot: SrqSlot): void {
    this.#core.srqs.load(slot);
    this.#core.translator.forgetMtt();
    this.#core.srqcCache.forget(slot);
    this.#ports.receives.open(this.#ports.receives.srqQueue(slot));
  }

  srqDestroyed(slot: SrqSlot): void {
    this.#ports.receives.close(this.#ports.receives.srqQueue(slot));
    this.#core.srqcCache.forget(slot);
  }

  srqArmed(slot: SrqSlot): void {
    this.#core.srqs.load(slot);
  }

  /** A completion that names the SRQ must not come when the number may be another one's. */
  srqIsBusy(slot: SrqSlot): boolean {
    const { receives, receiver, asyncEvents, completions } = this.#ports;
    const isServed = (qp: QpSlot): boolean => receiver.isServing(qp);
    return (
      receives.isBusy(receives.srqQueue(slot)) ||
      !asyncEvents.isEmpty ||
      completions.holdsReceiveOf(this.#core.srqs.numberOf[slot]!) ||
      this.#targetsOf(slot).some(isServed)
    );
  }

  srqGone(slot: SrqSlot): void {
    for (const target of this.#targetsOf(slot)) this.#core.qps.leaveQueue(target);
  }

  /** XRC targets whose last message was for this SRQ. */
  #targetsOf(slot: SrqSlot): QpSlot[] {
    const { qps, srqs } = this.#core;
    const srqn = srqs.numberOf[slot]!;
    const isOf = (qp: QpSlot): boolean => {
      const pair = qps.rows[qp]!;
      return pair.serviceBits === XRC_SERVICE && pair.srqn === srqn;
    };
    return [...qps.liveSlots()].filter(isOf);
  }

  srqSync(slot: SrqSlot): void {
    this.#core.srqs.sync(slot);
  }

  mptChanged(index: number): void {
    this.#core.translator.forgetMpt(index);
  }

  pagesChanged(): void {
    this.#core.translator.forgetMtt();
  }

  translationChanged(): void {
    this.#core.translator.forgetAll();
  }

  beginFence(): void {
    this.#fence.begin();
  }

  isFencePassed(): boolean {
    return this.#fence.isPassed();
  }

  pagesResumed(token: number, isRefused: boolean): boolean {
    return this.#core.pageFaults.resume(token, isRefused, this.#core.domain.cycle);
  }

  claimMpts(): boolean {
    return this.#ports.keys.claim();
  }

  releaseMpts(): void {
    this.#ports.keys.release();
  }

  releaseRegionOf(window: KeyEntry): KeySteps<void> {
    return releaseRegion(this.#core, window);
  }

  portChanged(_isUp: boolean): void {
    this.#ports.transmitter.wake(this.#core.domain.cycle + 1);
  }

  beginIcmFence(): void {
    this.#icmFence.begin();
  }

  isIcmFencePassed(): boolean {
    return this.#icmFence.isPassed;
  }

  halt(): void {
    for (const slot of this.#core.qps.liveSlots()) this.qpDestroyed(slot);
  }

  isQuiescent(): boolean {
    this.#everything.begin();
    return this.#everything.isPassed;
  }

  resetAll(): void {
    this.#ports.dataPath.reset();
  }

  get diagnostics(): DataPathControl['diagnostics'] {
    return this.#core.diagnostics.counts;
  }
}
