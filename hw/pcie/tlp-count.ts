/** Books of TLPs: how many, and their bytes. */

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

  /** Adds so many TLPs, by the bytes of them all. */
  addAll(tlps: number, linkBytes: number, payloadBytes: number): void {
    this.tlps += tlps;
    this.linkBytes += linkBytes;
    this.payloadBytes += payloadBytes;
  }
}

/** TLPs and bytes by traffic class. */
export class TrafficCount {
  readonly classes: readonly TlpCount[];

  constructor(trafficClassCount: number) {
    this.classes = Array.from({ length: trafficClassCount }, () => new TlpCount());
  }

  add(trafficClass: number, linkBytes: number, payloadBytes: number): void {
    this.classes[trafficClass]!.add(linkBytes, payloadBytes);
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
