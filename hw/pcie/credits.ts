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
export const CREDITS_READY = 0;
export const CREDITS_LACK_HEADERS = 1;
export const CREDITS_LACK_DATA = 2;

/** The transmitter's side: CREDITS_CONSUMED and CREDIT_LIMIT. */
export class TransmitCredits {
  readonly consumed = new Int32Array(CREDIT_KIND_COUNT);
  readonly limit = new Int32Array(CREDIT_KIND_COUNT);
  readonly isInfinite = new Uint8Array(CREDIT_KIND_COUNT);

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
    const header = flow * 2;
    if (this.isInfinite[header] === 0) {
      const left = (this.limit[header]! - this.consumed[header]! - 1) & HEADER_MASK;
      if (left > HEADER_HALF) return CREDITS_LACK_HEADERS;
    }
    if (dataCredits > 0 && this.isInfinite[header + 1] === 0) {
      const left = (this.limit[header + 1]! - this.consumed[header + 1]! - dataCredits) & DATA_MASK;
      if (left > DATA_HALF) return CREDITS_LACK_DATA;
    }
    return CREDITS_READY;
  }

  /** Takes the credits of a TLP that leaves. */
  consume(flow: number, dataCredits: number): void {
    const header = flow * 2;
    this.consumed[header] = (this.consumed[header]! + 1) & HEADER_MASK;
    this.consumed[header + 1] = (this.consumed[header + 1]! + dataCredits) & DATA_MASK;
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

/**
 * The receiver's side: CREDITS_ALLOCATED and CREDITS_RECEIVED, and which freed credits are due to be returned.
 *
 * A return is due when the freed and not yet returned credits of either kind of a flow reach a threshold, a
 * share of what was advertised, but never so many that what stays at the transmitter could not send the
 * largest TLP: so no flow waits for ever.
 */
export class ReceiveCredits {
  readonly allocated = new Int32Array(CREDIT_KIND_COUNT);
  readonly received = new Int32Array(CREDIT_KIND_COUNT);
  /** Freed by the receiver, not yet returned. */
  readonly freed = new Int32Array(CREDIT_KIND_COUNT);
  readonly isInfinite = new Uint8Array(CREDIT_KIND_COUNT);
  readonly threshold = new Int32Array(CREDIT_KIND_COUNT);

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
    const header = flow * 2;
    this.received[header] = (this.received[header]! + 1) & HEADER_MASK;
    this.received[header + 1] = (this.received[header + 1]! + dataCredits) & DATA_MASK;
    const headersLeft = (this.allocated[header]! - this.received[header]!) & HEADER_MASK;
    const dataLeft = (this.allocated[header + 1]! - this.received[header + 1]!) & DATA_MASK;
    return (
      (this.isInfinite[header] === 1 || headersLeft < HEADER_HALF) &&
      (this.isInfinite[header + 1] === 1 || dataLeft < DATA_HALF)
    );
  }

  /** The receiver has room again. True when credits of the flow are now due to be returned. */
  free(flow: number, dataCredits: number): boolean {
    const header = flow * 2;
    this.freed[header] = this.freed[header]! + 1;
    this.freed[header + 1] = this.freed[header + 1]! + dataCredits;
    return (
      (this.isInfinite[header] === 0 && this.freed[header]! >= this.threshold[header]!) ||
      (this.isInfinite[header + 1] === 0 && this.freed[header + 1]! >= this.threshold[header + 1]!)
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
