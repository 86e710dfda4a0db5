/**
 * Faults of an Ethernet cable: by rules, and at random by a seed. Rules count frames from 1 as they leave the port, so that a
 * fault hits the same frame in every run; they also match header fields of RoCE packets. PAUSE frames are counted separately.
 */

import { assertRange, viewOf } from '../base/index.ts';
import { Random } from '../sim/index.ts';
import { takesCongestionMark } from './congestion-mark.ts';
import { DamagePlace, hasDamagePlace } from './damage.ts';
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
/** It arrives with the wrong frame check sequence with which a cut-through switch received it. */
export const OUTCOME_STILL_WRONG = 3;

const MILLION = 1_000_000;

export class EthernetFaults {
  readonly #rules: PacketRule<PacketEffect>[] = [];
  readonly #random: Random;
  readonly #lossPerMillion: number;
  readonly #corruptionPerMillion: number;
  /** Whether random faults are configured; otherwise no random numbers are drawn. */
  readonly #isChancy: boolean;

  /** @param stream names the port, so that the two directions draw independent random numbers */
  constructor(config: EthernetConfig, seed: number, stream: string) {
    this.#random = new Random(seed, `ethernet.${stream}`);
    this.#lossPerMillion = config.lossPerMillion;
    this.#corruptionPerMillion = config.corruptionPerMillion;
    this.#isChancy = config.lossPerMillion > 0 || config.corruptionPerMillion > 0;
  }

  /**
   * Adds an effect on the frames of a selection; the observer is notified of each occurrence. Header fields of a selection
   * match only RoCE packets (version 2: to UDP port 4791). A late frame holds the link, and so all frames after it. A
   * congestion mark applies to frames that accept one, and damage of the payload to frames that have one.
   */
  addRule(effect: PacketEffect, selection: PacketSelection, observer: FaultObserver): void {
    if ('delayPs' in effect) assertRange('delayPs', effect.delayPs, 0, FAULT_DELAY_PS_MAX);
    this.#rules.push(new PacketRule(effect, selection, observer));
  }

  /** The rules for a frame; called once for every frame, in order. */
  rulesOn(bytes: Uint8Array, at: number, frameBytes: number): ConcernedRules {
    if (this.#rules.length === 0) return noRules;
    const headers = headersIn(bytes, at, frameBytes);
    return new ConcernedRules(
      this.#rules.filter((rule) => canAffect(rule.effect, bytes, at, frameBytes) && rule.concerns(headers)),
    );
  }

  /** The rules for a PAUSE frame of the port itself: no others count it. */
  rulesOnPause(): ConcernedRules {
    if (this.#rules.length === 0) return noRules;
    return new ConcernedRules(
      this.#rules
        .filter(({ effect }) => !isMark(effect) && !isInPayload(effect))
        .filter((rule) => rule.concerns(PAUSE_FRAME)),
    );
  }

  /** Random fault of a frame; called once for each, in order. */
  outcomeByChance(): number {
    if (!this.#isChancy) return OUTCOME_ARRIVES;
    if (this.#random.below(MILLION) < this.#lossPerMillion) return OUTCOME_LOST;
    return this.#random.below(MILLION) < this.#corruptionPerMillion ? OUTCOME_CORRUPTED : OUTCOME_ARRIVES;
  }
}

const isMark = ({ kind }: PacketEffect): boolean => kind === 'congested';

const isInPayload = (effect: PacketEffect): boolean =>
  effect.kind === 'corrupted' && effect.place === DamagePlace.PAYLOAD;

/** Whether the effect is possible for the frame: otherwise its rule does not count the frame. */
function canAffect(effect: PacketEffect, bytes: Uint8Array, at: number, frameBytes: number): boolean {
  if (isMark(effect)) return takesCongestionMark(bytes, at, frameBytes);
  return !isInPayload(effect) || hasDamagePlace(bytes, at, frameBytes, DamagePlace.PAYLOAD);
}

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
