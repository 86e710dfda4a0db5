/**
 * Capture files assembled byte by byte from their format descriptions, without the project's writer:
 * draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
 */

/** Bytes of a file, in one byte order. */
export class FileBytes {
  readonly #bytes: number[] = [];
  readonly #isLittle: boolean;

  constructor(isLittle: boolean) {
    this.#isLittle = isLittle;
  }

  word(value: number, size: 2 | 4): this {
    const bytes = Array.from({ length: size }, (_, index) => Math.floor(value / 2 ** (8 * index)) % 256);
    this.#bytes.push(...(this.#isLittle ? bytes : bytes.reverse()));
    return this;
  }

  words(...values: readonly number[]): this {
    for (const value of values) this.word(value, 4);
    return this;
  }

  raw(bytes: Iterable<number>): this {
    for (const byte of bytes) this.#bytes.push(byte);
    return this;
  }

  /** A block of pcapng; its body is padded. */
  block(type: number, body: FileBytes | readonly number[]): this {
    const content = body instanceof FileBytes ? body.#bytes : body;
    const padding = (4 - (content.length % 4)) % 4;
    const length = 12 + content.length + padding;
    return this.words(type, length).raw(content).raw(new Array<number>(padding).fill(0)).words(length);
  }

  get done(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.#bytes);
  }
}

export interface PcapFrame {
  readonly bytes: Uint8Array;
  readonly wireBytes?: number;
}

/** A file of pcap with microseconds. */
export function pcapFile(linkType: number, frames: readonly PcapFrame[], isLittle = true): Uint8Array {
  const file = new FileBytes(isLittle)
    .words(0xa1b2_c3d4)
    .word(2, 2)
    .word(4, 2)
    .words(0, 0, 262_144, linkType);
  frames.forEach(({ bytes, wireBytes = bytes.length }, index) => {
    file.words(1, index, bytes.length, wireBytes).raw(bytes);
  });
  return file.done;
}

/** Section header of pcapng. */
export const sectionHeader = (isLittle: boolean): FileBytes =>
  new FileBytes(isLittle).block(
    0x0a0d_0d0a,
    new FileBytes(isLittle).words(0x1a2b_3c4d).word(1, 2).word(0, 2).words(0xffff_ffff, 0xffff_ffff),
  );

/** Body of an interface description of pcapng, with options. */
export const interfaceBody = (
  isLittle: boolean,
  linkType: number,
  options: Iterable<number> = [],
): FileBytes => new FileBytes(isLittle).word(linkType, 2).word(0, 2).words(262_144).raw(options);
