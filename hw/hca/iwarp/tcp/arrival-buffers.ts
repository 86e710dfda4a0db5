/**
 * The buffers of received bytes: slots of the port, then places of the reordering memory, then places of the loopback. A
 * buffer is free when the engine has finished with it and no block holds it.
 */
import type { SegmentMemory } from './segment-memory.ts';

/** Frames that have arrived, each in a slot until it is consumed: those of the port, or of the loopback. */
export interface FrameSource {
  readonly rxBytes: Uint8Array;
  readonly slotCount: number;
  frameStart(slot: number): number;
  /** Bytes of a frame without FCS. */
  frameBytes(slot: number): number;
  consume(slot: number): void;
}

export class ArrivalBuffers {
  readonly #port: FrameSource;
  readonly #reorderMemory: SegmentMemory;
  readonly #loopback: FrameSource;
  /** Names of the reordering memory's places begin here, and those of the loopback. */
  readonly #firstPlace: number;
  readonly #firstLooped: number;
  /** Number of holders of each buffer, by its name, and whether the engine still uses it. */
  readonly #holds: Int32Array;
  readonly #isOwn: Uint8Array;

  constructor(port: FrameSource, reorderMemory: SegmentMemory, loopback: FrameSource) {
    this.#port = port;
    this.#reorderMemory = reorderMemory;
    this.#loopback = loopback;
    this.#firstPlace = port.slotCount;
    this.#firstLooped = port.slotCount + reorderMemory.segments.length;
    const names = this.#firstLooped + loopback.slotCount;
    this.#holds = new Int32Array(names);
    this.#isOwn = new Uint8Array(names);
  }

  /** The name of a slot of the port or of the loopback. */
  nameOfSlot(source: FrameSource, slot: number): number {
    return source === this.#port ? slot : this.#firstLooped + slot;
  }

  /** The name of a place of the reordering memory. */
  nameOfPlace(place: number): number {
    return this.#firstPlace + place;
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
    for (const source of [this.#port, this.#loopback])
      if (bytes === source.rxBytes) return this.nameOfSlot(source, Math.floor(at / source.frameStart(1)));
    const place = bytes === this.#reorderMemory.bytes ? this.#reorderMemory.placeAt(at) : -1;
    return place === -1 ? -1 : this.nameOfPlace(place);
  }

  #free(name: number): void {
    if (name < this.#firstPlace) this.#port.consume(name);
    else if (name >= this.#firstLooped) this.#loopback.consume(name - this.#firstLooped);
    else this.#reorderMemory.give(this.#reorderMemory.segments[name - this.#firstPlace]!);
  }
}
