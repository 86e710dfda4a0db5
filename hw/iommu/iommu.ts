/**
 * The IOMMU between a root port and memory: every access of the device is translated and checked.
 *
 *     device address ─► IOTLB ── hit ───────────────────────────────► frame, rights ─► memory
 *                          └─ miss ─► slot ─► four entries, from memory ─►      └─ none, or not this kind: fault
 *
 * Promises: an access that is not mapped for its kind reaches no memory; a read is answered Unsupported Request, a write is
 * dropped, each is recorded and reported by an interrupt. The device's interrupt messages do not pass through here: the root
 * complex extracts them earlier. A root port serves one device, so all its requests belong to one domain. The duration of a
 * walk is determined when the request arrives ({@link translationPs}); later reads wait with it. Source: Intel VT-d
 * architecture specification.
 */

import { entryReadable, entryWritable, iommuPageBytes } from '../../abi/index.ts';
import type { Picoseconds } from '../../base/index.ts';
import { type BlockState, connectBlocks } from '../../sim/index.ts';
import type { HostMemory, MemoryWatcher } from '../pcie/index.ts';
import type { FaultLogPorts, IommuFault } from './fault-log.ts';
import { type IommuBlocks, type IommuCore, iommuWires, makeBlocks } from './iommu-blocks.ts';
import type { Iotlb } from './iotlb.ts';

export class Iommu implements HostMemory {
  readonly blocks: IommuBlocks;
  invalidationCount = 0;

  readonly #memory: HostMemory;

  constructor(core: IommuCore) {
    this.#memory = core.memory;
    this.blocks = makeBlocks(core);
  }

  connect(ports: FaultLogPorts): void {
    connectBlocks(this.blocks, iommuWires({ ...this.blocks, ...ports }));
  }

  get iotlb(): Iotlb {
    return this.blocks.iotlb;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const { walker, walks, faultLog, iotlb } = this.blocks;
    return { ...walker.inspect(), ...walks.inspect(), ...faultLog.inspect(), iotlb: iotlb.inspect() };
  }

  /** Restores the state after power-on: no page table, no translation, no fault. */
  reset(): void {
    const { walker, walks, iotlb, faultLog, watches } = this.blocks;
    walker.reset();
    walks.reset();
    iotlb.reset();
    faultLog.reset();
    watches.rootChanged();
  }

  /** All device addresses; the page table determines which of them are valid. */
  get sizeBytes(): number {
    return this.#memory.sizeBytes;
  }

  // Methods for the processor.

  /** Physical address of the domain's root table; -1: nothing is mapped. */
  setRoot(address: number): void {
    this.blocks.walker.rootAddress = address;
    this.iotlb.reset();
    this.blocks.watches.rootChanged();
  }

  /** Forgets one page. The processor waits `invalidationNs` for this. */
  invalidate(address: number): void {
    this.invalidationCount++;
    this.iotlb.drop(Math.floor(address / iommuPageBytes));
  }

  /** Reads the recorded faults, which makes room for new ones. */
  takeFaults(): IommuFault[] {
    return this.blocks.faultLog.take();
  }

  // Methods for the root complex.

  /** Duration of translating a request that has just arrived; its entry is held from then on. */
  translationPs(address: number, nowPs: Picoseconds): Picoseconds {
    const { translation, walks } = this.blocks;
    return translation.prepare(address) ? walks.take(nowPs) : 0;
  }

  missPs(address: number, lengthBytes: number): Picoseconds {
    const physical = this.#memory.missPs === undefined ? -1 : this.blocks.watches.physicalOf(address);
    return physical < 0 ? 0 : this.#memory.missPs!(physical, lengthBytes);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.blocks.walks.rebase(ps);
  }

  canRead(address: number, lengthBytes: number): boolean {
    const physical = this.blocks.translation.translate(address, entryReadable);
    return physical >= 0 && physical + lengthBytes <= this.#memory.sizeBytes;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    const physical = this.blocks.translation.translate(address, entryReadable);
    return physical >= 0 && this.#memory.readInto(physical, lengthBytes, target, targetOffset);
  }

  peek(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    return this.blocks.watches.peek(address, lengthBytes, target, targetOffset);
  }

  /** Watches a page; also notifies of its mapping changes, whether it is mapped or not. */
  watch(address: number, watcher: MemoryWatcher): void {
    this.blocks.watches.watch(address, watcher);
  }

  unwatch(watcher: MemoryWatcher): void {
    this.blocks.watches.unwatch(watcher);
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    const physical = this.blocks.translation.translate(address, entryWritable);
    return physical >= 0 && this.#memory.write(physical, lengthBytes, source, sourceOffset);
  }
}
