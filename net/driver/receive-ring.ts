/**
 * The receive ring: every descriptor but one names an empty buffer. A frame is passed up in its buffer, which an empty one
 * replaces. If no buffer is free, the frame is dropped and its buffer stays, so that the ring never runs dry.
 */
import { nicDescriptorBytes, nicReceiveDescriptor } from '../../abi/nic/index.ts';
import { log2Exact } from '../../base/index.ts';
import type { KernelMemory } from '../platform.ts';
import { noTag, type PacketBuffer, type PacketBuffers } from '../stack/index.ts';

const { fields } = nicReceiveDescriptor;

export class ReceiveRing {
  readonly address: number;
  readonly entries: number;
  /** Checksum over the frame returned by {@link take}, the tag removed from it, and whether it was whole. */
  sum = 0;
  tag = noTag;
  isWhole = true;
  readonly #memory: KernelMemory;
  readonly #buffers: PacketBuffers;
  readonly #held: (PacketBuffer | undefined)[];
  readonly #mask: number;
  #next = 0;
  #tail = 0;

  /** @param address of `entries` × 16 zeroed bytes */
  constructor(memory: KernelMemory, address: number, entries: number, buffers: PacketBuffers) {
    this.#memory = memory;
    this.address = address;
    this.entries = entries;
    this.#buffers = buffers;
    this.#held = new Array<PacketBuffer | undefined>(entries).fill(undefined);
    this.#mask = 2 ** log2Exact(entries) - 1;
  }

  get tail(): number {
    return this.#tail;
  }

  get next(): number {
    return this.#next;
  }

  /** Whether a frame waits. */
  get hasFrame(): boolean {
    return (
      this.#held[this.#next] !== undefined && fields.done.get(this.#memory.view, this.#at(this.#next)) === 1
    );
  }

  /** Fills the ring. @returns false if buffers are missing */
  fill(): boolean {
    while (((this.#tail + 1) & this.#mask) !== this.#next) {
      const buffer = this.#buffers.take();
      if (buffer === undefined) return false;
      this.#give(buffer);
    }
    return true;
  }

  /** Dequeues the waiting frame and refills its slot. @returns undefined if the frame had to be dropped */
  take(): PacketBuffer | undefined {
    const { view } = this.#memory;
    const at = this.#at(this.#next);
    const buffer = this.#held[this.#next]!;
    this.sum = fields.checksum.get(view, at);
    this.tag = fields.isTagged.get(view, at) === 1 ? fields.special.get(view, at) : noTag;
    this.isWhole = fields.endOfPacket.get(view, at) === 1;
    const length = fields.length.get(view, at);
    this.#held[this.#next] = undefined;
    this.#next = (this.#next + 1) & this.#mask;
    const fresh = this.isWhole ? this.#buffers.take() : undefined;
    this.#give(fresh ?? buffer);
    if (fresh === undefined) return undefined;
    buffer.start = 0;
    buffer.length = length;
    return buffer;
  }

  /** Releases all buffers and restarts at descriptor 0, as the device does. */
  restart(): void {
    for (let index = 0; index < this.entries; index++) {
      const buffer = this.#held[index];
      if (buffer !== undefined) this.#buffers.give(buffer);
      this.#held[index] = undefined;
    }
    this.#next = 0;
    this.#tail = 0;
    this.#memory.bytes.fill(0, this.address, this.address + this.entries * nicDescriptorBytes);
  }

  #give(buffer: PacketBuffer): void {
    const { view, bytes } = this.#memory;
    const at = this.#at(this.#tail);
    bytes.fill(0, at, at + nicDescriptorBytes);
    fields.bufferAddress.setNumber(view, at, buffer.address);
    this.#held[this.#tail] = buffer;
    this.#tail = (this.#tail + 1) & this.#mask;
  }

  #at(index: number): number {
    return this.address + index * nicDescriptorBytes;
  }
}
