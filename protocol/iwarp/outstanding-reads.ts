/**
 * READs and atomics of an initiator whose responses have not arrived, in the order of their requests: responses arrive in it (RFC 5040, 5.5).
 * Their number is bounded by ORD; the records are allocated once.
 */
import { ADDRESS_TOP_UNIT, assertInvariant } from '../../base/index.ts';
import { IwarpError, NO_ERROR } from './iwarp-error.ts';
import type { SegmentHeader } from './segment-header.ts';

export class OutstandingReads {
  readonly max: number;
  count = 0;
  readonly #sinkTags: Uint32Array;
  readonly #offsets: Float64Array;
  readonly #offsetTops: Uint16Array;
  /** Bytes of each READ; −1: an atomic. */
  readonly #lengths: Float64Array;
  readonly #requestIds: Uint32Array;
  #first = 0;
  /** Bytes of the first READ that have arrived in order. */
  #arrivedBytes = 0;

  /** @param max ORD as MPA agreed */
  constructor(max: number) {
    this.max = max;
    this.#sinkTags = new Uint32Array(max);
    this.#offsets = new Float64Array(max);
    this.#offsetTops = new Uint16Array(max);
    this.#lengths = new Float64Array(max);
    this.#requestIds = new Uint32Array(max);
  }

  get isFull(): boolean {
    return this.count === this.max;
  }

  addRead(sinkTag: number, offset: number, offsetTop: number, lengthBytes: number): void {
    const index = this.#add();
    this.#sinkTags[index] = sinkTag;
    this.#offsets[index] = offset;
    this.#offsetTops[index] = offsetTop;
    this.#lengths[index] = lengthBytes;
  }

  addAtomic(requestId: number): void {
    const index = this.#add();
    this.#requestIds[index] = requestId;
    this.#lengths[index] = -1;
  }

  /**
   * Checks a segment of a READ response that is next in order.
   * @returns an error for a response to another READ, at another place, or of another length
   */
  respond(header: SegmentHeader, payloadBytes: number): number {
    const index = this.#first;
    if (this.count === 0 || this.#lengths[index]! < 0) return IwarpError.OPERATION_UNEXPECTED_OPCODE;
    const left = this.#lengths[index]! - this.#arrivedBytes;
    const isEmpty = this.#lengths[index] === 0 && payloadBytes === 0;
    // The STag and offset of a message without payload are not checked (RFC 5041, 5.2).
    if (!isEmpty && header.steeringTag !== this.#sinkTags[index]) return IwarpError.TAGGED_STAG_INVALID;
    if (!isEmpty && this.#placeIn(index, header) !== this.#arrivedBytes) return IwarpError.TAGGED_BOUNDS;
    if (payloadBytes > left || header.isLast !== (payloadBytes === left)) return IwarpError.TAGGED_BOUNDS;
    this.#arrivedBytes += payloadBytes;
    return NO_ERROR;
  }

  /** Whether any outstanding READ has this place: a response after a gap may be placed. */
  covers(header: SegmentHeader, payloadBytes: number): boolean {
    for (let ordinal = 0; ordinal < this.count; ordinal++) {
      const index = (this.#first + ordinal) % this.max;
      if (this.#sinkTags[index] !== header.steeringTag) continue;
      const place = this.#placeIn(index, header);
      if (place >= 0 && place + payloadBytes <= this.#lengths[index]!) return true;
    }
    return false;
  }

  /** @returns an error unless the first outstanding request is the atomic with this identifier */
  respondAtomic(requestId: number): number {
    const isFirst =
      this.count > 0 && this.#lengths[this.#first]! < 0 && this.#requestIds[this.#first] === requestId;
    return isFirst ? NO_ERROR : IwarpError.OPERATION_UNEXPECTED_OPCODE;
  }

  /** The first request has its whole response. */
  complete(): void {
    this.#first = (this.#first + 1) % this.max;
    this.#arrivedBytes = 0;
    this.count--;
  }

  #add(): number {
    assertInvariant(!this.isFull, 'READs and atomics outstanding are at most ORD');
    return (this.#first + this.count++) % this.max;
  }

  #placeIn(index: number, { offset, offsetTop }: SegmentHeader): number {
    return offset - this.#offsets[index]! + (offsetTop - this.#offsetTops[index]!) * ADDRESS_TOP_UNIT;
  }
}
