/**
 * Ethernet frames in the stream format of QEMU's `-netdev stream`: four bytes of length, highest first, and the frame without
 * its check sequence. Cuts the received bytes into frames, in place.
 *
 *     │ read already │ a frame │ a frame │ half a fra… │ free │
 *                    ▲ start                           ▲ end
 *
 * Source: QEMU, net/stream.c and net/net.c.
 */
import { layout, u32, viewOf } from '../../../base/index.ts';

/** Bytes before each frame. */
const prefix = layout(
  'prefix of a frame',
  { sizeBytes: 4, byteOrder: 'big', source: 'QEMU net/net.c' },
  { lengthBytes: u32(0) },
);
export const PREFIX_BYTES = prefix.sizeBytes;
/** The longest frame that QEMU sends or accepts: NET_BUFSIZE. */
export const FRAME_BYTES_MAX = 4096 + 65_536;

const BUFFER_BYTES = 4 * (PREFIX_BYTES + FRAME_BYTES_MAX);

export const FRAME_WHOLE = 1;
export const FRAME_PARTIAL = 0;
/** The length exceeds any frame: the rest of the stream is meaningless. */
export const FRAME_IMPOSSIBLE = -1;

/** Writes the prefix of a frame. */
export function writePrefix(lengthBytes: number, into: Uint8Array, at: number): void {
  prefix.fields.lengthBytes.set(viewOf(into), at, lengthBytes);
}

export class FrameStream {
  readonly bytes = new Uint8Array(new ArrayBuffer(BUFFER_BYTES));
  readonly #view = viewOf(this.bytes);
  #start = 0;
  #end = 0;

  /** Offset for the next bytes read: at least a frame has room there. */
  get roomAt(): number {
    if (this.#start > 0) {
      this.bytes.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    return this.#end;
  }

  get roomBytes(): number {
    return BUFFER_BYTES - this.#end;
  }

  /** This many bytes were read to {@link roomAt}. */
  filled(count: number): void {
    this.#end += count;
  }

  /** The received part of the next frame. */
  get next(): typeof FRAME_WHOLE | typeof FRAME_PARTIAL | typeof FRAME_IMPOSSIBLE {
    const heldBytes = this.#end - this.#start;
    if (heldBytes < PREFIX_BYTES) return FRAME_PARTIAL;
    const { frameBytes } = this;
    if (frameBytes > FRAME_BYTES_MAX) return FRAME_IMPOSSIBLE;
    return heldBytes < PREFIX_BYTES + frameBytes ? FRAME_PARTIAL : FRAME_WHOLE;
  }

  /** Offset in {@link bytes} and length of the next frame, if it is complete. */
  get frameAt(): number {
    return this.#start + PREFIX_BYTES;
  }

  get frameBytes(): number {
    return prefix.fields.lengthBytes.get(this.#view, this.#start);
  }

  /** The next frame was processed. */
  pop(): void {
    this.#start += PREFIX_BYTES + this.frameBytes;
  }

  /** Another stream begins. */
  clear(): void {
    this.#start = 0;
    this.#end = 0;
  }
}
