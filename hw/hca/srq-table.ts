/** Shared receive queue contexts. What the receive-WQE fetch keeps of them lives in its own arrays. */
import { srqc } from '../../abi/srqc.ts';
import { ContextTable } from './context-table.ts';

export const SRQC_BYTES = 64;

const f = srqc.fields;

export class SrqTable extends ContextTable {
  readonly pd: Int32Array;
  readonly logCount: Uint8Array;
  readonly strideBytes: Int32Array;
  readonly mttOffset: Float64Array;
  readonly pageBytes: Float64Array;
  readonly firstByte: Int32Array;
  readonly doorbellRecord: Float64Array;
  /** Available WQEs below which the limit event is sent once; 0 is disarmed. */
  readonly limit: Int32Array;

  constructor(capacity: number) {
    super(SRQC_BYTES, capacity);
    this.pd = new Int32Array(capacity);
    this.logCount = new Uint8Array(capacity);
    this.strideBytes = new Int32Array(capacity);
    this.mttOffset = new Float64Array(capacity);
    this.pageBytes = new Float64Array(capacity);
    this.firstByte = new Int32Array(capacity);
    this.doorbellRecord = new Float64Array(capacity);
    this.limit = new Int32Array(capacity);
  }

  /** Decodes what a command configured. */
  load(slot: number): void {
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
  sync(slot: number, postedWqes: number, wqeCounter: number): void {
    const at = this.offsetOf(slot);
    f.limitWatermark.set(this.view, at, this.limit[slot]!);
    f.postedWqes.set(this.view, at, postedWqes);
    f.wqeCounter.set(this.view, at, wqeCounter);
  }
}
