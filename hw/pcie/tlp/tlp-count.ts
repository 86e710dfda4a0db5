/** Statistics of TLPs: their number, and their bytes. */

/** Link bytes include header and framing. */
export class TlpCount {
  tlps = 0;
  linkBytes = 0;
  payloadBytes = 0;

  add(linkBytes: number, payloadBytes: number): void {
    this.tlps++;
    this.linkBytes += linkBytes;
    this.payloadBytes += payloadBytes;
  }

  /** Adds this number of TLPs, with their total bytes. */
  addAll(tlps: number, linkBytes: number, payloadBytes: number): void {
    this.tlps += tlps;
    this.linkBytes += linkBytes;
    this.payloadBytes += payloadBytes;
  }
}

/** TLPs and bytes by traffic class. */
export class TrafficCount {
  readonly classes: readonly TlpCount[];
  /** The class counted last, and its statistics: the next TLP usually has the same class. */
  #lastClass = 0;
  #last: TlpCount;

  /** @param trafficClassCount at least 1 */
  constructor(trafficClassCount: number) {
    this.classes = Array.from({ length: trafficClassCount }, () => new TlpCount());
    this.#last = this.classes[0]!;
  }

  add(trafficClass: number, linkBytes: number, payloadBytes: number): void {
    if (trafficClass !== this.#lastClass) this.#turnTo(trafficClass);
    this.#last.add(linkBytes, payloadBytes);
  }

  /** Adds this number of TLPs of a class, with their total bytes. */
  addAll(trafficClass: number, tlps: number, linkBytes: number, payloadBytes: number): void {
    if (trafficClass !== this.#lastClass) this.#turnTo(trafficClass);
    this.#last.addAll(tlps, linkBytes, payloadBytes);
  }

  #turnTo(trafficClass: number): void {
    this.#last = this.classes[trafficClass]!;
    this.#lastClass = trafficClass;
  }

  get tlps(): Float64Array {
    return Float64Array.from(this.classes, ({ tlps }) => tlps);
  }

  get linkBytes(): Float64Array {
    return Float64Array.from(this.classes, ({ linkBytes }) => linkBytes);
  }

  get payloadBytes(): Float64Array {
    return Float64Array.from(this.classes, ({ payloadBytes }) => payloadBytes);
  }
}
