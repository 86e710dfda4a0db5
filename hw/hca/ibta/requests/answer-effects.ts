/**
 * Effects of an answer other than completing and repeating requests: the part of the acknowledgement side that go-back-N and
 * selective repeat share.
 *
 *     answer ──▶ Acknowledgements or SelectiveAcknowledgements ──▶ AnswerEffects ──▶ credits, timers, send scheduler, counters
 */
import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount, LogicalProcess } from '../../../../sim/index.ts';
import {
  AethKind,
  CREDIT_CODE_INVALID,
  creditCountByCode,
  PSN_MASK,
  syndromeKind,
  syndromeValue,
  WORD_AETH,
} from '../../../../wire/index.ts';
import { WAIT } from '../../answers.ts';
import type { QueuePair } from '../../objects/index.ts';
import { STALL_COMPLETION } from '../../packets/index.ts';
import type { RequestCompletion } from '../../requester/index.ts';
import {
  PARKED_CREDITS,
  PARKED_PAGE_FAULT,
  PARKED_TRANSPORT_WINDOW,
  type SendScheduler,
} from '../../send-queue/index.ts';
import type { DiagnosticCounters } from '../../statistics/index.ts';
import { countNak, type ReceivedPackets, type TransportCounters } from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';
import { psnsLeft } from './ibta-requests.ts';
import type { RetryTimers } from './retry-timers.ts';

/** Parts of the device that {@link AnswerEffects} uses. */
export interface AnswerEffectsSetup {
  readonly lp: LogicalProcess;
  readonly states: IbtaStates;
  readonly received: ReceivedPackets;
  readonly transport: TransportCounters;
  readonly diagnostics: DiagnosticCounters;
}

export interface AnswerEffectsPorts {
  readonly completion: RequestCompletion;
  readonly scheduler: SendScheduler;
  readonly timers: RetryTimers;
}

export class AnswerEffects {
  readonly #lp: LogicalProcess;
  readonly #states: IbtaStates;
  readonly #packet: ReceivedPackets;
  readonly #transport: TransportCounters;
  readonly #diagnostics: DiagnosticCounters;
  readonly #account: BlockAccount;
  #completion!: RequestCompletion;
  #scheduler!: SendScheduler;
  #timers!: RetryTimers;

  /** @param account that of the receiver, whose stage works on answers */
  constructor({ lp, states, received, transport, diagnostics }: AnswerEffectsSetup, account: BlockAccount) {
    this.#lp = lp;
    this.#states = states;
    this.#packet = received;
    this.#transport = transport;
    this.#diagnostics = diagnostics;
    this.#account = account;
  }

  connect({ completion, scheduler, timers }: AnswerEffectsPorts): void {
    this.#completion = completion;
    this.#scheduler = scheduler;
    this.#timers = timers;
  }

  /** An answer that belongs to no request in flight: counted, except an ACK that is only late. */
  refuse(isAck: boolean, isLate: boolean): 0 {
    if (isAck) this.countNak();
    if (!isAck || !isLate) this.#transport.count('unexpectedResponse');
    return 0;
  }

  /** Counts the packet being worked on if it is a NAK: once, when it is done with. */
  countNak(): void {
    const syndrome = this.#packet.word(WORD_AETH) >>> 24;
    if (syndromeKind(syndrome) === AethKind.ACK) return;
    countNak(syndrome, 'Received', this.#transport, this.#diagnostics);
  }

  /** Updates the limit on sends from the packet's AETH: its MSN plus the credits of its code (9.7.7.2). */
  takeCredits(pair: QueuePair, cycle: Cycles): void {
    const aeth = this.#packet.word(WORD_AETH);
    const code = syndromeValue(aeth >>> 24);
    this.#states.rows[pair.slot]!.ssnLimit =
      code === CREDIT_CODE_INVALID ? -1 : ((aeth & PSN_MASK) + creditCountByCode[code]!) & PSN_MASK;
    if (pair.parkedFor === PARKED_CREDITS) this.#scheduler.unpark(pair, cycle + 1);
  }

  /** More is acknowledged than before: the next request may start if it waits for as many PSNs (9.7.2). */
  progress(pair: QueuePair, cycle: Cycles): void {
    const state = this.#states.rows[pair.slot]!;
    this.#timers.progress(pair);
    if (pair.parkedFor === PARKED_TRANSPORT_WINDOW && state.psnsWanted <= psnsLeft(state))
      this.#scheduler.unpark(pair, cycle + 1);
  }

  /** Restarts the timeout of a QP that waits for a page, and returns true: its answer was dropped here, or its request was not sent. */
  isPostponed(pair: QueuePair): boolean {
    if (pair.parkedFor !== PARKED_PAGE_FAULT) return false;
    const { nowPs } = this.#lp;
    pair.lastProgressPs = nowPs;
    this.#timers.sent(pair, nowPs);
    return true;
  }

  /** The oldest request fails, or the answer waits for room for its CQE. */
  failOrWait(pair: QueuePair, syndrome: number, cycle: Cycles): 0 | typeof WAIT {
    if (this.#completion.fail(pair, syndrome, cycle)) return 0;
    this.waitForCompletion(cycle);
    return WAIT;
  }

  /** The answer waits for room for a CQE. Returns false: nothing is completed. */
  waitForCompletion(cycle: Cycles): false {
    this.#account.stall(cycle, STALL_COMPLETION);
    return false;
  }
}
