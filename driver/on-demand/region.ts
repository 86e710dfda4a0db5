/**
 * An on-demand region: its pages one by one, as the device may reach them.
 *
 *     absent ── page request ──► present ── invalidated, wanted, evicted ──► leaving ── fence ──► absent
 *
 * A page that is present or leaving holds a reference on its frame. Its translation entry exists only while it is present;
 * while it is leaving, earlier accesses may still be in progress.
 */
import type { MttTable, Translation } from '../mtt-table.ts';
import type { ProcessMemory } from '../platform.ts';

export const onDemandPageBytes = 4096;

const ABSENT = 0;
const PRESENT = 1;
const LEAVING = 2;

/** Functions that a process must offer for on-demand paging. */
export type PageableMemory = Required<
  Pick<ProcessMemory, 'processId' | 'holdPage' | 'releasePages' | 'watchPages'>
>;

export interface OnDemandRegionOptions {
  readonly process: PageableMemory;
  readonly mtts: MttTable;
  readonly translation: Translation;
  readonly address: number;
  readonly lengthBytes: number;
  /** The device may write: pages are made present for writing. */
  readonly isWritable: boolean;
}

export class OnDemandRegion {
  readonly process: PageableMemory;
  readonly translation: Translation;
  readonly access: 'read' | 'write';
  readonly pageCount: number;
  /** The region is being taken from the device: no page becomes present any more. */
  isClosed = false;
  readonly #mtts: MttTable;
  readonly #firstPage: number;
  readonly #state: Uint8Array;
  readonly #physical: Float64Array;

  constructor({ process, mtts, translation, address, lengthBytes, isWritable }: OnDemandRegionOptions) {
    this.process = process;
    this.translation = translation;
    this.access = isWritable ? 'write' : 'read';
    this.#mtts = mtts;
    this.#firstPage = Math.floor(address / onDemandPageBytes);
    this.pageCount = pageCountOf(address, lengthBytes);
    this.#state = new Uint8Array(this.pageCount);
    this.#physical = new Float64Array(this.pageCount).fill(-1);
  }

  addressOf(index: number): number {
    return (this.#firstPage + index) * onDemandPageBytes;
  }

  /** Index of an address' page, which may lie outside the region. */
  indexOf(address: number): number {
    return Math.floor(address / onDemandPageBytes) - this.#firstPage;
  }

  isPresent(index: number): boolean {
    return this.#state[index] === PRESENT;
  }

  isLeaving(index: number): boolean {
    return this.#state[index] === LEAVING;
  }

  /** Whether the device may still reach the page of an address. */
  holds(address: number): boolean {
    const index = this.indexOf(address);
    return index >= 0 && index < this.pageCount && this.#state[index] !== ABSENT;
  }

  /** Whether the page is present, with its frame held. */
  enter(index: number, physical: number): void {
    this.#state[index] = PRESENT;
    this.#physical[index] = physical;
    this.#mtts.setEntry(this.translation, index, physical);
  }

  /** Removes the translation of a present page. */
  withdraw(index: number): void {
    this.#state[index] = LEAVING;
    this.#mtts.clearEntry(this.translation, index);
  }

  /** Accesses have ended. @returns the frame to be freed */
  leave(index: number): number {
    const physical = this.#physical[index]!;
    this.#state[index] = ABSENT;
    this.#physical[index] = -1;
    return physical;
  }
}

export const pageCountOf = (address: number, lengthBytes: number): number =>
  Math.floor((address + lengthBytes - 1) / onDemandPageBytes) - Math.floor(address / onDemandPageBytes) + 1;
