/**
 * A channel carries timestamped records from one logical process to another through a single-producer single-consumer ring in a
 * SharedArrayBuffer. The ring is all that two logical processes share, in one thread or in two. Payload that bypasses it
 * (machine/node/) makes no difference that the processes could observe.
 *
 * Record: 64-byte header, then the payload, padded to a multiple of 16 bytes and never split at the ring's end. (The padding
 * ensures that the rest of the ring always has room for the size and kind of a padding record.)
 *
 *     +0   arrival, size and kind: {@link recordHeaderFields}
 *     +16  48 bytes of the protocol's own, which it declares: hw/pcie/tlp/tlp-record.ts, wire/packet.ts
 *     +64  payload
 *
 * Promises: records are delivered in the order written, which is the order of their times; a record stays readable until the
 * reader releases it, in any order; the ring never grows. The writer's promise is an instant: every later record is sent at or
 * after it, so it takes effect no earlier than promise + latency: the lookahead of conservative parallel simulation.
 *
 * Two ends in one thread may be {@link joinEnds | joined}: the reader then sees a record as soon as it is appended, without a
 * flush or a refresh.
 */

import {
  f64,
  type ImagedMemory,
  InvariantError,
  layout,
  type MemoryImage,
  NEVER,
  type Picoseconds,
  u32,
  wordIndexOf,
} from '../base/index.ts';

export const RECORD_HEADER_BYTES = 64;
/** Fields at the beginning of every record: the first ones of each protocol's own record. */
export const recordHeaderFields = {
  arrivalPs: f64(0x00, 'instant at which the record takes effect at the reader'),
  recordBytes: u32(0x08, 'header, payload and padding'),
  kind: u32(0x0c, "the protocol's own number, >= 1: 0 and -1 are the ring's"),
} as const;
const recordHeader = layout(
  'channel record',
  { sizeBytes: RECORD_HEADER_BYTES, byteOrder: 'little', source: 'sim/channel.ts' },
  recordHeaderFields,
);
const SIZE_WORD = wordIndexOf(recordHeader.fields.recordBytes);
const KIND_WORD = wordIndexOf(recordHeader.fields.kind);
/** The first word that belongs to the protocol. */
export const RECORD_WORDS = KIND_WORD + 1;
const KIND_PADDING = -1;
const KIND_RELEASED = 0;

const CAPACITY_BYTES_MIN = 4096;
const CONTROL_BYTES = 256;
const TAIL_INDEX = 0;
const PROMISE_INDEX = 1;
const NUMBER_INDEX = 2;
const HEAD_INDEX = 32;
const PROMISE_SLOT_BASE = 8;
const PROMISE_SLOT_MASK = 7;

/** Bytes of shared memory that a channel of this data capacity needs. */
export function channelBufferBytes(capacityBytes: number): number {
  return CONTROL_BYTES + capacityBytes;
}

/** Numbers the channel among all channels of a machine; threads identify it by this number. */
export function numberChannel(buffer: SharedArrayBuffer, number: number): void {
  new Int32Array(buffer)[NUMBER_INDEX] = number;
}

/** The ring had no room for a record although its protocol's credits allowed it: the channel is undersized. */
export class ChannelOverflowError extends Error {
  override readonly name = 'ChannelOverflowError';
}

/**
 * Makes a reader in this thread see every record as it is appended, including earlier ones, and lowers `arrivals[index]` to the
 * time of a record that is earlier.
 */
export function joinEnds(
  writer: ChannelWriter,
  reader: ChannelReader,
  arrivals: Float64Array,
  index: number,
): void {
  writer.flush();
  reader.refreshRecords();
  writer.join(reader);
  reader.join(arrivals, index);
}

class ChannelEnd {
  /** The memory that the two ends of one channel share. */
  readonly buffer: SharedArrayBuffer;
  /** Data area of the ring as bytes, 32-bit words and 64-bit floats, each indexed from the data area's start. */
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float64Array;
  protected readonly control: Int32Array;
  protected readonly promises: Float64Array;
  protected readonly capacityBytes: number;
  protected readonly mask: number;

  /** @param buffer of {@link channelBufferBytes}(capacity) bytes; the capacity is a power of two. */
  constructor(buffer: SharedArrayBuffer) {
    const capacityBytes = buffer.byteLength - CONTROL_BYTES;
    if (capacityBytes < CAPACITY_BYTES_MIN || (capacityBytes & (capacityBytes - 1)) !== 0) {
      throw new RangeError(
        `channel capacity ${capacityBytes} is not a power of two of at least ${CAPACITY_BYTES_MIN} bytes`,
      );
    }
    this.buffer = buffer;
    this.capacityBytes = capacityBytes;
    this.mask = capacityBytes - 1;
    this.control = new Int32Array(buffer, 0, CONTROL_BYTES / 4);
    this.promises = new Float64Array(buffer, 0, CONTROL_BYTES / 8);
    this.bytes = new Uint8Array(buffer, CONTROL_BYTES);
    this.words = new Int32Array(buffer, CONTROL_BYTES);
    this.floats = new Float64Array(buffer, CONTROL_BYTES);
  }

  /** Number given with {@link numberChannel}. */
  get number(): number {
    return this.control[NUMBER_INDEX]!;
  }
}

export class ChannelWriter extends ChannelEnd {
  #tail = 0;
  #flushedTail = 0;
  #lastPs = Number.NEGATIVE_INFINITY;
  /** Free contiguous bytes after the tail, as far as this end has seen. */
  #runBytes = this.capacityBytes;
  #promiseCount = 0;
  /** The opposite end if joined to this one, otherwise a dummy that is never read. */
  #joined: ChannelReader = NO_READER;
  /** The last promise made, in picoseconds. */
  promisedPs = 0;

  /**
   * Appends a record and returns its byte offset in the data area; the caller fills words and payload at once.
   * @throws ChannelOverflowError if the ring is full; InvariantError if time runs backwards
   */
  append(timePs: Picoseconds, kind: number, payloadBytes: number): number {
    if (!(timePs >= this.#lastPs)) refuseTime(timePs, this.#lastPs);
    const recordBytes = (payloadBytes + RECORD_HEADER_BYTES + 15) & ~15;
    if (recordBytes > this.#runBytes) {
      this.#makeRoom(recordBytes, timePs);
      return this.append(timePs, kind, payloadBytes);
    }
    this.#lastPs = timePs;
    this.#runBytes -= recordBytes;
    const offset = this.#tail & this.mask;
    const tail = (this.#tail + recordBytes) | 0;
    this.#tail = tail;
    const words = this.words;
    words[(offset >> 2) + SIZE_WORD] = recordBytes;
    words[(offset >> 2) + KIND_WORD] = kind;
    this.floats[offset >> 3] = timePs;
    this.#joined.noteAppended(tail, timePs);
    return offset;
  }

  /**
   * Joins the reader, for {@link joinEnds}.
   */
  join(reader: ChannelReader): void {
    this.#joined = reader;
  }

  /** Counts the bytes appended so far, modulo 2^32: equals the reader's {@link ChannelReader.knownTail} after the reader has seen them. */
  get tail(): number {
    return this.#tail;
  }

  /** True if records were appended since the last {@link flush}, which the reader has not seen. */
  get isDirty(): boolean {
    return this.#tail !== this.#flushedTail && this.#joined === NO_READER;
  }

  /** Handles a new epoch: see {@link TimeKeeper}. The reader moves the records. */
  rebase(ps: Picoseconds): void {
    this.#lastPs -= ps;
    this.promisedPs -= ps;
    for (let slot = 0; slot <= PROMISE_SLOT_MASK; slot++)
      this.promises[PROMISE_SLOT_BASE + slot] = this.promises[PROMISE_SLOT_BASE + slot]! - ps;
  }

  /** Makes all records appended so far visible, without a promise. Returns false if there was no new record. */
  flush(): boolean {
    if (this.#tail === this.#flushedTail) return false;
    this.#flushedTail = this.#tail;
    Atomics.store(this.control, TAIL_INDEX, this.#tail);
    return true;
  }

  /** Makes all records appended so far visible, with the promise that later ones are sent at `promisePs` or after. */
  publish(promisePs: Picoseconds): void {
    this.flush();
    this.promisedPs = promisePs;
    this.#promiseCount = (this.#promiseCount + 1) | 0;
    this.promises[PROMISE_SLOT_BASE + (this.#promiseCount & PROMISE_SLOT_MASK)] = promisePs;
    Atomics.store(this.control, PROMISE_INDEX, this.#promiseCount);
  }

  /**
   * Ensures room for a record: skips the rest of the ring, and reads which records were released. Padding has the time of the
   * record after it, so that a reader need not distinguish them.
   */
  #makeRoom(recordBytes: number, timePs: Picoseconds): void {
    const offset = this.#tail & this.mask;
    const untilEnd = this.capacityBytes - offset;
    const skippedBytes = recordBytes > untilEnd ? untilEnd : 0;
    const head = this.#joined === NO_READER ? Atomics.load(this.control, HEAD_INDEX) : this.#joined.head;
    const roomBytes = this.capacityBytes - ((this.#tail - head) | 0) - skippedBytes;
    if (recordBytes > roomBytes) {
      const bytes = skippedBytes + recordBytes;
      throw new ChannelOverflowError(`channel of ${this.capacityBytes} bytes has no room for ${bytes} more`);
    }
    this.#runBytes = Math.min(roomBytes, untilEnd);
    if (skippedBytes === 0) return;
    this.words[(offset >> 2) + SIZE_WORD] = untilEnd;
    this.words[(offset >> 2) + KIND_WORD] = KIND_PADDING;
    this.floats[offset >> 3] = timePs;
    this.#tail = (this.#tail + untilEnd) | 0;
    this.#runBytes = roomBytes;
  }
}

export class ChannelReader extends ChannelEnd implements ImagedMemory {
  /** The protocol's kind of the record taken last. */
  takenKind = KIND_RELEASED;
  #tail = 0;
  #cursor = 0;
  #head = 0;
  /** Time of the next undelivered record known to this end, or Infinity. Only this end changes it. */
  nextPs: Picoseconds = NEVER;
  #isJoined = false;
  /** Cell where the group that joined the ends keeps the next due instant of this end's process. */
  #arrivals: Float64Array = new Float64Array(1);
  #arrivalIndex = 0;

  /** Reads newly published records and returns the writer's promise in picoseconds. */
  refresh(): number {
    let count = Atomics.load(this.control, PROMISE_INDEX);
    let promisePs = this.promises[PROMISE_SLOT_BASE + (count & PROMISE_SLOT_MASK)]!;
    for (;;) {
      const again = Atomics.load(this.control, PROMISE_INDEX);
      if (((again - count) | 0) < PROMISE_SLOT_MASK) break;
      count = again;
      promisePs = this.promises[PROMISE_SLOT_BASE + (count & PROMISE_SLOT_MASK)]!;
    }
    this.refreshRecords();
    return promisePs;
  }

  /** Reads newly published records only. Returns false if there was no new record. */
  refreshRecords(): boolean {
    if (this.#isJoined) return false;
    const tail = Atomics.load(this.control, TAIL_INDEX);
    if (tail === this.#tail) return false;
    this.#tail = tail;
    if (this.nextPs === NEVER) this.#findNext();
    return true;
  }

  /** Counts the bytes of the records that this end has seen, modulo 2^32. */
  get knownTail(): number {
    return this.#tail;
  }

  /** Handles a new epoch: moves the instants of all records not taken yet, which are those that the writer has appended. */
  rebase(ps: Picoseconds): void {
    this.refreshRecords();
    for (let at = this.#cursor; at !== this.#tail; ) {
      const offset = at & this.mask;
      this.floats[offset >> 3] = this.floats[offset >> 3]! - ps;
      at = (at + this.words[(offset >> 2) + SIZE_WORD]!) | 0;
    }
    this.nextPs -= ps;
  }

  /** True when every published record was delivered. */
  get isDrained(): boolean {
    return this.#cursor === (this.#isJoined ? this.#tail : Atomics.load(this.control, TAIL_INDEX));
  }

  /** Counts the bytes released to the writer, modulo 2^32. */
  get head(): number {
    return this.#head;
  }

  /** Bytes of the ring from the oldest record taken and not released to the last one taken. */
  get takenBytes(): number {
    return (this.#cursor - this.#head) | 0;
  }

  /** See ImagedMemory: unreleased records, nearly always none, and the state that both ends share. */
  imageOfMemory(): MemoryImage {
    this.refreshRecords();
    const control = this.control.slice();
    const from = this.#head & this.mask;
    const end = from + ((this.#tail - this.#head) | 0);
    const records = this.bytes.slice(from, end);
    const recordsAtStart = this.bytes.slice(0, Math.max(0, end - this.capacityBytes));
    return {
      restore: () => {
        this.control.set(control);
        this.bytes.set(records, from);
        this.bytes.set(recordsAtStart);
      },
    };
  }

  /**
   * Joins this end, for {@link joinEnds}.
   */
  join(arrivals: Float64Array, index: number): void {
    this.#isJoined = true;
    this.#arrivals = arrivals;
    this.#arrivalIndex = index;
  }

  /** The joined writer has appended a record: if one is already due, no notification is needed. */
  noteAppended(tail: number, timePs: Picoseconds): void {
    this.#tail = tail;
    if (this.nextPs !== NEVER) return;
    this.nextPs = timePs;
    if (timePs < this.#arrivals[this.#arrivalIndex]!) this.#arrivals[this.#arrivalIndex] = timePs;
  }

  /** Takes the next record: returns its byte offset. It stays readable until {@link release}. */
  take(): number {
    // Does not use nextOffset: the kind is read once.
    let offset = this.#cursor & this.mask;
    let kind = this.words[(offset >> 2) + KIND_WORD]!;
    if (kind === KIND_PADDING) {
      offset = 0;
      kind = this.words[KIND_WORD]!;
    }
    this.takenKind = kind;
    this.#passRecord(offset);
    return offset;
  }

  /** Does {@link take} if the next record, which exists, is of the protocol's `kind`; otherwise returns -1. */
  takeOf(kind: number): number {
    const offset = this.nextOffset;
    if (this.words[(offset >> 2) + KIND_WORD] !== kind) return -1;
    this.takenKind = kind;
    this.#passRecord(offset);
    return offset;
  }

  /** Takes the next record, at `offset`, and passes the rest of the ring before it. */
  #passRecord(offset: number): void {
    const leftBytes = (offset - this.#cursor) & this.mask;
    const behind = (this.#cursor + leftBytes + this.words[(offset >> 2) + SIZE_WORD]!) | 0;
    this.#cursor = behind;
    if (behind === this.#tail) this.nextPs = NEVER;
    else this.#findNext();
  }

  /** Offset of the record that {@link take} would take; a record is present. */
  get nextOffset(): number {
    const offset = this.#cursor & this.mask;
    return this.words[(offset >> 2) + KIND_WORD] === KIND_PADDING ? 0 : offset;
  }

  /** The protocol's kind of the record that {@link take} would take; a record is present. */
  get nextKind(): number {
    const kind = this.words[((this.#cursor & this.mask) >> 2) + KIND_WORD]!;
    return kind === KIND_PADDING ? this.words[KIND_WORD]! : kind;
  }

  /** The protocol's record kind. */
  kindAt(offset: number): number {
    return this.words[(offset >> 2) + KIND_WORD]!;
  }

  /** Releases a taken record's room to the writer, in any order. */
  release(offset: number): void {
    const head = this.#head;
    if (offset === (head & this.mask)) {
      const words = this.words;
      const behind = (head + words[(offset >> 2) + SIZE_WORD]!) | 0;
      const isLast = behind === this.#cursor;
      if (isLast || words[((behind & this.mask) >> 2) + KIND_WORD]! > KIND_RELEASED) this.#moveHead(behind);
      else this.#skipReleased(behind);
    } else {
      this.words[(offset >> 2) + KIND_WORD] = KIND_RELEASED;
      this.#skipReleased(head);
    }
  }

  #moveHead(head: number): void {
    this.#head = head;
    if (!this.#isJoined) Atomics.store(this.control, HEAD_INDEX, head);
  }

  /** Moves the head to the oldest offset from `from` on that holds an unreleased record. */
  #skipReleased(from: number): void {
    const words = this.words;
    let head = from;
    while (head !== this.#cursor) {
      const word = (head & this.mask) >> 2;
      if (words[word + KIND_WORD]! > KIND_RELEASED) break;
      head = (head + words[word + SIZE_WORD]!) | 0;
    }
    if (head !== this.#head) this.#moveHead(head);
  }

  /** Time of the record at the cursor, which is before the tail; the cursor may be at padding of the same time before it. */
  #findNext(): void {
    this.nextPs = this.floats[(this.#cursor & this.mask) >> 3]!;
  }
}

/** Represents the opposite end of a channel whose ends are not joined. */
const NO_READER = new ChannelReader(new SharedArrayBuffer(channelBufferBytes(CAPACITY_BYTES_MIN)));

function refuseTime(timePs: Picoseconds, lastPs: Picoseconds): never {
  throw new InvariantError('time of a record in ps', timePs, `at least ${lastPs}`);
}
