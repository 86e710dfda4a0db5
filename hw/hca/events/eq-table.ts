/**
 * The live event queues: their contexts as software configured them, and next to them, in typed arrays, the fields that
 * change with every event. The context cache decides which of them count as on chip.
 */
import { EqArmState, QueueStatus } from '../../../abi/index.ts';
import { mask24, NEVER, psPerUs } from '../../../base/index.ts';
import type { EventQueueFormat } from '../host-interface/index.ts';
import { ContextTable, type EqSlot } from '../objects/index.ts';

/** The EQ's current page is unknown. */
export const NO_PAGE = -1;

/** Configured fields of an event queue. */
export interface EventQueueSetting {
  /** One of EqArmState; 0 is fired. */
  readonly armState: number;
  readonly logEntries: number;
  readonly ignoresOverrun: number;
  /** MSI-X vector. */
  readonly vector: number;
  /** Byte offset of entry 0 in the first page. */
  readonly firstByte: number;
  readonly logPageBytes: number;
  readonly mttOffset: number;
  readonly moderationUs: number;
  readonly moderationCount: number;
}

/** Live fields of an event queue: 24-bit counters of entries. */
export interface EventQueueProgress {
  readonly status: number;
  readonly armState: number;
  readonly consumer: number;
  readonly producer: number;
}

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
  /** Interrupt moderation: 0 cycles for none. */
  readonly moderationCycles: Float64Array;
  readonly moderationCount: Uint16Array;
  /** Cycle at which the moderation period that is running ends, or Infinity. */
  readonly interruptCycle: Float64Array;
  /** 1 if the EQ was armed by its doorbell and not checked since. */
  readonly isArmNew: Uint8Array;
  readonly #cyclesPerUs: number;
  readonly #format: EventQueueFormat;

  /**
   * @param format of the contexts of the card
   * @param coreClockMHz turns moderation periods, which software gives in µs, into cycles
   */
  constructor(capacity: number, format: EventQueueFormat, coreClockMHz: number) {
    super(format.contextBytes, capacity);
    this.#format = format;
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

  /** Loads the context bytes of a slot that a command has just filled. Counters start at 0. */
  activate(slot: EqSlot): void {
    const setting = this.#format.load(this.view, this.offsetOf(slot));
    this.producerCounter[slot] = 0;
    this.consumerCounter[slot] = 0;
    this.status[slot] = QueueStatus.OK;
    this.armState[slot] = setting.armState === 0 ? EqArmState.FIRED : setting.armState;
    this.logEntries[slot] = setting.logEntries;
    this.ignoresOverrun[slot] = setting.ignoresOverrun;
    this.vector[slot] = setting.vector;
    this.pageOffset[slot] = setting.firstByte;
    this.logPageBytes[slot] = setting.logPageBytes;
    this.mttAddress[slot] = setting.mttOffset;
    this.pageIndex[slot] = NO_PAGE;
    this.moderationCycles[slot] = setting.moderationUs * this.#cyclesPerUs;
    this.moderationCount[slot] = setting.moderationCount;
    this.interruptCycle[slot] = NEVER;
    this.isArmNew[slot] = 0;
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: EqSlot): void {
    this.#format.sync(this.view, this.offsetOf(slot), {
      status: this.status[slot]!,
      armState: this.armState[slot]!,
      consumer: this.consumerCounter[slot]!,
      producer: this.producerCounter[slot]!,
    });
  }

  /**
   * Returns the number of a vector's queues that software has still to serve: those with entries that it has not
   * consumed, or not armed since their last message.
   */
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
