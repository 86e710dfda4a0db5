/**
 * The IBTA transport's side of requests: gives each message its PSNs and its SSN, writes BTH, RETH and AtomicETH fields of its
 * packets, and holds a QP back for PSNs (IBTA vol 1, 9.7.2) and for end-to-end credits (9.7.7.2).
 */
import { CqeSyndrome } from '../../../../abi/index.ts';
import { type Cycles, mask24 } from '../../../../base/index.ts';
import { PSN_MASK, PSNS_OUTSTANDING_MAX } from '../../../../wire/index.ts';
import type { CostAttribution } from '../../costs/index.ts';
import {
  type DatagramAddresses,
  NOT_NUMBERED,
  type QpSlot,
  type QueuePair,
  type SendRecord,
  UD_OPCODE_BASE,
} from '../../objects/index.ts';
import { NOT_PARKED, PARKED_CREDITS, takesCredit } from '../../send-queue/index.ts';
import type { RequestLifecycle, RequestTransport, SentMessages } from '../../transport/index.ts';
import type { NotificationPoint, ReactionPoint } from '../congestion/index.ts';
import type { IbtaPacket, LaneGate, ReorderBuffer } from '../packets/index.ts';
import type { IbtaState, IbtaStates } from '../state/index.ts';
import { fillRequest } from './request-headers.ts';
import type { RetryTimers } from './retry-timers.ts';
import type { SelectiveRepeat } from './selective-repeat.ts';

export interface IbtaRequestPorts {
  readonly timers: RetryTimers;
  readonly ends: SentMessages;
}

/** Parts of the device that {@link IbtaRequests} uses. */
export interface IbtaRequestsSetup {
  readonly states: IbtaStates;
  readonly datagrams: DatagramAddresses;
  readonly costs: CostAttribution | undefined;
  readonly notificationPoint: NotificationPoint;
  readonly reactionPoint: ReactionPoint;
  readonly laneGate: LaneGate;
  /** Undefined with go-back-N. */
  readonly selectiveRepeat: SelectiveRepeat | undefined;
  readonly reorder: ReorderBuffer;
}

export class IbtaRequests implements RequestTransport<IbtaPacket>, RequestLifecycle {
  readonly windowStall: string;
  readonly isPaced: boolean;
  readonly #states: IbtaStates;
  readonly #datagrams: DatagramAddresses;
  readonly #costs: CostAttribution | undefined;
  readonly #notificationPoint: NotificationPoint;
  readonly #reactionPoint: ReactionPoint;
  readonly #laneGate: LaneGate;
  readonly #repeat: SelectiveRepeat | undefined;
  readonly #reorder: ReorderBuffer;
  #timers!: RetryTimers;
  #ends!: SentMessages;

  constructor(setup: IbtaRequestsSetup) {
    const { states, datagrams, costs, notificationPoint, reactionPoint, laneGate, selectiveRepeat } = setup;
    this.#states = states;
    this.#datagrams = datagrams;
    this.#costs = costs;
    this.#notificationPoint = notificationPoint;
    this.#reactionPoint = reactionPoint;
    this.#laneGate = laneGate;
    this.#repeat = selectiveRepeat;
    this.#reorder = setup.reorder;
    this.isPaced = reactionPoint.isPacing;
    // PSNs are rarely used up: with several lanes a QP that may not open a packet waits for its lane.
    this.windowStall = laneGate.isOn ? 'laneClosed' : 'psnWindow';
  }

  connect({ timers, ends }: IbtaRequestPorts): void {
    this.#timers = timers;
    this.#ends = ends;
  }

  slotsGrown(slotCount: number): void {
    this.#timers.slotsGrown(slotCount);
  }

  forget(slot: QpSlot): void {
    this.#timers.forget(slot);
    this.#notificationPoint.forget(slot);
    this.#reactionPoint.forget(slot);
    this.#repeat?.forget(slot);
    this.#reorder.forget(slot);
  }

  /** Without credit, one message may still be sent as a probe if nothing else is outstanding (9.7.7.2.5). */
  reasonToPark({ slot, recordCount }: QueuePair, opcode: number): number {
    const { ssn, ssnLimit } = this.#states.rows[slot]!;
    const isBeyondCredits = ssnLimit !== -1 && recordCount > 0 && ((ssnLimit - ssn - 1) & 0x800000) !== 0;
    return isBeyondCredits && takesCredit(opcode) ? PARKED_CREDITS : NOT_PARKED;
  }

  refusalOf(pair: QueuePair, { messageBytes }: SendRecord): number {
    return messageBytes > messageBytesMaxOf(pair) ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
  }

  packetBytes({ mtuBytes }: QueuePair): number {
    return mtuBytes;
  }

  begin(pair: QueuePair, request: SendRecord): boolean {
    const state = this.#states.rows[pair.slot]!;
    const { packetCount, number } = request;
    if (pair.opcodeBase === 0 && packetCount > psnsLeft(state)) {
      state.psnsWanted = packetCount;
      return false;
    }
    const firstPsn = state.nextPsn;
    this.#states.firstPsn[number] = this.#isNumbered(pair, number)
      ? this.#datagrams.number[number]!
      : firstPsn;
    state.nextPsn = (firstPsn + packetCount) & PSN_MASK;
    state.ssn = (state.ssn + 1) & mask24;
    this.#costs?.numbered(pair, this.#states.firstPsn[number]!, packetCount);
    return true;
  }

  /** Software has written the PSN into the headers of a datagram. */
  #isNumbered({ opcodeBase }: QueuePair, record: number): boolean {
    return opcodeBase === UD_OPCODE_BASE && this.#datagrams.number[record] !== NOT_NUMBERED;
  }

  choosePacket(pair: QueuePair): void {
    if (pair.opcodeBase === 0) this.#repeat?.choosePacket(pair);
  }

  hasRoom(pair: QueuePair, request: SendRecord): boolean {
    if (this.#repeat !== undefined && pair.opcodeBase === 0 && !this.#repeat.hasRoom(pair, request))
      return false;
    return !this.#laneGate.isOn || this.#laneGate.mayRequest(pair, request);
  }

  opened(): void {}

  seal(packet: IbtaPacket, pair: QueuePair, request: SendRecord): void {
    packet.psn = (this.#states.firstPsn[request.number]! + packet.index) & PSN_MASK;
    fillRequest(packet, pair, request);
    if (pair.opcodeBase === 0) this.#repeat?.sealed(packet, pair, request);
    if (this.isPaced) this.#pace(packet, pair, request);
  }

  /** A datagram has a path of its own. */
  #pace({ opcode, payloadBytes }: IbtaPacket, pair: QueuePair, { number }: SendRecord): void {
    const isDatagram = pair.opcodeBase === UD_OPCODE_BASE;
    const rateCode = isDatagram ? this.#datagrams.staticRateCode[number]! : pair.staticRateCode;
    const hasGrh = (isDatagram ? this.#datagrams.hasGrh[number]! : pair.hasGrh) === 1;
    this.#reactionPoint.made(pair, opcode, payloadBytes, rateCode, hasGrh);
  }

  /** Notes that the request was sent: its response is awaited, unless the service has none. */
  sent(packet: IbtaPacket, cycle: Cycles): void {
    const { request, pair, isLast } = packet;
    if (pair.opcodeBase === 0) {
      this.#repeat?.left(packet, pair, request);
      this.#timers.sentAt(pair, request, packet.psn, cycle);
    } else this.#ends.completeOnSend(request, pair, isLast, cycle);
  }
}

/**
 * Returns the longest message: a datagram is one packet, and a message of a reliable connection has no more PSNs than
 * may be outstanding.
 */
function messageBytesMaxOf({ messageBytesMax: limit, mtuBytes, opcodeBase }: QueuePair): number {
  if (opcodeBase === UD_OPCODE_BASE) return Math.min(limit, mtuBytes);
  return opcodeBase === 0 ? Math.min(limit, mtuBytes * PSNS_OUTSTANDING_MAX) : limit;
}

/** PSNs that a QP of a reliable connection may use before one is acknowledged. */
export const psnsLeft = ({ nextPsn, lastAckedPsn }: IbtaState): number =>
  PSNS_OUTSTANDING_MAX - ((nextPsn - 1 - lastAckedPsn) & PSN_MASK);
