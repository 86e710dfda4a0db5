/**
 * The response engine: answers requests that the responder has accepted, in their order per QP.
 *
 *   responder ──READ, atomic, ACK, NAK──> per-QP queue ──> READ: translate, DMA read ──┐
 *                                                     ├──> atomic: DMA read, compute, DMA write ──> packet queue
 *                                                     └──> acknowledgement (coalesced) ┘
 *
 * The number of waiting requests is bounded (responder-resources.ts), so the responder never waits for the wire. A READ
 * or atomic begins only when the payload written before it has left for memory. Clauses: IBTA vol 1, 9.7.5, 9.4.
 */

import { EventType, QpState } from '../../../../abi/index.ts';
import { type Cycles, NEVER } from '../../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain } from '../../../../sim/index.ts';
import {
  NakCode,
  nakSyndrome,
  Opcode,
  operandBytes,
  PACKET_PAYLOAD_OFFSET,
  psnAdd,
  psnDistance,
} from '../../../../wire/index.ts';
import { ABSENT, ANSWERED, DONE, DONE_LAST, WAIT } from '../../answers.ts';
import { ATOMIC_BYTES } from '../../atomics/index.ts';
import type { CostAttribution } from '../../costs/index.ts';
import { PORT_RESPONSE } from '../../memory/index.ts';
import type { QpSlot, QpTable, QueuePair } from '../../objects/index.ts';
import type { ReadUnit } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { PayloadWriter } from '../../receive-queue/index.ts';
import type { DiagnosticCounters } from '../../statistics/index.ts';
import type { ResponseSide } from '../../transport/index.ts';
import {
  countNak,
  type IbtaPacket,
  type LaneGate,
  type ReorderBuffer,
  type TransportCounters,
} from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';
import { AtomicResponses, type AtomicResponsesSetup } from './atomic-responses.ts';
import type { InboundRequest, RefusedQps } from './inbound-request.ts';
import { ReadResponses, type ReadResponsesSetup } from './read-responses.ts';
import { ReadsAhead } from './reads-ahead.ts';
import {
  KIND_ATOMIC,
  KIND_READ,
  KIND_REPLAY,
  OPERAND_WORDS,
  type PendingResponses,
  ResponderResources,
  responderPlaces,
} from './responder-resources.ts';
import {
  type ResponsePacketPorts,
  ResponsePackets,
  type ResponsePacketsSetup,
  responseStalls,
  STALL_ORDERING,
  STALL_RESPONSE_BUFFER,
} from './response-packets.ts';

const { RC_ACKNOWLEDGE } = Opcode;
const SEQUENCE_NAK = nakSyndrome(NakCode.PSN_SEQUENCE_ERROR);

const NONE = -1;
/** The turn of a QP is over without a packet. */
const FINISHED = 0;

export interface ResponsePorts extends ResponsePacketPorts {
  readonly writer: PayloadWriter;
  readonly errors: RefusedQps;
}

/** Parts of the device that {@link ResponseEngine} uses. */
export interface ResponseEngineSetup extends ResponsePacketsSetup, ReadResponsesSetup, AtomicResponsesSetup {
  readonly domain: ClockDomain;
  readonly config: ResponsePacketsSetup['config'] &
    AtomicResponsesSetup['config'] &
    Pick<
      HcaConfig,
      | 'ackDelayCycles'
      | 'responseCycles'
      | 'readResponseLatencyCycles'
      | 'readResponseCycles'
      | 'readResponseBytesPerCycle'
      | 'readIntervalCycles'
      | 'sameQpIntervalCycles'
      | 'burstPackets'
    >;
  readonly qps: QpTable;
  readonly states: IbtaStates;
  readonly readUnit: ReadUnit;
  readonly transport: TransportCounters;
  readonly diagnostics: DiagnosticCounters;
  readonly costs: CostAttribution | undefined;
  readonly laneGate: LaneGate;
  readonly reorder: ReorderBuffer;
}

export class ResponseEngine implements ResponseSide {
  readonly account = new BlockAccount('responseEngine', responseStalls);
  acknowledgementCount = 0;
  coalescedCount = 0;
  readonly #domain: ClockDomain;
  readonly #config: ResponseEngineSetup['config'];
  readonly #qps: QpTable;
  readonly #states: IbtaStates;
  readonly #readUnit: ReadUnit;
  readonly #transport: TransportCounters;
  readonly #diagnostics: DiagnosticCounters;
  readonly #costs: CostAttribution | undefined;
  readonly #laneGate: LaneGate;
  readonly #reorder: ReorderBuffer;
  readonly #packets: ResponsePackets;
  #writer!: PayloadWriter;
  #errors!: RefusedQps;
  readonly #reads: ReadResponses;
  readonly #stage: number;
  readonly #resources: ResponderResources;
  readonly #atomics: AtomicResponses;
  readonly #ahead: ReadsAhead;
  /** Values of the configuration. */
  readonly #ackDelayCycles: number;
  readonly #responseCycles: number;
  readonly #readLatencyCycles: number;
  readonly #readCycles: number;
  readonly #readBytesPerCycle: number;
  /**
   * Time within which a QP's next repeated request arrives, if its peer repeats requests as fast as this device would.
   */
  readonly #repeatCycles: Cycles;
  /** The QP being served. */
  #active: PendingResponses | undefined;
  #burst = 0;

  constructor(setup: ResponseEngineSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#qps = setup.qps;
    this.#states = setup.states;
    this.#readUnit = setup.readUnit;
    this.#transport = setup.transport;
    this.#diagnostics = setup.diagnostics;
    this.#costs = setup.costs;
    this.#laneGate = setup.laneGate;
    this.#reorder = setup.reorder;
    this.#packets = new ResponsePackets(setup, this.account);
    this.#ackDelayCycles = setup.config.ackDelayCycles;
    this.#responseCycles = setup.config.responseCycles;
    this.#readLatencyCycles = setup.config.readResponseLatencyCycles;
    this.#readCycles = setup.config.readResponseCycles;
    this.#readBytesPerCycle = setup.config.readResponseBytesPerCycle;
    const { readIntervalCycles, sameQpIntervalCycles } = setup.config;
    this.#repeatCycles = 2 * Math.max(readIntervalCycles, sameQpIntervalCycles);
    this.#resources = new ResponderResources(setup.qps, setup.states, setup.reorder);
    this.#reads = new ReadResponses(setup, this.#resources, this.#packets, this.account, this);
    this.#atomics = new AtomicResponses(setup, this.#resources, this.#packets, this.account, this);
    this.#ahead = new ReadsAhead(setup, this.#resources);
    this.#active = undefined;
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect({ transmitter, receives, writer, errors }: ResponsePorts): void {
    this.#packets.connect({ transmitter, receives });
    this.#writer = writer;
    this.#errors = errors;
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#resources.slotsGrown(slotCount);
  }

  /** Answers owed to peers. */
  get heldCount(): number {
    return this.#resources.heldCount;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Payload has left for memory. */
  payloadLeft(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_ORDERING)) this.wake(cycle + 1);
  }

  /** A slot of the packet queue became free. */
  slotFreed(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_RESPONSE_BUFFER)) this.wake(cycle + 1);
  }

  /** READs and atomics the QP still has to answer. */
  queuedCount(qp: QpSlot): number {
    return this.#resources.rows[qp]!.count;
  }

  /** The same without repeated requests, whose first response may have been lost. */
  newCount(qp: QpSlot): number {
    return this.#resources.rows[qp]!.newCount;
  }

  /** True while the memory of an atomic is being read or written. */
  get isInAtomic(): boolean {
    return this.#atomics.isBusy;
  }

  /** Atomics executed. */
  get atomicCount(): number {
    return this.#atomics.executedCount;
  }

  /** True while anything of the QP is queued or being answered. */
  isBusy(qp: QpSlot): boolean {
    const pending = this.#resources.rows[qp]!;
    return pending.count > 0 || pending.hasAck === 1 || this.#active === pending;
  }

  /** Accepts a new READ request. The caller has checked {@link queuedCount}. */
  addRead(request: InboundRequest, cycle: Cycles): void {
    const { qp, psn } = request;
    const entry = this.#append(qp, KIND_READ, psn);
    this.#setRead(request, entry, cycle);
  }

  /** Accepts an atomic; its operands are words after the header: swap or add, compare, masks of both. */
  addAtomic(request: InboundRequest, cycle: Cycles): void {
    const { qp, pd, psn, opcode, remoteAddress, remoteAddressTop, remoteKey, packet } = request;
    const resources = this.#resources;
    const entry = this.#append(qp, KIND_ATOMIC, psn);
    resources.address[entry] = remoteAddress;
    resources.addressTop[entry] = remoteAddressTop;
    resources.key[entry] = remoteKey;
    resources.pd[entry] = pd;
    resources.bytes[entry] = ATOMIC_BYTES;
    resources.opcode[entry] = opcode;
    const words = packet.rxWords;
    const word = (packet.offset + PACKET_PAYLOAD_OFFSET) >> 2;
    const to = entry * OPERAND_WORDS;
    const count = operandBytes(opcode) >> 2;
    for (let index = 0; index < count; index++) resources.operands[to + index] = words[word + index]!;
    this.#enter(this.#resources.rows[qp]!, cycle + 1);
  }

  /**
   * Accepts a repeated READ request, for the whole of an earlier READ or the rest of it. If the earlier one is still
   * being answered, the repeated one replaces it: the peer drops the rest of the first response, or has lost it.
   * Without room the repeated request is dropped as if lost.
   */
  repeatRead(request: InboundRequest, cycle: Cycles): void {
    const { qp, psn } = request;
    const resources = this.#resources;
    if (this.#reorder.isOn) return this.#repeatPart(request, cycle);
    const pending = resources.of(qp);
    const entry = resources.find(qp, psn);
    if (entry === NONE) {
      if (pending.count >= pending.pair.readResourcesMax) return;
      const inserted = this.#insert(pending, KIND_READ, psn, cycle);
      return this.#setRead(request, inserted, cycle);
    }
    if (resources.kind[entry] !== KIND_READ) return;
    if (this.#active === pending && entry === resources.oldest(qp)) this.#packets.abandon(cycle);
    resources.psn[entry] = psn;
    resources.sent[entry] = 0;
    this.#setRead(request, entry, cycle);
  }

  /**
   * With selective repeat the peer keeps the responses that have come, so a repeated READ is answered next to the one that it
   * belongs to: as far as those responses have been sent, since the others are on their way anyway. Without room it is dropped
   * as if lost.
   */
  #repeatPart(request: InboundRequest, cycle: Cycles): void {
    const { qp, psn, pair } = request;
    const resources = this.#resources;
    const pending = resources.of(qp);
    if (pending.count >= responderPlaces(pair)) return;
    const owed = resources.find(qp, psn);
    const sentPsns = owed === NONE ? Number.POSITIVE_INFINITY : resources.sentAfter(owed, psn);
    if (sentPsns <= 0) return;
    const entry = this.#insert(pending, KIND_READ, psn, cycle);
    this.#setRead(request, entry, cycle);
    resources.bytes[entry] = Math.min(request.dmaBytes, sentPsns * pair.mtuBytes);
  }

  /** Repeats the answer of an atomic already executed. False when its result is no longer kept. */
  replayAtomic(qp: QpSlot, psn: number, cycle: Cycles): boolean {
    const pending = this.#resources.of(qp);
    if (!this.#atomics.canReplay(qp, psn)) return false;
    this.#atomics.setReplay(qp, this.#insert(pending, KIND_REPLAY, psn, cycle));
    this.#enter(pending, cycle + 1);
    return true;
  }

  /**
   * Acknowledges a duplicate. A pending ACK of more packets stays, and so does a pending refusal of a later request: it
   * acknowledges as many packets, and is sent once.
   */
  acknowledgeAgain(qp: QpSlot, psn: number, cycle: Cycles): void {
    const { hasAck, ackPsn } = this.#resources.rows[qp]!;
    if (hasAck === 1 && psnDistance(psn, ackPsn) < 0) this.coalescedCount++;
    else this.acknowledge(qp, psn, cycle);
  }

  /** Acknowledges everything up to `psn`, after a short delay in which a later ACK may replace this one. */
  acknowledge(qp: QpSlot, psn: number, cycle: Cycles): void {
    const pending = this.#resources.of(qp);
    if (pending.hasAck === 1) this.coalescedCount++;
    else pending.ackDueCycle = cycle + this.#ackDelayCycles;
    pending.hasAck = 1;
    pending.ackPsn = psn;
    pending.ackSyndrome = -1;
    this.#enter(pending, pending.ackDueCycle);
  }

  /** Refuses the request at `psn`: NAK or RNR NAK. */
  refuse(qp: QpSlot, psn: number, syndrome: number, cycle: Cycles): void {
    const pending = this.#resources.of(qp);
    pending.hasAck = 1;
    pending.ackPsn = psn;
    pending.ackSyndrome = syndrome;
    pending.heldPsn = NONE;
    pending.ackDueCycle = cycle + 1;
    this.#enter(pending, cycle + 1);
  }

  /** Refuses the request at `psn`, which lacks, and names one after it that is held. Another refusal goes first. */
  refuseGap(qp: QpSlot, psn: number, heldPsn: number, cycle: Cycles): void {
    const pending = this.#resources.of(qp);
    const isRefused =
      pending.hasAck === 1 && pending.ackSyndrome !== -1 && pending.ackSyndrome !== SEQUENCE_NAK;
    if (isRefused) return;
    this.refuse(qp, psn, SEQUENCE_NAK, cycle);
    pending.heldPsn = heldPsn;
  }

  /** Drops the READs and atomics queued for the QP; a pending acknowledgement or NAK is still sent. */
  dropRequests(qp: QpSlot): void {
    this.#resources.dropRequests(qp);
    this.#ahead.forget(this.#qps.rows[qp]!);
  }

  /** Drops everything queued for the QP. */
  drop(qp: QpSlot): void {
    this.dropRequests(qp);
    this.#resources.rows[qp]!.hasAck = 0;
  }

  /** The page for which the QP's oldest response waited is present, or refused. */
  pagesAnswered(qp: QpSlot, cycle: Cycles): void {
    const pending = this.#resources.rows[qp]!;
    if (pending.isPaused === 0) return;
    pending.isPaused = 0;
    if (pending.count > 0 || pending.hasAck === 1) this.#enter(pending, cycle + 1);
  }

  /** A new generation of the QP: no result is kept. */
  open(qp: QpSlot): void {
    this.#atomics.forget(qp);
    this.drop(qp);
  }

  reset(): void {
    this.#resources.reset();
    this.#active = undefined;
    this.#packets.reset();
    this.#atomics.reset();
    this.#ahead.reset();
  }

  inspect(): BlockState {
    return {
      active: this.#active?.pair.slot ?? 'none',
      owed: this.#resources.heldCount,
      openPacket: this.#packets.isOpen,
      inAtomic: this.isInAtomic,
      ...this.#ahead.inspect(),
      ...this.#atomics.inspect(),
    };
  }

  #append(qp: QpSlot, kind: number, psn: number): number {
    const entry = this.#resources.append(qp, kind, psn, true, this.#writer.requestedCount);
    this.#countMessages(this.#qps.rows[qp]!, entry);
    return entry;
  }

  /** Sets the MSN and the credits that the response of `entry` reports (C9-148). */
  #countMessages(pair: QueuePair, entry: number): void {
    this.#resources.countMessages(
      entry,
      this.#states.rows[pair.slot]!.msn,
      this.#packets.receivesTaken(pair),
    );
  }

  /**
   * Inserts a repeated request at its place and abandons a READ response packet after it that is under construction.
   */
  #insert(pending: PendingResponses, kind: number, psn: number, cycle: Cycles): number {
    const isOldestKept = this.#active === pending && this.#atomics.isBusy;
    const { slot } = pending.pair;
    const before = this.#writer.requestedCount;
    const heldCycle = cycle + this.#repeatCycles;
    const entry = this.#resources.insert(slot, kind, psn, isOldestKept, before, heldCycle);
    this.#countMessages(pending.pair, entry);
    const isFirst = entry === this.#resources.oldest(slot);
    if (this.#active === pending && isFirst) this.#packets.abandon(cycle);
    return entry;
  }

  #setRead(
    { qp, pd, remoteAddress, remoteAddressTop, remoteKey, dmaBytes }: InboundRequest,
    entry: number,
    cycle: Cycles,
  ): void {
    const resources = this.#resources;
    resources.address[entry] = remoteAddress;
    resources.addressTop[entry] = remoteAddressTop;
    resources.key[entry] = remoteKey;
    resources.pd[entry] = pd;
    resources.bytes[entry] = dmaBytes;
    resources.dueCycle[entry] = cycle + this.#readLatencyCycles;
    this.#enter(resources.of(qp), cycle + 1);
  }

  #enter(pending: PendingResponses, cycle: Cycles): void {
    if (pending.isInRing === 0 && this.#active !== pending) {
      this.#resources.enter(pending);
      this.#ahead.lookUp();
    }
    this.wake(cycle);
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const pending = this.#active ?? this.#choose(cycle);
    if (pending === undefined) return;
    if (this.#costs !== undefined) this.#noteWork(this.#costs, pending);
    const busyCycles = pending.count === 0 ? this.#serveAck(pending, cycle) : this.#serve(pending, cycle);
    if (busyCycles === WAIT) return;
    if (busyCycles > 0) this.account.serve(cycle, busyCycles);
    if (this.#active !== undefined || this.#resources.waitingCount > 0)
      this.wake(busyCycles > 1 ? cycle + busyCycles : cycle + 1);
  }

  /** Works on the oldest READ or atomic of the QP, or on its acknowledgement. */
  #noteWork(costs: CostAttribution, { pair, count, ackPsn }: PendingResponses): void {
    const psn = count === 0 ? ackPsn : this.#resources.psn[this.#resources.oldest(pair.slot)]!;
    costs.worksOnAnswerTo(PORT_RESPONSE, pair, psn);
  }

  /** Returns the next QP that has something due. */
  #choose(cycle: Cycles): PendingResponses | undefined {
    const resources = this.#resources;
    let nextCycle = NEVER;
    for (let tries = resources.waitingCount; tries > 0; tries--) {
      const pending = resources.leave();
      this.#ahead.left();
      if (pending.isPaused === 1) continue;
      if (this.#laneGate.isOn && !this.#laneGate.mayAnswer(pending.pair)) {
        resources.enter(pending);
        continue;
      }
      const dueCycle = resources.dueCycleOf(pending);
      if (dueCycle <= cycle) {
        this.#active = pending;
        this.#burst = 0;
        this.#ahead.lookUp();
        return pending;
      }
      if (dueCycle === NEVER) continue;
      resources.enter(pending);
      nextCycle = Math.min(nextCycle, dueCycle);
    }
    this.account.rest(cycle);
    if (nextCycle < NEVER) this.wake(nextCycle);
    return undefined;
  }

  /** Sends the acknowledgement. Packets begun for requests that have been dropped since are abandoned first. */
  #serveAck(pending: PendingResponses, cycle: Cycles): number {
    const packets = this.#packets;
    const { pair } = pending;
    if (packets.isOpen) packets.abandon(cycle);
    if (this.#atomics.isBusy && !this.#atomics.abandon(cycle)) return WAIT;
    if (pending.hasAck === 0 || pending.ackDueCycle > cycle) return this.#endTurn(pending, cycle, FINISHED);
    if (!packets.open(pair, cycle)) return WAIT;
    pending.hasAck = 0;
    this.acknowledgementCount++;
    const syndrome = pending.ackSyndrome === -1 ? packets.creditSyndrome(pair) : pending.ackSyndrome;
    if (pending.ackSyndrome !== -1) {
      countNak(syndrome, 'Sent', this.#transport, this.#diagnostics);
    }
    const isGap = syndrome === SEQUENCE_NAK && pending.heldPsn !== NONE;
    if (isGap) packets.seal(RC_ACKNOWLEDGE, pending.ackPsn, syndrome, cycle, pending.heldPsn);
    else packets.seal(RC_ACKNOWLEDGE, pending.ackPsn, syndrome, cycle);
    return this.#endTurn(pending, cycle, this.#responseCycles);
  }

  /** The oldest READ or atomic. */
  #serve(pending: PendingResponses, cycle: Cycles): number {
    const resources = this.#resources;
    const qp = pending.pair.slot;
    const entry = resources.oldest(qp);
    if (this.#writer.doneCount < resources.writesBefore[entry]!) {
      this.account.stall(cycle, STALL_ORDERING);
      return WAIT;
    }
    const kind = resources.kind[entry]!;
    if (kind === KIND_READ) return this.#sendRead(pending, entry, cycle);
    const atomics = this.#atomics;
    const step = kind === KIND_ATOMIC ? atomics.step(qp, entry, cycle) : atomics.replay(qp, entry, cycle);
    if (step > 0) return step;
    if (step !== ANSWERED) return this.#leave(step, pending, entry, cycle);
    this.#coalesce(pending);
    resources.pop(qp);
    return this.#endTurn(pending, cycle, this.#responseCycles);
  }

  /** Sends one packet of a READ response. */
  #sendRead(pending: PendingResponses, entry: number, cycle: Cycles): number {
    const qp = pending.pair.slot;
    const sent = this.#reads.send(qp, entry, cycle);
    if (sent !== DONE && sent !== DONE_LAST) return this.#leave(sent, pending, entry, cycle);
    this.#coalesce(pending);
    this.#burst++;
    if (sent === DONE_LAST) this.#resources.pop(qp);
    const isTurnOver =
      sent === DONE_LAST ||
      this.#burst >= this.#config.burstPackets ||
      pending.pair.pacedCycle > cycle ||
      (this.#laneGate.isOn && !this.#laneGate.mayAnswer(pending.pair));
    const perCycle = this.#readBytesPerCycle;
    const moveCycles = perCycle === 0 ? 0 : Math.ceil(this.#reads.payloadBytes / perCycle);
    const unitCycles = this.#readCycles + moveCycles;
    const busyCycles = this.#readUnit.occupy(cycle, this.#responseCycles, unitCycles);
    return isTurnOver ? this.#endTurn(pending, cycle, busyCycles) : busyCycles;
  }

  /**
   * Drops a pending acknowledgement that the response just made covers: an ACK of an earlier request would follow it
   * (9.7.5.1). So would a NAK of the request just answered, which was repeated and accepted before its NAK had left.
   */
  #coalesce(pending: PendingResponses): void {
    const { hasAck, ackSyndrome, ackPsn } = pending;
    const distance = psnDistance(ackPsn, this.#packets.packet.psn);
    if (hasAck === 0 || distance > 0 || (distance === 0 && ackSyndrome === -1)) return;
    pending.hasAck = 0;
    this.coalescedCount++;
  }

  /** Leaves the response: it waits in the engine, is resumed when its page is present, or fails. */
  #leave(left: number, pending: PendingResponses, entry: number, cycle: Cycles): number {
    if (left === WAIT) return WAIT;
    return left === ABSENT ? this.#pause(pending, cycle) : this.#fail(pending, entry, cycle);
  }

  /** Leaves the QP out until {@link resume}. */
  #pause(pending: PendingResponses, cycle: Cycles): number {
    this.#packets.abandon(cycle);
    pending.isPaused = 1;
    this.#active = undefined;
    return 1;
  }

  #endTurn(pending: PendingResponses, cycle: Cycles, busyCycles: number): number {
    this.#active = undefined;
    if (pending.count > 0 || pending.hasAck === 1) this.#enter(pending, cycle + 1);
    return busyCycles;
  }

  /** The request was accepted but its memory cannot be used: NAK, and the QP fails (9.7.5.2.4). */
  #fail(pending: PendingResponses, entry: number, cycle: Cycles): number {
    this.#packets.abandon(cycle);
    const psn = psnAdd(this.#resources.psn[entry]!, this.#resources.sent[entry]!);
    this.#failAt(pending.pair, psn, cycle);
    return this.#endTurn(pending, cycle, 1);
  }

  /**
   * Handles payload of a READ response that memory did not supply: a NAK with its PSN replaces it (9.7.5.2.4), and
   * packets made after it do not leave.
   */
  payloadFailed({ pair, psn }: IbtaPacket, cycle: Cycles): void {
    this.#transport.count('unreadableResponse');
    if (pair.state === QpState.RST) return;
    this.#packets.queue.voidResponses(pair);
    this.#failAt(pair, psn, cycle);
  }

  /** Drops the QP's pending responses, which never complete, and refuses the request with a NAK of this PSN. */
  #failAt(pair: QueuePair, psn: number, cycle: Cycles): void {
    const { slot, state } = pair;
    this.#states.rows[slot]!.msn = this.#resources.msnWithoutAtomics(slot);
    this.drop(slot);
    this.refuse(slot, psn, nakSyndrome(NakCode.REMOTE_OPERATIONAL_ERROR), cycle);
    if (state !== QpState.ERR) this.#errors.refused(slot, EventType.WQ_ACCESS_ERROR, cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#resources.rebase(cycles);
    this.#ahead.rebase(cycles);
    this.#atomics.rebase(cycles);
  }
}
