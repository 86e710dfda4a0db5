/**
 * Checks of a request before anything of it is done, in the specification's order (IBTA vol 1, 9.7.4.1.1 and figure 84): PSN,
 * opcode sequence and length, resources. An unreliable connection has no duplicates and no NAKs: behind a gap only a packet
 * that begins a message is taken (9.8.2).
 */

import { EventType } from '../../../abi/eqe.ts';
import type { Cycles } from '../../../base/units.ts';
import { NakCode, nakSyndrome } from '../../../wire/aeth.ts';
import { psnDistance } from '../../../wire/psn.ts';
import { type CheckAnswer, DROPPED, DUPLICATE, EXECUTE } from '../answers.ts';
import type { HcaCore } from '../core.ts';
import {
  ENDS_MESSAGE,
  MESSAGE_NONE,
  MESSAGE_UNKNOWN,
  MESSAGE_WRITE,
  STARTS_MESSAGE,
} from '../packets/index.ts';
import type { InboundRequest } from './inbound-request.ts';
import type { RequestRefusals } from './request-refusals.ts';
import { responderPlaces } from './responder-resources.ts';
import type { ResponseEngine } from './response-engine.ts';

export class RequestChecks {
  readonly #core: HcaCore;
  readonly #request: InboundRequest;
  readonly #refusals: RequestRefusals;
  #responses!: ResponseEngine;

  constructor(core: HcaCore, request: InboundRequest, refusals: RequestRefusals) {
    this.#core = core;
    this.#request = request;
    this.#refusals = refusals;
  }

  connect({ responses }: { readonly responses: ResponseEngine }): void {
    this.#responses = responses;
  }

  /** What becomes of the request. */
  check(cycle: Cycles): CheckAnswer {
    const { pair, psn, kind } = this.#request;
    const distance = psnDistance(psn, pair.expectedPsn);
    if (pair.opcodeBase !== 0) return this.#checkUnreliable(distance);
    if (distance < 0) return DUPLICATE;
    if (distance > 0) {
      this.#core.transport.count('requestOutOfSequence');
      if (pair.hasNakSent === 0) this.#refusals.refuse(nakSyndrome(NakCode.PSN_SEQUENCE_ERROR), cycle);
      return DROPPED;
    }
    if (!this.#followsSequence() || !this.#hasLegalLength()) {
      this.#refusals.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return DROPPED;
    }
    return kind !== MESSAGE_NONE || this.#hasResources(cycle) ? EXECUTE : DROPPED;
  }

  /** A gap ends the open message. */
  #checkUnreliable(distance: number): CheckAnswer {
    const { pair, psn, kind } = this.#request;
    if (distance !== 0) {
      this.#core.transport.count('requestOutOfSequence');
      pair.messageKind = MESSAGE_NONE;
      pair.expectedPsn = psn;
    }
    if (kind !== MESSAGE_NONE && this.#followsSequence() && this.#hasLegalLength()) return EXECUTE;
    this.#refusals.giveUp();
    return DROPPED;
  }

  /** First and only start a message when none is open; middle and last continue one of the same kind. */
  #followsSequence(): boolean {
    const { kind, traits, pair } = this.#request;
    if (kind === MESSAGE_UNKNOWN) return false;
    const open = pair.messageKind;
    return (traits & STARTS_MESSAGE) !== 0 ? open === MESSAGE_NONE : open === kind;
  }

  /** Middle packets fill the MTU, last ones are not empty, a WRITE brings what its header announced (9.7.4.1.6). */
  #hasLegalLength(): boolean {
    const { kind, traits, pair, payloadBytes: bytes } = this.#request;
    if (kind === MESSAGE_NONE) return true;
    const starts = (traits & STARTS_MESSAGE) !== 0;
    const ends = (traits & ENDS_MESSAGE) !== 0;
    const mtu = pair.mtuBytes;
    if (bytes > mtu || (!ends && bytes !== mtu) || (ends && !starts && bytes === 0)) return false;
    if (kind !== MESSAGE_WRITE) return true;
    const remaining = starts ? this.#request.dmaBytes : pair.writeRemaining;
    return ends ? bytes === remaining : bytes < remaining;
  }

  /** Room for one more READ or atomic. */
  #hasResources(cycle: Cycles): boolean {
    const { qp, pair } = this.#request;
    if (this.#responses.newCount(qp) < pair.readResourcesMax) {
      // Where repeated requests have taken all places, this one is dropped as if lost: it comes again.
      return this.#responses.queuedCount(qp) < responderPlaces(pair);
    }
    this.#refusals.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
    return false;
  }
}
