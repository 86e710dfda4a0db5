/** Position of the payload of a device's memory write when it takes effect: in its record, or in the device. */
import type { ChannelReader } from '../../../sim/index.ts';
import {
  FLAG_REFERENCE,
  PAYLOAD_OFFSET,
  WORD_FLAGS,
  WORD_REFERENCE,
  WORD_REFERENCE_OFFSET,
} from '../tlp/index.ts';
import type { PayloadReferences } from './payload-references.ts';

/** The seam of the root complex's writes. */
export interface WritePayload {
  /** Memory of the payload found last. */
  bytes: Uint8Array;
  /** Offset in {@link bytes} of the payload of the write at `offset`. */
  find(offset: number): number;
  /** The write at `offset` has taken effect, or never will. */
  finish(offset: number): void;
}

/** Payload in the record, as it was carried. */
export class CarriedPayload implements WritePayload {
  readonly bytes: Uint8Array;

  constructor(reader: ChannelReader) {
    this.bytes = reader.bytes;
  }

  find(offset: number): number {
    return offset + PAYLOAD_OFFSET;
  }

  finish(): void {}
}

/** Zero-copy payload is read from a device in the same thread (ZeroCopyWriter). */
export class ZeroCopyPayload implements WritePayload {
  bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #records: Uint8Array;
  readonly #references: PayloadReferences;

  constructor(reader: ChannelReader, references: PayloadReferences) {
    this.bytes = reader.bytes;
    this.#words = reader.words;
    this.#records = reader.bytes;
    this.#references = references;
  }

  find(offset: number): number {
    const isReference = (this.#words[(offset >> 2) + WORD_FLAGS]! & FLAG_REFERENCE) !== 0;
    this.bytes = isReference ? this.#references.source : this.#records;
    return isReference ? this.#words[(offset >> 2) + WORD_REFERENCE_OFFSET]! : offset + PAYLOAD_OFFSET;
  }

  finish(offset: number): void {
    const words = this.#words;
    const word = offset >> 2;
    if ((words[word + WORD_FLAGS]! & FLAG_REFERENCE) !== 0)
      this.#references.release(words[word + WORD_REFERENCE]!);
  }
}
