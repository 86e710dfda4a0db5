/**
 * Memory of queues: pages of the process, reached by physical address once the kernel has pinned them, so that the data
 * path needs no translation. Doorbell records are packed into pages of their own, as libmlx4 does.
 */
import { InvariantError } from '../base/assert.ts';
import { roundUp } from '../base/units.ts';
import type { UserMemory } from './platform.ts';

const pageBytes = 4096;
const logPageBytes = 12;

/** A page-aligned buffer. It must not be unmapped while the device uses it. */
export class QueueMemory {
  readonly address: number;
  readonly lengthBytes: number;
  private readonly memory: UserMemory;
  private readonly pages: Float64Array;

  private constructor(memory: UserMemory, address: number, lengthBytes: number) {
    this.memory = memory;
    this.address = address;
    this.lengthBytes = lengthBytes;
    this.pages = new Float64Array(lengthBytes / pageBytes);
    for (let page = 0; page < this.pages.length; page++) {
      this.pages[page] = memory.physicalAddress(address + page * pageBytes);
    }
  }

  /** Zeroed memory of at least `lengthBytes`; undefined when the process can have no more. */
  static map(memory: UserMemory, lengthBytes: number): QueueMemory | undefined {
    const mappedBytes = roundUp(lengthBytes, pageBytes);
    const address = memory.mapQueue(mappedBytes);
    return address < 0 ? undefined : new QueueMemory(memory, address, mappedBytes);
  }

  /** Physical address of a byte of the buffer. */
  physicalOf(offset: number): number {
    return this.pages[offset >>> logPageBytes]! + (offset & (pageBytes - 1));
  }

  unmap(): void {
    this.memory.unmap(this.address, this.lengthBytes);
  }
}

/** A record: its user address for the kernel, its physical address for stores. */
export interface DoorbellRecord {
  readonly address: number;
  readonly physicalAddress: number;
}

/** Records of one size, zeroed when taken; a page is unmapped when its last record is given back. */
export class RecordPool {
  private readonly memory: UserMemory;
  private readonly recordBytes: number;
  private readonly pages: { readonly page: QueueMemory; readonly taken: boolean[] }[] = [];

  constructor(memory: UserMemory, recordBytes: number) {
    this.memory = memory;
    this.recordBytes = recordBytes;
  }

  /** @returns undefined when the process can have no more memory */
  take(): DoorbellRecord | undefined {
    let home = this.pages.find(({ taken }) => taken.includes(false));
    if (home === undefined) {
      const page = QueueMemory.map(this.memory, pageBytes);
      if (page === undefined) return undefined;
      home = { page, taken: new Array<boolean>(pageBytes / this.recordBytes).fill(false) };
      this.pages.push(home);
    }
    const index = home.taken.indexOf(false);
    home.taken[index] = true;
    const offset = index * this.recordBytes;
    const physicalAddress = home.page.physicalOf(offset);
    this.memory.bytes.fill(0, physicalAddress, physicalAddress + this.recordBytes);
    return { address: home.page.address + offset, physicalAddress };
  }

  give(record: DoorbellRecord): void {
    const at = this.pages.findIndex(
      ({ page }) => record.address >= page.address && record.address < page.address + pageBytes,
    );
    const home = this.pages[at];
    if (home === undefined) throw new InvariantError('doorbell record', record.address, 'one of this pool');
    home.taken[(record.address - home.page.address) / this.recordBytes] = false;
    if (home.taken.includes(true)) return;
    home.page.unmap();
    this.pages.splice(at, 1);
  }
}
