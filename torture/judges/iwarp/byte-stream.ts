/** The bytes of one direction of a connection, from the first after its SYN, as they passed one end of the cable in segments of any order. */

/** Bytes up to a place are complete since an instant. */
interface Growth {
  readonly end: number;
  readonly atPs: bigint;
}

export class ByteStream {
  /** Number of bytes from the first that have all passed. */
  contiguous = 0;
  /** Place after the last byte that has passed. */
  end = 0;
  #bytes = new Uint8Array(4096);
  /** 1 of each byte that has passed. */
  #isKnown = new Uint8Array(4096);
  readonly #growths: Growth[] = [];

  /** All bytes without a gap. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.contiguous);
  }

  /** Adds the payload of a segment. @returns false if one of its bytes was another when it passed earlier */
  put(at: number, payload: Uint8Array, atPs: bigint): boolean {
    const end = at + payload.length;
    this.#reserve(end);
    let isSame = true;
    for (let from = 0; from < payload.length; from++) {
      const place = at + from;
      if (place < 0) continue;
      if (this.#isKnown[place] === 1 && this.#bytes[place] !== payload[from]) isSame = false;
      this.#isKnown[place] = 1;
      this.#bytes[place] = payload[from]!;
    }
    this.end = Math.max(this.end, end);
    const before = this.contiguous;
    while (this.contiguous < this.end && this.#isKnown[this.contiguous] === 1) this.contiguous++;
    if (this.contiguous > before) this.#growths.push({ end: this.contiguous, atPs });
    return isSame;
  }

  /** Whether all of these bytes have passed. */
  has(from: number, end: number): boolean {
    for (let at = from; at < end; at++) if (this.#isKnown[at] !== 1) return false;
    return true;
  }

  /** When the bytes up to this place were complete. */
  completePs(end: number): bigint {
    let [low, high] = [0, this.#growths.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#growths[middle]!.end >= end) high = middle;
      else low = middle + 1;
    }
    return this.#growths[low]!.atPs;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return;
    const [bytesBefore, knownBefore] = [this.#bytes, this.#isKnown];
    const size = Math.max(bytes, 2 * this.#bytes.length);
    this.#bytes = new Uint8Array(size);
    this.#isKnown = new Uint8Array(size);
    this.#bytes.set(bytesBefore);
    this.#isKnown.set(knownBefore);
  }
}
