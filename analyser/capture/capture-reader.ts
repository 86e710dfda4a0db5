/**
 * Reads capture files: pcap (of micro- or nanoseconds) and pcapng, of either byte order.
 *
 * npm has no kept library for it: pcap-ng-parser 1.0.0 and pcap-parser 0.2.1 are readers of one of the two formats each, for streams
 * of Node, and neither writes.
 */
import { viewOf } from '../../base/index.ts';
import {
  BlockType,
  BYTE_ORDER_MAGIC,
  bigEndian,
  type CaptureLayouts,
  littleEndian,
  OptionCode,
  PCAP_MICROSECONDS,
  PCAP_NANOSECONDS,
} from './capture-layouts.ts';

const PS_PER_SECOND = 1_000_000_000_000n;
/** Resolution of a pcapng interface that names none. */
const MICROSECONDS = 6;

interface CaptureInterface {
  /** Number of {@link LinkType}, or of another. */
  readonly linkType: number;
  readonly name: string;
  /** What a unit of time stamps is, as a fraction of a second. */
  readonly unitsPerSecond: bigint;
  /** Packets that its capture did not keep, as far as the file says. */
  droppedPackets: number;
}

interface CapturedFrame {
  /** Place in {@link Capture.interfaces}. */
  readonly interface: number;
  /** Picoseconds since the origin of the file's time stamps. */
  readonly timePs: bigint;
  readonly bytes: Uint8Array;
  /** Bytes that it had on the wire: more than were kept, if the capture cut it. */
  readonly originalBytes: number;
  readonly direction: 'unknown' | 'inbound' | 'outbound';
  readonly comment: string;
}

export interface Capture {
  readonly interfaces: readonly CaptureInterface[];
  readonly frames: readonly CapturedFrame[];
}

/** A file that is no capture, or is cut or damaged: says where. */
export class CaptureError extends Error {
  constructor(atByte: number, reason: string) {
    super(`Not a capture file, at byte ${atByte}: ${reason}.`);
    this.name = 'CaptureError';
  }
}

/** All frames of a file. @throws CaptureError */
export function readCapture(file: Uint8Array): Capture {
  // A Buffer's slices are views: here they are to be copies.
  const bytes = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.length < littleEndian.block.sizeBytes)
    throw new CaptureError(0, `${bytes.length} bytes are too few`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0) === BlockType.SECTION) return new PcapngReader(bytes, view).read();
  for (const layouts of [littleEndian, bigEndian]) {
    const magic = layouts.block.fields.type.get(view, 0);
    if (magic === PCAP_NANOSECONDS) return readPcap(bytes, layouts, 9);
    if (magic === PCAP_MICROSECONDS) return readPcap(bytes, layouts, MICROSECONDS);
  }
  throw new CaptureError(0, 'neither the first word of pcap nor that of pcapng');
}

function readPcap(bytes: Uint8Array, layouts: CaptureLayouts, decimals: number): Capture {
  const { fileHeader, recordHeader } = layouts;
  if (bytes.length < fileHeader.sizeBytes) throw new CaptureError(bytes.length, 'cut within the file header');
  const unitsPerSecond = 10n ** BigInt(decimals);
  const linkType = fileHeader.decode(bytes).linkType & 0xffff;
  const frames: CapturedFrame[] = [];
  for (let at = fileHeader.sizeBytes; at < bytes.length; ) {
    const start = at + recordHeader.sizeBytes;
    if (start > bytes.length) throw new CaptureError(at, 'cut within a record header');
    const { seconds, fraction, capturedLength, originalLength } = recordHeader.decode(bytes, at);
    if (capturedLength > bytes.length - start)
      throw new CaptureError(at, `cut within a frame of ${capturedLength} bytes`);
    at = start + capturedLength;
    const timePs = BigInt(seconds) * PS_PER_SECOND + (BigInt(fraction) * PS_PER_SECOND) / unitsPerSecond;
    const frame = bytes.slice(start, at);
    frames.push({
      interface: 0,
      timePs,
      bytes: frame,
      originalBytes: originalLength,
      direction: 'unknown',
      comment: '',
    });
  }
  return { interfaces: [{ linkType, name: '', unitsPerSecond, droppedPackets: 0 }], frames };
}

interface Option {
  readonly code: number;
  readonly value: Uint8Array;
}

const DIRECTIONS = ['unknown', 'inbound', 'outbound', 'unknown'] as const;
const text = new TextDecoder();

class PcapngReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #layouts = littleEndian;
  readonly #interfaces: CaptureInterface[] = [];
  /** Interfaces of sections that have ended. */
  #firstInterface = 0;
  readonly #frames: CapturedFrame[] = [];

  constructor(bytes: Uint8Array, view: DataView) {
    this.#bytes = bytes;
    this.#view = view;
  }

  read(): Capture {
    for (let at = 0; at < this.#bytes.length; ) at += this.#block(at);
    return { interfaces: this.#interfaces, frames: this.#frames };
  }

  /** Reads the block at `at`; returns its length. */
  #block(at: number): number {
    const room = this.#bytes.length - at;
    if (room < 12) throw new CaptureError(at, 'cut within a block');
    if (this.#view.getUint32(at) === BlockType.SECTION) this.#beginSection(at);
    const { type, length } = this.#layouts.block.decode(this.#bytes, at);
    if (length < 12 || length % 4 !== 0 || length > room)
      throw new CaptureError(at, `a block of ${length} bytes`);
    const end = at + length - 4;
    if (type === BlockType.INTERFACE) this.#interface(at, end);
    else if (type === BlockType.PACKET) this.#packet(at, end);
    else if (type === BlockType.INTERFACE_STATISTICS) this.#statistics(at, end);
    else if (type === BlockType.SIMPLE_PACKET)
      throw new CaptureError(at, 'a simple packet block has no time');
    return length;
  }

  #beginSection(at: number): void {
    const magic = this.#view.getUint32(at + 8, true);
    this.#layouts = magic === BYTE_ORDER_MAGIC ? littleEndian : bigEndian;
    if (this.#view.getUint32(at + 8, this.#layouts.isLittle) !== BYTE_ORDER_MAGIC)
      throw new CaptureError(at + 8, 'no byte-order magic');
    this.#firstInterface = this.#interfaces.length;
  }

  #interface(at: number, end: number): void {
    const { interface: layout } = this.#layouts;
    this.#needs(at, layout.sizeBytes, end);
    const options = this.#options(at + layout.sizeBytes, end);
    const name = optionOf(options, OptionCode.INTERFACE_NAME);
    const resolution = optionOf(options, OptionCode.INTERFACE_RESOLUTION)?.[0] ?? MICROSECONDS;
    const exponent = BigInt(resolution & 0x7f);
    this.#interfaces.push({
      linkType: layout.decode(this.#bytes, at).linkType,
      name: name === undefined ? '' : text.decode(name),
      unitsPerSecond: (resolution & 0x80) === 0 ? 10n ** exponent : 2n ** exponent,
      droppedPackets: 0,
    });
  }

  /** Of several blocks of an interface the last counts: what they say is since the capture began. */
  #statistics(at: number, end: number): void {
    const { statistics, isLittle } = this.#layouts;
    this.#needs(at, statistics.sizeBytes, end);
    const of = this.#interfaces[this.#firstInterface + statistics.decode(this.#bytes, at).interface];
    const dropped = optionOf(this.#options(at + statistics.sizeBytes, end), OptionCode.STATISTICS_DROPPED);
    if (of === undefined || dropped?.length !== 8) return;
    of.droppedPackets = Number(viewOf(dropped).getBigUint64(0, isLittle));
  }

  #packet(at: number, end: number): void {
    const { packet, isLittle } = this.#layouts;
    this.#needs(at, packet.sizeBytes, end);
    const header = packet.decode(this.#bytes, at);
    const number = this.#firstInterface + header.interface;
    const from = this.#interfaces[number];
    if (from === undefined)
      throw new CaptureError(at, `interface ${header.interface}, which was not described`);
    const start = at + packet.sizeBytes;
    if (header.capturedLength > end - start)
      throw new CaptureError(at, `a frame of ${header.capturedLength} bytes`);
    const units = (BigInt(header.timeHigh) << 32n) | BigInt(header.timeLow);
    const options = this.#options(start + ((header.capturedLength + 3) & ~3), end);
    const flags = optionOf(options, OptionCode.PACKET_FLAGS);
    const comment = optionOf(options, OptionCode.COMMENT);
    const direction = flags === undefined || flags.length < 4 ? 0 : flags[isLittle ? 0 : 3]! & 3;
    this.#frames.push({
      interface: number,
      timePs: (units * PS_PER_SECOND) / from.unitsPerSecond,
      bytes: this.#bytes.slice(start, start + header.capturedLength),
      originalBytes: header.originalLength,
      direction: DIRECTIONS[direction]!,
      comment: comment === undefined ? '' : text.decode(comment),
    });
  }

  #needs(at: number, bytes: number, end: number): void {
    if (at + bytes > end) throw new CaptureError(at, 'a block too short for its type');
  }

  #options(from: number, end: number): Option[] {
    const options: Option[] = [];
    const { option } = this.#layouts;
    for (let at = from; at + option.sizeBytes <= end; ) {
      const { code, length } = option.decode(this.#bytes, at);
      const start = at + option.sizeBytes;
      if (code === OptionCode.END) break;
      if (length > end - start) throw new CaptureError(at, `an option of ${length} bytes`);
      options.push({ code, value: this.#bytes.subarray(start, start + length) });
      at = start + ((length + 3) & ~3);
    }
    return options;
  }
}

const optionOf = (options: readonly Option[], code: number): Uint8Array | undefined =>
  options.find((option) => option.code === code)?.value;
