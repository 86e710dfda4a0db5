/**
 * The kernel's side of an IOMMU: the page table of the device's domain and the DMA API.
 *
 *     allocateFrames, pin ─► map(page, rights)  ─► entries of four levels, in frames of their own
 *     freeFrames, unpin ──► unmap(page) ─► entry cleared ─► invalidation, waited for (strict mode)
 *
 * Device addresses equal physical ones, so that neither driver nor device sees a difference; the device cannot reach unmapped
 * pages. A page mapped several times (overlapping pins) stays until the last mapping is removed, with the rights of the
 * remaining ones. (Linux chooses device addresses instead.)
 */

import {
  entryAt,
  entryBytes,
  entryOffsetOf,
  entryReadable,
  entryWritable,
  iommuPageBytes,
  levelCount,
  setEntry,
} from '../abi/index.ts';
import { InvariantError, nsToPs } from '../base/index.ts';
import type { ExactPs } from '../sim/index.ts';
import type { MemoryManager } from './mm/index.ts';

/** The registers of the hardware that the kernel uses. */
export interface IommuPort {
  /** The fault event interrupt is sent to the processor. */
  connect(ports: { readonly processor: { faultRecorded(): void } }): void;
  setRoot(address: number): void;
  invalidate(address: number): void;
  takeFaults(): readonly { readonly address: number; readonly reason: string; readonly atPs: ExactPs }[];
}

export interface IommuCosts {
  readonly mapPageCycles: number;
  readonly unmapPageCycles: number;
  readonly invalidationNs: number;
}

interface Users {
  readers: number;
  writers: number;
}

export class IommuDomain {
  /** Frames that hold page tables: the domain keeps them. */
  tableFrameCount = 0;
  readonly port: IommuPort;
  /** Pages that the device can reach. */
  mappedPages = 0;
  /** Faults that the handler has read from the log. */
  readonly faults: { readonly address: number; readonly reason: string; readonly atPs: ExactPs }[] = [];
  readonly #mm: MemoryManager;
  readonly #costs: IommuCosts;
  readonly #rootAddress: number;
  readonly #users = new Map<number, Users>();
  readonly #entry = new Uint8Array(entryBytes);
  readonly #entryView = new DataView(this.#entry.buffer);

  constructor(port: IommuPort, mm: MemoryManager, costs: IommuCosts) {
    this.port = port;
    this.#mm = mm;
    this.#costs = costs;
    this.#rootAddress = this.#newTable();
    port.setRoot(this.#rootAddress);
  }

  /** Lets the device reach the page of a physical address. */
  map(address: number, isWritable: boolean): void {
    const page = address - (address % iommuPageBytes);
    const users = this.#users.get(page) ?? { readers: 0, writers: 0 };
    this.#users.set(page, users);
    const before = rightsOf(users);
    if (isWritable) users.writers++;
    else users.readers++;
    if (before === 0) this.mappedPages++;
    if (rightsOf(users) !== before) this.#enter(page, rightsOf(users), before !== 0);
    this.#mm.platform.charge('memory', this.#costs.mapPageCycles);
  }

  /** Unmaps pages that {@link map} mapped, with one wait for all invalidations. */
  unmap(addresses: Iterable<number>, isWritable: boolean): void {
    const { platform } = this.#mm;
    let isInvalidated = false;
    for (const address of addresses) {
      const page = address - (address % iommuPageBytes);
      const users = this.#users.get(page);
      if (users === undefined) throw new InvariantError('device page', address, 'one that was mapped');
      const before = rightsOf(users);
      if (isWritable) users.writers--;
      else users.readers--;
      const rights = rightsOf(users);
      platform.charge('memory', this.#costs.unmapPageCycles);
      if (rights === before) continue;
      if (rights === 0) {
        this.#users.delete(page);
        this.mappedPages--;
      }
      this.#enter(page, rights, true);
      isInvalidated = true;
    }
    if (isInvalidated) platform.waitUntil(platform.instantPs() + nsToPs(this.#costs.invalidationNs));
  }

  /** The fault interrupt: empties the log. */
  takeFaults(): void {
    this.faults.push(...this.port.takeFaults());
  }

  #enter(page: number, rights: number, isChanged: boolean): void {
    const view = this.#mm.memory.followingView;
    let table = this.#rootAddress;
    for (let level = levelCount; level > 1; level--) {
      const at = table + entryOffsetOf(page, level);
      const entry = entryAt(view, at);
      let { address } = entry;
      if (entry.rights === 0) {
        address = this.#newTable();
        this.#write(at, address, entryReadable | entryWritable);
      }
      table = address;
    }
    this.#write(table + entryOffsetOf(page, 1), rights === 0 ? 0 : page, rights);
    if (isChanged) this.port.invalidate(page);
  }

  /** Writes an entry at once, as every watcher of the table sees it. */
  #write(at: number, address: number, rights: number): void {
    setEntry(this.#entryView, 0, address, rights);
    this.#mm.memory.write(at, entryBytes, this.#entry, 0);
  }

  #newTable(): number {
    const frame = this.#mm.frames.allocate();
    if (frame < 0) throw new InvariantError('frames for the IOMMU', 0, 'at least one');
    this.tableFrameCount++;
    return frame * iommuPageBytes;
  }
}

const rightsOf = ({ readers, writers }: Users): number =>
  (readers + writers > 0 ? entryReadable : 0) | (writers > 0 ? entryWritable : 0);
