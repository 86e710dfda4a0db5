/**
 * Selective repeat: which packet of a QP is made next, how many may be in flight, and how long an answer is awaited.
 *
 *     Requester ── choosePacket, hasRoom, sealed ──▶ SendWindow of each QP ◀── SelectiveAcknowledgements
 *
 * - A lost packet goes before new ones (SendWindow says which are lost). A lost response of a READ is requested again by a
 *   request for the responses that lack alone; the others that have come are placed already.
 * - No more than a window is in flight (BDP-FC). A READ counts with its responses, and may begin while less than a window is.
 * - A repeated packet requests an acknowledgement, and so does a packet after each quarter of a window.
 * - The timeout is short while few packets are in flight (RTO_low), longer otherwise (RTO_high), and never longer than the
 *   QP's own, which alone costs retries. Each timeout that follows another without an answer between them is twice as long.
 *
 * Sources: IRN, 3.1 and 3.2; RFC 6298, 5.5 (back-off).
 */
import { WqeOpcode } from '../../../../abi/index.ts';
import { type Picoseconds, psPerUs } from '../../../../base/index.ts';
import type { LogicalProcess } from '../../../../sim/index.ts';
import { FLAG_ACK_REQUEST, psnAdd, psnDistance } from '../../../../wire/index.ts';
import { noRecord, type QpSlot, type QueuePair, type SendRecord } from '../../objects/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { IbtaPacket, TransportCounters } from '../packets/index.ts';
import type { IbtaState, IbtaStates } from '../state/index.ts';
import { HELD, PLACED, SendWindow } from './send-window.ts';

const { RDMA_READ } = WqeOpcode;

/** No packet is lost. */
export const NOTHING_LOST = -1;

/** Parts of the device that {@link SelectiveRepeat} uses. */
export interface SelectiveRepeatSetup {
  readonly lp: LogicalProcess;
  readonly states: IbtaStates;
  readonly transport: TransportCounters;
  readonly config: Pick<
    HcaConfig,
    'recoveryWindowPackets' | 'retransmitLowUs' | 'retransmitHighUs' | 'retransmitLowPackets'
  >;
}

export class SelectiveRepeat {
  readonly #lp: LogicalProcess;
  readonly #states: IbtaStates;
  readonly #transport: TransportCounters;
  readonly #config: SelectiveRepeatSetup['config'];
  /** By slot; a QP that has sent nothing has none. */
  readonly #windows = new Map<QpSlot, SendWindow>();

  constructor({ lp, states, transport, config }: SelectiveRepeatSetup) {
    this.#lp = lp;
    this.#states = states;
    this.#transport = transport;
    this.#config = config;
    lp.addTimeKeeper(this);
  }

  /** The window of a QP, which is made with its first request. */
  windowOf({ slot }: QueuePair): SendWindow {
    let window = this.#windows.get(slot);
    if (window === undefined) {
      const { nextPsn } = this.#stateOf(slot);
      window = new SendWindow(this.#config.recoveryWindowPackets, nextPsn, this.#lp.nowPs);
      this.#windows.set(slot, window);
    }
    return window;
  }

  /** A generation of the QP begins or ends. */
  forget(slot: QpSlot): void {
    this.#windows.delete(slot);
  }

  /** Moves the cursor of a QP to the packet to be made next: a lost one, else a new one; off the list if neither exists. */
  choosePacket(pair: QueuePair): void {
    const lostPsn = this.nextLost(pair);
    if (lostPsn !== NOTHING_LOST) return this.#moveCursor(pair, lostPsn);
    const { madePsn } = this.windowOf(pair);
    const { recordCursor, packetCursor } = pair;
    const isThere =
      recordCursor === noRecord
        ? madePsn === this.#stateOf(pair.slot).nextPsn
        : madePsn === psnAdd(this.#states.firstPsnOf(recordCursor), packetCursor);
    if (!isThere) this.#moveCursor(pair, madePsn);
  }

  #moveCursor(pair: QueuePair, psn: number): void {
    let request = pair.recordHead;
    while (request !== noRecord && this.#isAfter(psn, request)) request = request.next;
    pair.recordCursor = request.syndrome === 0 ? request : noRecord;
    pair.packetCursor = request === noRecord ? 0 : psnDistance(psn, this.#states.firstPsnOf(request));
  }

  /** PSN of the oldest packet to be sent again; {@link NOTHING_LOST} for none. */
  nextLost(pair: QueuePair): number {
    const window = this.windowOf(pair);
    const { lastAckedPsn } = this.#stateOf(pair.slot);
    const evidencePsn = later(window.requests.evidencePsn, window.responses.evidencePsn);
    let request = pair.recordHead;
    let psn = psnAdd(lastAckedPsn, 1);
    while (psnDistance(psn, evidencePsn) < 0 && psnDistance(psn, lastAckedPsn) <= window.size) {
      while (request !== noRecord && this.#isAfter(psn, request)) request = request.next;
      if (request === noRecord || request.syndrome !== 0) return NOTHING_LOST;
      const isAccepted = window.isAccepted(psn);
      const isLost = isAccepted
        ? request.isReadOrAtomic === 1 && !window.has(psn, PLACED) && window.responses.mayBeLost(psn)
        : !window.has(psn, HELD) && window.requests.mayBeLost(psn);
      if (isLost) return psn;
      psn = !isAccepted && request.opcode === RDMA_READ ? this.#psnAfter(request) : psnAdd(psn, 1);
    }
    return NOTHING_LOST;
  }

  /** Whether the packet at the cursor may be made: a repeated one always, a new one while less than a window is in flight. */
  hasRoom(pair: QueuePair, request: SendRecord): boolean {
    const window = this.windowOf(pair);
    const psn = psnAdd(this.#states.firstPsnOf(request), pair.packetCursor);
    if (psn !== window.madePsn) return true;
    return this.inFlight(pair) < window.size;
  }

  /** PSNs made and not acknowledged, those of READ responses among them. */
  inFlight(pair: QueuePair): number {
    return psnDistance(this.windowOf(pair).madePsn, this.#stateOf(pair.slot).lastAckedPsn) - 1;
  }

  /** The headers of a packet are written. */
  sealed(packet: IbtaPacket, pair: QueuePair, request: SendRecord): void {
    const window = this.windowOf(pair);
    const { psn } = packet;
    if (psn === window.madePsn) return this.#made(packet, pair, request, window);
    const isAccepted = window.isAccepted(psn);
    const count = this.#repeatedPsns(window, request, psn);
    if (isAccepted) this.#transport.count('missingResponse');
    if (request.opcode === RDMA_READ) packet.dmaBytes = Math.min(packet.dmaBytes, count * pair.mtuBytes);
    packet.flags |= FLAG_ACK_REQUEST;
    (isAccepted ? window.responses : window.requests).repeatFromPsn = psnAdd(psn, count);
    if (!isAccepted) window.repeated(psn);
  }

  /** A packet leaves the card. */
  left({ psn }: IbtaPacket, pair: QueuePair, request: SendRecord): void {
    const count = request.opcode === RDMA_READ ? psnDistance(this.#psnAfter(request), psn) : 1;
    this.#windows.get(pair.slot)?.left(psn, count);
  }

  #made(packet: IbtaPacket, pair: QueuePair, request: SendRecord, window: SendWindow): void {
    if (this.inFlight(pair) === 0) window.chargedPs = this.#lp.nowPs;
    window.madePsn = request.opcode === RDMA_READ ? this.#psnAfter(request) : psnAdd(packet.psn, 1);
    if (psnDistance(window.madePsn, window.askedPsn) >= window.size / 4) packet.flags |= FLAG_ACK_REQUEST;
    if ((packet.flags & FLAG_ACK_REQUEST) !== 0) window.askedPsn = window.madePsn;
  }

  /** PSNs that one repeated packet stands for: of a READ, the responses that lack in a row, or all if the peer lacks its request. */
  #repeatedPsns(window: SendWindow, request: SendRecord, psn: number): number {
    if (request.opcode !== RDMA_READ) return 1;
    const end = this.#psnAfter(request);
    if (!window.isAccepted(psn)) return psnDistance(end, psn);
    const isBefore = (next: number): boolean =>
      psnDistance(next, end) < 0 && psnDistance(next, window.responses.evidencePsn) < 0;
    let count = 1;
    while (count < window.size && isBefore(psnAdd(psn, count)) && !window.has(psnAdd(psn, count), PLACED))
      count++;
    return count;
  }

  /**
   * A timeout has expired: the oldest packet in flight is sent again; of a READ that the peer has accepted, all responses
   * that lack. The answer shows what else the peer lacks.
   */
  timedOut(pair: QueuePair): void {
    const window = this.windowOf(pair);
    const oldestPsn = psnAdd(this.#stateOf(pair.slot).lastAckedPsn, 1);
    window.timedOutPsn = psnAdd(window.leftPsn, -1);
    window.timeoutCount++;
    window.clear(oldestPsn, 1);
    for (const losses of [window.requests, window.responses]) {
      losses.repeatFromPsn = oldestPsn;
      losses.sentBefore(psnAdd(oldestPsn, 1));
    }
    const { recordHead } = pair;
    if (window.isAccepted(oldestPsn) && recordHead.packetCount > 0)
      window.responses.sentBefore(this.#psnAfter(recordHead));
  }

  /** Time without progress after which {@link timedOut} is due. */
  timeoutPs(pair: QueuePair, ackTimeoutPs: Picoseconds): Picoseconds {
    const { retransmitLowUs, retransmitHighUs, retransmitLowPackets } = this.#config;
    const us = this.inFlight(pair) < retransmitLowPackets ? retransmitLowUs : retransmitHighUs;
    return this.#backedOffPs(pair, us, ackTimeoutPs);
  }

  /** The shortest of these times until the peer answers, whatever is in flight. */
  shortestPs(pair: QueuePair, ackTimeoutPs: Picoseconds): Picoseconds {
    const { retransmitLowUs, retransmitHighUs } = this.#config;
    return this.#backedOffPs(pair, Math.min(retransmitLowUs, retransmitHighUs), ackTimeoutPs);
  }

  #backedOffPs(pair: QueuePair, us: number, ackTimeoutPs: Picoseconds): Picoseconds {
    return Math.min(ackTimeoutPs, us * psPerUs * 2 ** this.windowOf(pair).timeoutCount);
  }

  /** Everything up to `psn` is acknowledged, where less was before. */
  acknowledged(pair: QueuePair, psn: number): void {
    const state = this.#stateOf(pair.slot);
    const window = this.windowOf(pair);
    window.clear(psnAdd(state.lastAckedPsn, 1), psnDistance(psn, state.lastAckedPsn));
    window.chargedPs = this.#lp.nowPs;
    state.lastAckedPsn = psn;
    for (const losses of [window.requests, window.responses]) losses.settledBefore(psnAdd(psn, 1));
    if (psnDistance(window.madePsn, psn) <= 0) window.madePsn = psnAdd(psn, 1);
  }

  #stateOf(slot: QpSlot): IbtaState {
    return this.#states.rows[slot]!;
  }

  #psnAfter(request: SendRecord): number {
    return psnAdd(this.#states.lastPsnOf(request), 1);
  }

  /** Whether the PSN is after all of the request; always if that has none. */
  #isAfter(psn: number, request: SendRecord): boolean {
    return request.packetCount === 0 || psnDistance(psn, this.#states.lastPsnOf(request)) > 0;
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const window of this.#windows.values()) window.rebase(ps);
  }
}

const later = (psn: number, other: number): number => (psnDistance(psn, other) > 0 ? psn : other);
