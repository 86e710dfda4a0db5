/**
 * What the command processor asks of the data path ({@link DataPathControl}): objects come, change and go, their live fields
 * are written into their contexts, translations change, the device is reset. A block is told of each life of its objects.
 */
import { QpState } from '../../../abi/qpc.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DataPathControl } from '../commands/index.ts';
import type { DataPathParts } from '../data-path-parts.ts';
import { AccessFence, DmaFence } from '../memory/index.ts';
import { noLine, noRecord } from '../objects/index.ts';
import { PARKED_DRAINING } from '../send-queue/index.ts';
import type { QueuePairErrors } from './queue-pair-errors.ts';
import type { RequestEnds } from './request-ends.ts';

export class DataPathObjects implements DataPathControl {
  readonly #parts: DataPathParts;
  readonly #errors: QueuePairErrors;
  readonly #ends: RequestEnds;
  readonly #fence: AccessFence;
  readonly #icmFence: DmaFence;
  /** All DMA but that of commands. */
  readonly #everything: DmaFence;

  constructor(parts: DataPathParts, errors: QueuePairErrors, ends: RequestEnds) {
    this.#parts = parts;
    this.#errors = errors;
    this.#ends = ends;
    const { dmaRead, dmaWrite } = parts.core;
    const { context, translation, command } = TrafficClass;
    this.#fence = new AccessFence(dmaRead, dmaWrite, parts.responses);
    this.#icmFence = new DmaFence(dmaRead, dmaWrite, (kind) => kind === context || kind === translation);
    this.#everything = new DmaFence(dmaRead, dmaWrite, (kind) => kind !== command);
  }

  qpCreated(slot: number): void {
    this.#parts.core.qps.create(slot);
    this.#parts.core.translator.forgetMtt();
    this.#parts.qpcCache.forget(slot);
    this.#parts.responses.open(slot);
    this.#parts.timers.forget(slot);
    this.#parts.flusher.forget(slot);
    this.#parts.pageFaults.forget(slot);
    this.#parts.receives.open(slot);
  }

  qpModified(slot: number, previousState: number): void {
    const { qps, domain } = this.#parts.core;
    qps.load(slot, previousState);
    const pair = qps.rows[slot]!;
    const state = pair.state;
    const cycle = domain.cycle;
    if (state === QpState.RTR && previousState === QpState.INIT) {
      const queue = this.#parts.receives.queueOf(slot);
      if (queue === slot) this.#parts.receives.prefetch(queue, cycle);
    }
    if (state !== QpState.RTS) return;
    if (pair.parkedFor === PARKED_DRAINING) this.#parts.scheduler.unpark(pair, cycle + 1);
    if (pair.hasDoorbell === 1) this.#parts.scheduler.makeReady(pair, cycle + 1);
  }

  qpToError(slot: number): void {
    this.#errors.fail(slot, this.#parts.core.domain.cycle);
    this.#parts.responses.dropRequests(slot);
  }

  qpDestroyed(slot: number): void {
    const { qps } = this.#parts.core;
    const pair = qps.rows[slot]!;
    pair.state = QpState.RST;
    pair.epoch++;
    this.#parts.scheduler.remove(pair);
    pair.messageKind = 0;
    this.#parts.requestCompletion.dropAll(pair);
    this.#parts.responses.drop(slot);
    this.#parts.timers.forget(slot);
    this.#parts.flusher.forget(slot);
    this.#parts.pageFaults.forget(slot);
    this.#parts.receives.close(slot);
    this.#parts.wqeFetch.release(pair, this.#parts.core.domain.cycle);
    const line = pair.wqeLine;
    if (line !== noLine && line.isFetching === 0) line.free();
    pair.wqeLine = noLine;
    this.#parts.qpcCache.forget(slot);
    this.#parts.requester.wake(this.#parts.core.domain.cycle + 1);
    this.#parts.receiver.wake(this.#parts.core.domain.cycle + 1);
  }

  qpSync(slot: number): void {
    this.#parts.core.qps.sync(slot);
  }

  qpIsBusy(slot: number): boolean {
    return (
      this.#parts.core.qps.rows[slot]!.inPipelineCount > 0 ||
      this.#parts.requester.isServing(slot) ||
      this.#parts.receiver.isServing(slot) ||
      this.#parts.responses.isBusy(slot) ||
      this.#parts.receives.isBusy(slot) ||
      !this.#parts.asyncEvents.isEmpty
    );
  }

  qpIsDraining(slot: number): boolean {
    const { qps } = this.#parts.core;
    const pair = qps.rows[slot]!;
    const isWorking = pair.recordHead !== noRecord || pair.inPipelineCount > 0;
    return pair.state === QpState.SQD && isWorking;
  }

  qpIsInError(slot: number): boolean {
    const { state } = this.#parts.core.qps.rows[slot]!;
    return state === QpState.ERR || state === QpState.SQER;
  }

  qpIsFlushing(slot: number): boolean {
    return this.#parts.flusher.isFlushingSends(slot);
  }

  cqCreated(slot: number): void {
    this.#parts.core.cqs.create(slot);
    this.#parts.core.translator.forgetMtt();
    this.#parts.cqcCache.forget(slot);
  }

  cqDestroyed(slot: number): void {
    this.#parts.core.cqs.rows[slot]!.armState = 0;
    this.#parts.cqcCache.forget(slot);
  }

  cqResized(slot: number, oldLogSize: number, oldLogPageSize: number, oldMttAddress: number): void {
    this.#parts.core.cqs.load(slot);
    this.#parts.core.translator.forgetMtt();
    this.#parts.completions.postResize(slot, oldLogSize, 2 ** (12 + oldLogPageSize), oldMttAddress);
  }

  cqModerated(slot: number): void {
    this.#parts.core.cqs.load(slot);
  }

  cqSync(slot: number): void {
    this.#parts.core.cqs.sync(slot);
  }

  cqIsBusy(slot: number): boolean {
    return this.#parts.completions.isBusy(slot) || !this.#parts.asyncEvents.isEmpty;
  }

  cqIsResizing(): boolean {
    return this.#parts.completions.isResizing;
  }

  srqCreated(slot: number): void {
    this.#parts.core.srqs.load(slot);
    this.#parts.core.translator.forgetMtt();
    this.#parts.srqcCache.forget(slot);
    this.#parts.receives.open(this.#parts.receives.srqQueue(slot));
  }

  srqDestroyed(slot: number): void {
    this.#parts.receives.close(this.#parts.receives.srqQueue(slot));
    this.#parts.srqcCache.forget(slot);
  }

  srqArmed(slot: number): void {
    this.#parts.core.srqs.load(slot);
  }

  srqIsBusy(slot: number): boolean {
    const queue = this.#parts.receives.srqQueue(slot);
    return this.#parts.receives.isBusy(queue) || !this.#parts.asyncEvents.isEmpty;
  }

  srqSync(slot: number): void {
    const queue = this.#parts.receives.srqQueue(slot);
    this.#parts.core.srqs.sync(
      slot,
      this.#parts.receives.postedCounter(queue),
      this.#parts.receives.consumedCounter(queue),
    );
  }

  mptChanged(index: number): void {
    this.#parts.core.translator.forgetMpt(index);
  }

  pagesChanged(): void {
    this.#parts.core.translator.forgetMtt();
  }

  translationChanged(): void {
    this.#parts.core.translator.forgetAll();
  }

  beginFence(): void {
    this.#fence.begin();
  }

  isFencePassed(): boolean {
    return this.#fence.isPassed();
  }

  pagesResumed(token: number, isRefused: boolean): boolean {
    return this.#parts.pageFaults.resume(token, isRefused, this.#parts.core.domain.cycle);
  }

  boundWindowCount(_mptIndex: number): number {
    return 0;
  }

  portChanged(_isUp: boolean): void {
    this.#parts.transmitter.wake(this.#parts.core.domain.cycle + 1);
  }

  beginIcmFence(): void {
    this.#icmFence.begin();
  }

  isIcmFencePassed(): boolean {
    return this.#icmFence.isPassed;
  }

  halt(): void {
    for (const slot of this.#parts.core.qps.liveSlots()) this.qpDestroyed(slot);
  }

  isQuiet(): boolean {
    this.#everything.begin();
    return this.#everything.isPassed;
  }

  reset(): void {
    const { qps } = this.#parts.core;
    for (const slot of qps.liveSlots()) {
      const pair = qps.rows[slot]!;
      this.#parts.requestCompletion.dropAll(pair);
      this.#parts.timers.forget(slot);
      this.#parts.flusher.forget(slot);
      pair.state = QpState.RST;
      pair.epoch++;
      pair.inPipelineCount = 0;
    }
    const blocks = [
      this.#parts.doorbells,
      this.#parts.scheduler,
      this.#parts.wqeFetch,
      this.#parts.requester,
      this.#parts.transmitter,
      this.#parts.receives,
      this.#parts.responses,
    ];
    for (const block of blocks) block.reset();
    this.#parts.receiver.reset();
    this.#parts.writer.reset();
    this.#parts.loopback.reset();
    this.#ends.reset();
    this.#parts.records.reset();
    this.#parts.pageFaults.reset();
    for (const block of [
      this.#parts.completions,
      this.#parts.flusher,
      this.#parts.asyncEvents,
      this.#parts.core.translator,
    ])
      block.reset();
    for (const cache of [this.#parts.qpcCache, this.#parts.cqcCache, this.#parts.srqcCache]) cache.reset();
  }
}
