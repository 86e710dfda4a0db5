/**
 * The bounded transmit fifo of one flow: TLPs that wait for credits or for the serialiser, whole, payload
 * included, in preallocated slots.
 */
import { PayloadCopier } from './link-copy.ts';
import { touchedDwords } from './tlp.ts';

export class TransmitFifo {
  readonly capacity: number;
  readonly slotBytes: number;
  /** Payloads: slot n begins at n × {@link slotBytes}. */
  readonly payloads: PayloadCopier;
  /** Position in the port's order of sending. */
  readonly sequence: Float64Array;
  readonly kind: Int32Array;
  readonly flags: Int32Array;
  readonly trafficClass: Int32Array;
  readonly tag: Int32Array;
  readonly requesterId: Int32Array;
  readonly address: Float64Array;
  readonly lengthBytes: Int32Array;
  readonly byteCount: Int32Array;
  readonly data: Int32Array;
  readonly aux: Int32Array;
  readonly issuedPs: Float64Array;
  count = 0;
  highWater = 0;
  /** Slot of the oldest TLP. */
  head = 0;

  constructor(capacity: number, maxPayloadBytes: number) {
    this.capacity = capacity;
    this.slotBytes = touchedDwords(3, maxPayloadBytes) * 4;
    this.payloads = new PayloadCopier(new Uint8Array(capacity * this.slotBytes));
    this.sequence = new Float64Array(capacity);
    this.kind = new Int32Array(capacity);
    this.flags = new Int32Array(capacity);
    this.trafficClass = new Int32Array(capacity);
    this.tag = new Int32Array(capacity);
    this.requesterId = new Int32Array(capacity);
    this.address = new Float64Array(capacity);
    this.lengthBytes = new Int32Array(capacity);
    this.byteCount = new Int32Array(capacity);
    this.data = new Int32Array(capacity);
    this.aux = new Int32Array(capacity);
    this.issuedPs = new Float64Array(capacity);
  }

  /** Takes a free slot behind the others. The caller has checked that there is one. */
  take(): number {
    let slot = this.head + this.count;
    if (slot >= this.capacity) slot -= this.capacity;
    this.count++;
    if (this.count > this.highWater) this.highWater = this.count;
    return slot;
  }

  /** Frees the oldest slot. */
  drop(): void {
    this.head = this.head + 1 === this.capacity ? 0 : this.head + 1;
    this.count--;
  }
}
