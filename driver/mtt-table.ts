/**
 * Translation entries: runs of the MTT table, written directly into the ICM pages that hold them (Linux uses no command for
 * this). An object's MTT address is the byte offset of its first entry. Source: interface sheet 3.15, 4.4.
 */
import { mttEntry, mttEntryBytes } from '../abi/index.ts';
import { BuddyAllocator } from './buddy-allocator.ts';
import type { IcmTable } from './icm-table.ts';
import { KernelError } from './kernel-error.ts';
import { blockAddress, blockCountOf, type Frames, largestLogPageBytes } from './page-size.ts';
import type { Cpu, KernelMemory } from './platform.ts';

/** The translation of one buffer. */
export interface Translation {
  /** Byte offset from the table's base. */
  readonly mttAddress: number;
  readonly logPageBytes: number;
  readonly entries: number;
}

export class MttTable {
  private readonly memory: KernelMemory;
  private readonly table: IcmTable;
  private readonly runs: BuddyAllocator;

  constructor(memory: KernelMemory, table: IcmTable, reserved: number) {
    this.memory = memory;
    this.table = table;
    this.runs = new BuddyAllocator(table.region.entryCount, reserved);
  }

  /** Entries taken, rounded up to powers of two. */
  get takenEntries(): number {
    return this.runs.taken;
  }

  /**
   * Translates frames, which the device will see in order from the page of `virtualAddress` on; queues count their bytes from
   * 0. Throws ENOMEM when the table or the host's memory is full.
   */
  async translate(cpu: Cpu, frames: Frames, virtualAddress: number): Promise<Translation> {
    const logPageBytes = largestLogPageBytes(frames, virtualAddress);
    const entries = blockCountOf(frames, virtualAddress, logPageBytes);
    const first = this.runs.allocate(entries);
    if (first < 0)
      throw new KernelError(
        'ENOMEM',
        `${entries} translation entries are needed, and the ${this.table.region.entryCount} of driver.logMtts have no such run left`,
      );
    try {
      await this.table.use(cpu, first, entries);
    } catch (error) {
      this.runs.release(first);
      throw error;
    }
    this.write(first, entries, (at) => blockAddress(frames, virtualAddress, logPageBytes, at));
    return { mttAddress: first * mttEntryBytes, logPageBytes, entries };
  }

  /** Allocates entries for this many pages of 4 KiB, none of them present. Throws as {@link translate}. */
  async reserve(cpu: Cpu, count: number): Promise<Translation> {
    const first = this.runs.allocate(count);
    if (first < 0) throw new KernelError('ENOMEM', `no ${count} translation entries left`);
    try {
      await this.table.use(cpu, first, count);
    } catch (error) {
      this.runs.release(first);
      throw error;
    }
    const translation = { mttAddress: first * mttEntryBytes, logPageBytes: 12, entries: count };
    for (let at = 0; at < count; at++) this.clearEntry(translation, at);
    return translation;
  }

  setEntry(translation: Translation, at: number, physicalAddress: number): void {
    const address = this.table.physicalAddressOf(translation.mttAddress / mttEntryBytes + at);
    mttEntry.fields.pageAddress.setNumber(this.memory.view, address, physicalAddress);
    mttEntry.fields.present.set(this.memory.view, address, 1);
  }

  clearEntry(translation: Translation, at: number): void {
    const address = this.table.physicalAddressOf(translation.mttAddress / mttEntryBytes + at);
    this.memory.view.setUint32(address, 0);
    this.memory.view.setUint32(address + 4, 0);
  }

  async release(cpu: Cpu, translation: Translation): Promise<void> {
    const first = translation.mttAddress / mttEntryBytes;
    await this.table.release(cpu, first, translation.entries);
    this.runs.release(first);
  }

  private write(first: number, entries: number, blockOf: (at: number) => number): void {
    const { pageAddress, present } = mttEntry.fields;
    for (let at = 0; at < entries; at++) {
      const address = this.table.physicalAddressOf(first + at);
      pageAddress.setNumber(this.memory.view, address, blockOf(at));
      present.set(this.memory.view, address, 1);
    }
  }
}
