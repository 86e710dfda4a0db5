/**
 * Offloads to apply to the frames of send records on transmission, by record: the tag to insert, the checksums to
 * compute, the segments to cut. Read from the WQE once, when it is started (frame-decoder.ts).
 */
export class FrameOffloads {
  /** Control information of the tag to insert; -1 for none. */
  readonly tag: Int32Array;
  /** Ethertype of that tag. */
  readonly tagType: Int32Array;
  readonly hasIpChecksum: Uint8Array;
  readonly hasL4Checksum: Uint8Array;
  /**
   * Payload bytes of each frame of an LSO but the last, and the bytes of its headers, with which the record's inline
   * data begins.
   */
  readonly segmentBytes: Int32Array;
  readonly headerBytes: Int32Array;

  constructor(capacity: number) {
    this.tag = new Int32Array(capacity);
    this.tagType = new Int32Array(capacity);
    this.hasIpChecksum = new Uint8Array(capacity);
    this.hasL4Checksum = new Uint8Array(capacity);
    this.segmentBytes = new Int32Array(capacity);
    this.headerBytes = new Int32Array(capacity);
  }
}
