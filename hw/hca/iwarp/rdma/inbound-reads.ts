/**
 * READs and atomics of the peer in the order of their requests, at most IRD. The response of each is gathered packet by packet; it is served
 * when its last packet was written.
 */
import { assertInvariant } from '../../../../base/index.ts';
import { AtomicRequest, Operand, ReadRequest } from '../../../../protocol/iwarp/index.ts';

export class InboundRead {
  /** An atomic: then {@link request} asks for no bytes, and {@link original} is the old value. */
  isAtomic = false;
  readonly request = new ReadRequest();
  readonly atomic = new AtomicRequest();
  readonly original = new Operand();
  /** MSN of the request. */
  message = 0;
  /** Number of the segment of the request: see RdmaConnection.requestNumber. */
  number = 0;
  /** Payload writes requested before it: the response holds their bytes (RFC 5040, 5.5). */
  writesBefore = 0;
  /** Cycle from which on it is gathered. */
  dueCycle = 0;
  /** Payload bytes of the packets made so far. */
  gatheredBytes = 0;
}

export class InboundReads {
  readonly max: number;
  /** Number of READs that are not served yet. */
  count = 0;
  readonly #rows: InboundRead[] = [];
  #first = 0;
  /** Number of them whose packets are all made. */
  #gatheredCount = 0;

  /** @param max IRD */
  constructor(max: number) {
    this.max = max;
  }

  /** The oldest READ whose packets are not all made. */
  get current(): InboundRead | undefined {
    return this.#gatheredCount < this.count ? this.#at(this.#gatheredCount) : undefined;
  }

  /** Appends a READ, whose fields the caller sets. */
  push(): InboundRead {
    assertInvariant(this.count < this.max, 'READs of the peer that are not served are at most IRD');
    const read = this.#at(this.count++);
    read.gatheredBytes = 0;
    return read;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const read of this.#rows) read.dueCycle -= cycles;
  }

  /** All packets of {@link current} are made. */
  gathered(): void {
    this.#gatheredCount++;
  }

  /** The last packet of the oldest READ was written. */
  pop(): void {
    this.#first = (this.#first + 1) % this.max;
    this.#gatheredCount--;
    this.count--;
  }

  clear(): void {
    this.count = 0;
    this.#gatheredCount = 0;
  }

  #at(ordinal: number): InboundRead {
    const index = (this.#first + ordinal) % this.max;
    while (this.#rows.length <= index) this.#rows.push(new InboundRead());
    return this.#rows[index]!;
  }
}
