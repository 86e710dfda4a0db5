/**
 * Zero-copy payload: if both ends of a link run in one thread, the record of a memory write may refer to its bytes in the
 * device instead of carrying them; the root complex copies them from there.
 *
 *     device's memory ── ZeroCopyWriter: references 1, 2, 3 … ──▶ ZeroCopyPayload of the root complex: reads, releases
 *           └── its owner keeps what a reference names until it is released, or takes a snapshot
 *
 * Promises:
 * - Writes take effect in the order sent, so releasing a reference releases all earlier ones, even those of lost TLPs.
 * - After a snapshot, references are read from the copy and the owner may reuse its memory. No reference is issued until
 * the last of them is released.
 * - This affects only the simulator's memory. No simulated result depends on it.
 */

/** Shorter payload is carried in the record: copying it costs no more than a reference (estimate). */
const REFERENCED_BYTES_MIN = 128;
const NOTHING = new Uint8Array(0);

export class PayloadReferences {
  /** Memory to which the references point. */
  source: Uint8Array;
  /** Number of the last reference issued. */
  referenceCount = 0;
  /** Number of the last released reference. */
  releasedCount = 0;
  readonly #memory: Uint8Array;
  #copy = NOTHING;
  /** Target of references: the memory, or nothing. */
  #referenceable: Uint8Array;

  /** @param memory to which references point */
  constructor(memory: Uint8Array) {
    this.#memory = memory;
    this.#referenceable = memory;
    this.source = memory;
  }

  /** Whether this many bytes of `source` are sent by reference. */
  canReference(source: Uint8Array, lengthBytes: number): boolean {
    return source === this.#referenceable && lengthBytes >= REFERENCED_BYTES_MIN;
  }

  /** Issues a reference. Returns its name for {@link release}: the low 32 bits of its number. */
  issue(): number {
    const count = this.referenceCount + 1;
    this.referenceCount = count;
    return count | 0;
  }

  /** The bytes of this reference and all earlier ones were read, or never will be. */
  release(name: number): void {
    const { releasedCount } = this;
    if (this.source === this.#memory) this.releasedCount = releasedCount + ((name - releasedCount) | 0);
    else if (name === (releasedCount | 0)) this.#resume();
  }

  /** The owner needs its memory: the bytes are copied, and all references are released. */
  snapshot(): void {
    if (this.referenceCount === this.releasedCount) return;
    if (this.#copy === NOTHING) this.#copy = new Uint8Array(this.#memory.length);
    this.#copy.set(this.#memory);
    this.source = this.#copy;
    this.#referenceable = NOTHING;
    this.releasedCount = this.referenceCount;
  }

  #resume(): void {
    this.source = this.#memory;
    this.#referenceable = this.#memory;
  }
}
