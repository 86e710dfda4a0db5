/** Unread bytes of a stream: appended at the end and removed at the front, each copied a bounded number of times. */
export class PendingBytes {
  #bytes = new Uint8Array(0);
  #from = 0;
  #to = 0;

  get length(): number {
    return this.#to - this.#from;
  }

  /** The bytes; valid until the next change. */
  view(): Uint8Array {
    return this.#bytes.subarray(this.#from, this.#to);
  }

  /** Adds bytes; stores them without a copy if the buffer is empty. */
  append(bytes: Uint8Array): void {
    if (this.length === 0) {
      this.#bytes = new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length);
      this.#from = 0;
      this.#to = bytes.length;
      return;
    }
    if (this.#to + bytes.length > this.#bytes.length) this.#grow(this.length + bytes.length);
    this.#bytes.set(bytes, this.#to);
    this.#to += bytes.length;
  }

  /** Removes bytes from the front. */
  drop(count: number): void {
    this.#from = Math.min(this.#to, this.#from + count);
    if (this.length === 0) this.clear();
  }

  clear(): void {
    this.#bytes = new Uint8Array(0);
    this.#from = 0;
    this.#to = 0;
  }

  #grow(bytes: number): void {
    const grown = new Uint8Array(2 * bytes);
    grown.set(this.view());
    this.#to = this.length;
    this.#from = 0;
    this.#bytes = grown;
  }
}
