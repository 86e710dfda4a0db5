/**
 * The transmit ring: one descriptor a frame, each with RS, so that its own write-back returns each buffer.
 *
 *     post ─► tail ── kick: TDT ──► device: fetch, DMA, send, write back DD ──► clean: buffers return to the stack
 */
import { nicDescriptorBytes, nicTransmitDescriptor } from '../../abi/nic/index.ts';
import { log2Exact } from '../../base/index.ts';
import type { KernelMemory } from '../platform.ts';
import { noTag, type OutboundFrame, type PacketBuffer, type PacketBuffers } from '../stack/index.ts';

const { fields } = nicTransmitDescriptor;

export class TransmitRing {
  readonly address: number;
  readonly entries: number;
  readonly #memory: KernelMemory;
  readonly #buffers: PacketBuffers;
  readonly #hasChecksumOffload: boolean;
  readonly #held: (PacketBuffer | undefined)[];
  readonly #mask: number;
  #head = 0;
  #tail = 0;

  /** @param address of `entries` × 16 zeroed bytes */
  constructor(
    memory: KernelMemory,
    address: number,
    entries: number,
    buffers: PacketBuffers,
    hasChecksumOffload: boolean,
  ) {
    this.#memory = memory;
    this.address = address;
    this.entries = entries;
    this.#buffers = buffers;
    this.#hasChecksumOffload = hasChecksumOffload;
    this.#held = new Array<PacketBuffer | undefined>(entries).fill(undefined);
    this.#mask = 2 ** log2Exact(entries) - 1;
  }

  get outstanding(): number {
    return (this.#tail - this.#head) & this.#mask;
  }

  get room(): number {
    return this.entries - 1 - this.outstanding;
  }

  get tail(): number {
    return this.#tail;
  }

  get head(): number {
    return this.#head;
  }

  /** Whether the oldest frame has been sent. */
  get isHeadDone(): boolean {
    return this.outstanding > 0 && fields.done.get(this.#memory.view, this.#at(this.#head)) === 1;
  }

  /** Writes a descriptor; the ring has room. @param tag that the NIC inserts, or noTag */
  post({ buffer, start, lengthBytes, checksum }: OutboundFrame, tag: number): void {
    const { view, bytes } = this.#memory;
    const at = this.#at(this.#tail);
    bytes.fill(0, at, at + nicDescriptorBytes);
    fields.bufferAddress.setNumber(view, at, buffer.address + start);
    fields.length.set(view, at, lengthBytes);
    fields.endOfPacket.set(view, at, 1);
    fields.reportStatus.set(view, at, 1);
    if (checksum !== undefined && this.#hasChecksumOffload) {
      fields.insertChecksum.set(view, at, 1);
      fields.checksumStart.set(view, at, checksum.start);
      fields.checksumOffset.set(view, at, checksum.offset);
    }
    if (tag !== noTag) {
      fields.insertTag.set(view, at, 1);
      fields.special.set(view, at, tag);
    }
    this.#held[this.#tail] = buffer;
    buffer.inRing++;
    this.#tail = (this.#tail + 1) & this.#mask;
  }

  /** Removes the oldest frame, sent or not. */
  takeHead(): void {
    const buffer = this.#held[this.#head]!;
    this.#held[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#buffers.leftRing(buffer);
  }

  /** Removes all frames and restarts at descriptor 0, as the device does. */
  restart(): void {
    while (this.outstanding > 0) this.takeHead();
    this.#head = 0;
    this.#tail = 0;
    this.#memory.bytes.fill(0, this.address, this.address + this.entries * nicDescriptorBytes);
  }

  #at(index: number): number {
    return this.address + index * nicDescriptorBytes;
  }
}
