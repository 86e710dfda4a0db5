/**
 * Memory that holds TLPs as records (tlp-record.ts): the ring of a channel, or the slots of a transmit fifo. A sender fills in
 * a TLP's words and payload at the offset that the transmitter has returned.
 */
import type { BusAddress } from '../../../base/index.ts';
import {
  FLOAT_ADDRESS,
  PAYLOAD_OFFSET,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_LENGTH,
  WORD_REFERENCE,
  WORD_REFERENCE_OFFSET,
} from '../tlp/index.ts';
import { PayloadCopier } from './payload-copier.ts';

/** Offset of the protocol's own words; time, size and kind precede them. */
const OWN_WORDS_OFFSET = WORD_FLAGS * 4;

export class RecordMemory {
  readonly words: Int32Array;
  readonly floats: Float64Array;
  readonly copier: PayloadCopier;

  /** @param bytes start and end at multiples of 8 bytes of their buffer */
  constructor(bytes: Uint8Array) {
    this.words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    this.floats = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length >> 3);
    this.copier = new PayloadCopier(bytes);
  }

  /** Fills in the fields of TLPs of all kinds; the kind is already set. */
  describe(
    offset: number,
    address: BusAddress,
    lengthBytes: number,
    flags: number,
    descriptor: number,
  ): void {
    const { words, floats } = this;
    const word = offset >> 2;
    words[word + WORD_FLAGS] = flags;
    words[word + WORD_DESCRIPTOR] = descriptor;
    words[word + WORD_LENGTH] = lengthBytes;
    floats[(offset >> 3) + FLOAT_ADDRESS] = address;
  }

  /** Fills in a word that only some kinds of TLPs have: WORD_BYTE_COUNT, WORD_DATA or WORD_AUX. */
  set(offset: number, place: number, value: number): void {
    this.words[(offset >> 2) + place] = value;
  }

  /** Copies a payload to the record at `offset`. */
  fill(offset: number, source: Uint8Array, sourceOffset: number, lengthBytes: number): void {
    this.copier.copy(source, sourceOffset, offset + PAYLOAD_OFFSET, lengthBytes);
  }

  /** Writes into the record at `offset` the position of its payload, and its reference. */
  writeReference(offset: number, sourceOffset: number, reference: number): void {
    const { words } = this;
    words[(offset >> 2) + WORD_REFERENCE_OFFSET] = sourceOffset;
    words[(offset >> 2) + WORD_REFERENCE] = reference;
  }

  /** Copies a record of `from` to `offset`, with this many bytes of payload: everything except its time, size and kind. */
  move(from: RecordMemory, fromOffset: number, offset: number, carriedBytes: number): void {
    const lengthBytes = PAYLOAD_OFFSET - OWN_WORDS_OFFSET + carriedBytes;
    const source = fromOffset + OWN_WORDS_OFFSET;
    this.copier.copy(from.copier.target, source, offset + OWN_WORDS_OFFSET, lengthBytes);
  }
}
