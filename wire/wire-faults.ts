/**
 * Faults of the cable, injected by packet number: packets are counted from 1 as they leave this port, so that a
 * fault means the same packet in every run.
 */
import { assertRange } from '../base/assert.ts';

export class WireFaults {
  /** The next packet with a fault, or Infinity: the one comparison that every packet pays. */
  nextPacket = Number.POSITIVE_INFINITY;
  readonly #corrupted = new Set<number>();
  readonly #delaysPs = new Map<number, number>();

  /** Corrupts the nth packet on the cable: the receiver discards it. */
  dropPacket(nth: number): void {
    this.#corrupted.add(assertRange('dropPacket nth', nth, 1, Number.MAX_SAFE_INTEGER));
    this.#findNext(0);
  }

  /** Holds the link before the nth packet, and so everything behind it: a link keeps the order of packets. */
  delayPacket(nth: number, delayPs: number): void {
    assertRange('delayPacket nth', nth, 1, Number.MAX_SAFE_INTEGER);
    this.#delaysPs.set(nth, assertRange('delayPs', delayPs, 0, 1e15));
    this.#findNext(0);
  }

  isCorrupted(packet: number): boolean {
    return this.#corrupted.has(packet);
  }

  delayPs(packet: number): number {
    return this.#delaysPs.get(packet) ?? 0;
  }

  /** The faults of this packet have been applied. */
  passed(packet: number): void {
    this.#corrupted.delete(packet);
    this.#delaysPs.delete(packet);
    this.#findNext(packet);
  }

  #findNext(passedPacket: number): void {
    this.nextPacket = Number.POSITIVE_INFINITY;
    for (const packet of [...this.#corrupted, ...this.#delaysPs.keys()]) {
      if (packet > passedPacket && packet < this.nextPacket) this.nextPacket = packet;
    }
  }
}
