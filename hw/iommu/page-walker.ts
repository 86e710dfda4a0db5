/** Walks the page table in memory, four levels, and adds the result to the IOTLB. */
import {
  entryAt,
  entryBytes,
  entryOffsetOf,
  entryReadable,
  entryWritable,
  iommuPageBytes,
  levelCount,
} from '../../abi/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { HostMemory } from '../pcie/index.ts';
import type { Iotlb } from './iotlb.ts';

const NO_TABLE = -1;

export interface PageWalkerPorts {
  readonly iotlb: Pick<Iotlb, 'fill'>;
}

export class PageWalker {
  walkCount = 0;
  /** Physical address of the domain's root table; -1: nothing is mapped. */
  rootAddress = NO_TABLE;
  /** Frame and rights found by the last walk. */
  frame = 0;
  rights = 0;

  readonly #memory: HostMemory;
  readonly #entry = new Uint8Array(entryBytes);
  readonly #entryView = new DataView(this.#entry.buffer);
  #iotlb!: PageWalkerPorts['iotlb'];

  constructor({ memory }: { readonly memory: HostMemory }) {
    this.#memory = memory;
  }

  connect({ iotlb }: PageWalkerPorts): void {
    this.#iotlb = iotlb;
  }

  /** @returns the page's index in the IOTLB, or -1: an absent entry is not kept */
  walk(page: number): number {
    this.walkCount++;
    if (!this.peek(page)) return -1;
    return this.#iotlb.fill(page, this.frame, this.rights);
  }

  /**
   * Walks without side effects.
   * @param tables receives the addresses of the tables that the walk reads
   * @returns whether the page is mapped: {@link frame} and {@link rights} hold the result
   */
  peek(page: number, tables?: number[]): boolean {
    let table = this.rootAddress;
    let rights = entryReadable | entryWritable;
    for (let level = levelCount; level >= 1; level--) {
      if (table < 0) return false;
      tables?.push(table);
      const at = table + entryOffsetOf(page * iommuPageBytes, level);
      if (!this.#memory.readInto(at, entryBytes, this.#entry, 0)) return false;
      const entry = entryAt(this.#entryView, 0);
      rights &= entry.rights;
      if (rights === 0) return false;
      table = entry.address;
    }
    this.frame = table;
    this.rights = rights;
    return true;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { rootAddress: this.rootAddress };
  }

  reset(): void {
    this.rootAddress = NO_TABLE;
  }
}
