/**
 * Refusals of requests (IBTA vol 1, 9.7.5.2): a NAK for the expected PSN, an RNR NAK for what will be possible later, and
 * silence on an unreliable connection, whose message is abandoned. What follows is dropped until the packet comes again.
 */

import { EventType } from '../../../abi/eqe.ts';
import type { Cycles } from '../../../base/units.ts';
import { nakSyndrome, rnrNakSyndrome } from '../../../wire/aeth.ts';
import { PSN_MASK } from '../../../wire/psn.ts';
import type { HcaCore } from '../core.ts';
import { SIDE_RESPONDER } from '../memory/index.ts';
import { MESSAGE_NONE } from '../packets/index.ts';
import type { InboundRequest } from './inbound-request.ts';
import type { ResponseEngine } from './response-engine.ts';

export interface RefusedQps {
  /** A request broke a rule: the NAK is queued; the QP goes to error, with an asynchronous event or 0. */
  refused(qp: number, eventType: number, cycle: Cycles): void;
}

export class RequestRefusals {
  readonly #core: HcaCore;
  readonly #request: InboundRequest;
  #responses!: ResponseEngine;
  #errors!: RefusedQps;

  constructor(core: HcaCore, request: InboundRequest) {
    this.#core = core;
    this.#request = request;
  }

  connect({ responses, errors }: { readonly responses: ResponseEngine; readonly errors: RefusedQps }): void {
    this.#responses = responses;
    this.#errors = errors;
  }

  /** NAK or RNR NAK for the expected PSN. */
  refuse(syndrome: number, cycle: Cycles): void {
    const { qp, pair } = this.#request;
    if (pair.opcodeBase !== 0) return this.giveUp();
    pair.hasNakSent = 1;
    this.#responses.refuse(qp, pair.expectedPsn, syndrome, cycle);
  }

  /** A rule was broken: the QP goes to error, but for an unreliable one whose peer is at fault. */
  refuseForGood(nakCode: number, eventType: number, cycle: Cycles): void {
    const { qp, pair } = this.#request;
    this.refuse(nakSyndrome(nakCode), cycle);
    const isOwnFault = eventType === EventType.WQ_CATAS_ERROR;
    if (pair.opcodeBase === 0 || isOwnFault) this.#errors.refused(qp, eventType, cycle);
  }

  /** The memory will be there later: RNR NAK, as mlx5 answers. */
  refuseForNow(cycle: Cycles): void {
    const { pair } = this.#request;
    const { pageFaults: faults } = this.#core;
    if (pair.opcodeBase === 0) faults.rnrNakCount++;
    else faults.droppedPacketCount++;
    this.refuse(rnrNakSyndrome(pair.minRnrNakCode), cycle);
  }

  /** Asks for a page of an on-demand region; the packet is to come again. False: the driver has refused it. */
  askForPage(key: number, address: number, bytes: number, isWrite: number, cycle: Cycles): boolean {
    const { qp } = this.#request;
    const isAsked = this.#core.pageFaults.raise(qp, SIDE_RESPONDER, key, address, bytes, isWrite, cycle);
    if (isAsked) this.refuseForNow(cycle);
    return isAsked;
  }

  /** The message is lost; the packet has been. */
  giveUp(): void {
    const { pair, psn } = this.#request;
    pair.messageKind = MESSAGE_NONE;
    pair.expectedPsn = (psn + 1) & PSN_MASK;
  }
}
