/**
 * Finds the page of an EQ's next entry. The address of one page is kept with the queue; when its producer reaches
 * another page, that page's MTT entry is read by DMA, one at a time.
 */

import { type Cycles, ringIndex, viewOf } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { EventFormat, TranslationFormat } from '../host-interface/index.ts';
import {
  type ContextMemory,
  type DmaReads,
  type SramAllocator,
  TRANSLATION_ENTRY_BYTES,
} from '../memory/index.ts';
import type { EqSlot } from '../objects/index.ts';
import { type EqTable, NO_PAGE } from './eq-table.ts';

/** Values instead of an address: the page must be looked up, or the queue has none there. */
export const UNKNOWN = -2;
export const UNREACHABLE = -3;

const NOT_MAPPED = -1;
/** More pages than an EQ can have: 2^22 entries of 32 bytes in pages of 4 KiB. */
const PAGE_LIMIT = 2 ** 20;

export interface EqPagesSetup {
  readonly domain: ClockDomain;
  readonly eqs: EqTable;
  readonly contextMemory: ContextMemory;
  readonly translations: TranslationFormat;
  readonly reads: DmaReads;
  readonly sram: SramAllocator;
  readonly format: Pick<EventFormat, 'entryBytes'>;
}

export interface EqPagesPorts {
  readonly events: {
    /** A page has been looked up, or can be. */
    wake(cycle: Cycles): void;
  };
}

export class EqPages {
  readonly #eqs: EqTable;
  readonly #memory: ContextMemory;
  readonly #translations: TranslationFormat;
  readonly #reads: DmaReads;
  readonly #requester: number;
  readonly #entryBytes: number;
  readonly #mttOffset: number;
  readonly #mttView: DataView;
  #events!: EqPagesPorts['events'];
  #isReading = false;
  #slot = -1;
  /** Raised by a reset: reads for an earlier one are ignored. */
  #generation = 0;

  constructor(setup: EqPagesSetup) {
    this.#eqs = setup.eqs;
    this.#memory = setup.contextMemory;
    this.#translations = setup.translations;
    this.#reads = setup.reads;
    this.#entryBytes = setup.format.entryBytes;
    this.#mttOffset = setup.sram.allocate(TRANSLATION_ENTRY_BYTES);
    this.#mttView = viewOf(setup.sram.bytes);
    this.#requester = setup.reads.addRequester(
      { name: 'eqTranslation', trafficClass: TrafficClass.translation, fifoDepth: 1, weight: 1 },
      {
        done: (cookie, status, cycle) => this.#found(cookie, status, cycle),
        space: () => this.#events.wake(setup.domain.cycle + 1),
      },
    );
  }

  connect({ events }: EqPagesPorts): void {
    this.#events = events;
  }

  /** DMA address of the EQ's next entry, UNKNOWN when its page must be looked up, UNREACHABLE when it has none. */
  addressOfNext(slot: EqSlot): number {
    const eqs = this.#eqs;
    const offset = this.#offsetOfNext(slot);
    const pageIndex = offset >>> eqs.logPageBytes[slot]!;
    if (eqs.pageIndex[slot] !== pageIndex) return UNKNOWN;
    const pageAddress = eqs.pageAddress[slot]!;
    return pageAddress === NOT_MAPPED
      ? UNREACHABLE
      : pageAddress + (offset & ((1 << eqs.logPageBytes[slot]!) - 1));
  }

  /**
   * Looks up the page of the EQ's next entry.
   * @returns true if the answer is known at once (no page), false while it is being read or cannot be read yet
   */
  lookUp(slot: EqSlot): boolean {
    const eqs = this.#eqs;
    if (this.#isReading || !this.#reads.canRequest(this.#requester)) return false;
    const pageIndex = this.#offsetOfNext(slot) >>> eqs.logPageBytes[slot]!;
    eqs.pageIndex[slot] = pageIndex;
    eqs.pageAddress[slot] = NOT_MAPPED;
    const address = this.#memory.translationAddress(
      eqs.mttAddress[slot]! + pageIndex * TRANSLATION_ENTRY_BYTES,
    );
    if (address === NOT_MAPPED) return true;
    eqs.pageIndex[slot] = NO_PAGE;
    this.#isReading = true;
    this.#slot = slot;
    const cookie = this.#generation * PAGE_LIMIT + pageIndex;
    this.#reads.request(this.#requester, address, TRANSLATION_ENTRY_BYTES, this.#mttOffset, cookie);
    return false;
  }

  /** The EQ is destroyed: the answer of a read in flight is ignored. */
  forget(slot: EqSlot): void {
    if (this.#slot === slot) this.#slot = -1;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { isReading: this.#isReading, slot: this.#slot };
  }

  reset(): void {
    this.#generation++;
    this.#isReading = false;
    this.#slot = -1;
  }

  #offsetOfNext(slot: EqSlot): number {
    const eqs = this.#eqs;
    return (
      eqs.pageOffset[slot]! + ringIndex(eqs.producerCounter[slot]!, eqs.logEntries[slot]!) * this.#entryBytes
    );
  }

  #found(cookie: number, status: number, cycle: Cycles): void {
    if (Math.floor(cookie / PAGE_LIMIT) !== this.#generation) return;
    const slot = this.#slot;
    this.#isReading = false;
    this.#slot = -1;
    if (slot >= 0) {
      const address = this.#translations.pageAt(this.#mttView, this.#mttOffset);
      this.#eqs.pageIndex[slot] = cookie % PAGE_LIMIT;
      this.#eqs.pageAddress[slot] = status === 0 ? address : NOT_MAPPED;
    }
    this.#events.wake(cycle + 1);
  }
}
