/**
 * Payload by reference: where both ends of a link run in one thread, a memory write may name where in the device its bytes
 * lie, in place of carrying them in its record; the root complex copies them from there.
 *
 *     device's memory ── ZeroCopyWriter: loans 1, 2, 3 … ──▶ ZeroCopyPayload of the root complex: reads, settles
 *           └── its owner keeps what a loan names until it is settled, or calls the loans in
 *
 * Promises:
 * - Writes take effect in the order sent, so settling a loan settles all before it: also those whose TLP was lost.
 * - Loans that were called in are read from a copy: the owner may do with its memory what it likes. Nothing more is lent
 *   until the last of them is settled.
 * - This is about the memory of the computation only. Nothing simulated depends on how or how long payload is lent.
 */

/** Payload shorter than this is carried: copying it costs no more than lending it (estimate). */
const LENT_BYTES_MIN = 128;
const NOTHING = new Uint8Array(0);

export class PayloadLoans {
  /** Where the payload of loans lies. */
  source: Uint8Array;
  /** Number of the last loan. */
  lentCount = 0;
  /** Number of the last loan for which the owner need no longer keep its memory. */
  settledCount = 0;
  readonly #memory: Uint8Array;
  #copy = NOTHING;
  /** What is lent: the memory, or nothing. */
  #lendable: Uint8Array;

  /** @param memory whose bytes are lent */
  constructor(memory: Uint8Array) {
    this.#memory = memory;
    this.#lendable = memory;
    this.source = memory;
  }

  /** Whether so many bytes of `source` are to be lent. */
  canLend(source: Uint8Array, lengthBytes: number): boolean {
    return source === this.#lendable && lengthBytes >= LENT_BYTES_MIN;
  }

  /** Makes a loan. Returns its name for {@link settle}: the low 32 bits of its number. */
  lend(): number {
    const count = this.lentCount + 1;
    this.lentCount = count;
    return count | 0;
  }

  /** The loan of this name has been read, or never will be, and so have all before it. */
  settle(name: number): void {
    const { settledCount } = this;
    if (this.source === this.#memory) this.settledCount = settledCount + ((name - settledCount) | 0);
    else if (name === (settledCount | 0)) this.#lendAgain();
  }

  /** The owner needs its memory: all loans are settled as far as it is concerned. */
  callIn(): void {
    if (this.lentCount === this.settledCount) return;
    if (this.#copy === NOTHING) this.#copy = new Uint8Array(this.#memory.length);
    this.#copy.set(this.#memory);
    this.source = this.#copy;
    this.#lendable = NOTHING;
    this.settledCount = this.lentCount;
  }

  #lendAgain(): void {
    this.source = this.#memory;
    this.#lendable = this.#memory;
  }
}
