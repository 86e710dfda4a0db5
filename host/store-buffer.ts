/**
 * The store buffer of one thread: stores in program order, each belonging to a commit that has a core cycle.
 *
 *     push, push, push ─ commit(cycle) ─ push ─ commit(cycle) …
 *       └─ bytes in the store space        drain(now): every commit that is due goes to memory or to the bus, in order
 *
 * Promises: total store order; an uncached store first flushes the write-combining buffers, and the end of a commit is a store
 * fence and flushes them, too; if the root complex accepts no more, draining stops before that byte and continues there.
 * Nothing is allocated per store. Cycles are only labels here; the core converts them to time, shifts them and stalls.
 */

import { ConfigurationError, type Cycles, viewOf, type Wide } from '../base/index.ts';
import type { BlockState } from '../sim/index.ts';
import type { BusMap, DevicePort } from './device-port.ts';
import type { MarkedOperation, StoreOwner } from './marked-operation.ts';
import type { PhysicalMemory } from './physical-memory.ts';
import type { WriteCombiningBuffers } from './write-combining-buffers.ts';

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

/** Destinations of a core's stores. */
export interface StoreTarget {
  readonly memory: PhysicalMemory;
  readonly port: DevicePort;
  readonly busMap: BusMap;
  readonly writeCombining: WriteCombiningBuffers;
  /** Receives the operation of each store that leaves; left out: not needed. */
  readonly owner?: StoreOwner;
}

const bytesPerEntry = 8;

/** One store: an object of the ring, reused. */
class Store {
  kind = 0;
  address: Wide = 0;
  lengthBytes = 0;
  /** Offset of the store's bytes in the store space. */
  offset = 0;
  /** Attributes of its commit: the cycle at which it leaves, the cause of its cycles, and whether this is its last store. */
  cycle = 0;
  cause = 0;
  operation: MarkedOperation | undefined = undefined;
  endsCommit = false;
  next: Store = this;
}

export class StoreBuffer {
  /** The store space: stored bytes, at the offsets that {@link push} returns. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** The store space as words, in the machine's byte order. */
  readonly words: Int32Array;
  /** Bytes stored to addresses without memory: lost, as on a real bus. */
  unmappedStoreCount = 0;

  readonly #target: StoreTarget;
  /** A ring in program order: committed stores from `head` to `open`, later pushed ones up to `tail`. */
  #head = new Store();
  #open = this.#head;
  #tail = this.#head;
  /** Bytes of the oldest store that have already left. */
  #progressBytes = 0;
  /** The next store's bytes go into the space from `tail` on; it is known to be free up to `end`. */
  #spaceTail = 0;
  #spaceEnd: number;

  constructor(target: StoreTarget, spaceBytes: number) {
    this.#target = target;
    // Growable memory is reserved without being cleared: programs seldom use more than a little of it.
    const space = new SharedArrayBuffer(spaceBytes, { maxByteLength: spaceBytes });
    this.bytes = new Uint8Array(space, 0, spaceBytes);
    this.view = viewOf(this.bytes);
    this.words = new Int32Array(space, 0, spaceBytes / Int32Array.BYTES_PER_ELEMENT);
    this.#spaceEnd = spaceBytes;
  }

  /** No commit waits. */
  get isDrained(): boolean {
    return this.#head === this.#open;
  }

  /** Stores were pushed and not committed yet. */
  get hasUncommitted(): boolean {
    return this.#open !== this.#tail;
  }

  /** Cycle of the oldest commit, Infinity if none waits. */
  get headCycle(): Cycles {
    return this.isDrained ? Number.POSITIVE_INFINITY : this.#head.cycle;
  }

  /** Cause of the oldest commit's cycles. */
  get headCause(): number {
    return this.#head.cause;
  }

  /** Reserves one store. @returns the offset of its bytes in {@link bytes}, a multiple of 8 */
  push(kind: number, address: number, lengthBytes: number): number {
    const spaceBytes = (lengthBytes + 7) & ~7;
    if (this.#spaceTail + spaceBytes > this.#spaceEnd) this.#findSpace(spaceBytes);
    const offset = this.#spaceTail;
    this.#spaceTail = offset + spaceBytes;
    const store = this.#tail;
    store.kind = kind;
    store.address = address;
    store.lengthBytes = lengthBytes;
    store.offset = offset;
    if (store.next === this.#head) insertAfter(store);
    this.#tail = store.next;
    return offset;
  }

  /** Ends a group of stores: they leave at `cycle`, which is not earlier than that of the last commit. */
  commit(cycle: Cycles, cause: number, operation?: MarkedOperation): void {
    const tail = this.#tail;
    for (let store = this.#open; store !== tail; store = store.next) {
      store.cycle = cycle;
      store.cause = cause;
      store.operation = operation;
      store.endsCommit = store.next === tail;
    }
    this.#open = tail;
  }

  /** Removes the stores pushed since the last commit: the program was killed in between. */
  dropUncommitted(): void {
    this.#tail = this.#open;
  }

  /** Carries out all commits up to and including `cycle`. @returns false if the bus stopped it */
  drain(cycle: Cycles): boolean {
    const { owner } = this.#target;
    for (let store = this.#head; store !== this.#open; ) {
      if (store.cycle > cycle) return true;
      if (owner !== undefined) owner.operation = store.operation;
      if (this.#progressBytes < store.lengthBytes && !this.#carryOut(store)) return false;
      if (store.endsCommit && !this.#target.writeCombining.flush()) return false;
      this.#progressBytes = 0;
      store = store.next;
      this.#head = store;
    }
    return true;
  }

  /** Delays all commits after `cycle` by `byCycles`: the thread did not run during that time. */
  shiftAfter(cycle: Cycles, byCycles: number): void {
    for (let store = this.#head; store !== this.#open; store = store.next) {
      if (store.cycle > cycle) store.cycle += byCycles;
    }
  }

  /** Cycle of the first commit with which more than `entryLimit` entries are waiting; Infinity if none has. */
  overflowCycle(entryLimit: number): number {
    let entries = -this.#entriesLeft();
    for (let store = this.#head; store !== this.#open; store = store.next) {
      entries += Math.ceil(store.lengthBytes / bytesPerEntry);
      if (entries > entryLimit) return store.cycle;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Its stores, oldest first: kind, address and length; those of commits, then uncommitted ones. */
  inspect(): BlockState {
    const storesTo = (from: Store, to: Store): number[][] => {
      const stores: number[][] = [];
      for (let store = from; store !== to; store = store.next)
        stores.push([store.kind, store.address, store.lengthBytes]);
      return stores;
    };
    return {
      committed: storesTo(this.#head, this.#open),
      uncommitted: storesTo(this.#open, this.#tail),
      progressBytes: this.#progressBytes,
    };
  }

  /** Entries of the oldest store that have already left. */
  #entriesLeft(): number {
    const entries = this.#progressBytes / bytesPerEntry;
    return this.#progressBytes === this.#head.lengthBytes ? Math.ceil(entries) : Math.floor(entries);
  }

  /** Sends the rest of the oldest store. @returns false if the bus accepts no more before its end */
  #carryOut(store: Store): boolean {
    const { memory, port, busMap, writeCombining } = this.#target;
    const { kind, address, lengthBytes, offset } = store;
    if (kind === storeToMemory) {
      if (!memory.write(address, lengthBytes, this.bytes, offset)) this.unmappedStoreCount++;
      this.#progressBytes = lengthBytes;
      return true;
    }
    if (kind === storeUncached) {
      if ((!writeCombining.isEmpty && !writeCombining.flush()) || !port.canStore()) return false;
      port.cpuStore(address, busMap.trafficClassAt(address), this.bytes, offset, lengthBytes);
      this.#progressBytes = lengthBytes;
      return true;
    }
    const done = this.#progressBytes;
    this.#progressBytes += writeCombining.store(
      address + done,
      this.bytes,
      offset + done,
      lengthBytes - done,
    );
    return this.#progressBytes === lengthBytes;
  }

  /** Finds room for this many bytes after the newest store or, before the oldest, at the space's beginning. */
  #findSpace(lengthBytes: number): void {
    const size = this.bytes.length;
    const isEmpty = this.#head === this.#tail;
    // One byte stays free, so that a full space differs from an empty one.
    const beforeOldest = isEmpty ? size : this.#head.offset - 1;
    let tail = isEmpty ? 0 : this.#spaceTail;
    let end = tail > beforeOldest ? size : beforeOldest;
    if (tail > beforeOldest && tail + lengthBytes > size) {
      tail = 0;
      end = beforeOldest;
    }
    if (tail + lengthBytes > end) throw new StoreSpaceError(size);
    this.#spaceTail = tail;
    this.#spaceEnd = end;
  }
}

/** Makes the ring longer by one. */
function insertAfter(store: Store): void {
  const added = new Store();
  added.next = store.next;
  store.next = added;
}
