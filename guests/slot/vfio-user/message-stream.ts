/**
 * The stream of one client cut into messages, each with its descriptors.
 *
 *   socket ──► one large buffer: [ … consumed | message | message | beginning of a message      ]
 *                                             ^ begin             ^ lastBegun   ^ end
 *
 * Descriptors arrive with the first byte of a send and end the read (native/connection.ts), so those of a read belong to the
 * message that began last in it. For QEMU, which sends each message at once, that is exact. A client that packs several
 * messages into one send with descriptors gives them to the last message; it only harms itself, and every descriptor is either
 * taken with its message or closed.
 *
 * A message waits until it is complete. A message that is too short, too long or not a command ends the stream.
 */
import { closeDescriptor } from '../native/poll.ts';
import { HEADER_BYTES, header, MESSAGE_COMMAND } from './protocol.ts';

const { sizeBytes: sizeField, type: typeField } = header.fields;

/** Results of `peek` in addition to the size of the complete message. */
export const INCOMPLETE = 0;
export const MALFORMED = -1;

export class MessageStream {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Offset of the first unconsumed message. */
  begin = 0;
  /** Descriptors of the message that `take` took; its caller owns those that it sets to -1, the rest is closed. */
  readonly descriptors: Int32Array;
  descriptorCount = 0;

  readonly #messageBytesMax: number;
  #end = 0;
  /** Offset at which the next message begins; may be after `end`. */
  #nextBegin = 0;
  /** Offset of the message that began last: the owner of descriptors that arrive now. */
  #lastBegun = 0;
  /** Descriptors not taken yet, and the offsets of their messages. */
  readonly #held: Int32Array;
  readonly #heldOwner: Int32Array;
  #heldCount = 0;

  /** @param messageBytesMax longest message accepted, header included */
  constructor(messageBytesMax: number, messageDescriptorsMax: number) {
    this.#messageBytesMax = messageBytesMax;
    this.bytes = new Uint8Array(new ArrayBuffer(messageBytesMax + Math.max(messageBytesMax, 65_536)));
    this.view = new DataView(this.bytes.buffer);
    this.descriptors = new Int32Array(messageDescriptorsMax);
    this.#held = new Int32Array(messageDescriptorsMax * 2);
    this.#heldOwner = new Int32Array(messageDescriptorsMax * 2);
  }

  /** Offset of the next bytes; `room` of them fit, always enough to complete a message. */
  get end(): number {
    return this.#end;
  }

  get room(): number {
    return this.bytes.length - this.#end;
  }

  /** Makes room before a read. Called only if no complete message is left. */
  prepare(): void {
    if (this.begin === 0 || this.room >= this.#messageBytesMax) return;
    this.bytes.copyWithin(0, this.begin, this.#end);
    for (let at = 0; at < this.#heldCount; at++) this.#heldOwner[at] = this.#heldOwner[at]! - this.begin;
    this.#lastBegun -= this.begin;
    this.#nextBegin -= this.begin;
    this.#end -= this.begin;
    this.begin = 0;
  }

  /**
   * `count` bytes were put at `end`, with these descriptors. Returns false if a message has more descriptors than allowed; all
   * of the read's are then closed.
   */
  append(count: number, descriptors: Int32Array, descriptorCount: number): boolean {
    this.#end += count;
    while (this.#nextBegin < this.#end) {
      this.#lastBegun = this.#nextBegin;
      if (this.#end - this.#nextBegin < HEADER_BYTES) break;
      const sizeBytes = sizeField.get(this.view, this.#nextBegin);
      if (!this.#isFit(this.#nextBegin, sizeBytes)) break;
      this.#nextBegin += sizeBytes;
    }
    if (descriptorCount === 0) return true;
    let ownedCount = 0;
    for (let at = 0; at < this.#heldCount; at++) if (this.#heldOwner[at] === this.#lastBegun) ownedCount++;
    if (ownedCount + descriptorCount > this.descriptors.length) {
      for (let at = 0; at < descriptorCount; at++) closeDescriptor(descriptors[at]!);
      return false;
    }
    for (let at = 0; at < descriptorCount; at++) {
      this.#held[this.#heldCount] = descriptors[at]!;
      this.#heldOwner[this.#heldCount++] = this.#lastBegun;
    }
    return true;
  }

  /** Size of the complete message at `begin`, INCOMPLETE or MALFORMED. */
  peek(): number {
    const availableBytes = this.#end - this.begin;
    if (availableBytes < HEADER_BYTES) return INCOMPLETE;
    const sizeBytes = sizeField.get(this.view, this.begin);
    if (!this.#isFit(this.begin, sizeBytes)) return MALFORMED;
    return availableBytes < sizeBytes ? INCOMPLETE : sizeBytes;
  }

  /** Consumes the message at `begin`, of the size that `peek` returned; its bytes stay in place until `prepare`. */
  take(sizeBytes: number): void {
    this.descriptorCount = 0;
    if (this.#heldCount > 0) this.#takeDescriptors();
    this.begin += sizeBytes;
    if (this.begin === this.#end) this.#restart();
  }

  /** Closes the descriptors of the taken message that are not -1. */
  closeTaken(): void {
    for (let at = 0; at < this.descriptorCount; at++) {
      if (this.descriptors[at]! >= 0) closeDescriptor(this.descriptors[at]!);
    }
    this.descriptorCount = 0;
  }

  /** Closes all untaken descriptors and forgets all bytes: the stream is over, another may begin. */
  close(): void {
    this.closeTaken();
    for (let at = 0; at < this.#heldCount; at++) closeDescriptor(this.#held[at]!);
    this.#heldCount = 0;
    this.#restart();
  }

  #isFit(offset: number, sizeBytes: number): boolean {
    return (
      sizeBytes >= HEADER_BYTES &&
      sizeBytes <= this.#messageBytesMax &&
      typeField.get(this.view, offset) === MESSAGE_COMMAND
    );
  }

  #restart(): void {
    this.begin = 0;
    this.#end = 0;
    this.#nextBegin = 0;
    this.#lastBegun = 0;
  }

  #takeDescriptors(): void {
    let kept = 0;
    for (let at = 0; at < this.#heldCount; at++) {
      if (this.#heldOwner[at] === this.begin) this.descriptors[this.descriptorCount++] = this.#held[at]!;
      else {
        this.#held[kept] = this.#held[at]!;
        this.#heldOwner[kept++] = this.#heldOwner[at]!;
      }
    }
    this.#heldCount = kept;
  }
}
