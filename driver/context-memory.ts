/**
 * Process memory that one open device (context) has pinned. Rings and regions are pinned one by one. Many doorbell records
 * share a page, which stays pinned while an object of the context has a record in it. Source: Linux 6.1,
 * drivers/infiniband/hw/mlx4/doorbell.c, mlx4_ib_db_map_user: a list of pages by user address in each context.
 */
import { pageBytes } from '../base/index.ts';
import { require } from './kernel-error.ts';
import type { Cpu, PinnedPages, ProcessMemory } from './platform.ts';
import { pinPages } from './user-buffer.ts';

interface DoorbellPage {
  readonly pages: PinnedPages;
  /** Records in it; the page is unpinned with the last one. */
  users: number;
}

/** A doorbell record that an object of the device uses. */
export interface UserRecord {
  /** User address of the record's page. */
  readonly page: number;
  readonly physicalAddress: number;
}

export class ContextMemory {
  readonly process: ProcessMemory;
  /** Doorbell pages by user address. */
  readonly #doorbellPages = new Map<number, DoorbellPage>();

  constructor(process: ProcessMemory) {
    this.process = process;
  }

  /** Starts using a record; it must not cross a page. Throws the error of the system call. */
  mapRecord(cpu: Cpu, address: number, lengthBytes: number): UserRecord {
    require(address % lengthBytes ===
      0, `the doorbell record is at 0x${address.toString(16)}, expected a multiple of ${lengthBytes}`);
    const offset = address % pageBytes;
    const page = address - offset;
    let pinned = this.#doorbellPages.get(page);
    if (pinned === undefined) {
      pinned = { pages: pinPages(cpu, this.process, page, pageBytes), users: 0 };
      this.#doorbellPages.set(page, pinned);
    }
    pinned.users++;
    return { page, physicalAddress: pinned.pages.pages[0]! + offset };
  }

  /** Stops using a record. */
  unmapRecord(cpu: Cpu, { page }: UserRecord): void {
    const pinned = this.#doorbellPages.get(page)!;
    pinned.users--;
    if (pinned.users > 0) return;
    this.#doorbellPages.delete(page);
    this.process.unpin(cpu, pinned.pages);
  }
}
