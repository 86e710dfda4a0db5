/**
 * Memory of queues: pages of the process, reached by physical address once the kernel has pinned them, so that the data path
 * needs no translation. Doorbell records are packed into pages of their own, as in libmlx4.
 */
import { InvariantError, pageBytes, roundUp } from '../base/index.ts';
import type { UserMemory } from './platform.ts';

const logPageBytes = 12;

/** A page-aligned buffer. The caller must not unmap it while the device uses it. */
export class QueueMemory {
  readonly address: number;
  readonly lengthBytes: number;
  private readonly memory: UserMemory;
  /** Physical address of each page. A plain array: most queues have one page, for which a typed array needs four times the memory. */
  private readonly pages: readonly number[];

  private constructor(memory: UserMemory, address: number, lengthBytes: number) {
    this.memory = memory;
    this.address = address;
    this.lengthBytes = lengthBytes;
    const pages = new Array<number>(lengthBytes / pageBytes).fill(0);
    for (let page = 0; page < pages.length; page++)
      pages[page] = memory.physicalAddress(address + page * pageBytes);
    this.pages = pages;
  }

  /** Zeroed memory of at least `lengthBytes`; undefined if the process has no more. */
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

/** A page of records, and its free ones, the next one last. */
class RecordPage {
  readonly memory: QueueMemory;
  readonly count: number;
  readonly free: number[];

  constructor(memory: QueueMemory, recordBytes: number) {
    this.memory = memory;
    this.count = pageBytes / recordBytes;
    this.free = Array.from({ length: this.count }, (_, index) => this.count - 1 - index);
  }
}

/**
 * Records of one size, zeroed when allocated, the lowest of a page first; a page is unmapped when its last record is freed.
 * Neither operation examines other pages.
 */
export class RecordPool {
  private readonly memory: UserMemory;
  private readonly recordBytes: number;
  private readonly pages = new Map<number, RecordPage>();
  /** The pages that have a free record, oldest first. */
  private readonly withRoom = new Set<RecordPage>();

  constructor(memory: UserMemory, recordBytes: number) {
    this.memory = memory;
    this.recordBytes = recordBytes;
  }

  /** @returns undefined if the process has no more memory */
  take(): DoorbellRecord | undefined {
    const [home = this.newPage()] = this.withRoom;
    if (home === undefined) return undefined;
    const offset = home.free.pop()! * this.recordBytes;
    if (home.free.length === 0) this.withRoom.delete(home);
    const physicalAddress = home.memory.physicalOf(offset);
    this.memory.bytes.fill(0, physicalAddress, physicalAddress + this.recordBytes);
    return { address: home.memory.address + offset, physicalAddress };
  }

  give(record: DoorbellRecord): void {
    const first = record.address - (record.address % pageBytes);
    const home = this.pages.get(first);
    if (home === undefined) throw new InvariantError('doorbell record', record.address, 'one of this pool');
    home.free.push((record.address - first) / this.recordBytes);
    home.free.sort((a, b) => b - a);
    this.withRoom.add(home);
    if (home.free.length < home.count) return;
    home.memory.unmap();
    this.pages.delete(first);
    this.withRoom.delete(home);
  }

  private newPage(): RecordPage | undefined {
    const memory = QueueMemory.map(this.memory, pageBytes);
    if (memory === undefined) return undefined;
    const page = new RecordPage(memory, this.recordBytes);
    this.pages.set(memory.address, page);
    this.withRoom.add(page);
    return page;
  }
}
