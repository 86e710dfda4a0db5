/** Shared receive queue contexts. What the receive-WQE fetch keeps of them lives in its own arrays. */

import { srqc } from '../../../abi/index.ts';
import { ContextTable, enlarged, type SlotUser } from './context-table.ts';
import type { SrqSlot } from './numbers.ts';

const SRQC_BYTES = 64;

const f = srqc.fields;

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
  /** Of an XRC SRQ: who may name it, and where its receives complete. */
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

  constructor(capacity: number) {
    super(SRQC_BYTES, capacity);
    this.enlarge(this.slotCount);
  }

  override connect({ receives }: { readonly receives: ReceiveCounters }): void {
    super.connect({ receives });
    this.#receives = receives;
  }

  /** Decodes what a command configured. */
  load(slot: SrqSlot): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    this.pd[slot] = f.pd.get(view, at);
    this.xrcDomain[slot] = f.xrcDomain.get(view, at);
    this.cqn[slot] = f.cqn.get(view, at);
    this.logCount[slot] = f.logWqes.get(view, at);
    this.strideBytes[slot] = 2 ** (4 + f.logStride16.get(view, at));
    this.mttOffset[slot] = f.mttAddress.get(view, at);
    this.pageBytes[slot] = 2 ** (12 + f.logPageSize4k.get(view, at));
    this.firstByte[slot] = f.pageOffset64.get(view, at) * 64;
    this.doorbellRecord[slot] = f.doorbellRecordAddress.getNumber(view, at);
    this.limit[slot] = f.limitWatermark.get(view, at);
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: SrqSlot): void {
    const at = this.offsetOf(slot);
    const queue = this.#receives.srqQueue(slot);
    f.limitWatermark.set(this.view, at, this.limit[slot]!);
    f.postedWqes.set(this.view, at, this.#receives.postedCounter(queue));
    f.wqeCounter.set(this.view, at, this.#receives.consumedCounter(queue));
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
