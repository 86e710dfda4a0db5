/**
 * The live event queues: their contexts as software configured them, and beside them in typed arrays what changes with
 * every event. Which of them would be on chip is the context cache's
 * matter. Source: interface sheet 5.3, 6.7, 6.10.
 */
import { EqArmState, eqc, eqeBytes, QueueStatus } from '../../../abi/index.ts';
import { mask24, NEVER, psPerUs } from '../../../base/index.ts';
import { ContextTable, type EqSlot } from '../objects/index.ts';

/** No page of the EQ's buffer is known at the moment. */
export const NO_PAGE = -1;

export class EqTable extends ContextTable<'EQ'> {
  /** Free-running 24-bit counters. */
  readonly producerCounter: Int32Array;
  readonly consumerCounter: Int32Array;
  readonly logEntries: Uint8Array;
  readonly status: Uint8Array;
  readonly armState: Uint8Array;
  readonly ignoresOverrun: Uint8Array;
  readonly vector: Uint16Array;
  /** Byte offset of entry 0 in the first page, log2 of the page size, and the first page's MTT entry. */
  readonly pageOffset: Uint16Array;
  readonly logPageBytes: Uint8Array;
  readonly mttAddress: Float64Array;
  /** The page the EQ is being written in, and its DMA address; {@link NO_PAGE} when it must be looked up. */
  readonly pageIndex: Int32Array;
  readonly pageAddress: Float64Array;
  /** Interrupt moderation: 0 cycles is none. */
  readonly moderationCycles: Float64Array;
  readonly moderationCount: Uint16Array;
  /** Cycle at which the moderation period that is running ends, or Infinity. */
  readonly interruptCycle: Float64Array;
  /** The EQ was armed by its doorbell and has not been looked at since. */
  readonly isArmNew: Uint8Array;
  readonly #cyclesPerUs: number;

  /** @param coreClockMHz turns moderation periods, which software gives in µs, into cycles */
  constructor(capacity: number, coreClockMHz: number) {
    super(eqc.sizeBytes, capacity);
    this.#cyclesPerUs = coreClockMHz * (psPerUs / 1_000_000);
    this.producerCounter = new Int32Array(capacity);
    this.consumerCounter = new Int32Array(capacity);
    this.logEntries = new Uint8Array(capacity);
    this.status = new Uint8Array(capacity);
    this.armState = new Uint8Array(capacity);
    this.ignoresOverrun = new Uint8Array(capacity);
    this.vector = new Uint16Array(capacity);
    this.pageOffset = new Uint16Array(capacity);
    this.logPageBytes = new Uint8Array(capacity);
    this.mttAddress = new Float64Array(capacity);
    this.pageIndex = new Int32Array(capacity).fill(NO_PAGE);
    this.pageAddress = new Float64Array(capacity);
    this.moderationCycles = new Float64Array(capacity);
    this.moderationCount = new Uint16Array(capacity);
    this.interruptCycle = new Float64Array(capacity).fill(NEVER);
    this.isArmNew = new Uint8Array(capacity);
  }

  /** Takes up the context bytes of a slot that SW2HW_EQ has just filled. Counters start at 0. */
  activate(slot: EqSlot): void {
    const { view } = this;
    const base = this.offsetOf(slot);
    const fields = eqc.fields;
    this.producerCounter[slot] = 0;
    this.consumerCounter[slot] = 0;
    this.status[slot] = QueueStatus.OK;
    const armState = fields.armState.get(view, base);
    this.armState[slot] = armState === 0 ? EqArmState.FIRED : armState;
    this.logEntries[slot] = fields.logEntries.get(view, base);
    this.ignoresOverrun[slot] = fields.ignoreOverrun.get(view, base);
    this.vector[slot] = fields.interruptNumber.get(view, base);
    this.pageOffset[slot] = fields.pageOffset32.get(view, base) * eqeBytes;
    this.logPageBytes[slot] = fields.logPageSize4k.get(view, base) + 12;
    this.mttAddress[slot] = fields.mttAddress.get(view, base);
    this.pageIndex[slot] = NO_PAGE;
    this.moderationCycles[slot] = fields.moderationPeriod.get(view, base) * this.#cyclesPerUs;
    this.moderationCount[slot] = fields.moderationCount.get(view, base);
    this.interruptCycle[slot] = NEVER;
    this.isArmNew[slot] = 0;
  }

  /** Writes the live fields into the context bytes, for QUERY_EQ. */
  override sync(slot: EqSlot): void {
    const { view } = this;
    const base = this.offsetOf(slot);
    eqc.fields.status.set(view, base, this.status[slot]!);
    eqc.fields.armState.set(view, base, this.armState[slot]!);
    eqc.fields.consumerCounter.set(view, base, this.consumerCounter[slot]!);
    eqc.fields.producerCounter.set(view, base, this.producerCounter[slot]!);
  }

  /** Queues of a vector that software has still to serve: with entries that it has not consumed, or not armed since their last message. */
  unservedOf(vector: number): number {
    const waits = (slot: EqSlot): boolean =>
      this.vector[slot] === vector && (this.unconsumed(slot) > 0 || this.armState[slot] === EqArmState.FIRED);
    return this.liveSlots().filter(waits).length;
  }

  /** Entries written and not yet consumed. */
  unconsumed(slot: EqSlot): number {
    return (this.producerCounter[slot]! - this.consumerCounter[slot]!) & mask24;
  }
}
