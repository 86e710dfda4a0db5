/**
 * Flow-control credits, in the words and the arithmetic of PCIe base specification 3.1, 2.6.1: counters run free modulo their
 * field's size (8 bits for headers, 12 for data), and the transmitter may send when (limit - (consumed + needed)) mod 2^field
 * is in the lower half of the field's range. (Half itself would also be valid, but no receiver has that many unused credits
 * outstanding: 2.6.1.2.)
 *
 * Headers and data of a flow are counted together, in one integer laid out as an UpdateFC carries it (figure 3-8): HdrFC in
 * bits 21 to 14, DataFC in bits 11 to 0. The gap between them has room for a carry; {@link GUARD} provides the bits that a
 * difference borrows.
 */
const HEADER_SHIFT = 14;
const HEADER_MASK = 0xff;
const DATA_MASK = 0xfff;
const FIELDS = (HEADER_MASK << HEADER_SHIFT) | DATA_MASK;
const GUARD = 2 << 12;
/** The upper halves of both fields. */
const HEADER_HALF = 0x80;
const DATA_HALF = 0x800;

/** Header and data credits as one integer. */
export const creditsOf = (headers: number, data: number): number => (headers << HEADER_SHIFT) | data;
export const headersOf = (credits: number): number => (credits >> HEADER_SHIFT) & HEADER_MASK;
export const dataOf = (credits: number): number => credits & DATA_MASK;

/** Credits of one TLP with `dataCredits` units of data. */
export const tlpCredits = (dataCredits: number): number => (1 << HEADER_SHIFT) | dataCredits;

/** The upper halves of those fields for which finite credits are advertised; 0 advertises infinite credits. */
const halvesOfFinite = (headers: number, data: number): number =>
  creditsOf(headers === 0 ? 0 : HEADER_HALF, data === 0 ? 0 : DATA_HALF);

/** The transmitter's side of a flow: CREDITS_CONSUMED and CREDIT_LIMIT. */
export class TransmitCredits {
  consumed = 0;
  /** Infinite kinds keep any limit that they receive. */
  limit: number;
  readonly #halves: number;

  /** Flow-control initialisation (InitFC1, InitFC2): the other end advertises; 0 is infinite. */
  constructor(headers: number, data: number) {
    this.limit = creditsOf(headers, data);
    this.#halves = halvesOfFinite(headers, data);
  }

  /** The credits for which a TLP that needs `credits` must wait: 0 if it may leave, otherwise see {@link headersOf}. */
  deficit(credits: number): number {
    return ((this.limit | GUARD) - this.consumed - credits) & this.#halves;
  }

  /** Uses the credits of a TLP that leaves. */
  consume(credits: number): void {
    this.consumed = (this.consumed + credits) & FIELDS;
  }
}

/**
 * The receiver's side of a flow: CREDITS_ALLOCATED and CREDITS_RECEIVED, and whether freed credits are due to be
 * returned.
 *
 * A return is due when the freed, unreturned credits of either kind reach a threshold. The threshold is a share of the
 * advertised credits, limited so that the transmitter can still send the largest TLP: so no flow waits indefinitely.
 */
export class ReceiveCredits {
  allocated: number;
  received = 0;
  /** Freed by the receiver and not returned yet; the count restarts here, so that the threshold is half the field's range. */
  #freed: number;
  readonly #freedStart: number;
  readonly #advertised: number;
  readonly #halves: number;

  /** @param largestDataCredits units of the largest TLP of the flow */
  constructor(headers: number, data: number, percent: number, largestDataCredits: number) {
    const headerShare = Math.floor((headers * percent) / 100);
    const dataShare = Math.min(Math.floor((data * percent) / 100), data - largestDataCredits + 1);
    this.#advertised = creditsOf(headers, data);
    this.#halves = halvesOfFinite(headers, data);
    this.#freedStart = creditsOf(
      headers === 0 ? 0 : HEADER_HALF - Math.max(1, headerShare),
      data === 0 ? 0 : DATA_HALF - Math.max(1, dataShare),
    );
    this.allocated = this.#advertised;
    this.#freed = this.#freedStart;
  }

  /** A TLP has arrived. Returns false if the transmitter had no credits for it: a receiver overflow (2.6.1.2). */
  receive(credits: number): boolean {
    this.received = (this.received + credits) & FIELDS;
    return (((this.allocated | GUARD) - this.received) & this.#halves) === 0;
  }

  /** The receiver has room again. Returns true if credits are now due to be returned. */
  free(credits: number): boolean {
    this.#freed = (this.#freed + credits) & FIELDS;
    return (this.#freed & this.#halves) !== 0;
  }

  /** Allocates the freed credits; the limit to send is then {@link allocated}. */
  allocateFreed(): void {
    this.allocated = this.#allocatedWithFreed;
    this.#freed = this.#freedStart;
  }

  /** TLPs received and not freed, modulo the header field's size. */
  get heldCount(): number {
    return headersOf((this.received | GUARD) - this.#allocatedWithFreed + this.#advertised);
  }

  get #allocatedWithFreed(): number {
    return ((this.allocated | GUARD) + this.#freed - this.#freedStart) & FIELDS;
  }
}
