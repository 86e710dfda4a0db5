/** Requests of one core held by the root complex, in order. */
import type { Wide } from '../../../base/index.ts';
import type { AccessDone } from './root-complex-interfaces.ts';

/** A sender of stores to the root complex, which waits while it accepts none. */
export interface StoreSender {
  /** Stores are accepted again; called at a clock edge of the root complex. */
  storeSpace(): void;
}

/** An entry of the queue. Entries form a ring and are reused. */
export class CoreRequest {
  /** The next entry. */
  next: CoreRequest;
  /** Offset of a store's bytes. */
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
  /** Held requests. */
  count = 0;
  /** The oldest request, if any. */
  head: CoreRequest;
  /** The store buffer that sends to it. */
  stores: StoreSender | undefined = undefined;
  readonly #depth: number;
  #tail: CoreRequest;

  /**
   * @param depth limit of held requests
   * @param payloadOffset offset of the store bytes of the first entry; those of the other entries follow
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

  /** Whether a store has room: the last entry is reserved for the single load that the core may wait for. */
  get canStore(): boolean {
    return this.count < this.#depth - 1;
  }

  /**
   * Appends a request, to be filled in.
   * @throws RangeError without room
   */
  append(): CoreRequest {
    if (this.count === this.#depth)
      throw new RangeError(`core ${this.core} gives the root complex more than it takes`);
    this.count++;
    const request = this.#tail;
    this.#tail = request.next;
    return request;
  }

  /** Handles a new epoch: see EdgeKeeper. */
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
