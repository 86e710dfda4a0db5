/** All requests of the write engine in one order of age, with a limit for each requester: a ring with shared room. */

import type { Cycles, Wide } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import { DmaRequesterCounters } from './waiting.ts';

/** A requester as the engine calls it, inside its stage; it omits methods for events that it does not await. */
export interface WriteRequesterPort {
  /** The last TLP of a request was handed to the link port. */
  done?(cookie: number, cycle: Cycles): void;
  /** The full fifo has room again. */
  space?(): void;
}

export interface WriteRequesterOptions {
  readonly name: string;
  readonly trafficClass: number;
  /** Limit of held requests, from acceptance to the hand-over of their last TLP. */
  readonly fifoDepth: number;
}

export class WriteRequester {
  readonly name: string;
  readonly trafficClass: number;
  readonly depth: number;
  readonly port: WriteRequesterPort;
  readonly counters = new DmaRequesterCounters();
  count = 0;
  highWater = 0;

  constructor(options: WriteRequesterOptions, port: WriteRequesterPort) {
    this.name = options.name;
    this.trafficClass = options.trafficClass;
    this.depth = options.fifoDepth;
    this.port = port;
  }
}

const NOTHING = new Uint8Array(0);

/** An entry of the ring, reused: the unwritten part of a request. */
export class WriteRequest {
  /** The next entry. */
  next: WriteRequest;
  owner: WriteRequester;
  address: Wide = 0;
  remainingBytes = 0;
  source: Uint8Array = NOTHING;
  sourceOffset = 0;
  cookie = 0;
  /** Cycle from which its next TLP could be sent, and the link's stalls until then. */
  readyCycle = 0;
  readyLinkCycles = 0;

  /**
   * @param owner the requester that owns the entry first
   */
  constructor(owner: WriteRequester) {
    this.owner = owner;
    this.next = this;
  }
}

export class WriteQueue {
  readonly requesters: WriteRequester[] = [];
  count = 0;
  /** The oldest request; undefined without requesters. */
  head: WriteRequest | undefined = undefined;
  #tail: WriteRequest | undefined = undefined;

  /** While the queue is empty: grows the ring by the requester's depth. */
  addRequester(requester: WriteRequester): number {
    for (let entry = 0; entry < requester.depth; entry++) this.#grow(new WriteRequest(requester));
    return this.requesters.push(requester) - 1;
  }

  /** Appends a request of `owner` for this number of bytes: the caller fills in the rest of its entry. */
  append(owner: WriteRequester, lengthBytes: number): WriteRequest {
    const request = this.#tail!;
    this.#tail = request.next;
    request.owner = owner;
    // Narrowed (build/README.md).
    request.remainingBytes = lengthBytes | 0;
    this.count++;
    const count = owner.count + 1;
    owner.count = count;
    if (count > owner.highWater) owner.highWater = count;
    owner.counters.requests++;
    owner.counters.bytes += request.remainingBytes;
    return request;
  }

  /** Removes the oldest request. */
  pop(): void {
    const request = this.head!;
    request.owner.count--;
    this.head = request.next;
    this.count--;
  }

  clear(): void {
    while (this.count > 0) this.pop();
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    let request = this.head;
    if (request === undefined) return;
    do {
      request.readyCycle -= cycles;
      request = request.next;
    } while (request !== this.head);
  }

  /** See Block.inspect: the requests, oldest first. */
  inspect(): BlockState {
    let request = this.head;
    const requests = Array.from({ length: this.count }, () => {
      const { owner, remainingBytes, cookie } = request!;
      request = request!.next;
      return { owner: owner.name, remainingBytes, cookie };
    });
    return { requests };
  }

  #grow(entry: WriteRequest): void {
    if (this.head !== undefined) {
      entry.next = this.head.next;
      this.head.next = entry;
    }
    this.head = entry;
    this.#tail = entry;
  }
}
