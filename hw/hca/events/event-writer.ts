/**
 * The event writer: turns events of the data path, the ports and the command processor into EQEs in host memory, and
 * EQEs into interrupts.
 *
 *   post ──> bounded fifo ──> EQ known, not full? ──> page of the entry (MTT) ──> DMA write ──> interrupt after it
 *              │ full: canPost() is false,              │ at a page change only
 *              │ the poster stalls                       one DMA read
 *
 * Promises: events of one EQ appear in the order in which they were posted; the owner byte is the last byte of the one
 * TLP that carries an EQE; the interrupt message leaves after the EQE it announces. An EQ that software lets fill up
 * goes to status overflow and drops later events; event 0x0f reports it if another EQ is mapped for that type. Source:
 * interface sheet 6.7, 6.10, 3.16.
 */

import { EqArmState, EventType, PortManagementChange, QueueStatus } from '../../../abi/index.ts';
import { type Cycles, mask24, NEVER, passBit } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { EventFormat } from '../host-interface/index.ts';
import type { TcpReport } from '../iwarp/tcp/index.ts';
import type { DmaWrites, PageRequest } from '../memory/index.ts';
import type { Cqn, EqSlot, Qpn } from '../objects/index.ts';
import { type ProtocolViolations, violation } from '../statistics/index.ts';
import { type EqPages, UNKNOWN, UNREACHABLE } from './eq-pages.ts';
import type { EqTable } from './eq-table.ts';
import { EventFifo } from './event-fifo.ts';
import { EventRoutes } from './event-routes.ts';
import type { InterruptModeration } from './interrupt-moderation.ts';

const stalls = stallReasons('translation', 'dmaWrite', 'context');
const { translation: STALL_TRANSLATION, dmaWrite: STALL_DMA_WRITE, context: STALL_CONTEXT } = stalls;
/** The writer is the only user of its context cache. */
const contextPort = 0;

export interface EventWriterSetup {
  readonly domain: ClockDomain;
  readonly eqs: EqTable;
  readonly writes: DmaWrites;
  readonly violations: ProtocolViolations;
  readonly fifoDepth: number;
  readonly eventCycles: number;
  readonly format: EventFormat;
}

/** The slice of a context cache that the writer uses. */
export interface EventContexts {
  access(port: number, slot: number, dirties: boolean): boolean;
  /** The context has served an event. */
  used(port: number): void;
  forget(slot: number): void;
  reset(): void;
}

/** Contents of an event for a change in PortInfo. */
export interface PortInfoReport {
  /** Number of the port, from 1. */
  readonly port: number;
  readonly smLid: number;
  readonly lid: number;
  readonly changed: number;
  readonly smSl: number;
  readonly gidPrefix: bigint;
}

/** A block that posts events, and stalls while {@link EventWriter.canPost} is false. */
export interface EventPoster {
  /** The full fifo has room again: the block tries again at `cycle` or later. */
  eventSpace(cycle: Cycles): void;
}

export interface EventWriterPorts {
  /** Cache of EQ contexts; omitted: all of them are on chip. */
  readonly contexts?: EventContexts | undefined;
  /** Blocks that stall while the fifo is full. */
  readonly posters: readonly EventPoster[];
  readonly moderation: InterruptModeration;
  readonly pages: EqPages;
}

export class EventWriter {
  readonly account = new BlockAccount('eventWriter', stalls);
  /** EQEs written, and events dropped because no queue accepts them. */
  writtenCount = 0;
  droppedCount = 0;
  readonly #setup: EventWriterSetup;
  readonly #stage: number;
  readonly #routes = new EventRoutes();
  readonly #writer: number;
  readonly #fifo: EventFifo;
  readonly #view: DataView;
  readonly #format: EventFormat;
  #armedSlots: number[] = [];
  #generation = 0;
  #moderation!: InterruptModeration;
  #pages!: EqPages;
  #contexts: EventContexts | undefined;
  #posters: readonly EventPoster[] = [];

  constructor(setup: EventWriterSetup) {
    this.#setup = setup;
    this.#format = setup.format;
    this.#fifo = new EventFifo(setup.fifoDepth, setup.format);
    this.#view = this.#fifo.view;
    this.#stage = setup.domain.addStage(this.#run, this);
    this.#writer = setup.writes.addRequester(
      { name: 'eqe', trafficClass: TrafficClass.eqe, fifoDepth: setup.fifoDepth },
      { done: (cookie, cycle) => this.#written(cookie, cycle), space: () => this.#wake() },
    );
  }

  /** True when another event can be posted; a poster that finds it false stalls until {@link EventPoster.eventSpace}. */
  canPost(): boolean {
    return !this.#fifo.isFull;
  }

  /** True when nothing waits to be written. */
  get isIdle(): boolean {
    return this.#fifo.isEmpty;
  }

  /** True when no EQE is on its way to the link. */
  get hasAllLeft(): boolean {
    return this.#fifo.hasAllLeft;
  }

  /** Events that have not left, and interrupts that are still due. */
  get heldCount(): number {
    return this.#fifo.heldCount + this.#moderation.heldCount;
  }

  /** Posts a completion event of a CQ to the CQ's own EQ, regardless of MAP_EQ. */
  postCompletion(eqn: number, cqn: Cqn, cycle: Cycles, joinedCount = 0): void {
    const slot = this.#setup.eqs.slotOf(eqn);
    if (joinedCount > 0 && slot >= 0) this.#moderation.joined(slot, joinedCount);
    const base = this.#push(eqn, EventType.COMP, 0, cycle);
    this.#format.completion(this.#view, base, cqn);
  }

  /** Completion of a command by event. */
  postCommand(token: number, status: number, high: number, low: number, cycle: Cycles): void {
    const base = this.#pushAsync(EventType.CMD, 0, cycle);
    if (base >= 0) this.#format.command(this.#view, base, token, status, high, low);
  }

  /** An event about a QP: drained, errors, last WQE, communication established. */
  postQpEvent(type: number, qpn: Qpn, cycle: Cycles): void {
    const base = this.#pushAsync(type, 0, cycle);
    if (base >= 0) this.#format.queuePair(this.#view, base, qpn);
  }

  /** An event about an SRQ: limit reached, catastrophic error. */
  postSrqEvent(type: number, srqn: number, cycle: Cycles): void {
    const base = this.#pushAsync(type, 0, cycle);
    if (base >= 0) this.#format.sharedReceiveQueue(this.#view, base, srqn);
  }

  /** CQ error; the syndrome is one of CqErrorSyndrome. */
  postCqError(cqn: Cqn, syndrome: number, cycle: Cycles): void {
    const base = this.#pushAsync(EventType.CQ_ERROR, 0, cycle);
    if (base >= 0) this.#format.cqError(this.#view, base, cqn, syndrome);
  }

  /** Posts a request for a page of an on-demand region. Returns false if no queue accepts such events. */
  postPageRequest(request: PageRequest, cycle: Cycles): boolean {
    const subtype = this.#format.pageRequestSubtype(request.side, request.isWrite);
    const base = this.#pushAsync(EventType.PAGE_REQUEST, subtype, cycle);
    if (base >= 0) this.#format.pageRequest(this.#view, base, request);
    return base >= 0;
  }

  /** Posts that a port became active or went down; the subtype is one of PortChange, ports count from 1. */
  postPortChange(port: number, subtype: number, cycle: Cycles): void {
    const base = this.#pushAsync(EventType.PORT_CHANGE, subtype, cycle);
    if (base >= 0) this.#format.port(this.#view, base, port);
  }

  /**
   * Posts that entries of PortInfo changed: `changed` holds bits of PortInfoChange, the other fields the present
   * values.
   */
  postPortInfoChange(info: PortInfoReport, cycle: Cycles): void {
    const base = this.#pushAsync(EventType.PORT_MNG_CHG_EVENT, PortManagementChange.PORT_INFO, cycle);
    if (base >= 0) this.#format.portInfo(this.#view, base, info);
  }

  /** Entries of a block of a port's GUID or P_Key table changed; the subtype is one of PortManagementChange. */
  postPortTableChange(port: number, subtype: number, block: number, entryMask: number, cycle: Cycles): void {
    const base = this.#pushAsync(EventType.PORT_MNG_CHG_EVENT, subtype, cycle);
    if (base >= 0) this.#format.portTable(this.#view, base, port, block, entryMask);
  }

  /** Something happened to a TCP connection. */
  postTcpEvent(report: TcpReport, cycle: Cycles): void {
    const base = this.#pushAsync(EventType.TCP, report.event, cycle);
    if (base >= 0) this.#format.tcpConnection(this.#view, base, report);
  }

  /** Any other asynchronous event, without data. */
  postAsync(type: number, subtype: number, cycle: Cycles): void {
    this.#pushAsync(type, subtype, cycle);
  }

  /** The EQ doorbell: software has consumed up to `consumerCounter`, and perhaps wants the next interrupt. */
  eqDoorbell(eqn: number, consumerCounter: number, arm: boolean, cycle: Cycles): void {
    const { eqs, violations, domain } = this.#setup;
    const slot = eqs.slotOf(eqn);
    if (slot < 0) {
      violations.count(violation.eventQueueUnknown);
      return;
    }
    eqs.consumerCounter[slot] = consumerCounter;
    if (!arm) return;
    if (eqs.armState[slot] === EqArmState.FIRED) eqs.armState[slot] = EqArmState.ARMED;
    if (eqs.isArmNew[slot] === 0) {
      eqs.isArmNew[slot] = 1;
      this.#armedSlots.push(slot);
    }
    domain.wake(this.#stage, cycle + 1);
  }

  /** MAP_EQ: maps the types whose bits are set in the mask to this EQ from now on, or unmaps them (eqn −1). */
  mapEvents(maskHigh: number, maskLow: number, eqn: number): void {
    this.#routes.map(maskHigh, maskLow, eqn);
  }

  /** See Block.connect. */
  connect({ contexts, posters, moderation, pages }: EventWriterPorts): void {
    this.#moderation = moderation;
    this.#pages = pages;
    this.#contexts = contexts;
    this.#posters = posters;
  }

  wake(cycle: Cycles): void {
    this.#setup.domain.wake(this.#stage, cycle);
  }

  /** EQ that events of a type go to, or -1. */
  eqnOfType(type: number): number {
    return this.#routes.eqnOf(type);
  }

  /** HW2SW_EQ: ends the EQ's mappings. The caller frees the slot, so that events still waiting for it are dropped. */
  forgetQueue(slot: EqSlot): void {
    this.#routes.forget(this.#setup.eqs.numberOf[slot]!);
    this.#moderation.forget(slot);
    this.#contexts?.forget(slot);
    this.#pages.forget(slot);
    this.#setup.eqs.isArmNew[slot] = 0;
    this.#armedSlots = this.#armedSlots.filter((armed) => armed !== slot);
  }

  /** True while an event for the EQ is in the fifo or on its way: HW2SW_EQ waits for it. */
  queueIsBusy(eqn: number): boolean {
    return this.#fifo.holds(eqn);
  }

  /** True while a completion event of the CQ is in the fifo or on its way: HW2SW_CQ waits for it. */
  holdsCompletion(cqn: Cqn): boolean {
    const view = this.#view;
    const format = this.#format;
    return this.#fifo.some(
      (base) => format.typeAt(view, base) === EventType.COMP && format.cqnAt(view, base) === cqn,
    );
  }

  /**
   * Rewrites the EQEs that had not left, in their places, after all DMA was dropped while the queues stay. An EQ with a
   * place that is never written would interrupt again whenever it is armed.
   */
  writeAnew(): void {
    const { eqs } = this.#setup;
    const { eqns, droppedCount } = this.#fifo.takeBack();
    this.droppedCount -= droppedCount;
    for (const eqn of eqns) {
      const slot = eqs.slotOf(eqn);
      if (slot < 0) continue;
      eqs.producerCounter[slot] = (eqs.producerCounter[slot]! - 1) & mask24;
      this.writtenCount--;
    }
    this.#generation++;
    this.#pages.reset();
    this.#contexts?.reset();
    this.#wake();
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      fifo: this.#fifo.inspect(),
      routes: this.#routes.inspect(),
      armedSlots: [...this.#armedSlots],
      pages: this.#pages.inspect(),
      moderation: this.#moderation.inspect(),
    };
  }

  reset(cycle: Cycles): void {
    this.#generation++;
    this.#fifo.clear();
    this.#routes.reset();
    this.#armedSlots = [];
    this.#pages.reset();
    this.#moderation.reset();
    this.#contexts?.reset();
    this.account.rest(Math.max(cycle, this.account.freeCycle));
  }

  #pushAsync(type: number, subtype: number, cycle: Cycles): number {
    const eqn = this.#routes.eqnOf(type);
    if (eqn < 0) {
      this.#setup.violations.count(violation.eventUnmapped);
      this.droppedCount++;
      return -1;
    }
    return this.#push(eqn, type, subtype, cycle);
  }

  /**
   * Appends a zeroed EQE with its type and returns its offset in the fifo. The poster has checked {@link canPost}.
   */
  #push(eqn: number, type: number, subtype: number, cycle: Cycles): number {
    const base = this.#fifo.push(eqn, type, subtype, cycle + 1);
    this.#setup.domain.wake(this.#stage, cycle + 1);
    return base;
  }

  #run(cycle: Cycles): void {
    if (this.#armedSlots.length > 0) this.#considerArmed(cycle);
    if (this.#moderation.nextCycle <= cycle) this.#moderation.runTimers(cycle);
    if (this.#fifo.hasWaiting) this.#writeHead(cycle);
    if (this.#moderation.nextCycle !== NEVER) {
      this.#setup.domain.wake(this.#stage, this.#moderation.nextCycle);
    }
  }

  #considerArmed(cycle: Cycles): void {
    for (const slot of this.#armedSlots) {
      this.#setup.eqs.isArmNew[slot] = 0;
      this.#moderation.consider(slot, cycle);
    }
    this.#armedSlots.length = 0;
  }

  /** Writes the oldest event, drops it, or stalls until it can be written. */
  #writeHead(cycle: Cycles): void {
    const { domain, eqs } = this.#setup;
    const entry = this.#fifo.head;
    const earliest = Math.max(this.#fifo.visibleCycle(entry), this.account.freeCycle);
    if (earliest > cycle) {
      domain.wake(this.#stage, earliest);
      return;
    }
    const slot = eqs.slotOf(this.#fifo.eqnOf(entry));
    if (slot < 0 || !this.#hasRoom(slot, cycle)) {
      this.#drop(entry, cycle);
      return;
    }
    if (this.#contexts !== undefined && !this.#contexts.access(contextPort, slot, true)) {
      this.account.stall(cycle, STALL_CONTEXT);
      return;
    }
    const address = this.#pages.addressOfNext(slot);
    if (address === UNREACHABLE) {
      eqs.status[slot] = QueueStatus.WRITE_FAILURE;
      this.#setup.violations.count(violation.eventQueueAccess);
      this.#drop(entry, cycle);
      return;
    }
    if (address === UNKNOWN) {
      if (this.#pages.lookUp(slot)) domain.wake(this.#stage, cycle + 1);
      else this.account.stall(cycle, STALL_TRANSLATION);
      return;
    }
    if (!this.#setup.writes.canRequest(this.#writer)) {
      this.account.stall(cycle, STALL_DMA_WRITE);
      return;
    }
    this.#write(entry, slot, address, cycle);
  }

  #write(entry: number, slot: EqSlot, address: number, cycle: Cycles): void {
    const { eqs, writes } = this.#setup;
    const { entryBytes } = this.#format;
    const base = entry * entryBytes;
    const producer = eqs.producerCounter[slot]!;
    this.#format.own(this.#view, base, passBit(producer, eqs.logEntries[slot]!));
    const cookie = this.#generation * this.#fifo.depth + entry;
    writes.request(this.#writer, address, entryBytes, this.#fifo.bytes, base, cookie);
    eqs.producerCounter[slot] = (producer + 1) & mask24;
    this.#contexts?.used(contextPort);
    this.writtenCount++;
    this.#fifo.take();
    this.#moderation.consider(slot, cycle);
    this.#next(cycle);
  }

  #drop(entry: number, cycle: Cycles): void {
    this.droppedCount++;
    this.#fifo.take();
    this.#next(cycle);
    this.#release(entry, cycle);
  }

  #next(cycle: Cycles): void {
    this.account.serve(cycle, this.#setup.eventCycles);
    if (this.#fifo.hasWaiting) this.#setup.domain.wake(this.#stage, cycle + this.#setup.eventCycles);
  }

  /** False when the EQ cannot take another entry; the first time, the overflow is reported. */
  #hasRoom(slot: EqSlot, cycle: Cycles): boolean {
    const { eqs, violations } = this.#setup;
    if (eqs.status[slot] !== QueueStatus.OK) return false;
    if (eqs.ignoresOverrun[slot] === 1 || eqs.unconsumed(slot) < 1 << eqs.logEntries[slot]!) return true;
    eqs.status[slot] = QueueStatus.OVERFLOW;
    violations.count(violation.eventQueueOverrun);
    const reporter = this.#routes.eqnOf(EventType.EQ_OVERFLOW);
    if (reporter >= 0 && reporter !== eqs.numberOf[slot] && this.canPost()) {
      this.#push(reporter, EventType.EQ_OVERFLOW, 0, cycle);
    }
    return false;
  }

  #written(cookie: number, cycle: Cycles): void {
    const { depth } = this.#fifo;
    if (Math.floor(cookie / depth) === this.#generation) this.#release(cookie % depth, cycle);
  }

  #release(entry: number, cycle: Cycles): void {
    if (this.#fifo.release(entry)) for (const poster of this.#posters) poster.eventSpace(cycle);
  }

  #wake(): void {
    this.#setup.domain.wake(this.#stage, this.#setup.domain.cycle + 1);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    this.#moderation.rebase(cycles);
    this.#fifo.rebase(cycles);
  }
}
