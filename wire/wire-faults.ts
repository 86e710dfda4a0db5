/**
 * Faults of the cable: by packet number (packets are counted from 1 as they leave this port, so that a fault hits the same
 * packet in every run), and by rules on the packets' headers.
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

/** Parameters of a reordering. */
export interface Passing {
  /** Packets of the same lane that overtake the packet. */
  readonly passes: number;
  /** Limit of its holding time; for a copy, its delay after its packet. */
  readonly delayPs: Picoseconds;
}

/** A disorder fault caused by a rule. */
export interface Disorder extends FaultObserver {
  readonly effect: Passing;
}

/** A disorder fault by packet number. */
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

/** Effects of a rule on its packets; indices and times as in {@link WireFaults}. */
export type PacketEffect =
  | { readonly kind: 'lost' }
  | { readonly kind: 'congested' }
  | { readonly kind: 'late'; readonly delayPs: Picoseconds }
  | { readonly kind: 'duplicated' | 'reordered'; readonly passes: number; readonly delayPs: Picoseconds }
  | {
      readonly kind: 'corrupted';
      /** A DamagePlace. */
      readonly place: number;
      /** It occurs within a switch, which sends a right VCRC over it. */
      readonly isInside: boolean;
    };

type EffectOf<Kind extends PacketEffect['kind'], Effect = PacketEffect> = Effect extends {
  readonly kind: infer Own;
}
  ? Kind extends Own
    ? Effect
    : never
  : never;

/** The rules for one packet. If several have the same effect, the first one counts. */
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
  /** The next packet with a fault, or Infinity: the only comparison for every packet. */
  nextPacket = Number.POSITIVE_INFINITY;
  readonly #corrupted = new FaultRanges();
  readonly #lost = new FaultRanges();
  readonly #delaysPs = new FaultRanges();
  /** Copies and reorderings, and for each range its index among them, from 1. */
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

  /** Holds the link before each of these packets, and so all packets after it: a link keeps the order of packets. */
  delayPackets(delayPs: Picoseconds, first: number, last = first): void {
    this.#delaysPs.add(first, last, assertRange('delayPs', delayPs, 0, FAULT_DELAY_PS_MAX));
    this.#findNext();
  }

  /** The packets from `first` to `last` leave, and never arrive. */
  losePackets(first: number, last = first): void {
    this.#lost.add(first, last, 1);
    this.#findNext();
  }

  /** The packets from `first` to `last` arrive twice; no further copy is made while too many wait. */
  copyPackets(effect: Passing, observer: FaultObserver, first: number, last = first): void {
    this.#copied.add(first, last, this.#addDisorder(effect, observer));
    this.#findNext();
  }

  /** The packets from `first` to `last` are overtaken by others, except those that leave while one is held for this. */
  reorderPackets(effect: Passing, observer: FaultObserver, first: number, last = first): void {
    this.#reordered.add(first, last, this.#addDisorder(effect, observer));
    this.#findNext();
  }

  /** Adds an effect on the packets of a selection; the observer is notified of each occurrence. */
  addRule(effect: PacketEffect, selection: PacketSelection, observer: FaultObserver): void {
    if ('delayPs' in effect) assertRange('delayPs', effect.delayPs, 0, FAULT_DELAY_PS_MAX);
    this.#rules.push(new PacketRule(effect, selection, observer));
    this.#findNext();
  }

  /** The rules for a packet; called once for every packet, in order. */
  rulesOn(packet: OutboundHeaders): ConcernedRules {
    if (this.#rules.length === 0) return noRules;
    return new ConcernedRules(this.#rules.filter((rule) => rule.concerns(packet)));
  }

  /** While true, every packet counts as faulty: a packet is held until others have overtaken it. */
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

  /** Returns its index among the reorderings, from 1. */
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
