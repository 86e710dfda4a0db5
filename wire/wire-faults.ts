/**
 * Faults of the cable, injected by packet number: packets are counted from 1 as they leave this port, so that a
 * fault means the same packet in every run.
 */

import { assertRange } from '../base/assert.ts';
import type { Picoseconds } from '../base/units.ts';
import { FaultRanges } from './fault-ranges.ts';

/** Longest time for which a fault holds the link before a packet: 1000 s. */
export const FAULT_DELAY_PS_MAX = 1e15;

/** How packets are put out of order. */
export interface Disorder {
  /** Packets of the same lane that pass the packet. */
  readonly passes: number;
  /** For how long it is held at most; of a copy, how long after its packet it leaves. */
  readonly delayPs: Picoseconds;
  /** Called each time that it happens. */
  readonly fired: () => void;
}

export class WireFaults {
  /** The next packet with a fault, or Infinity: the one comparison that every packet pays. */
  nextPacket = Number.POSITIVE_INFINITY;
  readonly #corrupted = new FaultRanges();
  readonly #lost = new FaultRanges();
  readonly #delaysPs = new FaultRanges();
  /** Copies and reorderings, and of each range the place among them, from 1. */
  readonly #disorders: Disorder[] = [];
  readonly #copied = new FaultRanges();
  readonly #reordered = new FaultRanges();
  #isEachConcerned = false;

  /** Corrupts the packets from `first` to `last` on the cable: the receiver discards them. */
  corruptPackets(first: number, last = first): void {
    this.#corrupted.add(first, last, 1);
    this.#findNext();
  }

  /** Holds the link before each of these packets, and so everything behind it: a link keeps the order of packets. */
  delayPackets(delayPs: Picoseconds, first: number, last = first): void {
    this.#delaysPs.add(first, last, assertRange('delayPs', delayPs, 0, FAULT_DELAY_PS_MAX));
    this.#findNext();
  }

  /** The packets from `first` to `last` leave, and never arrive. */
  losePackets(first: number, last = first): void {
    this.#lost.add(first, last, 1);
    this.#findNext();
  }

  /** The packets from `first` to `last` arrive twice; while too many copies wait, no other is made. */
  copyPackets(disorder: Disorder, first: number, last = first): void {
    this.#copied.add(first, last, this.#disorders.push(checkedDisorder(disorder)));
    this.#findNext();
  }

  /** The packets from `first` to `last` are passed by others, but for those that come while one is held for that. */
  reorderPackets(disorder: Disorder, first: number, last = first): void {
    this.#reordered.add(first, last, this.#disorders.push(checkedDisorder(disorder)));
    this.#findNext();
  }

  /** While it is true, every packet counts as one with a fault: one of them is held until others have passed it. */
  set isEachConcerned(isEach: boolean) {
    this.#isEachConcerned = isEach;
    this.#findNext();
  }

  isCorrupted(packet: number): boolean {
    return this.#corrupted.valueOf(packet) !== 0;
  }

  isLost(packet: number): boolean {
    return this.#lost.valueOf(packet) !== 0;
  }

  copyOf(packet: number): Disorder | undefined {
    return this.#disorders[this.#copied.valueOf(packet) - 1];
  }

  reorderingOf(packet: number): Disorder | undefined {
    return this.#disorders[this.#reordered.valueOf(packet) - 1];
  }

  delayPs(packet: number): number {
    return this.#delaysPs.valueOf(packet);
  }

  /** The faults of this packet have been applied. */
  passed(packet: number): void {
    for (const ranges of this.#all()) ranges.passed(packet);
    this.#findNext();
  }

  #findNext(): void {
    this.nextPacket = this.#isEachConcerned ? 0 : Math.min(...this.#all().map(({ next }) => next));
  }

  #all(): readonly FaultRanges[] {
    return [this.#corrupted, this.#lost, this.#delaysPs, this.#copied, this.#reordered];
  }
}

function checkedDisorder(disorder: Disorder): Disorder {
  assertRange('passes', disorder.passes, 1, Number.MAX_SAFE_INTEGER);
  assertRange('delayPs', disorder.delayPs, 1, FAULT_DELAY_PS_MAX);
  return disorder;
}
