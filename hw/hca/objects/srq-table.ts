/** Shared receive queue contexts. The receive-WQE fetch keeps its state of them in arrays of its own. */

import type { SharedQueueFormat } from '../host-interface/index.ts';
import { ContextTable, enlarged, type SlotUser } from './context-table.ts';
import type { Cqn, SrqSlot } from './numbers.ts';

/** Configured fields of a shared receive queue. */
export interface SharedQueueSetting {
  readonly pd: number;
  /** The domain that may name an XRC SRQ, and the CQ of its receives. */
  readonly xrcDomain: number;
  readonly cqn: Cqn;
  readonly logCount: number;
  readonly strideBytes: number;
  readonly mttOffset: number;
  readonly pageBytes: number;
  readonly firstByte: number;
  readonly doorbellRecord: number;
  readonly limit: number;
}

/** Live fields of a shared receive queue: 16-bit counters of WQEs. */
export interface SharedQueueProgress {
  readonly limit: number;
  readonly posted: number;
  readonly consumed: number;
}

/** The fetch of receive WQEs, which counts them. */
export interface ReceiveCounters extends SlotUser {
  /** Number of an SRQ's receive queue. */
  srqQueue(slot: SrqSlot): number;
  postedCounter(queue: number): number;
  consumedCounter(queue: number): number;
}

/** Arrays by slot, others once the table has grown. */
export class SrqTable extends ContextTable<'SRQ', 'receives'> {
  pd = new Int32Array(0);
  /** The domain that may name an XRC SRQ, and the CQ of its receives, by slot. */
  xrcDomain = new Int32Array(0);
  cqn = new Int32Array(0);
  logCount = new Uint8Array(0);
  strideBytes = new Int32Array(0);
  mttOffset = new Float64Array(0);
  pageBytes = new Float64Array(0);
  firstByte = new Int32Array(0);
  doorbellRecord = new Float64Array(0);
  /** Available WQEs below which the limit event is sent once; 0 is disarmed. */
  limit = new Int32Array(0);
  #receives!: ReceiveCounters;

  readonly #format: SharedQueueFormat;

  /** @param format of the contexts of the card */
  constructor(capacity: number, format: SharedQueueFormat) {
    super(format.contextBytes, capacity);
    this.#format = format;
    this.enlarge(this.slotCount);
  }

  override connect({ receives }: { readonly receives: ReceiveCounters }): void {
    super.connect({ receives });
    this.#receives = receives;
  }

  /** Loads the fields that a command configured. */
  load(slot: SrqSlot): void {
    const setting = this.#format.load(this.view, this.offsetOf(slot));
    this.pd[slot] = setting.pd;
    this.xrcDomain[slot] = setting.xrcDomain;
    this.cqn[slot] = setting.cqn;
    this.logCount[slot] = setting.logCount;
    this.strideBytes[slot] = setting.strideBytes;
    this.mttOffset[slot] = setting.mttOffset;
    this.pageBytes[slot] = setting.pageBytes;
    this.firstByte[slot] = setting.firstByte;
    this.doorbellRecord[slot] = setting.doorbellRecord;
    this.limit[slot] = setting.limit;
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: SrqSlot): void {
    const queue = this.#receives.srqQueue(slot);
    this.#format.sync(this.view, this.offsetOf(slot), {
      limit: this.limit[slot]!,
      posted: this.#receives.postedCounter(queue),
      consumed: this.#receives.consumedCounter(queue),
    });
  }

  protected override enlarge(slotCount: number): void {
    this.pd = enlarged(this.pd, slotCount);
    this.xrcDomain = enlarged(this.xrcDomain, slotCount);
    this.cqn = enlarged(this.cqn, slotCount);
    this.logCount = enlarged(this.logCount, slotCount);
    this.strideBytes = enlarged(this.strideBytes, slotCount);
    this.mttOffset = enlarged(this.mttOffset, slotCount);
    this.pageBytes = enlarged(this.pageBytes, slotCount);
    this.firstByte = enlarged(this.firstByte, slotCount);
    this.doorbellRecord = enlarged(this.doorbellRecord, slotCount);
    this.limit = enlarged(this.limit, slotCount);
  }
}
