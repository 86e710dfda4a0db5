/**
 * The request fifo of one requester of the read engine, which is also its reorder buffer: a request keeps its entry
 * from being accepted until it is reported.
 *
 *        head                issue                 tail
 *     ──▶ | in flight, done … | sent in part | waiting … |
 *
 * Requests are sent in order, finish in any order, and are reported in order.
 */
import { DmaStatus } from './errors.ts';
import { DmaRequesterCounters } from './waiting.ts';

export type ReadDone = (cookie: number, status: number, cycle: number) => void;

export interface ReadRequesterOptions {
  readonly name: string;
  readonly trafficClass: number;
  /** Requests held at once, from acceptance to their report. */
  readonly fifoDepth: number;
  /** Memory reads in a row under the policy `weighted`; 1 or more. */
  readonly weight: number;
}

export class ReadQueue {
  readonly name: string;
  readonly trafficClass: number;
  readonly depth: number;
  readonly onDone: ReadDone;
  readonly counters = new DmaRequesterCounters();
  onSpace: (() => void) | undefined = undefined;
  /** Requests held, and how many of them still have something to send. */
  count = 0;
  unsentCount = 0;
  /** Most requests held at once so far. */
  highWater = 0;

  /** Cycle from which the next memory read could have been sent, and the engine's stalls until then. */
  readySinceCycle = 0;
  readyLinkCycles = 0;
  readyTagCycles = 0;

  readonly address: Float64Array;
  readonly unsentBytes: Int32Array;
  readonly sramOffset: Int32Array;
  readonly cookie: Float64Array;
  readonly tagCount: Int32Array;
  readonly status: Int32Array;
  #head = 0;
  #issue = 0;

  constructor(options: ReadRequesterOptions, onDone: ReadDone) {
    const depth = options.fifoDepth;
    this.name = options.name;
    this.trafficClass = options.trafficClass;
    this.depth = depth;
    this.onDone = onDone;
    this.address = new Float64Array(depth);
    this.unsentBytes = new Int32Array(depth);
    this.sramOffset = new Int32Array(depth);
    this.cookie = new Float64Array(depth);
    this.tagCount = new Int32Array(depth);
    this.status = new Int32Array(depth);
  }

  push(address: number, lengthBytes: number, sramOffset: number, cookie: number): void {
    let slot = this.#head + this.count;
    if (slot >= this.depth) slot -= this.depth;
    this.address[slot] = address;
    this.unsentBytes[slot] = lengthBytes;
    this.sramOffset[slot] = sramOffset;
    this.cookie[slot] = cookie;
    this.tagCount[slot] = 0;
    this.status[slot] = DmaStatus.ok;
    if (this.unsentCount === 0) this.#issue = slot;
    this.count++;
    this.unsentCount++;
    if (this.count > this.highWater) this.highWater = this.count;
    this.counters.requests++;
    this.counters.bytes += lengthBytes;
  }

  /** The request that sends next. The caller has checked that there is one. */
  get issueSlot(): number {
    return this.#issue;
  }

  /** A memory read of `bytes` of the issuing request has been sent. */
  sent(bytes: number): void {
    const slot = this.#issue;
    this.tagCount[slot] = this.tagCount[slot]! + 1;
    this.address[slot] = this.address[slot]! + bytes;
    this.sramOffset[slot] = this.sramOffset[slot]! + bytes;
    const unsentBytes = this.unsentBytes[slot]! - bytes;
    this.unsentBytes[slot] = unsentBytes;
    if (unsentBytes === 0) this.#nextIssue();
  }

  /** The request has failed: the first status stays, and what was not sent yet is not sent any more. */
  fail(slot: number, status: number): void {
    if (this.status[slot] === DmaStatus.ok) {
      this.status[slot] = status;
      this.counters.failedRequests++;
    }
    if (this.unsentBytes[slot]! === 0) return;
    this.unsentBytes[slot] = 0;
    this.#nextIssue();
  }

  /** The oldest request when it is finished, else -1. */
  get finishedSlot(): number {
    const slot = this.#head;
    return this.count > 0 && this.unsentBytes[slot] === 0 && this.tagCount[slot] === 0 ? slot : -1;
  }

  /** Removes the oldest request. */
  pop(): void {
    this.#head = this.#head + 1 === this.depth ? 0 : this.#head + 1;
    this.count--;
  }

  clear(): void {
    this.#head = 0;
    this.#issue = 0;
    this.count = 0;
    this.unsentCount = 0;
  }

  #nextIssue(): void {
    this.#issue = this.#issue + 1 === this.depth ? 0 : this.#issue + 1;
    this.unsentCount--;
  }
}
