/** FPDUs written by hand, from RFC 5044, 5041 and 5040: shares no code with the card's formats. */

/** CRC32c, bit by bit: polynomial 0x1edc6f41, reflected (RFC 3385). */
function crcOf(bytes: Uint8Array): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0x82f6_3b78 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** Length, segment, pad, CRC with its low byte first. `crcChange` spoils the CRC. */
export function fpduOf(segment: Uint8Array, crcChange = 0): Uint8Array {
  const padded = Math.ceil((2 + segment.length) / 4) * 4;
  const bytes = new Uint8Array(padded + 4);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, segment.length);
  bytes.set(segment, 2);
  view.setUint32(padded, (crcOf(bytes.subarray(0, padded)) ^ crcChange) >>> 0, true);
  return bytes;
}

export interface TaggedFields {
  /** First byte: T, L, DDP version. */
  readonly ddp?: number;
  /** Second byte: RDMAP version and opcode. */
  readonly rdmap?: number;
  readonly tag: number;
  readonly offset: bigint | number;
  readonly payload?: Uint8Array;
}

/** A tagged segment; left out: the last one of a WRITE. */
export function taggedSegment({
  ddp = 0xc1,
  rdmap = 0x40,
  tag,
  offset,
  payload = new Uint8Array(0),
}: TaggedFields): Uint8Array {
  const bytes = new Uint8Array(14 + payload.length);
  const view = new DataView(bytes.buffer);
  bytes.set([ddp, rdmap]);
  view.setUint32(2, tag);
  view.setBigUint64(6, BigInt(offset));
  bytes.set(payload, 14);
  return bytes;
}

export interface UntaggedFields {
  readonly ddp?: number;
  readonly rdmap?: number;
  readonly invalidated?: number;
  readonly queue?: number;
  readonly message?: number;
  readonly messageOffset?: number;
  readonly payload?: Uint8Array;
}

/** An untagged segment; left out: the only one of the first SEND. */
export function untaggedSegment({
  ddp = 0x41,
  rdmap = 0x43,
  invalidated = 0,
  queue = 0,
  message = 1,
  messageOffset = 0,
  payload = new Uint8Array(0),
}: UntaggedFields): Uint8Array {
  const bytes = new Uint8Array(18 + payload.length);
  const view = new DataView(bytes.buffer);
  bytes.set([ddp, rdmap]);
  view.setUint32(2, invalidated);
  view.setUint32(6, queue);
  view.setUint32(10, message);
  view.setUint32(14, messageOffset);
  bytes.set(payload, 18);
  return bytes;
}

/** A READ request of `lengthBytes` bytes. */
export function readSegment(
  tag: number,
  offset: bigint | number,
  lengthBytes: number,
  message = 1,
): Uint8Array {
  const payload = new Uint8Array(28);
  const view = new DataView(payload.buffer);
  view.setUint32(0, 0x1234);
  view.setBigUint64(4, 0x5678n);
  view.setUint32(12, lengthBytes);
  view.setUint32(16, tag);
  view.setBigUint64(20, BigInt(offset));
  return untaggedSegment({ rdmap: 0x41, queue: 1, message, payload });
}

/** Parts of the segment in error that a Terminate quotes: flags M, D and R of RFC 5040, figure 8. */
export type Quoted = 'nothing' | 'header' | 'header and READ';

/** The Terminate of an error, 0xLTCC, about `segment` (RFC 5040, 4.8), as a segment of queue 2. */
export function terminateOf(error: number, quoted: Quoted, segment: Uint8Array): Uint8Array {
  const flags = { nothing: 0, header: 0xc0, 'header and READ': 0xe0 }[quoted];
  const headerBytes = (segment[0]! & 0x80) !== 0 ? 14 : 18;
  const headers = quoted === 'header' ? headerBytes : headerBytes + 28;
  const payload =
    quoted === 'nothing'
      ? Uint8Array.of(error >>> 8, error & 0xff, flags, 0)
      : Uint8Array.of(
          ...[error >>> 8, error & 0xff, flags, 0, segment.length >>> 8, segment.length & 0xff],
          ...segment.subarray(0, headers),
        );
  return untaggedSegment({ rdmap: 0x47, queue: 2, payload });
}
