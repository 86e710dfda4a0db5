/**
 * All requests of the write engine in one order of age, with a bound for each requester: a ring whose room is shared
 * out. The ticket of a request is its place in the ring.
 */
import { DmaRequesterCounters } from './waiting.ts';

export type WriteDone = (cookie: number, cycle: number) => void;

export interface WriteRequesterOptions {
  readonly name: string;
  readonly trafficClass: number;
  /** Requests held at once, from acceptance to the hand-over of their last TLP. */
  readonly fifoDepth: number;
}

export class WriteRequester {
  readonly name: string;
  readonly trafficClass: number;
  readonly depth: number;
  readonly onDone: WriteDone | undefined;
  readonly counters = new DmaRequesterCounters();
  onSpace: (() => void) | undefined = undefined;
  count = 0;
  highWater = 0;

  constructor(options: WriteRequesterOptions, onDone: WriteDone | undefined) {
    this.name = options.name;
    this.trafficClass = options.trafficClass;
    this.depth = options.fifoDepth;
    this.onDone = onDone;
  }
}

const NOTHING = new Uint8Array(0);

export class WriteQueue {
  readonly requesters: WriteRequester[] = [];
  count = 0;
  #capacity = 0;
  /** Slot of the oldest request, and what is known of each by slot. */
  head = 0;
  requester = new Int32Array(0);
  address = new Float64Array(0);
  remainingBytes = new Int32Array(0);
  source: Uint8Array[] = [];
  sourceOffset = new Int32Array(0);
  cookie = new Float64Array(0);
  /** Cycle from which its next TLP could have been sent, and the link's stalls until then. */
  readyCycle = new Float64Array(0);
  readyLinkCycles = new Float64Array(0);

  /** While nothing is queued yet: the ring grows by the requester's depth. */
  addRequester(requester: WriteRequester): number {
    this.requesters.push(requester);
    const capacity = this.#capacity + requester.depth;
    this.#capacity = capacity;
    this.requester = new Int32Array(capacity);
    this.address = new Float64Array(capacity);
    this.remainingBytes = new Int32Array(capacity);
    this.source = new Array<Uint8Array>(capacity).fill(NOTHING);
    this.sourceOffset = new Int32Array(capacity);
    this.cookie = new Float64Array(capacity);
    this.readyCycle = new Float64Array(capacity);
    this.readyLinkCycles = new Float64Array(capacity);
    return this.requesters.length - 1;
  }

  push(
    requester: number,
    address: number,
    lengthBytes: number,
    source: Uint8Array,
    sourceOffset: number,
    cookie: number,
    readyCycle: number,
    linkCycles: number,
  ): void {
    let slot = this.head + this.count;
    if (slot >= this.#capacity) slot -= this.#capacity;
    this.requester[slot] = requester;
    this.address[slot] = address;
    this.remainingBytes[slot] = lengthBytes;
    this.source[slot] = source;
    this.sourceOffset[slot] = sourceOffset;
    this.cookie[slot] = cookie;
    this.readyCycle[slot] = readyCycle;
    this.readyLinkCycles[slot] = linkCycles;
    this.count++;
    const owner = this.requesters[requester]!;
    owner.count++;
    if (owner.count > owner.highWater) owner.highWater = owner.count;
    owner.counters.requests++;
    owner.counters.bytes += lengthBytes;
  }

  /** A TLP of `bytes` of the oldest request was sent, and more of it remains. */
  advance(bytes: number, readyCycle: number, linkCycles: number): void {
    const slot = this.head;
    this.address[slot] = this.address[slot]! + bytes;
    this.remainingBytes[slot] = this.remainingBytes[slot]! - bytes;
    this.sourceOffset[slot] = this.sourceOffset[slot]! + bytes;
    this.readyCycle[slot] = readyCycle;
    this.readyLinkCycles[slot] = linkCycles;
  }

  /** Removes the oldest request. */
  pop(): void {
    const owner = this.requesters[this.requester[this.head]!]!;
    owner.count--;
    this.head = this.head + 1 === this.#capacity ? 0 : this.head + 1;
    this.count--;
  }

  clear(): void {
    this.head = 0;
    this.count = 0;
    for (const requester of this.requesters) requester.count = 0;
  }
}
