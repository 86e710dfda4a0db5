/**
 * Faults of the cable: by packet number (packets are counted from 1 as they leave this port, so that a fault means the same
 * packet in every run), and by rules on what is in the packets' headers.
 */

import { assertRange, type Picoseconds } from '../base/index.ts';
import { FaultRanges } from './fault-ranges.ts';
import {
  type FaultObserver,
  type OutboundHeaders,
  PacketRule,
  type PacketSelection,
} from './packet-rules.ts';

/** Longest time for which a fault holds the link before a packet: 1000 s. */
export const FAULT_DELAY_PS_MAX = 1e15;

/** How packets are put out of order. */
export interface Passing {
  /** Packets of the same lane that pass the packet. */
  readonly passes: number;
  /** For how long it is held at most; of a copy, how long after its packet it leaves. */
  readonly delayPs: Picoseconds;
}

/** Such a fault; a rule that does it is one. */
export interface Disorder extends FaultObserver {
  readonly effect: Passing;
}

/** Such a fault by packet number. */
class PlannedDisorder implements Disorder {
  readonly effect: Passing;
  readonly #observer: FaultObserver;

  constructor(effect: Passing, observer: FaultObserver) {
    this.effect = effect;
    this.#observer = observer;
  }

  fired(): void {
    this.#observer.fired();
  }
}

/** What a rule does to the packets that it concerns; places and times as in {@link WireFaults}. */
export type PacketEffect =
  | { readonly kind: 'lost' }
  | { readonly kind: 'congested' }
  | { readonly kind: 'late'; readonly delayPs: Picoseconds }
  | { readonly kind: 'duplicated' | 'reordered'; readonly passes: number; readonly delayPs: Picoseconds }
  | {
      readonly kind: 'corrupted';
      /** A DamagePlace. */
      readonly place: number;
      /** It happens within a switch, which sends a right VCRC over it. */
      readonly isInside: boolean;
    };

type EffectOf<Kind extends PacketEffect['kind'], Effect = PacketEffect> = Effect extends {
  readonly kind: infer Own;
}
  ? Kind extends Own
    ? Effect
    : never
  : never;

/** The rules that concern one packet. Of several with one effect the one given first counts. */
export class ConcernedRules {
  readonly #rules: readonly PacketRule<PacketEffect>[];

  constructor(rules: readonly PacketRule<PacketEffect>[]) {
    this.#rules = rules;
  }

  of<Kind extends PacketEffect['kind']>(kind: Kind): PacketRule<EffectOf<Kind>> | undefined {
    return this.#rules.find(({ effect }) => effect.kind === kind) as PacketRule<EffectOf<Kind>> | undefined;
  }
}

export const noRules = new ConcernedRules([]);

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
  readonly #rules: PacketRule<PacketEffect>[] = [];
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
  copyPackets(effect: Passing, observer: FaultObserver, first: number, last = first): void {
    this.#copied.add(first, last, this.#addDisorder(effect, observer));
    this.#findNext();
  }

  /** The packets from `first` to `last` are passed by others, but for those that come while one is held for that. */
  reorderPackets(effect: Passing, observer: FaultObserver, first: number, last = first): void {
    this.#reordered.add(first, last, this.#addDisorder(effect, observer));
    this.#findNext();
  }

  /** Has an effect on the packets of a selection; the observer is notified each time that it happens. */
  addRule(effect: PacketEffect, selection: PacketSelection, observer: FaultObserver): void {
    if ('delayPs' in effect) assertRange('delayPs', effect.delayPs, 0, FAULT_DELAY_PS_MAX);
    this.#rules.push(new PacketRule(effect, selection, observer));
    this.#findNext();
  }

  /** The rules that concern a packet; to be asked once for every packet, in their order. */
  rulesOn(packet: OutboundHeaders): ConcernedRules {
    if (this.#rules.length === 0) return noRules;
    return new ConcernedRules(this.#rules.filter((rule) => rule.concerns(packet)));
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

  /** Returns its place among the disorders, from 1. */
  #addDisorder(effect: Passing, observer: FaultObserver): number {
    assertRange('passes', effect.passes, 1, Number.MAX_SAFE_INTEGER);
    assertRange('delayPs', effect.delayPs, 1, FAULT_DELAY_PS_MAX);
    return this.#disorders.push(new PlannedDisorder(effect, observer));
  }

  #findNext(): void {
    const isEach = this.#isEachConcerned || this.#rules.length > 0;
    this.nextPacket = isEach ? 0 : Math.min(...this.#all().map(({ next }) => next));
  }

  #all(): readonly FaultRanges[] {
    return [this.#corrupted, this.#lost, this.#delaysPs, this.#copied, this.#reordered];
  }
}
