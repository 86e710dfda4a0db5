/** Completion queue contexts: configured fields decoded once per command, counters and arm state live. */
import { cqc, QueueStatus } from '../../abi/cqc.ts';
import { ContextTable } from './context-table.ts';

export const CQC_BYTES = 64;

/** Arm states of a CQ, private to the device. */
export const CQ_NOT_ARMED = 0;
export const CQ_ARMED_SOLICITED = 1;
export const CQ_ARMED_NEXT = 2;

const f = cqc.fields;

export class CqTable extends ContextTable {
  readonly status: Uint8Array;
  readonly logEntries: Uint8Array;
  readonly mttOffset: Float64Array;
  readonly pageBytes: Float64Array;
  readonly firstByte: Int32Array;
  readonly eqn: Int32Array;
  readonly uarPage: Int32Array;
  readonly doorbellRecord: Float64Array;
  readonly ignoreOverrun: Uint8Array;
  readonly moderationCount: Int32Array;
  readonly moderationPeriodPs: Float64Array;
  /** 24-bit counters. */
  readonly producer: Int32Array;
  readonly consumer: Int32Array;
  /** Producer counter behind the last CQE that a solicited arm waits for. */
  readonly solicitedProducer: Int32Array;
  /** Producer counter at the last event: CQEs before it have been told of. */
  readonly lastNotified: Int32Array;
  readonly armState: Uint8Array;
  /** Completion events fired, which an arm request's sequence number must be ahead of by one. */
  readonly firedCount: Int32Array;
  /** CQEs since the CQ was armed that moderation holds back. */
  readonly heldCount: Int32Array;
  readonly hasModerationTimer: Uint8Array;
  /** CQEs on their way to memory. */
  readonly inPipelineCount: Int32Array;
  readonly generation: Int32Array;

  constructor(capacity: number) {
    super(CQC_BYTES, capacity);
    this.status = new Uint8Array(capacity);
    this.logEntries = new Uint8Array(capacity);
    this.mttOffset = new Float64Array(capacity);
    this.pageBytes = new Float64Array(capacity);
    this.firstByte = new Int32Array(capacity);
    this.eqn = new Int32Array(capacity);
    this.uarPage = new Int32Array(capacity);
    this.doorbellRecord = new Float64Array(capacity);
    this.ignoreOverrun = new Uint8Array(capacity);
    this.moderationCount = new Int32Array(capacity);
    this.moderationPeriodPs = new Float64Array(capacity);
    this.producer = new Int32Array(capacity);
    this.consumer = new Int32Array(capacity);
    this.solicitedProducer = new Int32Array(capacity);
    this.lastNotified = new Int32Array(capacity);
    this.armState = new Uint8Array(capacity);
    this.firedCount = new Int32Array(capacity);
    this.heldCount = new Int32Array(capacity);
    this.hasModerationTimer = new Uint8Array(capacity);
    this.inPipelineCount = new Int32Array(capacity);
    this.generation = new Int32Array(capacity);
  }

  /** Takes up a context just created by SW2HW_CQ: empty, not armed. */
  create(slot: number): void {
    this.status[slot] = QueueStatus.OK;
    for (const counter of [
      this.producer,
      this.consumer,
      this.solicitedProducer,
      this.lastNotified,
      this.firedCount,
    ])
      counter[slot] = 0;
    for (const counter of [this.heldCount, this.inPipelineCount]) counter[slot] = 0;
    this.armState[slot] = CQ_NOT_ARMED;
    this.hasModerationTimer[slot] = 0;
    this.generation[slot] = this.generation[slot]! + 1;
    this.load(slot);
  }

  /** Decodes what a command configured. */
  load(slot: number): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    this.logEntries[slot] = f.logEntries.get(view, at);
    this.mttOffset[slot] = f.mttAddress.get(view, at);
    this.pageBytes[slot] = 2 ** (12 + f.logPageSize4k.get(view, at));
    this.firstByte[slot] = f.pageOffset32.get(view, at) * 32;
    this.eqn[slot] = f.eqn.get(view, at);
    this.uarPage[slot] = f.uarPage.get(view, at);
    this.doorbellRecord[slot] = f.doorbellRecordAddress.getNumber(view, at);
    this.ignoreOverrun[slot] = f.ignoreOverrun.get(view, at);
    this.moderationCount[slot] = f.moderationCount.get(view, at);
    this.moderationPeriodPs[slot] = f.moderationPeriodUs.get(view, at) * 1_000_000;
  }

  /** Writes the live fields into the context bytes. */
  sync(slot: number): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    f.status.set(view, at, this.status[slot]!);
    f.producerCounter.set(view, at, this.producer[slot]!);
    f.consumerCounter.set(view, at, this.consumer[slot]!);
    f.solicitedProducerCounter.set(view, at, this.solicitedProducer[slot]!);
    f.lastNotifiedCounter.set(view, at, this.lastNotified[slot]!);
  }
}
