/**
 * Faults of the cable, injected by packet number: packets are counted from 1 as they leave this port, so that a
 * fault means the same packet in every run.
 */
import { assertRange } from '../base/assert.ts';
import { FaultRanges } from './fault-ranges.ts';

/** Longest time for which a fault holds the link before a packet: 1000 s. */
export const FAULT_DELAY_PS_MAX = 1e15;

export class WireFaults {
  /** The next packet with a fault, or Infinity: the one comparison that every packet pays. */
  nextPacket = Number.POSITIVE_INFINITY;
  readonly #corrupted = new FaultRanges();
  readonly #delaysPs = new FaultRanges();

  /** Corrupts the packets from `first` to `last` on the cable: the receiver discards them. */
  corruptPackets(first: number, last = first): void {
    this.#corrupted.add(first, last, 1);
    this.#findNext();
  }

  /** Holds the link before each of these packets, and so everything behind it: a link keeps the order of packets. */
  delayPackets(delayPs: number, first: number, last = first): void {
    this.#delaysPs.add(first, last, assertRange('delayPs', delayPs, 0, FAULT_DELAY_PS_MAX));
    this.#findNext();
  }

  isCorrupted(packet: number): boolean {
    return this.#corrupted.valueOf(packet) !== 0;
  }

  delayPs(packet: number): number {
    return this.#delaysPs.valueOf(packet);
  }

  /** The faults of this packet have been applied. */
  passed(packet: number): void {
    this.#corrupted.passed(packet);
    this.#delaysPs.passed(packet);
    this.#findNext();
  }

  #findNext(): void {
    this.nextPacket = Math.min(this.#corrupted.next, this.#delaysPs.next);
  }
}
