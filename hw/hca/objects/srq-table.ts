/** Shared receive queue contexts. What the receive-WQE fetch keeps of them lives in its own arrays. */

import { srqc } from '../../../abi/srqc.ts';
import { ContextTable, enlarged } from './context-table.ts';
import type { SrqSlot } from './numbers.ts';

const SRQC_BYTES = 64;

const f = srqc.fields;

/** Arrays by slot, others once the table has grown. */
export class SrqTable extends ContextTable<'SRQ', 'receives'> {
  pd = new Int32Array(0);
  logCount = new Uint8Array(0);
  strideBytes = new Int32Array(0);
  mttOffset = new Float64Array(0);
  pageBytes = new Float64Array(0);
  firstByte = new Int32Array(0);
  doorbellRecord = new Float64Array(0);
  /** Available WQEs below which the limit event is sent once; 0 is disarmed. */
  limit = new Int32Array(0);

  constructor(capacity: number) {
    super(SRQC_BYTES, capacity);
    this.enlarge(this.slotCount);
  }

  /** Decodes what a command configured. */
  load(slot: SrqSlot): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    this.pd[slot] = f.pd.get(view, at);
    this.logCount[slot] = f.logWqes.get(view, at);
    this.strideBytes[slot] = 2 ** (4 + f.logStride16.get(view, at));
    this.mttOffset[slot] = f.mttAddress.get(view, at);
    this.pageBytes[slot] = 2 ** (12 + f.logPageSize4k.get(view, at));
    this.firstByte[slot] = f.pageOffset64.get(view, at) * 64;
    this.doorbellRecord[slot] = f.doorbellRecordAddress.getNumber(view, at);
    this.limit[slot] = f.limitWatermark.get(view, at);
  }

  /** Writes the live fields into the context bytes. */
  sync(slot: SrqSlot, postedWqes: number, wqeCounter: number): void {
    const at = this.offsetOf(slot);
    f.limitWatermark.set(this.view, at, this.limit[slot]!);
    f.postedWqes.set(this.view, at, postedWqes);
    f.wqeCounter.set(this.view, at, wqeCounter);
  }

  protected override enlarge(slotCount: number): void {
    this.pd = enlarged(this.pd, slotCount);
    this.logCount = enlarged(this.logCount, slotCount);
    this.strideBytes = enlarged(this.strideBytes, slotCount);
    this.mttOffset = enlarged(this.mttOffset, slotCount);
    this.pageBytes = enlarged(this.pageBytes, slotCount);
    this.firstByte = enlarged(this.firstByte, slotCount);
    this.doorbellRecord = enlarged(this.doorbellRecord, slotCount);
    this.limit = enlarged(this.limit, slotCount);
  }
}
