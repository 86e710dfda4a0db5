/**
 * The write-combining buffer of the guest's CPU, for stores into the BlueFlame pages: one line of 64 bytes.
 *
 * A real core joins the eight 8-byte stores of a BlueFlame post into one TLP, because the page is mapped write-combining; a
 * guest's machine hands them over one by one. The line leaves when it is full, when a store goes elsewhere or does not continue
 * it, before any other action of the guest, and when it has not grown for a while, as in a real core. It leaves in the sizes of
 * a core's store buffer: whole, or in pieces of 8 bytes.
 */
const LINE_BYTES = 64;
const PIECE_BYTES = 8;

/** Receives stores that leave the buffer. */
export type CombinedStore = (
  address: number,
  source: Uint8Array,
  sourceOffset: number,
  lengthBytes: number,
) => void;

export class WriteCombiner {
  /** Lines that left whole, and those that left in pieces. */
  wholeLineCount = 0;
  partLineCount = 0;
  /** Stores received so far, which shows whether the line grows. */
  storeCount = 0;
  readonly #store: CombinedStore;
  readonly #line = new Uint8Array(LINE_BYTES);
  #address = 0;
  /** Bytes of the line written so far, from its beginning; 0: empty. */
  #filledBytes = 0;

  constructor(store: CombinedStore) {
    this.#store = store;
  }

  get isEmpty(): boolean {
    return this.#filledBytes === 0;
  }

  /** Accepts a store within its 64-byte line. */
  write(address: number, source: Uint8Array, sourceOffset: number, lengthBytes: number): void {
    this.storeCount++;
    if (this.#filledBytes > 0 && address !== this.#address + this.#filledBytes) this.flush();
    if (this.#filledBytes === 0) {
      if (address % LINE_BYTES !== 0) {
        this.#store(address, source, sourceOffset, lengthBytes);
        return;
      }
      this.#address = address;
    }
    for (let at = 0; at < lengthBytes; at++) this.#line[this.#filledBytes + at] = source[sourceOffset + at]!;
    this.#filledBytes += lengthBytes;
    if (this.#filledBytes === LINE_BYTES) this.flush();
  }

  /** Sends the contents of the buffer. */
  flush(): void {
    const filledBytes = this.#filledBytes;
    if (filledBytes === 0) return;
    this.#filledBytes = 0;
    if (filledBytes === LINE_BYTES) {
      this.wholeLineCount++;
      this.#store(this.#address, this.#line, 0, LINE_BYTES);
      return;
    }
    this.partLineCount++;
    for (let at = 0; at < filledBytes; at += PIECE_BYTES)
      this.#store(this.#address + at, this.#line, at, Math.min(PIECE_BYTES, filledBytes - at));
  }

  /** Forgets the contents of the buffer. */
  clear(): void {
    this.#filledBytes = 0;
  }
}
