/**
 * Reads a capture file piece by piece: pcap (of micro- or nanoseconds) and pcapng, of either byte order, of any size.
 *
 * It holds one record at a time. If a file is cut or damaged, it delivers all frames before that place and reports what
 * it could not read.
 *
 * npm has no maintained library for it: pcap-ng-parser 1.0.0 and pcap-parser 0.2.1 each read one of the two formats
 * from Node streams, and neither writes.
 */
import { viewOf } from '../../base/index.ts';
import {
  BlockType,
  BYTE_ORDER_MAGIC,
  bigEndian,
  blocksWithoutPackets,
  type CaptureLayouts,
  littleEndian,
  OptionCode,
  PCAP_MICROSECONDS,
  PCAP_NANOSECONDS,
} from './capture-layouts.ts';

const PS_PER_SECOND = 1_000_000_000_000n;
/** Resolution of a pcapng interface that states none. */
const MICROSECONDS = 6;
/** Longest record that is read: libpcap's own bound for a frame is 256 KiB. */
const RECORD_BYTES_MAX = 16 * 2 ** 20;
/** Greatest number of problems that are kept; further ones are only counted. */
const PROBLEMS_MAX = 16;
/** Greatest number of interfaces read, over all sections; frames of further interfaces are reported as problems. */
const INTERFACES_MAX = 65_536;
/** Greatest number of options read per block: each becomes an object, and a block of 16 MiB may claim four million. */
const OPTIONS_MAX = 1024;
const BLOCK_BYTES_MIN = 12;
const SECTION_BYTES_MIN = 28;
const WORD_BYTES = 4;

export interface CaptureInterface {
  /** A {@link LinkType}, or another number. */
  readonly linkType: number;
  readonly name: string;
  /** Unit of time stamps, as a fraction of a second. */
  readonly unitsPerSecond: bigint;
  /** Bytes kept of each frame; 0: all. */
  readonly snapBytes: number;
  /** Added to each time stamp. */
  readonly offsetPs: bigint;
  /** Packets that the capturing program dropped, as far as the file says. */
  droppedPackets: number;
}

export interface CapturedFrame {
  /** Index into {@link CaptureStream.interfaces}. */
  readonly interface: number;
  /** Picoseconds since the origin of the file's time stamps. */
  readonly timePs: bigint;
  readonly bytes: Uint8Array;
  /** Bytes on the wire: more than were kept, if the capture cut the frame. */
  readonly originalBytes: number;
  readonly direction: 'unknown' | 'inbound' | 'outbound';
  readonly comment: string;
}

/** A place of a file that cannot be read. */
export interface CaptureProblem {
  readonly atByte: number;
  readonly reason: string;
  /** Whether the file is not a capture at all. */
  readonly isNoCapture: boolean;
}

interface Option {
  readonly code: number;
  readonly value: Uint8Array;
}

type Format = 'unknown' | 'pcap' | 'pcapng' | 'unreadable';

const DIRECTIONS = ['unknown', 'inbound', 'outbound', 'unknown'] as const;
const text = new TextDecoder();

/** First bytes of files that contain a capture which another program must unpack first. */
const strangers: readonly (readonly [bytes: readonly number[], reason: string])[] = [
  [[0x1f, 0x8b], 'compressed by gzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed by zstd'],
  [[0x04, 0x22, 0x4d, 0x18], 'compressed by lz4'],
  [[0xfd, 0x37, 0x7a, 0x58], 'compressed by xz'],
  [[0x42, 0x5a, 0x68], 'compressed by bzip2'],
  [[0x73, 0x6e, 0x6f, 0x6f], "a file of Solaris' snoop"],
  [[0x47, 0x4d, 0x42, 0x55], "a file of Microsoft's Network Monitor"],
  [[0x34, 0xcd, 0xb2, 0xa1], "Kuznetsov's variant of pcap"],
  [[0xa1, 0xb2, 0xcd, 0x34], "Kuznetsov's variant of pcap"],
];

export class CaptureStream {
  readonly interfaces: CaptureInterface[] = [];
  /** The first problems, in the order of their places in the file. */
  readonly problems: CaptureProblem[] = [];
  problemCount = 0;
  /** Number of skipped blocks without packets, by name. */
  readonly skippedBlocks = new Map<string, number>();
  /** Frames without a time stamp in the file: they receive that of the preceding frame. */
  untimedFrames = 0;
  frameCount = 0;

  readonly #onFrame: (frame: CapturedFrame, from: CaptureInterface) => void;
  #format: Format = 'unknown';
  #layouts: CaptureLayouts = littleEndian;
  /** Bytes read so far of an incomplete record, and its place in the file. */
  #bytes = new Uint8Array(0);
  #place = 0;
  /** Bytes still to skip of a long block. */
  #skipBytes = 0;
  /** Interfaces of sections that have ended. */
  #firstInterface = 0;
  #lastTimePs = 0n;

  /** @param onFrame called with each frame, in file order; it may keep the bytes */
  constructor(onFrame: (frame: CapturedFrame, from: CaptureInterface) => void) {
    this.#onFrame = onFrame;
  }

  /** False once nothing more can be read. */
  get isReadable(): boolean {
    return this.#format !== 'unreadable';
  }

  push(chunk: Uint8Array): void {
    if (!this.isReadable) return;
    const skipped = Math.min(this.#skipBytes, chunk.length);
    this.#skipBytes -= skipped;
    this.#place += skipped;
    this.#bytes = joined(this.#bytes, chunk.subarray(skipped));
    let at = 0;
    for (let taken = this.#take(at); taken > 0; taken = this.#take(at)) at += taken;
    const rest = Math.min(at, this.#bytes.length);
    this.#skipBytes += at - rest;
    this.#place += rest;
    this.#bytes = this.#bytes.slice(rest);
  }

  /**
   * Ends the file here.
   * @param damage why the rest is unavailable
   */
  end(damage?: string): void {
    if (damage !== undefined) this.#problem(this.#bytes.length, damage);
    if (!this.isReadable) return;
    const { length } = this.#bytes;
    if (this.#format === 'unknown') this.#stop(0, `${length} bytes are too few`, true);
    else if (length > 0)
      this.#stop(0, `the file is cut within ${this.#nameOfCut()}, of which it has ${length} bytes`);
    else if (this.#skipBytes > 0)
      this.#stop(0, `the file is cut within a block, ${this.#skipBytes} bytes before the end of the block`);
    else if (this.#format === 'pcap' && this.interfaces.length === 0)
      this.#stop(0, 'the file is cut within the file header');
  }

  #nameOfCut(): string {
    if (this.#format === 'pcapng') return 'a block';
    if (this.interfaces.length === 0) return 'the file header';
    const { recordHeader } = this.#layouts;
    if (this.#bytes.length < recordHeader.sizeBytes) return 'a record header';
    return `a record with ${recordHeader.decode(this.#bytes).capturedLength} bytes of a frame`;
  }

  /**
   * Reads the record that begins at `at`.
   * @returns its length, or 0 until it is complete
   */
  #take(at: number): number {
    if (this.#format === 'unknown') this.#recognize();
    if (this.#format === 'pcap')
      return this.interfaces.length === 0 ? this.#fileHeader(at) : this.#record(at);
    return this.#format === 'pcapng' ? this.#block(at) : 0;
  }

  #recognize(): void {
    const bytes = this.#bytes;
    if (bytes.length < WORD_BYTES) return;
    const magic = viewOf(bytes).getUint32(0);
    const isPcap = (layouts: CaptureLayouts): boolean => {
      const word = layouts.block.fields.type.get(viewOf(bytes), 0);
      return word === PCAP_NANOSECONDS || word === PCAP_MICROSECONDS;
    };
    const layouts = [littleEndian, bigEndian].find(isPcap);
    const stranger = strangers.find(([first]) => first.every((byte, index) => bytes[index] === byte));
    if (magic === BlockType.SECTION) this.#format = 'pcapng';
    else if (layouts !== undefined) [this.#format, this.#layouts] = ['pcap', layouts];
    else this.#stop(0, stranger?.[1] ?? 'neither the first word of pcap nor that of pcapng', true);
  }

  // ---- pcap ----

  #fileHeader(at: number): number {
    const { fileHeader } = this.#layouts;
    if (this.#bytes.length - at < fileHeader.sizeBytes) return 0;
    const { magic, linkType, snapLength } = fileHeader.decode(this.#bytes, at);
    const unitsPerSecond = magic === PCAP_NANOSECONDS ? 1_000_000_000n : 1_000_000n;
    this.interfaces.push({
      linkType: linkType & 0xffff,
      name: '',
      unitsPerSecond,
      snapBytes: snapLength,
      offsetPs: 0n,
      droppedPackets: 0,
    });
    return fileHeader.sizeBytes;
  }

  #record(at: number): number {
    const { recordHeader } = this.#layouts;
    const start = at + recordHeader.sizeBytes;
    if (this.#bytes.length < start) return 0;
    const { seconds, fraction, capturedLength, originalLength } = recordHeader.decode(this.#bytes, at);
    if (capturedLength > RECORD_BYTES_MAX) return this.#stop(at, `a frame of ${capturedLength} bytes`);
    if (this.#bytes.length - start < capturedLength) return 0;
    const [from] = this.interfaces;
    const end = start + capturedLength;
    this.#deliver(from!, 0, {
      timePs: BigInt(seconds) * PS_PER_SECOND + (BigInt(fraction) * PS_PER_SECOND) / from!.unitsPerSecond,
      bytes: this.#bytes.slice(start, end),
      originalBytes: originalLength,
      direction: 'unknown',
      comment: '',
    });
    return end - at;
  }

  // ---- pcapng ----

  /** Reads a block; skips a block without packets and does not store it. */
  #block(at: number): number {
    const room = this.#bytes.length - at;
    if (room < BLOCK_BYTES_MIN) return 0;
    const isSection = viewOf(this.#bytes).getUint32(at) === BlockType.SECTION;
    if (isSection && !this.#readByteOrder(at)) return 0;
    const { type, length } = this.#layouts.block.decode(this.#bytes, at);
    const least = isSection ? SECTION_BYTES_MIN : BLOCK_BYTES_MIN;
    if (length < least || length % WORD_BYTES !== 0) return this.#stop(at, `a block of ${length} bytes`);
    const name = blocksWithoutPackets[type];
    if (name !== undefined) {
      this.skippedBlocks.set(name, (this.skippedBlocks.get(name) ?? 0) + 1);
      return length;
    }
    if (!readBlocks.has(type)) {
      this.#problem(at, `a block of unknown type 0x${type.toString(16)}: not read`);
      return length;
    }
    if (length > RECORD_BYTES_MAX) return this.#stop(at, `a block of ${length} bytes`);
    if (length > room) return 0;
    const end = at + length - WORD_BYTES;
    if (this.#layouts.block.fields.type.get(viewOf(this.#bytes), end) !== length)
      return this.#stop(at, `a block of ${length} bytes at its beginning and of another length at its end`);
    const problem = this.#readBlock(type, at, end);
    if (problem !== undefined) this.#problem(at, problem);
    return this.isReadable ? length : 0;
  }

  /** @returns the error, if any */
  #readBlock(type: number, at: number, end: number): string | undefined {
    switch (type) {
      case BlockType.SECTION:
        return this.#beginSection(at);
      case BlockType.INTERFACE:
        return this.#interface(at, end);
      case BlockType.INTERFACE_STATISTICS:
        return this.#statistics(at, end);
      case BlockType.SIMPLE_PACKET:
        return this.#simplePacket(at, end);
      default:
        return this.#packet(type, at, end);
    }
  }

  /** False if a section header does not state its byte order. */
  #readByteOrder(at: number): boolean {
    const view = viewOf(this.#bytes);
    const layouts = [littleEndian, bigEndian].find(
      ({ isLittle }) => view.getUint32(at + 8, isLittle) === BYTE_ORDER_MAGIC,
    );
    if (layouts === undefined) this.#stop(at, 'no byte-order magic');
    else this.#layouts = layouts;
    return layouts !== undefined;
  }

  #beginSection(at: number): undefined {
    const { major, minor } = this.#layouts.section.decode(this.#bytes, at);
    if (major !== 1) this.#stop(at, `version ${major}.${minor} of pcapng`);
    this.#firstInterface = this.interfaces.length;
  }

  #interface(at: number, end: number): string | undefined {
    const { interface: layout, isLittle } = this.#layouts;
    if (at + layout.sizeBytes > end) return tooShort;
    if (this.interfaces.length === INTERFACES_MAX) return `an interface after the first ${INTERFACES_MAX}`;
    const { linkType, snapLength } = layout.decode(this.#bytes, at);
    const options = this.#options(at + layout.sizeBytes, end);
    const name = optionOf(options, OptionCode.INTERFACE_NAME);
    const resolution = optionOf(options, OptionCode.INTERFACE_RESOLUTION)?.[0] ?? MICROSECONDS;
    const exponent = BigInt(resolution & 0x7f);
    const offset = optionOf(options, OptionCode.INTERFACE_TIME_OFFSET);
    this.interfaces.push({
      linkType,
      name: name === undefined ? '' : text.decode(name),
      unitsPerSecond: (resolution & 0x80) === 0 ? 10n ** exponent : 2n ** exponent,
      snapBytes: snapLength,
      offsetPs: offset?.length === 8 ? viewOf(offset).getBigInt64(0, isLittle) * PS_PER_SECOND : 0n,
      droppedPackets: 0,
    });
    return problemIn(options);
  }

  /** Counts since the capture began. If an interface has several such blocks, the last one is valid. */
  #statistics(at: number, end: number): string | undefined {
    const { statistics, isLittle } = this.#layouts;
    if (at + statistics.sizeBytes > end) return tooShort;
    const number = statistics.decode(this.#bytes, at).interface;
    const of = this.interfaces[this.#firstInterface + number];
    if (of === undefined) return undescribed(number);
    const options = this.#options(at + statistics.sizeBytes, end);
    const counts = [OptionCode.STATISTICS_DROPPED, OptionCode.STATISTICS_DROPPED_BY_SYSTEM]
      .map((code) => optionOf(options, code))
      .filter((value) => value?.length === 8)
      .map((value) => Number(viewOf(value!).getBigUint64(0, isLittle)));
    if (counts.length > 0) of.droppedPackets = counts.reduce((sum, count) => sum + count, 0);
    return problemIn(options);
  }

  #packet(type: number, at: number, end: number): string | undefined {
    const { packet, obsoletePacket, isLittle } = this.#layouts;
    const start = at + packet.sizeBytes;
    if (start > end) return tooShort;
    const isObsolete = type === BlockType.OBSOLETE_PACKET;
    const header = (isObsolete ? obsoletePacket : packet).decode(this.#bytes, at);
    const number = this.#firstInterface + header.interface;
    const from = this.interfaces[number];
    if (from === undefined) return undescribed(header.interface);
    if (header.capturedLength > end - start) return `a frame of ${header.capturedLength} bytes`;
    const { drops } = isObsolete ? obsoletePacket.decode(this.#bytes, at) : { drops: 0 };
    if (drops !== 0xffff) from.droppedPackets += drops;
    const units = (BigInt(header.timeHigh) << 32n) | BigInt(header.timeLow);
    const options = this.#options(start + ((header.capturedLength + 3) & ~3), end);
    const flags = optionOf(options, OptionCode.PACKET_FLAGS);
    const direction = flags === undefined || flags.length < WORD_BYTES ? 0 : flags[isLittle ? 0 : 3]! & 3;
    const comments = options.filter(({ code }) => code === OptionCode.COMMENT);
    this.#deliver(from, number, {
      timePs: from.offsetPs + (units * PS_PER_SECOND) / from.unitsPerSecond,
      bytes: this.#bytes.slice(start, start + header.capturedLength),
      originalBytes: header.originalLength,
      direction: DIRECTIONS[direction]!,
      comment: comments.map(({ value }) => text.decode(value)).join('; '),
    });
    return problemIn(options);
  }

  /** A simple packet belongs to the first interface of the section and has no time stamp. */
  #simplePacket(at: number, end: number): string | undefined {
    const { simplePacket } = this.#layouts;
    const start = at + simplePacket.sizeBytes;
    if (start > end) return tooShort;
    const { originalLength } = simplePacket.decode(this.#bytes, at);
    const from = this.interfaces[this.#firstInterface];
    if (from === undefined) return undescribed(0);
    const most = from.snapBytes === 0 ? end - start : Math.min(from.snapBytes, end - start);
    this.untimedFrames++;
    this.#deliver(from, this.#firstInterface, {
      timePs: this.#lastTimePs,
      bytes: this.#bytes.slice(start, start + Math.min(originalLength, most)),
      originalBytes: originalLength,
      direction: 'unknown',
      comment: '',
    });
    return undefined;
  }

  #options(from: number, end: number): Option[] {
    const options: Option[] = [];
    const { option } = this.#layouts;
    for (let at = from; at + option.sizeBytes <= end; ) {
      const { code, length } = option.decode(this.#bytes, at);
      const start = at + option.sizeBytes;
      if (code === OptionCode.END) break;
      if (options.length === OPTIONS_MAX) {
        options.push({ code: TOO_MANY_OPTIONS, value: new Uint8Array(0) });
        break;
      }
      if (length > end - start) {
        options.push({ code: BROKEN_OPTION, value: new Uint8Array(0) });
        break;
      }
      options.push({ code, value: this.#bytes.subarray(start, start + length) });
      at = start + ((length + 3) & ~3);
    }
    return options;
  }

  // ---- both ----

  #deliver(from: CaptureInterface, number: number, frame: Omit<CapturedFrame, 'interface'>): void {
    this.#lastTimePs = frame.timePs;
    this.frameCount++;
    this.#onFrame({ interface: number, ...frame }, from);
  }

  /** @param at index into the available bytes */
  #problem(at: number, reason: string, isNoCapture = false): void {
    this.problemCount++;
    if (this.problems.length < PROBLEMS_MAX)
      this.problems.push({ atByte: this.#place + at, reason, isNoCapture });
  }

  /** Stops reading: nothing after this place is readable. */
  #stop(at: number, reason: string, isNoCapture = false): 0 {
    this.#problem(at, reason, isNoCapture);
    this.#format = 'unreadable';
    this.#bytes = new Uint8Array(0);
    return 0;
  }
}

const readBlocks: ReadonlySet<number> = new Set(Object.values(BlockType));
const tooShort = 'a block too short for its type';
const undescribed = (number: number): string => `interface ${number}, which was not described`;

/** Returned instead of an option's code: the option exceeds its block. */
const BROKEN_OPTION = -1;
/** Returned instead of an option's code: the block has more options than are read. */
const TOO_MANY_OPTIONS = -2;

function problemIn(options: readonly Option[]): string | undefined {
  const last = options.at(-1)?.code;
  if (last === TOO_MANY_OPTIONS) return `a block of more than ${OPTIONS_MAX} options`;
  return last === BROKEN_OPTION ? 'an option that is longer than its block' : undefined;
}

const optionOf = (options: readonly Option[], code: number): Uint8Array | undefined =>
  options.find((option) => option.code === code)?.value;

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
