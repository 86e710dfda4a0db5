/**
 * MSI-X: the table of messages and the pending bit array, which software sees in BAR0, masking, and delivery.
 *
 *     entry: abi/pci/msix-table.ts           pending bit array
 *                                            bit v of 64-bit word v / 64: vector v was requested while it could not be
 *                                            sent; cleared when its message goes out
 *
 * Promises: a vector that is masked, alone or by the function mask, or lacks bus mastering, keeps one pending bit and sends one
 * message when it can; requests that find the bit set are coalesced into it. For every vector `requested = delivered +
 * coalesced + dropped + pending`. Accesses are of 4 or 8 aligned bytes; others are undefined in the standard: reads see the
 * bytes, writes are ignored and counted. Source: PCI Local Bus Specification 3.0, 6.8.2 and 6.8.3.
 */

import { msixTableEntry } from '../../../abi/pci/index.ts';
import { type BusAddress, ConfigurationError, type Cycles } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { FunctionCore } from './function-core.ts';
import type { FunctionConfig } from './function-parameters.ts';

/** Sends messages after all memory writes requested earlier: the DMA write engine. */
export interface MessageSender {
  canSend(): boolean;
  sendMessage(address: BusAddress, data: number, cycle: Cycles): void;
}

const ENTRY_BYTES = msixTableEntry.sizeBytes;
const { addressLow, addressHigh, data: messageData, isMasked } = msixTableEntry.fields;
/** Bits that software can write, by dword of an entry. */
const WRITABLE = new Uint32Array(ENTRY_BYTES / 4);
for (const { wordOffset, mask } of Object.values(msixTableEntry.fields)) WRITABLE[wordOffset / 4] = mask;
const FOUR_GIB = 0x1_0000_0000;

/** Counters per vector; free-running, unaffected by resets. */
export class MsixCounters {
  readonly requested: Float64Array;
  /** Requests that found the vector masked. */
  readonly masked: Float64Array;
  /** Messages handed to the sender. */
  readonly delivered: Float64Array;
  /** Requests that found the pending bit set. */
  readonly coalesced: Float64Array;
  /** Requests while MSI-X was disabled, and pending ones dropped by a reset. */
  readonly dropped: Float64Array;

  constructor(vectorCount: number) {
    this.requested = new Float64Array(vectorCount);
    this.masked = new Float64Array(vectorCount);
    this.delivered = new Float64Array(vectorCount);
    this.coalesced = new Float64Array(vectorCount);
    this.dropped = new Float64Array(vectorCount);
  }
}

export class Msix {
  readonly vectorCount: number;
  readonly counters: MsixCounters;
  /** Writes into the table that were not 4 or 8 aligned bytes. */
  ignoredWriteCount = 0;

  /** The table, followed by the pending bits. */
  readonly #view: DataView;
  readonly #tableBytes: number;
  readonly #tableOffset: number;
  readonly #tableEnd: number;
  readonly #pendingOffset: number;
  readonly #pendingEnd: number;
  #sender!: MessageSender;
  #isEnabled = false;
  #isFunctionMasked = false;
  #mayMaster = false;
  #pendingCount = 0;

  constructor({ config }: Pick<FunctionCore, 'config'>) {
    this.vectorCount = config.msixVectorCount;
    this.counters = new MsixCounters(this.vectorCount);
    this.#tableOffset = config.msixTableOffset;
    this.#tableBytes = this.vectorCount * ENTRY_BYTES;
    this.#tableEnd = this.#tableOffset + this.#tableBytes;
    const pendingBytes = Math.ceil(this.vectorCount / 64) * 8;
    this.#pendingOffset = config.msixPendingOffset;
    this.#pendingEnd = this.#pendingOffset + pendingBytes;
    this.#view = new DataView(new ArrayBuffer(this.#tableBytes + pendingBytes));
    this.#checkPlaces(config);
    this.reset();
  }

  connect({ messageSender }: { readonly messageSender: MessageSender }): void {
    this.#sender = messageSender;
  }

  /** Vectors requested and not yet sent. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  isPending(vector: number): boolean {
    return (this.#view.getUint8(this.#tableBytes + (vector >> 3)) & (1 << (vector & 7))) !== 0;
  }

  /** True if an access of BAR0 at `offset` belongs to the table or the pending bits, not to the device core. */
  contains(offset: number): boolean {
    return this.#placeOf(offset) >= 0;
  }

  /** Reads the state of configuration space; the caller then calls {@link deliverPending}. */
  control(isEnabled: boolean, isFunctionMasked: boolean, mayMaster: boolean): void {
    this.#isEnabled = isEnabled;
    this.#isFunctionMasked = isFunctionMasked;
    this.#mayMaster = mayMaster;
  }

  /** Software's write into the table; the pending bits are read only. */
  write(offset: number, bytes: Uint8Array, byteOffset: number, lengthBytes: number): void {
    if (offset >= this.#pendingOffset && offset < this.#pendingEnd) return;
    const isDefined = (lengthBytes === 4 || lengthBytes === 8) && offset % lengthBytes === 0;
    if (!isDefined) {
      this.ignoredWriteCount++;
      return;
    }
    for (let at = 0; at < lengthBytes; at += 4) {
      this.#writeDword(offset + at, bytes, byteOffset + at);
    }
  }

  read(offset: number, lengthBytes: number, into: DataView): void {
    for (let at = 0; at < lengthBytes; at++) into.setUint8(at, this.#byteAt(offset + at));
  }

  /** Requests an interrupt. Returns false if the sender has no room: then nothing has happened, and the caller asks again in a later cycle. */
  request(vector: number, cycle: Cycles): boolean {
    const counters = this.counters;
    if (this.#isEnabled && this.#maySend(vector) && !this.isPending(vector)) {
      if (!this.#sender.canSend()) return false;
      counters.requested[vector] = counters.requested[vector]! + 1;
      this.#send(vector, cycle);
      return true;
    }
    counters.requested[vector] = counters.requested[vector]! + 1;
    if (!this.#isEnabled) {
      counters.dropped[vector] = counters.dropped[vector]! + 1;
      return true;
    }
    if (this.#isMasked(vector)) counters.masked[vector] = counters.masked[vector]! + 1;
    if (this.isPending(vector)) counters.coalesced[vector] = counters.coalesced[vector]! + 1;
    else this.#setPending(vector, true);
    return true;
  }

  /** Sends the message of the first pending vector that may be sent. Returns true if it must be called again in a later cycle. */
  deliverPending(cycle: Cycles): boolean {
    if (this.#pendingCount === 0 || !this.#isEnabled) return false;
    for (let vector = 0; vector < this.vectorCount; vector++) {
      if (!this.isPending(vector) || !this.#maySend(vector)) continue;
      if (!this.#sender.canSend()) return true;
      this.#setPending(vector, false);
      this.#send(vector, cycle);
      return this.#pendingCount > 0;
    }
    return false;
  }

  /** Table and pending bits as after power-on: all zero, all vectors masked. */
  reset(): void {
    for (let vector = 0; vector < this.vectorCount; vector++) {
      if (this.isPending(vector)) {
        this.counters.dropped[vector] = this.counters.dropped[vector]! + 1;
        this.#setPending(vector, false);
      }
      const entry = vector * ENTRY_BYTES;
      for (let at = 0; at < ENTRY_BYTES; at += 4) this.#view.setUint32(entry + at, 0, true);
      isMasked.set(this.#view, entry, 1);
    }
    this.control(false, false, false);
  }

  /** See Block.inspect: the vectors that software has programmed or unmasked, or that are pending. */
  inspect(): BlockState {
    const vectors = Array.from({ length: this.vectorCount }, (_, vector) => this.#inspectVector(vector));
    return {
      isEnabled: this.#isEnabled,
      isFunctionMasked: this.#isFunctionMasked,
      mayMaster: this.#mayMaster,
      vectors: Object.fromEntries(
        vectors.flatMap((state, vector) => (state === undefined ? [] : [[vector, state]])),
      ),
    };
  }

  #inspectVector(vector: number): BlockState | undefined {
    const entry = vector * ENTRY_BYTES;
    const state = {
      addressHigh: addressHigh.get(this.#view, entry),
      addressLow: addressLow.get(this.#view, entry),
      data: messageData.get(this.#view, entry),
      isUnmasked: isMasked.get(this.#view, entry) === 0,
      isPending: this.isPending(vector),
    };
    return Object.values(state).some(Boolean) ? state : undefined;
  }

  /** Offset in the view of BAR0's contents at `offset`, or -1. */
  #placeOf(offset: number): number {
    if (offset >= this.#tableOffset && offset < this.#tableEnd) return offset - this.#tableOffset;
    if (offset >= this.#pendingOffset && offset < this.#pendingEnd)
      return this.#tableBytes + offset - this.#pendingOffset;
    return -1;
  }

  /** Returns a byte of the table or the pending bits; zero beyond their end. */
  #byteAt(offset: number): number {
    const place = this.#placeOf(offset);
    return place < 0 ? 0 : this.#view.getUint8(place);
  }

  #isMasked(vector: number): boolean {
    return this.#isFunctionMasked || isMasked.get(this.#view, vector * ENTRY_BYTES) === 1;
  }

  #maySend(vector: number): boolean {
    return this.#mayMaster && !this.#isMasked(vector);
  }

  #send(vector: number, cycle: Cycles): void {
    const entry = vector * ENTRY_BYTES;
    const address = addressHigh.get(this.#view, entry) * FOUR_GIB + addressLow.get(this.#view, entry);
    const data = messageData.get(this.#view, entry);
    this.counters.delivered[vector] = this.counters.delivered[vector]! + 1;
    this.#sender.sendMessage(address, data, cycle);
  }

  #setPending(vector: number, isPending: boolean): void {
    const at = this.#tableBytes + (vector >> 3);
    const bit = 1 << (vector & 7);
    const bits = this.#view.getUint8(at);
    this.#view.setUint8(at, isPending ? bits | bit : bits & ~bit);
    this.#pendingCount += isPending ? 1 : -1;
  }

  #writeDword(offset: number, bytes: Uint8Array, byteOffset: number): void {
    const place = this.#placeOf(offset);
    const writable = WRITABLE[(place % ENTRY_BYTES) / 4]!;
    for (let at = 0; at < 4; at++)
      this.#view.setUint8(place + at, bytes[byteOffset + at]! & (writable >>> (8 * at)));
  }

  #checkPlaces(config: FunctionConfig): void {
    const isApart = this.#tableEnd <= this.#pendingOffset || this.#pendingEnd <= this.#tableOffset;
    if (!isApart || this.#pendingEnd > config.bar0Bytes || this.#pendingOffset % 8 !== 0) {
      throw new ConfigurationError(
        'msixPendingOffset',
        config.msixPendingOffset,
        `a multiple of 8 with room in bar0Bytes (${config.bar0Bytes}), apart from the table of msixVectorCount (${config.msixVectorCount}) entries at msixTableOffset (${config.msixTableOffset})`,
      );
    }
    if (this.#tableEnd > config.bar0Bytes || this.#tableOffset % 8 !== 0) {
      throw new ConfigurationError(
        'msixTableOffset',
        config.msixTableOffset,
        `a multiple of 8 with room in bar0Bytes (${config.bar0Bytes})`,
      );
    }
  }
}
