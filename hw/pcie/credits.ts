/**
 * Flow-control credits, in the words and the arithmetic of PCIe base specification 3.1, 2.6.1: counters run free
 * modulo their field's size (8 bits for headers, 12 for data), and the transmitter may send when
 * (limit - (consumed + needed)) mod 2^field is at most half the field's range.
 *
 * One object holds the headers and the data of one flow at one end.
 */
const HEADER_MASK = 0xff;
const DATA_MASK = 0xfff;
const HEADER_HALF = 0x80;
const DATA_HALF = 0x800;

/** What keeps a TLP from leaving. */
const READY = 0;
const LACK_HEADERS = 1;
const LACK_DATA = 2;

export { LACK_DATA as CREDITS_LACK_DATA, LACK_HEADERS as CREDITS_LACK_HEADERS, READY as CREDITS_READY };

/** The transmitter's side of a flow: CREDITS_CONSUMED and CREDIT_LIMIT. */
export class TransmitCredits {
  headersConsumed = 0;
  dataConsumed = 0;
  headerLimit: number;
  dataLimit: number;
  /** The difference to the limit may be this much: half the field's range, or any when infinite was advertised. */
  readonly #headersLeftMax: number;
  readonly #dataLeftMax: number;

  /** Flow-control initialisation (InitFC1, InitFC2): the other end advertises; 0 is infinite. */
  constructor(headers: number, data: number) {
    this.headerLimit = headers;
    this.dataLimit = data;
    this.#headersLeftMax = headers === 0 ? HEADER_MASK : HEADER_HALF;
    this.#dataLeftMax = data === 0 ? DATA_MASK : DATA_HALF;
  }

  /** Whether a TLP with `dataCredits` units of data may leave: CREDITS_READY, or what is missing. */
  check(dataCredits: number): number {
    const headersLeft = (this.headerLimit - this.headersConsumed - 1) & HEADER_MASK;
    if (headersLeft > this.#headersLeftMax) return LACK_HEADERS;
    const dataLeft = (this.dataLimit - this.dataConsumed - dataCredits) & DATA_MASK;
    return dataLeft > this.#dataLeftMax ? LACK_DATA : READY;
  }

  /** Takes the credits of a TLP that leaves. */
  consume(dataCredits: number): void {
    this.headersConsumed = (this.headersConsumed + 1) & HEADER_MASK;
    this.dataConsumed = (this.dataConsumed + dataCredits) & DATA_MASK;
  }

  /** An UpdateFC has come. Infinite kinds stay so. */
  update(headerLimit: number, dataLimit: number): void {
    this.headerLimit = headerLimit;
    this.dataLimit = dataLimit;
  }
}

/**
 * The receiver's side of a flow: CREDITS_ALLOCATED and CREDITS_RECEIVED, and whether freed credits are due to be
 * returned.
 *
 * A return is due when the freed and not yet returned credits of either kind reach a threshold, a share of what
 * was advertised, but never so many that what stays at the transmitter could not send the largest TLP: so no
 * flow waits for ever.
 */
export class ReceiveCredits {
  headersAllocated: number;
  dataAllocated: number;
  headersReceived = 0;
  dataReceived = 0;
  /** Freed by the receiver, not yet returned. */
  headersFreed = 0;
  dataFreed = 0;
  /** Freed credits from which on a return is due; beyond the field's range when infinite was advertised. */
  readonly headerThreshold: number;
  readonly dataThreshold: number;
  /** As in {@link TransmitCredits}. */
  readonly #headersLeftMax: number;
  readonly #dataLeftMax: number;

  /** @param largestDataCredits units of the largest TLP of the flow */
  constructor(headers: number, data: number, percent: number, largestDataCredits: number) {
    this.headersAllocated = headers;
    this.dataAllocated = data;
    this.#headersLeftMax = headers === 0 ? HEADER_MASK : HEADER_HALF - 1;
    this.#dataLeftMax = data === 0 ? DATA_MASK : DATA_HALF - 1;
    const headerShare = Math.floor((headers * percent) / 100);
    const dataShare = Math.min(Math.floor((data * percent) / 100), data - largestDataCredits + 1);
    this.headerThreshold = headers === 0 ? HEADER_MASK + 1 : Math.max(1, headerShare);
    this.dataThreshold = data === 0 ? DATA_MASK + 1 : Math.max(1, dataShare);
  }

  /** A TLP has arrived. False when the transmitter had no credits for it: a receiver overflow (2.6.1.2). */
  receive(dataCredits: number): boolean {
    const headers = (this.headersReceived + 1) & HEADER_MASK;
    const data = (this.dataReceived + dataCredits) & DATA_MASK;
    this.headersReceived = headers;
    this.dataReceived = data;
    return (
      ((this.headersAllocated - headers) & HEADER_MASK) <= this.#headersLeftMax &&
      ((this.dataAllocated - data) & DATA_MASK) <= this.#dataLeftMax
    );
  }

  /** The receiver has room again. True when credits are now due to be returned. */
  free(dataCredits: number): boolean {
    const headers = (this.headersFreed + 1) & HEADER_MASK;
    const data = (this.dataFreed + dataCredits) & DATA_MASK;
    this.headersFreed = headers;
    this.dataFreed = data;
    return headers >= this.headerThreshold || data >= this.dataThreshold;
  }

  /** Allocates what was freed; the limits to send are then {@link headersAllocated} and {@link dataAllocated}. */
  allocateFreed(): void {
    this.headersAllocated = (this.headersAllocated + this.headersFreed) & HEADER_MASK;
    this.dataAllocated = (this.dataAllocated + this.dataFreed) & DATA_MASK;
    this.headersFreed = 0;
    this.dataFreed = 0;
  }
}
