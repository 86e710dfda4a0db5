/**
 * MPA in one direction of a stream, as a stranger reads it: a request or reply, then FPDUs with a marker at each multiple of 512 bytes or none.
 *
 *     key 16 │ M C R S │ revision │ length │ [ IRD, ORD ] private data │ FPDU: [marker] length │ DDP segment │ zeros to 4 │ CRC32c │ FPDU …
 *
 * Sources: RFC 5044, 4 and 7.1; RFC 6581, 9; RFC 3385 (CRC32c).
 */

export interface MpaFrame {
  readonly isReply: boolean;
  readonly wantsMarkers: boolean;
  readonly wantsCrc: boolean;
  readonly isRejected: boolean;
  readonly revision: number;
  /** IRD and ORD of its sender; undefined in revision 1. */
  readonly reads: { readonly inbound: number; readonly outbound: number } | undefined;
  readonly isPeerToPeer: boolean;
  readonly bytes: number;
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
const headBytes = 20;
const privateBytesMax = 512;

/** Reads a request or reply, and adds its errors to `wrong`. @returns undefined while bytes of it are missing */
export function mpaFrameOf(bytes: Uint8Array, isReply: boolean, wrong: string[]): MpaFrame | undefined {
  if (bytes.length < headBytes) return undefined;
  const key = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  const due = isReply ? 'MPA ID Rep Frame' : 'MPA ID Req Frame';
  if (key !== due) {
    wrong.push(`it begins with ${JSON.stringify(key)}, not with ${due}`);
    return undefined;
  }
  const [flags, revision] = [bytes[16]!, bytes[17]!];
  const view = viewOf(bytes);
  const privateBytes = view.getUint16(18);
  const isEnhanced = (flags & 0x10) !== 0;
  if (revision < 1 || revision > 2) wrong.push(`revision ${revision} of MPA`);
  if ((flags & 0xf) !== 0) wrong.push('reserved flags of MPA');
  if (isEnhanced !== (revision === 2)) wrong.push(`flag S in revision ${revision}`);
  if (privateBytes > privateBytesMax || (isEnhanced && privateBytes < 4))
    wrong.push(`${privateBytes} bytes of private data`);
  if (!isReply && (flags & 0x20) !== 0) wrong.push('a request that rejects');
  const length = headBytes + privateBytes;
  if (bytes.length < length) return undefined;
  const words = isEnhanced && privateBytes >= 4 ? [view.getUint16(20), view.getUint16(22)] : undefined;
  return {
    isReply,
    wantsMarkers: (flags & 0x80) !== 0,
    wantsCrc: (flags & 0x40) !== 0,
    isRejected: (flags & 0x20) !== 0,
    revision,
    reads: words && { inbound: words[0]! & 0x3fff, outbound: words[1]! & 0x3fff },
    isPeerToPeer: words !== undefined && (words[0]! & 0x8000) !== 0,
    bytes: length,
  };
}

/** A DDP segment, and the places of its FPDU in the stream. */
export interface Fpdu {
  readonly segment: Uint8Array;
  readonly from: number;
  readonly end: number;
}

const markerDistance = 512;
const markerBytes = 4;
const crcBytes = 4;

/** The whole FPDUs of a direction whose first byte is at `start`. */
export function fpdusOf(
  bytes: Uint8Array,
  start: number,
  { hasMarkers, hasCrc }: { readonly hasMarkers: boolean; readonly hasCrc: boolean },
  wrong: string[],
): Fpdu[] {
  const fpdus: Fpdu[] = [];
  for (let from = start; from < bytes.length; ) {
    const reader = new FpduReader(bytes, from, hasMarkers ? start : undefined);
    const segment = reader.read(hasCrc, wrong);
    if (segment === undefined || wrong.length > 0) break;
    fpdus.push({ segment, from, end: reader.at });
    from = reader.at;
  }
  return fpdus;
}

/** Reads one FPDU, with the markers among its bytes. */
class FpduReader {
  at: number;
  readonly #bytes: Uint8Array;
  readonly #from: number;
  /** Place from which markers are counted; undefined without markers. */
  readonly #origin: number | undefined;
  /** Place of the length. */
  #lengthAt: number | undefined;

  constructor(bytes: Uint8Array, from: number, origin: number | undefined) {
    this.#bytes = bytes;
    this.#from = from;
    this.at = from;
    this.#origin = origin;
  }

  /** @returns its segment; undefined if it is not whole, or wrong */
  read(hasCrc: boolean, wrong: string[]): Uint8Array | undefined {
    const length = this.#take(2, wrong);
    if (length === undefined) return undefined;
    const segmentBytes = length[0]! * 256 + length[1]!;
    const segment = this.#take(segmentBytes, wrong);
    const pad = this.#take((4 - ((2 + segmentBytes) % 4)) % 4, wrong);
    if (segment === undefined || pad === undefined) return undefined;
    if (pad.some((byte) => byte !== 0)) wrong.push('padding of an FPDU other than zeros');
    // A marker in front of the CRC is covered by it.
    if (!this.#passMarker(wrong)) return undefined;
    const coveredEnd = this.at;
    if (coveredEnd + crcBytes > this.#bytes.length) return undefined;
    const crc = viewOf(this.#bytes).getUint32(coveredEnd, true);
    const due = crc32cOf(this.#bytes.subarray(this.#from, coveredEnd));
    if (hasCrc && crc !== due)
      wrong.push(
        `the CRC of the FPDU at place ${this.#from} is 0x${crc.toString(16)}, due 0x${due.toString(16)}`,
      );
    this.at += crcBytes;
    return segment;
  }

  #take(count: number, wrong: string[]): Uint8Array | undefined {
    const taken = new Uint8Array(count);
    for (let done = 0; done < count; ) {
      if (!this.#passMarker(wrong)) return undefined;
      this.#lengthAt ??= this.at;
      const untilMarker =
        this.#origin === undefined ? count : markerDistance - ((this.at - this.#origin) % markerDistance);
      const run = Math.min(count - done, untilMarker);
      if (this.at + run > this.#bytes.length) return undefined;
      taken.set(this.#bytes.subarray(this.at, this.at + run), done);
      this.at += run;
      done += run;
    }
    return taken;
  }

  /** @returns false if a marker is due that is not whole */
  #passMarker(wrong: string[]): boolean {
    if (this.#origin === undefined || (this.at - this.#origin) % markerDistance !== 0) return true;
    if (this.at + markerBytes > this.#bytes.length) return false;
    const marker = viewOf(this.#bytes).getUint32(this.at);
    const due = this.#lengthAt === undefined ? 0 : this.at - this.#lengthAt;
    if (marker !== due) wrong.push(`the marker at place ${this.at} is 0x${marker.toString(16)}, due ${due}`);
    this.at += markerBytes;
    return true;
  }
}

/** By the low byte of the register: the polynomial 0x1edc6f41, its bits reversed. */
const crcOfByte = Uint32Array.from({ length: 256 }, (_, byte) => {
  let register = byte;
  for (let bit = 0; bit < 8; bit++) register = (register >>> 1) ^ ((register & 1) === 1 ? 0x82f6_3b78 : 0);
  return register >>> 0;
});

function crc32cOf(bytes: Uint8Array): number {
  let register = 0xffff_ffff;
  for (const byte of bytes) register = (register >>> 8) ^ crcOfByte[(register ^ byte) & 0xff]!;
  return ~register >>> 0;
}
