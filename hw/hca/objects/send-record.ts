/**
 * One send WQE that has been started and is not yet complete. One object per place of {@link SendRecords}, created
 * once. Fields that are not Wide hold 32-bit integers.
 */
import type { Cycles, Wide } from '../../../base/index.ts';
import { KeyRequest } from './key-request.ts';
import { StreamMilestones } from './stream-milestones.ts';

/** Largest descriptor, hence most inline data. */
export const INLINE_BYTES_MAX = 1008;

/** A piece of host memory that a work request gathers from, or scatters to. */
export class DataSegment {
  address: Wide = 0;
  addressTop = 0;
  key: Wide = 0;
  bytes = 0;
}

/**
 * Reasons for which an attempt to send a request ended: an answer of the peer or its absence, an ACK timeout, or the
 * end of an RNR delay.
 */
export const ENDED_BY_ANSWER = 0;
export const ENDED_BY_TIMEOUT = 1;
export const ENDED_BY_RNR_DELAY = 2;

/** Value instead of the edge at which an attempt ended: no attempt was made. */
export const NO_ATTEMPT = Number.NEGATIVE_INFINITY;

/**
 * Attempts to send a request before the last one, in core cycles: the parts that the operations' ledger adds to its stages.
 * They tile the time from the taking up of the request to the end of the last of them.
 */
class EarlierAttempts {
  /**
   * Edge at which the last of them ended; {@link NO_ATTEMPT} if there was none.
   */
  endCycle = NO_ATTEMPT;
  gatherCycles: Wide = 0;
  transmitCycles: Wide = 0;
  answerCycles: Wide = 0;
  timeoutCycles: Wide = 0;
  rnrDelayCycles: Wide = 0;
  rateWaitCycles: Wide = 0;

  clear(): void {
    this.endCycle = NO_ATTEMPT;
    this.rateWaitCycles = 0;
    this.gatherCycles = 0;
    this.transmitCycles = 0;
    this.answerCycles = 0;
    this.timeoutCycles = 0;
    this.rnrDelayCycles = 0;
  }

  /**
   * Adds an attempt of `request` that ends at `cycle`. `endedBy` gets the time since its last packet was sent, or since
   * the attempt began if none was. The waits for the QP's rate come first, as in the last attempt.
   */
  add(request: SendRecord, cycle: Cycles, endedBy: number): void {
    let waitsFrom = Math.max(this.endCycle, request.startedCycle);
    if (request.rateWaitCycles > 0) {
      const held = request.rateWaitUntil(cycle);
      this.rateWaitCycles += held;
      waitsFrom += held;
      request.rateWaitCycles = 0;
    }
    if (request.transmittedCycle > waitsFrom) {
      const gathered = Math.min(Math.max(request.gatheredCycle, waitsFrom), request.transmittedCycle);
      this.gatherCycles += gathered - waitsFrom;
      this.transmitCycles += request.transmittedCycle - gathered;
      waitsFrom = request.transmittedCycle;
    }
    const waited = cycle - waitsFrom;
    if (endedBy === ENDED_BY_TIMEOUT) this.timeoutCycles += waited;
    else if (endedBy === ENDED_BY_RNR_DELAY) this.rnrDelayCycles += waited;
    else this.answerCycles += waited;
    this.endCycle = cycle;
  }
}

export class SendRecord {
  /**
   * The record's index in {@link SendRecords}.
   */
  readonly number: number;
  /** Incremented when the request has ended: anything with an older value belongs to an earlier request. */
  generation = 0;
  /**
   * The next record of the QP's list; {@link noRecord} after the last.
   */
  next: SendRecord;
  qp = 0;
  wqeCounter = 0;
  opcode = 0;
  isSignalled = 0;
  isSolicited = 0;
  /** READ or atomic: completed by a response of its own. */
  isReadOrAtomic = 0;
  /** Fast registration, local invalidate or bind: carried out on this side, without packets. */
  isKeyOperation = 0;
  readonly keyRequest = new KeyRequest();
  /** Packets of the message; of a READ those of its answer. 0 for a request without packets. */
  packetCount = 0;
  messageBytes = 0;
  remoteAddress: Wide = 0;
  remoteAddressTop = 0;
  remoteKey: Wide = 0;
  immediate = 0;
  /** The peer's SRQ to which an XRC message goes. */
  remoteSrqn = 0;
  segmentCount = 0;
  /** The first data segment, and the others, made when first needed. */
  readonly #segment = new DataSegment();
  readonly #others: DataSegment[] = [];
  isInline = 0;
  /** Size of its WQE. */
  wqeBytes = 0;
  readonly inlineData: Uint8Array;
  /** Operands of an atomic as low and high words: swap or add, compare, and the masks of both. */
  readonly operands = new Int32Array(8);
  /** Responses of a READ received. */
  responsesReceived = 0;
  /** A local error found when the WQE was started or its payload read: a CQE syndrome, or 0. */
  syndrome = 0;
  /**
   * 1 if the request waits for nothing more: a NOP, a completed operation on keys, or a sent message of an unreliable
   * service.
   */
  isDone = 0;
  /**
   * Milestones of its time on chip, in core cycles: its WQE was requested, arrived, was started; all payload was on
   * chip; the last packet was sent; the response arrived.
   */
  fetchBegunCycle = 0;
  fetchedCycle = 0;
  startedCycle = 0;
  gatheredCycle = 0;
  transmittedCycle = 0;
  acknowledgedCycle = 0;
  /** Cycles for which the rate of its QP holds back its packets in the last attempt, and the end of the last such wait. */
  rateWaitCycles: Wide = 0;
  rateWaitEndCycle = 0;
  /** Times spent before the attempt to which the milestones above belong. */
  readonly earlier = new EarlierAttempts();
  /** Milestones that only transports over a byte stream have. */
  readonly stream = new StreamMilestones();

  constructor(number: number, inlineData: Uint8Array) {
    this.number = number;
    this.next = this;
    this.inlineData = inlineData;
  }

  /** The data segment of this number. */
  segment(index: number): DataSegment {
    if (index === 0) return this.#segment;
    while (index > this.#others.length) this.#others.push(new DataSegment());
    return this.#others[index - 1]!;
  }

  /** The rate of its QP holds it back from `cycle` until `endCycle`. Waits that overlap count once. */
  waitsForRate(cycle: Cycles, endCycle: Cycles): void {
    const sinceCycle = this.rateWaitCycles > 0 ? Math.max(cycle, this.rateWaitEndCycle) : cycle;
    if (endCycle <= sinceCycle) return;
    this.rateWaitCycles += endCycle - sinceCycle;
    this.rateWaitEndCycle = endCycle;
  }

  /** The waits for the rate in the last attempt, which ends at `cycle`: possibly during the last of them. */
  rateWaitUntil(cycle: Cycles): Cycles {
    if (this.rateWaitCycles === 0) return 0;
    return this.rateWaitCycles - Math.max(0, this.rateWaitEndCycle - cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.rateWaitEndCycle -= cycles;
    this.fetchBegunCycle -= cycles;
    this.fetchedCycle -= cycles;
    this.startedCycle -= cycles;
    this.gatheredCycle -= cycles;
    this.transmittedCycle -= cycles;
    this.acknowledgedCycle -= cycles;
    this.earlier.endCycle -= cycles;
    this.stream.rebase(cycles);
  }
}

/** Placeholder for an absent record: after the last one of a list, and in an empty list. */
export const noRecord = new SendRecord(-1, new Uint8Array(0));

/** The attempts of `first` and all that follow it in the QP's list end at `cycle`. */
export function endAttempts(first: SendRecord, cycle: Cycles, endedBy: number): void {
  for (let request = first; request !== noRecord; request = request.next)
    request.earlier.add(request, cycle, endedBy);
}
