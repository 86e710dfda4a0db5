/**
 * The IOMMU between a root port and memory: every access of the device is translated and checked.
 *
 *     device address ─► IOTLB ── hit ───────────────────────────────► frame, rights ─► memory
 *                          └─ miss ─► four entries, from memory ─────►      └─ none, or not this kind: fault
 *
 * Promises: an access that is not mapped for its kind reaches no memory; a read is answered Unsupported Request, a write is
 * dropped, each is recorded and reported by an interrupt. Interrupt messages of the device do not pass through here: the root
 * complex takes them out before. One device sits behind a root port, so its requests are all of one domain. The time of a
 * walk is asked for when the request arrives ({@link translationPs}); reads behind it in order wait with it.
 * Source: Intel VT-d architecture specification.
 */

import {
  entryAt,
  entryBytes,
  entryOffsetOf,
  entryReadable,
  entryWritable,
  iommuPageBytes,
  levelCount,
} from '../../abi/iommu-tables.ts';
import { nsToPs, type Picoseconds } from '../../base/units.ts';
import type { BlockState } from '../../sim/block.ts';
import type { ExactPs } from '../../sim/epoch.ts';
import type { HostMemory } from '../pcie/index.ts';
import { Iotlb } from './iotlb.ts';
import type { IommuConfig } from './parameters.ts';

/** Why an access was refused. */
export type IommuFaultReason = 'notPresent' | 'readNotAllowed' | 'writeNotAllowed';

export interface IommuFault {
  readonly address: number;
  readonly reason: IommuFaultReason;
  readonly atPs: ExactPs;
}

export interface IommuPorts {
  readonly processor: {
    /** A fault is recorded, and none was before: the fault event interrupt. */
    faultRecorded(): void;
  };
}

export class Iommu implements HostMemory {
  readonly iotlb: Iotlb;
  /** Faults since the processor last took them, oldest first; what no longer fits is counted. */
  readonly faults: IommuFault[] = [];
  faultCount = 0;
  lostFaultCount = 0;
  walkCount = 0;
  invalidationCount = 0;
  /** Fault event interrupts raised. */
  interruptCount = 0;

  readonly #memory: HostMemory;
  readonly #config: IommuConfig;
  readonly #instantPs: () => ExactPs;
  readonly #walkPs: Picoseconds;
  readonly #entry = new Uint8Array(entryBytes);
  readonly #entryView = new DataView(this.#entry.buffer);
  #processor!: IommuPorts['processor'];
  #rootAddress = -1;

  constructor(memory: HostMemory, config: IommuConfig, instantPs: () => ExactPs) {
    this.#memory = memory;
    this.#config = config;
    this.#instantPs = instantPs;
    this.#walkPs = levelCount * nsToPs(config.walkLevelNs);
    this.iotlb = new Iotlb(config.iotlbEntries, config.iotlbWays);
  }

  connect({ processor }: IommuPorts): void {
    this.#processor = processor;
  }

  inspect(): BlockState {
    return {
      rootAddress: this.#rootAddress,
      faults: this.faults.map(({ address, reason }) => [address, reason]),
      iotlb: this.iotlb.inspect(),
    };
  }

  /** As after power-on: no page table, no translation, no fault. */
  reset(): void {
    this.setRoot(-1);
    this.takeFaults();
  }

  /** All device addresses; which of them mean something is a matter of the page table. */
  get sizeBytes(): number {
    return this.#memory.sizeBytes;
  }

  // What the processor does.

  /** Physical address of the domain's root table; -1: nothing is mapped. */
  setRoot(address: number): void {
    this.#rootAddress = address;
    this.iotlb.dropAll();
  }

  /** Forgets one page. The processor waits `invalidationNs` for it. */
  invalidate(address: number): void {
    this.invalidationCount++;
    this.iotlb.drop(Math.floor(address / iommuPageBytes));
  }

  /** Reads the recorded faults, which makes room for new ones. */
  takeFaults(): IommuFault[] {
    return this.faults.splice(0);
  }

  // What the root complex asks.

  /** How long the translation of a request takes that has just arrived; its entry is held then. */
  translationPs(address: number): number {
    const page = Math.floor(address / iommuPageBytes);
    if (this.iotlb.find(page) >= 0) {
      this.iotlb.hits++;
      return 0;
    }
    this.iotlb.misses++;
    this.#walk(page);
    return this.#walkPs;
  }

  canRead(address: number, lengthBytes: number): boolean {
    const physical = this.#translate(address, entryReadable);
    return physical >= 0 && physical + lengthBytes <= this.#memory.sizeBytes;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    const physical = this.#translate(address, entryReadable);
    return physical >= 0 && this.#memory.readInto(physical, lengthBytes, target, targetOffset);
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    const physical = this.#translate(address, entryWritable);
    return physical >= 0 && this.#memory.write(physical, lengthBytes, source, sourceOffset);
  }

  /** A request lies within one page, as the root complex has checked. */
  #translate(address: number, right: number): number {
    const page = Math.floor(address / iommuPageBytes);
    let place = this.iotlb.find(page);
    if (place < 0) place = this.#walk(page);
    if (place < 0) {
      this.#record(address, 'notPresent');
      return -1;
    }
    if ((this.iotlb.rightsAt(place) & right) === 0) {
      this.#record(address, right === entryReadable ? 'readNotAllowed' : 'writeNotAllowed');
      return -1;
    }
    return this.iotlb.frameAt(place) + (address % iommuPageBytes);
  }

  /** Walks the page table. @returns the place in the IOTLB, or -1: an absent entry is not kept */
  #walk(page: number): number {
    this.walkCount++;
    let table = this.#rootAddress;
    let rights = entryReadable | entryWritable;
    for (let level = levelCount; level >= 1; level--) {
      if (table < 0) return -1;
      const at = table + entryOffsetOf(page * iommuPageBytes, level);
      if (!this.#memory.readInto(at, entryBytes, this.#entry, 0)) return -1;
      const entry = entryAt(this.#entryView, 0);
      rights &= entry.rights;
      if (rights === 0) return -1;
      table = entry.address;
    }
    return this.iotlb.fill(page, table, rights);
  }

  #record(address: number, reason: IommuFaultReason): void {
    this.faultCount++;
    if (this.faults.length === this.#config.faultLogEntries) {
      this.lostFaultCount++;
      return;
    }
    this.faults.push({ address, reason, atPs: this.#instantPs() });
    if (this.faults.length > 1) return;
    this.interruptCount++;
    this.#processor.faultRecorded();
  }
}
