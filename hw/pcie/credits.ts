/**
 * Flow-control credits of the six kinds, in the words and the arithmetic of PCIe base specification 3.1, 2.6.1:
 * counters run free modulo their field's size (8 bits for headers, 12 for data), and the transmitter may send
 * when (limit - (consumed + needed)) mod 2^field is at most half the field's range.
 *
 * Index of a kind: flow × 2 for headers, flow × 2 + 1 for data: PH 0, PD 1, NPH 2, NPD 3, CPLH 4, CPLD 5.
 */
import { FLOW_COUNT } from './tlp.ts';

export const CREDIT_KIND_COUNT = 2 * FLOW_COUNT;
export const CREDIT_KIND_NAMES = ['PH', 'PD', 'NPH', 'NPD', 'CPLH', 'CPLD'] as const;

const HEADER_MASK = 0xff;
const DATA_MASK = 0xfff;
const HEADER_HALF = 0x80;
const DATA_HALF = 0x800;

/** What keeps a TLP from leaving. */
const READY = 0;
const LACK_HEADERS = 1;
const LACK_DATA = 2;

export { LACK_DATA as CREDITS_LACK_DATA, LACK_HEADERS as CREDITS_LACK_HEADERS, READY as CREDITS_READY };

/** Where each counter of a kind stands in the one array that holds them all (one array costs one check of it). */
const CONSUMED = 0;
const LIMIT = CREDIT_KIND_COUNT;
const INFINITE = 2 * CREDIT_KIND_COUNT;
const TRANSMIT_WORDS = 3 * CREDIT_KIND_COUNT;

/** The transmitter's side: CREDITS_CONSUMED and CREDIT_LIMIT. */
export class TransmitCredits {
  readonly #state = new Int32Array(TRANSMIT_WORDS);
  readonly consumed = this.#state.subarray(CONSUMED, CONSUMED + CREDIT_KIND_COUNT);
  readonly limit = this.#state.subarray(LIMIT, LIMIT + CREDIT_KIND_COUNT);
  readonly isInfinite = this.#state.subarray(INFINITE, INFINITE + CREDIT_KIND_COUNT);

  /** Flow-control initialisation (InitFC1, InitFC2): the other end advertises; 0 is infinite. */
  initialise(flow: number, headers: number, data: number): void {
    const header = flow * 2;
    this.limit[header] = headers;
    this.limit[header + 1] = data;
    this.isInfinite[header] = headers === 0 ? 1 : 0;
    this.isInfinite[header + 1] = data === 0 ? 1 : 0;
    this.consumed[header] = 0;
    this.consumed[header + 1] = 0;
  }

  /** Whether a TLP with `dataCredits` units of data may leave: CREDITS_READY, or what is missing. */
  check(flow: number, dataCredits: number): number {
    const state = this.#state;
    const header = flow * 2;
    if (state[INFINITE + header] === 0) {
      const left = (state[LIMIT + header]! - state[CONSUMED + header]! - 1) & HEADER_MASK;
      if (left > HEADER_HALF) return LACK_HEADERS;
    }
    if (dataCredits > 0 && state[INFINITE + header + 1] === 0) {
      const left = (state[LIMIT + header + 1]! - state[CONSUMED + header + 1]! - dataCredits) & DATA_MASK;
      if (left > DATA_HALF) return LACK_DATA;
    }
    return READY;
  }

  /** Takes the credits of a TLP that leaves. */
  consume(flow: number, dataCredits: number): void {
    const state = this.#state;
    const header = CONSUMED + flow * 2;
    state[header] = (state[header]! + 1) & HEADER_MASK;
    state[header + 1] = (state[header + 1]! + dataCredits) & DATA_MASK;
  }

  /** An UpdateFC has come. Infinite kinds stay so. */
  update(flow: number, headerLimit: number, dataLimit: number): void {
    this.limit[flow * 2] = headerLimit;
    this.limit[flow * 2 + 1] = dataLimit;
  }

  /** Credits left of a kind; Infinity when infinite. */
  available(kind: number): number {
    if (this.isInfinite[kind] === 1) return Number.POSITIVE_INFINITY;
    return (this.limit[kind]! - this.consumed[kind]!) & ((kind & 1) === 0 ? HEADER_MASK : DATA_MASK);
  }
}

const ALLOCATED = 0;
const RECEIVED = CREDIT_KIND_COUNT;
const FREED = 2 * CREDIT_KIND_COUNT;
const ENDLESS = 3 * CREDIT_KIND_COUNT;
const THRESHOLD = 4 * CREDIT_KIND_COUNT;
const RECEIVE_WORDS = 5 * CREDIT_KIND_COUNT;

/**
 * The receiver's side: CREDITS_ALLOCATED and CREDITS_RECEIVED, and which freed credits are due to be returned.
 *
 * A return is due when the freed and not yet returned credits of either kind of a flow reach a threshold, a
 * share of what was advertised, but never so many that what stays at the transmitter could not send the
 * largest TLP: so no flow waits for ever.
 */
export class ReceiveCredits {
  readonly #state = new Int32Array(RECEIVE_WORDS);
  readonly allocated = this.#state.subarray(ALLOCATED, ALLOCATED + CREDIT_KIND_COUNT);
  readonly received = this.#state.subarray(RECEIVED, RECEIVED + CREDIT_KIND_COUNT);
  /** Freed by the receiver, not yet returned. */
  readonly freed = this.#state.subarray(FREED, FREED + CREDIT_KIND_COUNT);
  readonly isInfinite = this.#state.subarray(ENDLESS, ENDLESS + CREDIT_KIND_COUNT);
  readonly threshold = this.#state.subarray(THRESHOLD, THRESHOLD + CREDIT_KIND_COUNT);

  /** @param largestDataCredits units of the largest TLP of the flow */
  initialise(flow: number, headers: number, data: number, percent: number, largestDataCredits: number): void {
    const header = flow * 2;
    this.allocated[header] = headers;
    this.allocated[header + 1] = data;
    this.isInfinite[header] = headers === 0 ? 1 : 0;
    this.isInfinite[header + 1] = data === 0 ? 1 : 0;
    this.threshold[header] = Math.max(1, Math.floor((headers * percent) / 100));
    const share = Math.floor((data * percent) / 100);
    this.threshold[header + 1] = Math.max(1, Math.min(share, data - largestDataCredits + 1));
    for (const kind of [header, header + 1]) {
      this.received[kind] = 0;
      this.freed[kind] = 0;
    }
  }

  /** A TLP has arrived. False when the transmitter had no credits for it: a receiver overflow (2.6.1.2). */
  receive(flow: number, dataCredits: number): boolean {
    const state = this.#state;
    const header = flow * 2;
    const headers = (state[RECEIVED + header]! + 1) & HEADER_MASK;
    const data = (state[RECEIVED + header + 1]! + dataCredits) & DATA_MASK;
    state[RECEIVED + header] = headers;
    state[RECEIVED + header + 1] = data;
    const headersLeft = (state[ALLOCATED + header]! - headers) & HEADER_MASK;
    const dataLeft = (state[ALLOCATED + header + 1]! - data) & DATA_MASK;
    return (
      (headersLeft < HEADER_HALF || state[ENDLESS + header] === 1) &&
      (dataLeft < DATA_HALF || state[ENDLESS + header + 1] === 1)
    );
  }

  /** The receiver has room again. True when credits of the flow are now due to be returned. */
  free(flow: number, dataCredits: number): boolean {
    const state = this.#state;
    const header = flow * 2;
    const headers = state[FREED + header]! + 1;
    const data = state[FREED + header + 1]! + dataCredits;
    state[FREED + header] = headers;
    state[FREED + header + 1] = data;
    return (
      (headers >= state[THRESHOLD + header]! && state[ENDLESS + header] === 0) ||
      (data >= state[THRESHOLD + header + 1]! && state[ENDLESS + header + 1] === 0)
    );
  }

  /** Allocates what was freed; the limits to send are then in {@link allocated}. */
  allocateFreed(flow: number): void {
    const header = flow * 2;
    this.allocated[header] = (this.allocated[header]! + this.freed[header]!) & HEADER_MASK;
    this.allocated[header + 1] = (this.allocated[header + 1]! + this.freed[header + 1]!) & DATA_MASK;
    this.freed[header] = 0;
    this.freed[header + 1] = 0;
  }
}
