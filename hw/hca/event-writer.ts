/**
 * The event writer: turns events of the data path, the ports and the command processor into EQEs in host memory, and
 * EQEs into interrupts.
 *
 *   post ──> bounded fifo ──> EQ known, not full? ──> page of the entry (MTT) ──> DMA write ──> interrupt behind it
 *              │ full: canPost() is false,              │ at a page change only
 *              │ the poster stalls                       one DMA read
 *
 * Promises: events of one EQ appear in the order in which they were posted; the owner byte is the last byte of the one
 * TLP that carries an EQE; the interrupt message leaves behind the EQE it announces. An EQ that software lets fill up goes
 * to status overflow, drops what follows, and is reported by event 0x0f if another EQ is mapped for it.
 * Source: interface sheet 6.7, 6.10, 3.16.
 */
import { QueueStatus } from '../../abi/cqc.ts';
import { EqArmState } from '../../abi/eqc.ts';
import {
  commandEqe,
  completionEqe,
  cqErrorEqe,
  EventType,
  eqe,
  eqeBytes,
  pageRequestEqe,
  pageRequestIsWrite,
  portChangeEqe,
  qpEqe,
  srqEqe,
} from '../../abi/eqe.ts';
import { mttEntry, mttEntryBytes } from '../../abi/mtt.ts';
import { passBit, ringIndex, viewOf } from '../../base/index.ts';
import { BlockAccount } from '../../sim/block-account.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import { TrafficClass } from '../dma/traffic-class.ts';
import type { DmaReads, DmaWrites, InterruptPort, SramAllocator } from './dma-ports.ts';
import { type EqTable, NO_PAGE } from './eq-table.ts';
import type { IcmMap } from './icm.ts';
import { InterruptModeration } from './interrupt-moderation.ts';
import { type ProtocolViolations, violation } from './protocol-violations.ts';

export const eventStalls = ['translation', 'dmaWrite', 'context'] as const;
const stallTranslation = 0;
const stallDmaWrite = 1;
const stallContext = 2;
/** The writer is the only user of its context cache. */
const contextPort = 0;
const NOT_MAPPED = -1;
const eventTypeCount = 64;

export interface EventWriterSetup {
  readonly domain: ClockDomain;
  readonly eqs: EqTable;
  readonly icm: IcmMap;
  readonly reads: DmaReads;
  readonly writes: DmaWrites;
  readonly sram: SramAllocator;
  readonly interrupts: InterruptPort;
  readonly violations: ProtocolViolations;
  readonly fifoDepth: number;
  readonly eventCycles: number;
}

/** The slice of a context cache that the writer uses. */
export interface EventContexts {
  attach(port: number, wake: (cycle: number) => void): void;
  access(port: number, slot: number, dirties: boolean): boolean;
  forget(slot: number): void;
  reset(): void;
}

export class EventWriter {
  readonly account = new BlockAccount('eventWriter', eventStalls);
  readonly moderation: InterruptModeration;
  /** EQEs written, and events dropped for want of a queue that takes them. */
  writtenCount = 0;
  droppedCount = 0;
  readonly #setup: EventWriterSetup;
  readonly #stage: number;
  readonly #reader: number;
  readonly #writer: number;
  readonly #mttOffset: number;
  readonly #mttView: DataView;
  /** The fifo: 32-byte entries and the EQN each is for. Three counters run freely over it. */
  readonly #depth: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #eqnOf: Int32Array;
  readonly #visibleCycle: Float64Array;
  #pushed = 0;
  #taken = 0;
  #released = 0;
  /** Entries whose write has been requested or that were dropped in front of one; see {@link #release}. */
  readonly #isDone: Uint8Array;
  /** EQ that each event type is mapped to, or -1. */
  readonly #eqnOfType = new Int32Array(eventTypeCount).fill(-1);
  #armedSlots: number[] = [];
  #isTranslating = false;
  #translatingSlot = -1;
  #epoch = 0;
  #contexts: EventContexts | undefined;
  #spaceListeners: ((cycle: number) => void)[] = [];

  constructor(setup: EventWriterSetup) {
    this.#setup = setup;
    this.moderation = new InterruptModeration(
      setup.eqs,
      setup.interrupts,
      () => this.#released === this.#taken,
    );
    this.#depth = setup.fifoDepth;
    this.#bytes = new Uint8Array(setup.fifoDepth * eqeBytes);
    this.#view = viewOf(this.#bytes);
    this.#eqnOf = new Int32Array(setup.fifoDepth);
    this.#visibleCycle = new Float64Array(setup.fifoDepth);
    this.#isDone = new Uint8Array(setup.fifoDepth);
    this.#mttOffset = setup.sram.allocate(mttEntryBytes);
    this.#mttView = viewOf(setup.sram.bytes);
    this.#stage = setup.domain.addStage((cycle) => this.#run(cycle));
    this.#reader = setup.reads.addRequester(
      { name: 'eqTranslation', trafficClass: TrafficClass.translation, fifoDepth: 1, weight: 1 },
      (cookie, status, cycle) => this.#translated(cookie, status, cycle),
    );
    this.#writer = setup.writes.addRequester(
      { name: 'eqe', trafficClass: TrafficClass.eqe, fifoDepth: setup.fifoDepth },
      (cookie, cycle) => this.#written(cookie, cycle),
    );
    setup.writes.onSpace(this.#writer, () => this.#wake());
    setup.reads.onSpace(this.#reader, () => this.#wake());
  }

  /** True when another event can be posted; a poster that finds it false stalls until {@link onSpace}. */
  canPost(): boolean {
    return this.#pushed - this.#released < this.#depth;
  }

  /** Says what is to be told when a full fifo has room again. */
  onSpace(listener: (cycle: number) => void): void {
    this.#spaceListeners.push(listener);
  }

  /** True when nothing waits to be written. */
  get isIdle(): boolean {
    return this.#pushed === this.#released;
  }

  /** Completion event of a CQ, to the CQ's own EQ whatever MAP_EQ says. */
  postCompletion(eqn: number, cqn: number, cycle: number): void {
    const base = this.#push(eqn, EventType.COMP, 0, cycle);
    completionEqe.fields.cqn.set(this.#view, base, cqn);
  }

  /** Completion of a command by event. */
  postCommand(token: number, status: number, high: number, low: number, cycle: number): void {
    const base = this.#pushAsync(EventType.CMD, 0, cycle);
    if (base < 0) return;
    const fields = commandEqe.fields;
    fields.token.set(this.#view, base, token);
    fields.status.set(this.#view, base, status);
    this.#view.setUint32(base + fields.outParam.wordOffset, high);
    this.#view.setUint32(base + fields.outParam.wordOffset + 4, low);
  }

  /** An event about a QP: drained, errors, last WQE, communication established. */
  postQpEvent(type: number, qpn: number, cycle: number): void {
    const base = this.#pushAsync(type, 0, cycle);
    if (base >= 0) qpEqe.fields.qpn.set(this.#view, base, qpn);
  }

  /** An event about an SRQ: limit reached, catastrophic error. */
  postSrqEvent(type: number, srqn: number, cycle: number): void {
    const base = this.#pushAsync(type, 0, cycle);
    if (base >= 0) srqEqe.fields.srqn.set(this.#view, base, srqn);
  }

  /** CQ error; the syndrome is one of CqErrorSyndrome. */
  postCqError(cqn: number, syndrome: number, cycle: number): void {
    const base = this.#pushAsync(EventType.CQ_ERROR, 0, cycle);
    if (base < 0) return;
    cqErrorEqe.fields.cqn.set(this.#view, base, cqn);
    cqErrorEqe.fields.syndrome.set(this.#view, base, syndrome);
  }

  /** A page of an on-demand region is wanted. False: no queue takes such events. */
  postPageRequest(
    side: number,
    isWrite: boolean,
    qpn: number,
    key: number,
    address: number,
    lengthBytes: number,
    token: number,
    cycle: number,
  ): boolean {
    const base = this.#pushAsync(EventType.PAGE_REQUEST, side | (isWrite ? pageRequestIsWrite : 0), cycle);
    if (base < 0) return false;
    const { fields } = pageRequestEqe;
    fields.qpn.set(this.#view, base, qpn);
    fields.key.set(this.#view, base, key);
    fields.lengthBytes.set(this.#view, base, Math.min(lengthBytes, 0xffff_ffff));
    fields.address.setNumber(this.#view, base, address);
    fields.token.set(this.#view, base, token);
    return true;
  }

  /** A port became active or went down; the subtype is one of PortChange, ports count from 1. */
  postPortChange(port: number, subtype: number, cycle: number): void {
    const base = this.#pushAsync(EventType.PORT_CHANGE, subtype, cycle);
    if (base >= 0) portChangeEqe.fields.port.set(this.#view, base, port);
  }

  /** Any other asynchronous event: `fill` sets its data fields in the zeroed EQE at `base`. */
  postAsync(
    type: number,
    subtype: number,
    fill: (view: DataView, base: number) => void,
    cycle: number,
  ): void {
    const base = this.#pushAsync(type, subtype, cycle);
    if (base >= 0) fill(this.#view, base);
  }

  /** The EQ doorbell: software has consumed up to `consumerCounter`, and perhaps wants the next interrupt. */
  eqDoorbell(eqn: number, consumerCounter: number, arm: boolean, cycle: number): void {
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

  /** MAP_EQ: the types whose bits are set in the mask go to this EQ from now on, or nowhere (eqn −1 takes them away). */
  mapEvents(maskHigh: number, maskLow: number, eqn: number): void {
    for (let type = 0; type < eventTypeCount; type++) {
      const word = type < 32 ? maskLow : maskHigh;
      if (((word >>> (type & 31)) & 1) === 1) this.#eqnOfType[type] = eqn;
    }
  }

  /** Has EQ contexts come through a cache; without one all of them are on chip. */
  attachContexts(contexts: EventContexts): void {
    this.#contexts = contexts;
    contexts.attach(contextPort, (cycle) => this.#setup.domain.wake(this.#stage, cycle));
  }

  /** EQ that events of a type go to, or -1. */
  eqnOfType(type: number): number {
    return this.#eqnOfType[type]!;
  }

  /** HW2SW_EQ: the EQ's mappings end. The caller frees the slot, so that events still waiting for it are dropped. */
  forgetQueue(slot: number): void {
    const eqn = this.#setup.eqs.numberOf[slot]!;
    for (let type = 0; type < eventTypeCount; type++) {
      if (this.#eqnOfType[type] === eqn) this.#eqnOfType[type] = -1;
    }
    this.moderation.forget(slot);
    this.#contexts?.forget(slot);
    if (this.#translatingSlot === slot) this.#translatingSlot = -1;
    this.#setup.eqs.isArmNew[slot] = 0;
    this.#armedSlots = this.#armedSlots.filter((armed) => armed !== slot);
  }

  /** True while an event for the EQ is in the fifo or on its way: HW2SW_EQ waits for it. */
  queueIsBusy(eqn: number): boolean {
    for (let at = this.#released; at < this.#pushed; at++)
      if (this.#eqnOf[at % this.#depth] === eqn) return true;
    return false;
  }

  reset(cycle: number): void {
    this.#epoch++;
    this.#pushed = 0;
    this.#taken = 0;
    this.#released = 0;
    this.#eqnOfType.fill(-1);
    this.#armedSlots = [];
    this.#isTranslating = false;
    this.#translatingSlot = -1;
    this.moderation.reset();
    this.#contexts?.reset();
    this.account.rest(Math.max(cycle, this.account.freeCycle));
  }

  #pushAsync(type: number, subtype: number, cycle: number): number {
    const eqn = this.#eqnOfType[type]!;
    if (eqn < 0) {
      this.#setup.violations.count(violation.eventUnmapped);
      this.droppedCount++;
      return -1;
    }
    return this.#push(eqn, type, subtype, cycle);
  }

  /** Appends a zeroed EQE with its type and returns its offset in the fifo. The poster has asked {@link canPost}. */
  #push(eqn: number, type: number, subtype: number, cycle: number): number {
    if (!this.canPost()) throw new RangeError(`post into a full event fifo of ${this.#depth}`);
    const entry = this.#pushed % this.#depth;
    const base = entry * eqeBytes;
    this.#pushed++;
    this.#bytes.fill(0, base, base + eqeBytes);
    eqe.fields.type.set(this.#view, base, type);
    eqe.fields.subtype.set(this.#view, base, subtype);
    this.#eqnOf[entry] = eqn;
    this.#isDone[entry] = 0;
    this.#visibleCycle[entry] = cycle + 1;
    this.#setup.domain.wake(this.#stage, cycle + 1);
    return base;
  }

  #run(cycle: number): void {
    if (this.#armedSlots.length > 0) this.#considerArmed(cycle);
    if (this.moderation.nextCycle <= cycle) this.moderation.runTimers(cycle);
    if (this.#taken < this.#pushed) this.#writeHead(cycle);
    if (this.moderation.nextCycle !== Number.POSITIVE_INFINITY) {
      this.#setup.domain.wake(this.#stage, this.moderation.nextCycle);
    }
  }

  #considerArmed(cycle: number): void {
    for (const slot of this.#armedSlots) {
      this.#setup.eqs.isArmNew[slot] = 0;
      this.moderation.consider(slot, cycle);
    }
    this.#armedSlots.length = 0;
  }

  /** Writes the oldest event, drops it, or stalls until it can be written. */
  #writeHead(cycle: number): void {
    const { domain, eqs } = this.#setup;
    const entry = this.#taken % this.#depth;
    const earliest = Math.max(this.#visibleCycle[entry]!, this.account.freeCycle);
    if (earliest > cycle) {
      domain.wake(this.#stage, earliest);
      return;
    }
    const slot = eqs.slotOf(this.#eqnOf[entry]!);
    if (slot < 0 || !this.#hasRoom(slot, cycle)) {
      this.#drop(entry, cycle);
      return;
    }
    if (this.#contexts !== undefined && !this.#contexts.access(contextPort, slot, true)) {
      this.account.stall(cycle, stallContext);
      return;
    }
    const address = this.#addressOfNext(slot);
    if (address === UNREACHABLE) {
      eqs.status[slot] = QueueStatus.WRITE_FAILURE;
      this.#setup.violations.count(violation.eventQueueAccess);
      this.#drop(entry, cycle);
      return;
    }
    if (address === UNKNOWN) {
      this.#translate(slot, cycle);
      return;
    }
    if (!this.#setup.writes.canRequest(this.#writer)) {
      this.account.stall(cycle, stallDmaWrite);
      return;
    }
    this.#write(entry, slot, address, cycle);
  }

  #write(entry: number, slot: number, address: number, cycle: number): void {
    const { eqs, writes } = this.#setup;
    const base = entry * eqeBytes;
    const producer = eqs.producerCounter[slot]!;
    eqe.fields.owner.set(this.#view, base, passBit(producer, eqs.logEntries[slot]!));
    writes.request(this.#writer, address, eqeBytes, this.#bytes, base, this.#epoch * this.#depth + entry);
    eqs.producerCounter[slot] = (producer + 1) & 0xff_ffff;
    this.writtenCount++;
    this.#taken++;
    this.moderation.consider(slot, cycle);
    this.#next(cycle);
  }

  #drop(entry: number, cycle: number): void {
    this.droppedCount++;
    this.#taken++;
    this.#next(cycle);
    this.#release(entry, cycle);
  }

  #next(cycle: number): void {
    this.account.serve(cycle, this.#setup.eventCycles);
    if (this.#taken < this.#pushed) this.#setup.domain.wake(this.#stage, cycle + this.#setup.eventCycles);
  }

  /** False when the EQ cannot take another entry; the first time, the overflow is reported. */
  #hasRoom(slot: number, cycle: number): boolean {
    const { eqs, violations } = this.#setup;
    if (eqs.status[slot] !== QueueStatus.OK) return false;
    if (eqs.ignoresOverrun[slot] === 1 || eqs.unconsumed(slot) < 1 << eqs.logEntries[slot]!) return true;
    eqs.status[slot] = QueueStatus.OVERFLOW;
    violations.count(violation.eventQueueOverrun);
    const reporter = this.#eqnOfType[EventType.EQ_OVERFLOW]!;
    if (reporter >= 0 && reporter !== eqs.numberOf[slot] && this.canPost()) {
      this.#push(reporter, EventType.EQ_OVERFLOW, 0, cycle);
    }
    return false;
  }

  /** DMA address of the EQ's next entry, UNKNOWN when its page must be looked up, UNREACHABLE when it has none. */
  #addressOfNext(slot: number): number {
    const { eqs } = this.#setup;
    const offset =
      eqs.pageOffset[slot]! + ringIndex(eqs.producerCounter[slot]!, eqs.logEntries[slot]!) * eqeBytes;
    const pageIndex = offset >>> eqs.logPageBytes[slot]!;
    if (eqs.pageIndex[slot] !== pageIndex) return UNKNOWN;
    const pageAddress = eqs.pageAddress[slot]!;
    return pageAddress === NOT_MAPPED
      ? UNREACHABLE
      : pageAddress + (offset & ((1 << eqs.logPageBytes[slot]!) - 1));
  }

  /** Reads the MTT entry of the page that the EQ's next entry lies in. */
  #translate(slot: number, cycle: number): void {
    const { eqs, icm, reads } = this.#setup;
    if (this.#isTranslating || !reads.canRequest(this.#reader)) {
      this.account.stall(cycle, stallTranslation);
      return;
    }
    const offset =
      eqs.pageOffset[slot]! + ringIndex(eqs.producerCounter[slot]!, eqs.logEntries[slot]!) * eqeBytes;
    const pageIndex = offset >>> eqs.logPageBytes[slot]!;
    eqs.pageIndex[slot] = pageIndex;
    eqs.pageAddress[slot] = NOT_MAPPED;
    const address = icm.mttEntryAddress(eqs.mttAddress[slot]! + pageIndex * mttEntryBytes);
    if (address === NOT_MAPPED) {
      this.#setup.domain.wake(this.#stage, cycle + 1);
      return;
    }
    eqs.pageIndex[slot] = NO_PAGE;
    this.#isTranslating = true;
    this.#translatingSlot = slot;
    this.account.stall(cycle, stallTranslation);
    reads.request(
      this.#reader,
      address,
      mttEntryBytes,
      this.#mttOffset,
      this.#epoch * PAGE_LIMIT + pageIndex,
    );
  }

  #translated(cookie: number, status: number, cycle: number): void {
    if (Math.floor(cookie / PAGE_LIMIT) !== this.#epoch) return;
    const { eqs, domain } = this.#setup;
    const slot = this.#translatingSlot;
    this.#isTranslating = false;
    this.#translatingSlot = -1;
    if (slot >= 0) {
      const isPresent = mttEntry.fields.present.get(this.#mttView, this.#mttOffset) === 1;
      const address = mttEntry.fields.pageAddress.getNumber(this.#mttView, this.#mttOffset);
      eqs.pageIndex[slot] = cookie % PAGE_LIMIT;
      eqs.pageAddress[slot] = status === 0 && isPresent ? address : NOT_MAPPED;
    }
    domain.wake(this.#stage, cycle + 1);
  }

  #written(cookie: number, cycle: number): void {
    if (Math.floor(cookie / this.#depth) === this.#epoch) this.#release(cookie % this.#depth, cycle);
  }

  /** Gives entries back in order: a dropped one waits for those in front of it that are being written. */
  #release(entry: number, cycle: number): void {
    const wasFull = !this.canPost();
    this.#isDone[entry] = 1;
    while (this.#released < this.#taken && this.#isDone[this.#released % this.#depth] === 1) this.#released++;
    if (wasFull && this.canPost()) for (const listener of this.#spaceListeners) listener(cycle);
  }

  #wake(): void {
    this.#setup.domain.wake(this.#stage, this.#setup.domain.cycle + 1);
  }
}

const UNKNOWN = -2;
const UNREACHABLE = -3;
/** More pages than an EQ can have: 2^22 entries of 32 bytes in pages of 4 KiB. */
const PAGE_LIMIT = 2 ** 20;
