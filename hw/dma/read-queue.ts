/**
 * The request fifo of one requester of the read engine, which is also its reorder buffer: a request keeps its entry from its
 * acceptance until its report.
 *
 *        head                issuing               tail
 *     ──▶ | in flight, done … | sent in part | waiting … |
 *
 * Requests are sent in order, finish in any order, and are reported in order.
 */

import { asInteger, type BusAddress, type Cycles, type Wide } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import { DmaStatus } from './errors.ts';
import { DmaRequesterCounters } from './waiting.ts';

const { ok } = DmaStatus;

/** A requester as the engine calls it, inside its stage: the callee only leaves work for later cycles. */
export interface ReadRequesterPort {
  /** A request has ended: see {@link DmaStatus}. */
  done(cookie: number, status: number, cycle: Cycles): void;
  /** The full fifo has room again; left out by a requester that never waits for room. */
  space?(): void;
}

export interface ReadRequesterOptions {
  readonly name: string;
  readonly trafficClass: number;
  /** Limit of held requests, from acceptance to their report. */
  readonly fifoDepth: number;
  /** Memory reads in a row under the policy `weighted`; 1 or more. */
  readonly weight: number;
  /** Promise that the requester reads no byte of a request before its report: bytes may be placed before their completions arrive. */
  readonly placesEarly?: boolean;
}

/** An entry of the fifo. Entries form a ring and are reused. */
export class ReadRequest {
  readonly queue: ReadQueue;
  /** The next entry. */
  next: ReadRequest;
  /** The unsent part: its bus address, length and destination. */
  address: Wide = 0;
  unsentBytes = 0;
  sramOffset = 0;
  /** Memory reads of the request in flight. */
  readCount = 0;
  status: number = ok;
  cookie = 0;

  constructor(queue: ReadQueue) {
    this.queue = queue;
    this.next = this;
  }

  /** True if nothing of it is unsent or in flight; also for an unused entry. */
  get isFinished(): boolean {
    return this.unsentBytes === 0 && this.readCount === 0;
  }
}

export class ReadQueue {
  readonly name: string;
  readonly trafficClass: number;
  readonly depth: number;
  readonly port: ReadRequesterPort;
  /** The requester as a bit of a mask. */
  readonly bit: number;
  readonly placesEarly: boolean;
  readonly counters = new DmaRequesterCounters();
  /** Held requests, and those of them with unsent parts. */
  count = 0;
  unsentCount = 0;
  /** Maximum of held requests so far. */
  highWater = 0;

  /** Cycle from which the next memory read could be sent, and the engine's stalls until then. */
  readySinceCycle = 0;
  readyLinkCycles = 0;
  readyTagCycles = 0;

  /** The oldest request, the one being sent, and the entry for the next new one. */
  head: ReadRequest;
  issuing: ReadRequest;
  #tail: ReadRequest;

  constructor(options: ReadRequesterOptions, requester: number, port: ReadRequesterPort) {
    this.name = options.name;
    this.trafficClass = options.trafficClass;
    this.depth = options.fifoDepth;
    this.bit = 1 << requester;
    this.placesEarly = options.placesEarly ?? false;
    this.port = port;
    const first = new ReadRequest(this);
    for (let entry = 1; entry < options.fifoDepth; entry++) {
      const added = new ReadRequest(this);
      added.next = first.next;
      first.next = added;
    }
    this.head = first;
    this.issuing = first;
    this.#tail = first;
  }

  push(address: BusAddress, lengthBytes: number, sramOffset: number, cookie: number): void {
    const request = this.#tail;
    this.#tail = request.next;
    request.address = address;
    // Narrowed (build/README.md).
    request.unsentBytes = lengthBytes | 0;
    request.sramOffset = sramOffset | 0;
    request.cookie = asInteger(cookie);
    request.status = ok;
    this.unsentCount++;
    const count = this.count + 1;
    this.count = count;
    if (count > this.highWater) this.highWater = count;
    this.counters.requests++;
    this.counters.bytes += request.unsentBytes;
  }

  /** A memory read of `bytes` of the issuing request was sent. */
  sent(bytes: number): void {
    const request = this.issuing;
    request.readCount++;
    request.address += bytes;
    request.sramOffset += bytes;
    request.unsentBytes -= bytes;
    if (request.unsentBytes === 0) this.#nextIssuing();
  }

  /** The request has failed: keeps the first status, and drops the unsent rest. */
  fail(request: ReadRequest, status: number): void {
    if (request.status === ok) {
      request.status = status;
      this.counters.failedRequests++;
    }
    if (request.unsentBytes === 0) return;
    request.unsentBytes = 0;
    this.#nextIssuing();
  }

  /** Removes the oldest request. */
  pop(): void {
    this.head = this.head.next;
    this.count--;
  }

  /** Forgets all requests; the answers of their memory reads in flight are dropped. */
  clear(): void {
    for (; this.count > 0; this.pop()) {
      this.head.unsentBytes = 0;
      this.head.readCount = 0;
    }
    this.issuing = this.head;
    this.unsentCount = 0;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    let request = this.head;
    const requests = Array.from({ length: this.count }, () => {
      const { unsentBytes, status, cookie } = request;
      request = request.next;
      return { unsentBytes, status, cookie };
    });
    return { requests };
  }

  #nextIssuing(): void {
    this.issuing = this.issuing.next;
    this.unsentCount--;
  }
}
