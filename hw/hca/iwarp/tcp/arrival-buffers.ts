/**
 * The buffers of received bytes: slots of the port, and after them places of the reordering memory. A buffer is free
 * when the engine has finished with it and no block holds it.
 */
import type { EthernetAttachment } from '../../port/index.ts';
import type { SegmentMemory } from './segment-memory.ts';

export class ArrivalBuffers {
  readonly #port: EthernetAttachment['port'];
  readonly #reorderMemory: SegmentMemory;
  /** Number of holders of each buffer, by its name, and whether the engine still uses it. */
  readonly #holds: Int32Array;
  readonly #isOwn: Uint8Array;

  constructor(port: EthernetAttachment['port'], reorderMemory: SegmentMemory) {
    this.#port = port;
    this.#reorderMemory = reorderMemory;
    const names = port.slotCount + reorderMemory.segments.length;
    this.#holds = new Int32Array(names);
    this.#isOwn = new Uint8Array(names);
  }

  /** The name of a place of the reordering memory; a slot of the port has its own number. */
  nameOfPlace(place: number): number {
    return this.#port.slotCount + place;
  }

  /** The engine uses a buffer until it calls {@link giveUp}. */
  own(name: number): void {
    this.#isOwn[name] = 1;
  }

  /** The engine has done with a buffer. */
  giveUp(name: number): void {
    this.#isOwn[name] = 0;
    if (this.#holds[name] === 0) this.#free(name);
  }

  /**
   * Keeps the buffer in which the byte at `at` of `bytes` lies. @returns its name; -1: the bytes belong to no buffer,
   * and stay unchanged
   */
  hold(bytes: Uint8Array, at: number): number {
    const name = this.#nameAt(bytes, at);
    if (name !== -1) this.#holds[name]!++;
    return name;
  }

  /** A holder has done with a buffer. */
  release(name: number): void {
    if (name === -1 || --this.#holds[name]! > 0) return;
    if (this.#isOwn[name] === 0) this.#free(name);
  }

  get holdCount(): number {
    return this.#holds.reduce((sum, count) => sum + count, 0);
  }

  /** Frees the slots of the port in use, and those of `arrived`, which the engine has not begun. */
  reset(arrived: readonly number[]): void {
    for (let slot = 0; slot < this.#port.slotCount; slot++)
      if (this.#isOwn[slot] === 1 || this.#holds[slot] !== 0) this.#port.consume(slot);
    for (const slot of arrived) if (this.#isOwn[slot] === 0) this.#port.consume(slot);
    this.#holds.fill(0);
    this.#isOwn.fill(0);
  }

  #nameAt(bytes: Uint8Array, at: number): number {
    if (bytes === this.#port.rxBytes) return Math.floor(at / this.#port.frameStart(1));
    const place = bytes === this.#reorderMemory.bytes ? this.#reorderMemory.placeAt(at) : -1;
    return place === -1 ? -1 : this.nameOfPlace(place);
  }

  #free(name: number): void {
    const place = name - this.#port.slotCount;
    if (place < 0) this.#port.consume(name);
    else this.#reorderMemory.give(this.#reorderMemory.segments[place]!);
  }
}
