/** The requests of one core that the root complex holds, in order. */
import type { Wide } from '../../../base/index.ts';
import type { AccessDone } from './root-complex-interfaces.ts';

/** What gives stores to the root complex, and waits while it takes none. */
export interface StoreSender {
  /** Stores are taken again; called at a clock edge of the root complex. */
  storeSpace(): void;
}

/** An entry of the queue. Entries form a ring and are used again and again. */
export class CoreRequest {
  /** The entry behind it. */
  next: CoreRequest;
  /** Where a store's bytes are kept. */
  readonly payloadOffset: number;
  /** MEMORY_WRITE, MEMORY_READ, CONFIG_READ or CONFIG_WRITE. */
  kind = 0;
  /** Bus address, or configuration register. */
  address: Wide = 0;
  lengthBytes = 0;
  trafficClass = 0;
  /** Bus, device, function and value of a configuration access. */
  target = 0;
  value: Wide = 0;
  /** Cycle from which the root complex sees it. */
  visibleCycle = 0;
  done: AccessDone | undefined = undefined;

  constructor(payloadOffset: number) {
    this.payloadOffset = payloadOffset;
    this.next = this;
  }
}

export class CoreQueue {
  readonly core: number;
  /** Requests held. */
  count = 0;
  /** The oldest request, when there is one. */
  head: CoreRequest;
  /** The store buffer in front of it. */
  stores: StoreSender | undefined = undefined;
  readonly #depth: number;
  #tail: CoreRequest;

  /**
   * @param depth requests held at most
   * @param payloadOffset where the bytes of the first entry's stores are kept; those of the others lie behind
   */
  constructor(core: number, depth: number, payloadOffset: number, storeBytesMax: number) {
    this.core = core;
    this.#depth = depth;
    const first = new CoreRequest(payloadOffset);
    for (let entry = 1; entry < depth; entry++) {
      const added = new CoreRequest(payloadOffset + entry * storeBytesMax);
      added.next = first.next;
      first.next = added;
    }
    this.head = first;
    this.#tail = first;
  }

  /** Whether there is room for a store: the last place is kept for the one load that the core may wait for. */
  get canStore(): boolean {
    return this.count < this.#depth - 1;
  }

  /**
   * Appends a request, to be filled in.
   * @throws RangeError when there is no room at all
   */
  append(): CoreRequest {
    if (this.count === this.#depth)
      throw new RangeError(`core ${this.core} gives the root complex more than it takes`);
    this.count++;
    const request = this.#tail;
    this.#tail = request.next;
    return request;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    let request = this.head;
    for (let left = this.count; left > 0; left--) {
      request.visibleCycle -= cycles;
      request = request.next;
    }
  }

  /** Removes the oldest request. */
  pop(): void {
    const couldNotStore = !this.canStore;
    this.head = this.head.next;
    this.count--;
    if (couldNotStore && this.canStore) this.stores?.storeSpace();
  }
}
