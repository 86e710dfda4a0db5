/**
 * The store buffer of one thread: stores in program order, each belonging to a commit that has a core cycle.
 *
 *     push, push, push ─ commit(cycle) ─ push ─ commit(cycle) …
 *       └─ bytes in the store space        drain(now): every commit that is due goes to memory or to the bus, in order
 *
 * Promises: total store order; an uncached store first flushes the write-combining buffers, and the end of a
 * commit is a store fence and flushes them, too; where the root complex takes no more, draining stops in front of
 * that very byte and goes on there. Nothing is allocated per store. Cycles only name when; who turns them into
 * time, shifts them and stalls is the core.
 */
import { ConfigurationError } from '../base/assert.ts';
import { viewOf } from '../base/bytes.ts';
import type { Classify, DevicePort } from './device-port.ts';
import type { PhysicalMemory } from './physical-memory.ts';
import type { WriteCombiningBuffers } from './write-combining.ts';

export const storeToMemory = 0;
export const storeUncached = 1;
export const storeWriteCombining = 2;

/** A program stored more than the simulator holds without once waiting for simulated time. */
export class StoreSpaceError extends ConfigurationError {
  constructor(spaceBytes: number) {
    super(
      'stores since simulated time last passed',
      spaceBytes,
      `fewer bytes than core.storeSpaceKib holds: let the program await settle(), spin() or sleep() between posts`,
    );
  }
}

/** Where the stores of a core go. */
export interface StoreTarget {
  readonly memory: PhysicalMemory;
  readonly port: DevicePort;
  readonly classify: Classify;
  readonly writeCombining: WriteCombiningBuffers;
}

const bytesPerEntry = 8;

export class StoreBuffer {
  /** The store space: what is stored, at the offsets that {@link push} returns. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Bytes stored to addresses behind which there is no memory: lost, as on a real bus. */
  strayStoreCount = 0;

  readonly #target: StoreTarget;
  #spaceTail = 0;

  /** Stores: free-running counters, masked to the arrays. */
  #storeHead = 0;
  #storeTail = 0;
  #storeMask: number;
  #kinds: Uint8Array;
  #addresses: Float64Array;
  #lengths: Int32Array;
  #offsets: Int32Array;
  /** Bytes of the oldest store that have left already. */
  #progressBytes = 0;

  #commitHead = 0;
  #commitTail = 0;
  #commitMask: number;
  #commitCycles: Float64Array;
  /** Store counter behind the last store of the commit. */
  #commitEnds: Float64Array;
  #commitCauses: Uint8Array;

  constructor(target: StoreTarget, spaceBytes: number) {
    this.#target = target;
    const space = new ArrayBuffer(spaceBytes);
    this.bytes = new Uint8Array(space);
    this.view = viewOf(this.bytes);
    this.#storeMask = 63;
    this.#kinds = new Uint8Array(64);
    this.#addresses = new Float64Array(64);
    this.#lengths = new Int32Array(64);
    this.#offsets = new Int32Array(64);
    this.#commitMask = 63;
    this.#commitCycles = new Float64Array(64);
    this.#commitEnds = new Float64Array(64);
    this.#commitCauses = new Uint8Array(64);
  }

  /** No commit waits. */
  get isDrained(): boolean {
    return this.#commitHead === this.#commitTail;
  }

  /** Stores were pushed and not yet committed. */
  get hasUncommitted(): boolean {
    const end = this.isDrained
      ? this.#storeHead
      : this.#commitEnds[(this.#commitTail - 1) & this.#commitMask]!;
    return end !== this.#storeTail;
  }

  /** Cycle of the oldest commit, Infinity when none waits. */
  get headCycle(): number {
    if (this.#commitHead === this.#commitTail) return Number.POSITIVE_INFINITY;
    return this.#commitCycles[this.#commitHead & this.#commitMask]!;
  }

  /** Cause of the oldest commit's cycles. */
  get headCause(): number {
    return this.#commitCauses[this.#commitHead & this.#commitMask]!;
  }

  /** Reserves one store. @returns the offset of its bytes in {@link bytes}, a multiple of 8 */
  push(kind: number, address: number, lengthBytes: number): number {
    if (this.#storeTail - this.#storeHead > this.#storeMask) this.#growStores();
    const offset = this.#reserveSpace(Math.max(8, (lengthBytes + 7) & ~7));
    const index = this.#storeTail & this.#storeMask;
    this.#kinds[index] = kind;
    this.#addresses[index] = address;
    this.#lengths[index] = lengthBytes;
    this.#offsets[index] = offset;
    this.#storeTail++;
    return offset;
  }

  /** Ends a group of stores: they leave at `cycle`, which is not before that of the last commit. */
  commit(cycle: number, cause: number): void {
    if (this.#commitTail - this.#commitHead > this.#commitMask) this.#growCommits();
    const index = this.#commitTail & this.#commitMask;
    this.#commitCycles[index] = cycle;
    this.#commitEnds[index] = this.#storeTail;
    this.#commitCauses[index] = cause;
    this.#commitTail++;
  }

  /** Takes back what was pushed since the last commit: the program was killed in between. */
  dropUncommitted(): void {
    this.#storeTail = this.isDrained
      ? this.#storeHead
      : this.#commitEnds[(this.#commitTail - 1) & this.#commitMask]!;
  }

  /** Carries out all commits up to and including `cycle`. @returns false when the bus stopped it */
  drain(cycle: number): boolean {
    while (this.#commitHead !== this.#commitTail) {
      const index = this.#commitHead & this.#commitMask;
      if (this.#commitCycles[index]! > cycle) return true;
      const end = this.#commitEnds[index]!;
      while (this.#storeHead !== end) {
        if (!this.#drainStore(this.#storeHead & this.#storeMask)) return false;
        this.#storeHead++;
        this.#progressBytes = 0;
      }
      if (!this.#target.writeCombining.flush()) return false;
      this.#commitHead++;
    }
    return true;
  }

  /** Moves all commits after `cycle` by `byCycles`: the thread did not run for so long. */
  shiftAfter(cycle: number, byCycles: number): void {
    for (let commit = this.#commitTail - 1; commit >= this.#commitHead; commit--) {
      const index = commit & this.#commitMask;
      if (this.#commitCycles[index]! <= cycle) return;
      this.#commitCycles[index] = this.#commitCycles[index]! + byCycles;
    }
  }

  /** Cycle of the first commit with which more than `entryLimit` entries are waiting; Infinity when there is none. */
  overflowCycle(entryLimit: number): number {
    let entries = -Math.floor(this.#progressBytes / bytesPerEntry);
    let store = this.#storeHead;
    for (let commit = this.#commitHead; commit !== this.#commitTail; commit++) {
      const end = this.#commitEnds[commit & this.#commitMask]!;
      for (; store !== end; store++) {
        entries += Math.ceil(this.#lengths[store & this.#storeMask]! / bytesPerEntry);
        if (entries > entryLimit) return this.#commitCycles[commit & this.#commitMask]!;
      }
    }
    return Number.POSITIVE_INFINITY;
  }

  #drainStore(index: number): boolean {
    const { memory, port, classify, writeCombining } = this.#target;
    const address = this.#addresses[index]!;
    const length = this.#lengths[index]!;
    const offset = this.#offsets[index]!;
    const kind = this.#kinds[index]!;
    if (kind === storeToMemory) {
      if (!memory.write(address, length, this.bytes, offset)) this.strayStoreCount++;
      return true;
    }
    if (kind === storeUncached) {
      if (!writeCombining.flush() || !port.canStore()) return false;
      port.cpuStore(address, classify(address), this.bytes, offset, length);
      return true;
    }
    const done = this.#progressBytes;
    this.#progressBytes += writeCombining.store(address + done, this.bytes, offset + done, length - done);
    return this.#progressBytes === length;
  }

  #reserveSpace(lengthBytes: number): number {
    if (this.#storeHead === this.#storeTail) this.#spaceTail = 0;
    const head = this.#storeHead === this.#storeTail ? 0 : this.#offsets[this.#storeHead & this.#storeMask]!;
    const size = this.bytes.length;
    let at = this.#spaceTail;
    if (this.#storeHead !== this.#storeTail && at <= head) {
      if (at + lengthBytes >= head) throw new StoreSpaceError(size);
    } else if (at + lengthBytes > size) {
      if (lengthBytes >= head) throw new StoreSpaceError(size);
      at = 0;
    }
    this.#spaceTail = at + lengthBytes;
    return at;
  }

  #growStores(): void {
    const size = this.#storeMask + 1;
    const mask = size * 2 - 1;
    const kinds = new Uint8Array(size * 2);
    const addresses = new Float64Array(size * 2);
    const lengths = new Int32Array(size * 2);
    const offsets = new Int32Array(size * 2);
    for (let store = this.#storeHead; store !== this.#storeTail; store++) {
      kinds[store & mask] = this.#kinds[store & this.#storeMask]!;
      addresses[store & mask] = this.#addresses[store & this.#storeMask]!;
      lengths[store & mask] = this.#lengths[store & this.#storeMask]!;
      offsets[store & mask] = this.#offsets[store & this.#storeMask]!;
    }
    this.#kinds = kinds;
    this.#addresses = addresses;
    this.#lengths = lengths;
    this.#offsets = offsets;
    this.#storeMask = mask;
  }

  #growCommits(): void {
    const size = this.#commitMask + 1;
    const mask = size * 2 - 1;
    const cycles = new Float64Array(size * 2);
    const ends = new Float64Array(size * 2);
    const causes = new Uint8Array(size * 2);
    for (let commit = this.#commitHead; commit !== this.#commitTail; commit++) {
      cycles[commit & mask] = this.#commitCycles[commit & this.#commitMask]!;
      ends[commit & mask] = this.#commitEnds[commit & this.#commitMask]!;
      causes[commit & mask] = this.#commitCauses[commit & this.#commitMask]!;
    }
    this.#commitCycles = cycles;
    this.#commitEnds = ends;
    this.#commitCauses = causes;
    this.#commitMask = mask;
  }
}
