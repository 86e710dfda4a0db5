/**
 * Faults of an Ethernet cable: by rules, which count frames from 1 as they leave the port, so that a fault means the same frame in every
 * run, and see what is in the headers of RoCE's packets; PAUSE frames are counted apart; and by chance under a seed.
 */

import { assertRange, viewOf } from '../base/index.ts';
import { Random } from '../sim/index.ts';
import { takesCongestionMark } from './congestion-mark.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import { bth } from './headers.ts';
import {
  type FaultObserver,
  type OutboundHeaders,
  PAUSE_FRAME,
  PacketRule,
  type PacketSelection,
} from './packet-rules.ts';
import { roceTransportIn } from './roce-bytes.ts';
import { ConcernedRules, FAULT_DELAY_PS_MAX, noRules, type PacketEffect } from './wire-faults.ts';

/** Outcome of a frame on the cable. */
export const OUTCOME_ARRIVES = 0;
export const OUTCOME_LOST = 1;
export const OUTCOME_CORRUPTED = 2;

const MILLION = 1_000_000;

export class EthernetFaults {
  readonly #rules: PacketRule<PacketEffect>[] = [];
  readonly #random: Random;
  readonly #lossPerMillion: number;
  readonly #corruptionPerMillion: number;
  /** Whether chance has a say; without it no lots are drawn. */
  readonly #isChancy: boolean;

  /** @param stream names the port, so that the two directions draw their own lots */
  constructor(config: EthernetConfig, seed: number, stream: string) {
    this.#random = new Random(seed, `ethernet.${stream}`);
    this.#lossPerMillion = config.lossPerMillion;
    this.#corruptionPerMillion = config.corruptionPerMillion;
    this.#isChancy = config.lossPerMillion > 0 || config.corruptionPerMillion > 0;
  }

  /**
   * Has an effect on the frames of a selection; the observer is notified each time that it happens. What a selection says of headers
   * concerns packets of RoCE, to UDP port 4791 in version 2, and no other frame. A late frame holds the link, and so everything behind it. A
   * mark of congestion concerns frames that take one.
   */
  addRule(effect: PacketEffect, selection: PacketSelection, observer: FaultObserver): void {
    if ('delayPs' in effect) assertRange('delayPs', effect.delayPs, 0, FAULT_DELAY_PS_MAX);
    this.#rules.push(new PacketRule(effect, selection, observer));
  }

  /** The rules that concern a frame; to be asked once for every frame, in their order. */
  rulesOn(bytes: Uint8Array, at: number, frameBytes: number): ConcernedRules {
    if (this.#rules.length === 0) return noRules;
    const headers = headersIn(bytes, at, frameBytes);
    const takesMark = takesCongestionMark(bytes, at, frameBytes);
    return new ConcernedRules(
      this.#rules.filter((rule) => (takesMark || !isMark(rule)) && rule.concerns(headers)),
    );
  }

  /** The rules that concern a PAUSE frame of the port itself: no others count it. */
  rulesOnPause(): ConcernedRules {
    if (this.#rules.length === 0) return noRules;
    return new ConcernedRules(this.#rules.filter((rule) => !isMark(rule) && rule.concerns(PAUSE_FRAME)));
  }

  /** What chance does to a frame; asked once for each, in their order. */
  outcomeByChance(): number {
    if (!this.#isChancy) return OUTCOME_ARRIVES;
    if (this.#random.below(MILLION) < this.#lossPerMillion) return OUTCOME_LOST;
    return this.#random.below(MILLION) < this.#corruptionPerMillion ? OUTCOME_CORRUPTED : OUTCOME_ARRIVES;
  }
}

const isMark = ({ effect }: PacketRule<PacketEffect>): boolean => effect.kind === 'congested';

function headersIn(bytes: Uint8Array, at: number, frameBytes: number): OutboundHeaders | undefined {
  const transport = roceTransportIn(bytes, at, frameBytes);
  if (transport === undefined) return undefined;
  const view = viewOf(bytes);
  const { opcode, destinationQp, psn } = bth.fields;
  const { base } = transport;
  return {
    opcode: opcode.get(view, base),
    destinationQpn: destinationQp.get(view, base),
    psn: psn.get(view, base),
  };
}
