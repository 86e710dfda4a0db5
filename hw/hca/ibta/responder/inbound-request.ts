/**
 * The request on which the responder works: its packet, its QP, its progress, and its refusal. There is one at a time.
 *
 * Refusals (IBTA vol 1, 9.7.5.2) are a NAK for the expected PSN, an RNR NAK for a temporary reason, and silence on an
 * unreliable connection, whose message is abandoned. Later packets are dropped until this packet is retransmitted.
 */
import { EventType } from '../../../../abi/index.ts';
import type { Cycles, VirtualAddress } from '../../../../base/index.ts';
import { nakSyndrome, PSN_MASK, rnrNakSyndrome } from '../../../../wire/index.ts';
import { type PageFaults, SIDE_RESPONDER, type WantedPages } from '../../memory/index.ts';
import { type QpSlot, QueuePair, type SrqTable, XRC_SERVICE } from '../../objects/index.ts';
import { MESSAGE_NONE, messageKind, type ReceivedPackets, type TransportCounters } from '../packets/index.ts';
import { IbtaState, type IbtaStates } from '../state/index.ts';
import type { ResponseEngine } from './response-engine.ts';

/** No region belongs to this PD. */
const NO_PD = -1;

export interface RefusedQps {
  /** A request broke a rule: the NAK is queued; the QP goes to error, with an asynchronous event (0: none). */
  refused(qp: QpSlot, eventType: number, cycle: Cycles): void;
}

export interface InboundRequestPorts {
  readonly responses: ResponseEngine;
  readonly errors: RefusedQps;
}

/** Parts of the device that {@link InboundRequest} uses. */
export interface InboundRequestSetup {
  readonly states: IbtaStates;
  readonly srqs: SrqTable;
  readonly pageFaults: PageFaults;
  readonly received: ReceivedPackets;
  readonly transport: TransportCounters;
}

export class InboundRequest {
  /** Its headers: the packet that the receiver is processing. */
  readonly packet: ReceivedPackets;
  /** The QP of the request, and its sequence numbers. */
  pair = new QueuePair();
  state = new IbtaState();
  /** Protection domain of the memory that the peer may reach: the QP's, or that of the SRQ which an XRC request names. */
  pd = 0;
  /** Slot of that SRQ, or -1. */
  srq = -1;
  /** MESSAGE_ kind of the opcode. */
  kind = MESSAGE_NONE;
  /** Payload bytes of the packet already on their way. */
  placed = 0;
  /** CQE syndrome of a receive WQE that the message does not fit or whose memory is refused; 0 while all is well. */
  receiveSyndrome = 0;
  readonly #states: IbtaStates;
  readonly #srqs: SrqTable;
  readonly #pageFaults: PageFaults;
  readonly #transport: TransportCounters;
  #responses!: ResponseEngine;
  #errors!: RefusedQps;

  constructor(setup: InboundRequestSetup) {
    this.#states = setup.states;
    this.#srqs = setup.srqs;
    this.#pageFaults = setup.pageFaults;
    this.#transport = setup.transport;
    this.packet = setup.received;
  }

  connect({ responses, errors }: InboundRequestPorts): void {
    this.#responses = responses;
    this.#errors = errors;
  }

  /** Begins with the packet that the receiver has turned to, for a QP. */
  begin(pair: QueuePair): void {
    this.pair = pair;
    this.state = this.#states.rows[pair.slot]!;
    this.pd = pair.pd;
    this.kind = messageKind(this.packet.traits);
    this.placed = 0;
    this.receiveSyndrome = 0;
    if (pair.serviceBits === XRC_SERVICE) this.#findQueue();
  }

  #findQueue(): void {
    this.srq = this.#srqs.slotOf(this.packet.sharedReceiveQueue);
    this.pd = this.srq === -1 ? NO_PD : this.#srqs.pd[this.srq]!;
  }

  /** Slot of the QP. */
  get qp(): number {
    return this.pair.slot;
  }

  /** Trait bits of the opcode. */
  get traits(): number {
    return this.packet.traits;
  }

  get opcode(): number {
    return this.packet.opcode;
  }

  get psn(): number {
    return this.packet.psn;
  }

  get payloadBytes(): number {
    return this.packet.payloadBytes;
  }

  /** Address in the RETH or AtomicETH. */
  get remoteAddress(): VirtualAddress {
    return this.packet.virtualAddress;
  }

  get remoteAddressTop(): number {
    return this.packet.virtualAddressTop;
  }

  get remoteKey(): number {
    return this.packet.key >>> 0;
  }

  get dmaBytes(): number {
    return this.packet.dmaLength >>> 0;
  }

  /** NAK or RNR NAK for the expected PSN. */
  refuse(syndrome: number, cycle: Cycles): void {
    const { qp, pair, state } = this;
    if (pair.opcodeBase !== 0) return this.abandon();
    state.hasNakSent = 1;
    this.#responses.refuse(qp, state.expectedPsn, syndrome, cycle);
  }

  /** Refuses a request that broke a rule: the QP goes to error, unless it is unreliable and the peer is at fault. */
  refuseForGood(nakCode: number, eventType: number, cycle: Cycles): void {
    const { qp, pair } = this;
    this.refuse(nakSyndrome(nakCode), cycle);
    const isOwnFault = eventType === EventType.WQ_CATAS_ERROR;
    if (pair.opcodeBase === 0 || isOwnFault) this.#errors.refused(qp, eventType, cycle);
    else this.#transport.count('unreliableRefused');
  }

  /** Refuses a request whose memory will be present later: RNR NAK, as mlx5 answers. */
  refuseForNow(cycle: Cycles): void {
    const { pair } = this;
    if (pair.opcodeBase === 0) this.#pageFaults.rnrNakCount++;
    else this.#pageFaults.droppedPacketCount++;
    this.refuse(rnrNakSyndrome(pair.minRnrNakCode), cycle);
  }

  /**
   * Requests a page of an on-demand region; the peer must retransmit the packet. False: the driver has refused the
   * page.
   */
  askForPage(wanted: Omit<WantedPages, 'side'>, cycle: Cycles): boolean {
    const isAsked = this.#pageFaults.raise(this.qp, { ...wanted, side: SIDE_RESPONDER }, cycle);
    if (isAsked) this.refuseForNow(cycle);
    return isAsked;
  }

  /** The message is lost; the packet has been. */
  abandon(): void {
    const { pair, state, psn } = this;
    pair.messageKind = MESSAGE_NONE;
    state.expectedPsn = (psn + 1) & PSN_MASK;
  }
}
