/**
 * Decodes writes to BAR2: send doorbells, CQ arms, EQ doorbells, and BlueFlame posts.
 *
 *   UAR page n:  +0x14 send doorbell   +0x20 CQ arm   +0x800.. EQ doorbells of EQs 4n..4n+3
 *   UAR page 0:  +0x840 invalidation of translations (on-demand paging, ours)
 *   BlueFlame page n: the WQE itself, in 64-byte pieces, into one half of a register; pairs with UAR n
 *
 * Isolation: a process has mapped its own page only, and a doorbell takes effect only if the object's context names the
 * page that was written (the QP's and CQ's usr_page; BlueFlame page n counts as UAR n). Others are rejected and
 * counted. Nothing here waits for memory, so posted writes always drain. Interface sheet 6.9, 6.10.
 */

import {
  blueFlameHead,
  CqArmCommand,
  cqArm,
  eqDoorbell,
  eqNumberOfDoorbell,
  isEqDoorbell,
  QpState,
  sendDoorbell,
  uarOffset,
  uarPageBytes,
  wqeUnitBytes,
} from '../../../abi/index.ts';
import { type Cycles, copyShort } from '../../../base/index.ts';
import { BlockAccount, type BlockState } from '../../../sim/index.ts';
import type { DoorbellBlock, DoorbellParts, DoorbellPorts } from '../host-interface/index.ts';
import type { Translator } from '../memory/index.ts';
import {
  type CqTable,
  ETHERNET_OPCODE_BASE,
  noLine,
  type Qpn,
  type QpTable,
  type QueuePair,
  WQE_LINE_BYTES,
  type WqeLine,
} from '../objects/index.ts';
import type { WqeLines } from '../send-queue/index.ts';
import type { ViolationCounters } from '../statistics/index.ts';

const { ERR, RTS, SQD, SQER } = QpState;
const SEND_DOORBELL = uarOffset.sendDoorbell;

const ARM_FIRST_WORD_BYTES = 4;
const PIECE_BYTES = 64;
/** Limit of BlueFlame posts being assembled at once. */
const ASSEMBLY_COUNT = 16;

export interface DoorbellGeometry {
  /** Bytes of the UAR area, after which BlueFlame pages begin. */
  readonly uarAreaBytes: number;
  /** Bytes of one BlueFlame register half. */
  readonly blueFlameHalfBytes: number;
}

export class Doorbells implements DoorbellBlock {
  readonly account = new BlockAccount('doorbells');
  sendCount = 0;
  blueFlameCount = 0;
  /**
   * BlueFlame posts whose WQE is read from memory because other WQEs of the QP precede it, as when posts follow each
   * other closely.
   */
  blueFlameFromMemoryCount = 0;
  armCount = 0;
  eqCount = 0;
  invalidateCount = 0;
  readonly #config: DoorbellParts['config'];
  readonly #qps: QpTable;
  readonly #cqs: CqTable;
  readonly #sramView: DataView;
  readonly #translator: Translator;
  readonly #violations: ViolationCounters;
  readonly #lines: WqeLines;
  readonly #geometry: DoorbellGeometry;
  #ports!: DoorbellPorts;
  /** First word of a CQ arm written in two halves, by UAR page (kept for the last page that did so). */
  #halfArmPage = -1;
  readonly #halfArm = new DataView(new ArrayBuffer(8));
  /** BlueFlame posts of several pieces, by register half. */
  readonly #assemblyAt = new Float64Array(ASSEMBLY_COUNT).fill(-1);
  readonly #assemblyHave = new Int32Array(ASSEMBLY_COUNT);
  readonly #assemblyWant = new Int32Array(ASSEMBLY_COUNT);
  readonly #assemblyView = new DataView(new ArrayBuffer(ASSEMBLY_COUNT * WQE_LINE_BYTES));
  #assemblyNext = 0;

  constructor(setup: DoorbellParts, geometry: DoorbellGeometry) {
    this.#config = setup.config;
    this.#qps = setup.qps;
    this.#cqs = setup.cqs;
    this.#sramView = setup.sramView;
    this.#translator = setup.translator;
    this.#violations = setup.violations;
    this.#lines = setup.lines;
    this.#geometry = geometry;
  }

  connect(ports: DoorbellPorts): void {
    this.#ports = ports;
  }

  /** A write of `lengthBytes` at `bytes[byteOffset]` to BAR2 + `offset`. Returns the cycles it occupies the port. */
  barWrite(offset: number, view: DataView, byteOffset: number, lengthBytes: number, cycle: Cycles): number {
    const busyCycles = this.#config.doorbellCycles;
    const { freeCycle } = this.account;
    this.account.serve(cycle > freeCycle ? cycle : freeCycle, busyCycles);
    if (offset >= this.#geometry.uarAreaBytes)
      this.#blueFlame(offset - this.#geometry.uarAreaBytes, view, byteOffset, lengthBytes, cycle);
    else this.#uarWrite(offset, view, byteOffset, lengthBytes, cycle);
    return busyCycles;
  }

  reset(): void {
    this.#halfArmPage = -1;
    this.#assemblyAt.fill(-1);
  }

  inspect(): BlockState {
    const isTaken = (at: number): boolean => at !== -1;
    return { halfArmPage: this.#halfArmPage, blueFlamePosts: Array.from(this.#assemblyAt).filter(isTaken) };
  }

  #uarWrite(offset: number, view: DataView, at: number, lengthBytes: number, cycle: Cycles): void {
    const page = (offset / uarPageBytes) | 0;
    const within = offset - page * uarPageBytes;
    if (within === SEND_DOORBELL && lengthBytes === 4) {
      this.sendCount++;
      this.#send(sendDoorbell.fields.qpn.get(view, at), page, cycle);
    } else if (within === uarOffset.cqArm && lengthBytes === 8) {
      this.#arm(view, at, page, cycle);
    } else if (within === uarOffset.cqArm && lengthBytes === 4) {
      this.#halfArmPage = page;
      this.#halfArm.setUint32(0, view.getUint32(at));
    } else if (
      within === uarOffset.cqArm + ARM_FIRST_WORD_BYTES &&
      lengthBytes === 4 &&
      this.#halfArmPage === page
    ) {
      this.#halfArm.setUint32(ARM_FIRST_WORD_BYTES, view.getUint32(at));
      this.#halfArmPage = -1;
      this.#arm(this.#halfArm, 0, page, cycle);
    } else if (isEqDoorbell(within) && lengthBytes === 4) {
      this.eqCount++;
      const fields = eqDoorbell.fields;
      this.#ports.eventQueues.eqDoorbell(
        eqNumberOfDoorbell(page, within),
        fields.consumerCounter.get(view, at),
        fields.arm.get(view, at) === 1,
        cycle,
      );
    } else if (page === 0 && within === uarOffset.invalidate && lengthBytes === 4) {
      this.invalidateCount++;
      this.#translator.forgetMtt();
    } else {
      this.#violations.count('doorbellOffset');
    }
  }

  /** Executes a send doorbell, or a BlueFlame post treated as one. */
  #send(qpn: Qpn, page: number, cycle: Cycles): void {
    const violations = this.#violations;
    const qp = this.#qps.slotOf(qpn);
    if (qp === -1) return violations.count('doorbellUnknownQp');
    const pair = this.#qps.rows[qp]!;
    if (pair.uarPage !== page) return violations.count('doorbellForeignUar');
    const state = pair.state;
    if (state !== RTS && state !== SQD && state !== ERR && state !== SQER)
      return violations.count('doorbellQpState');
    pair.hasDoorbell = 1;
    this.#ports.arrivals.sendRequested(pair, cycle);
  }

  #arm(view: DataView, at: number, page: number, cycle: Cycles): void {
    const violations = this.#violations;
    this.armCount++;
    const fields = cqArm.fields;
    const cq = this.#cqs.slotOf(fields.cqn.get(view, at));
    const command = fields.command.get(view, at);
    if (cq === -1 || (command !== CqArmCommand.NEXT && command !== CqArmCommand.SOLICITED))
      return violations.count('armUnknownCq');
    const queue = this.#cqs.rows[cq]!;
    if (queue.uarPage !== page) return violations.count('armForeignUar');
    const expected = (queue.firedCount + 1) & 3;
    if (fields.sequenceNumber.get(view, at) !== expected) return violations.count('armStale');
    this.#ports.notifier.arm(cq, command, fields.consumerCounter.get(view, at), cycle);
  }

  /**
   * Accepts one piece of a BlueFlame post: the first eight bytes name the QP, the last completes the WQE. A processor may flush
   * its write-combining buffer at any time, for example at an interrupt, so a piece may be of four bytes.
   */
  #blueFlame(offset: number, view: DataView, at: number, lengthBytes: number, cycle: Cycles): void {
    const half = Math.floor(offset / this.#geometry.blueFlameHalfBytes);
    const within = offset - half * this.#geometry.blueFlameHalfBytes;
    const page = Math.floor(offset / uarPageBytes);
    if (within === 0) return this.#beginPost(half, page, view, at, lengthBytes, cycle);
    for (let assembly = 0; assembly < ASSEMBLY_COUNT; assembly++) {
      if (this.#assemblyAt[assembly] !== half) continue;
      if (within !== this.#assemblyHave[assembly]) return this.#tear(assembly, cycle);
      this.#append(assembly, page, view, at, lengthBytes, cycle);
      return;
    }
    this.#violations.count('doorbellOffset');
  }

  #beginPost(
    half: number,
    page: number,
    view: DataView,
    at: number,
    lengthBytes: number,
    cycle: Cycles,
  ): void {
    for (let assembly = 0; assembly < ASSEMBLY_COUNT; assembly++) {
      if (this.#assemblyAt[assembly] === half) this.#tear(assembly, cycle);
    }
    const assembly = this.#assemblyNext;
    this.#assemblyNext = (assembly + 1) % ASSEMBLY_COUNT;
    if (this.#assemblyAt[assembly] !== -1) this.#tear(assembly, cycle);
    this.#assemblyAt[assembly] = half;
    this.#assemblyHave[assembly] = 0;
    this.#assemblyWant[assembly] = WQE_LINE_BYTES;
    this.#append(assembly, page, view, at, lengthBytes, cycle);
  }

  #append(
    assembly: number,
    page: number,
    view: DataView,
    at: number,
    lengthBytes: number,
    cycle: Cycles,
  ): void {
    const base = assembly * WQE_LINE_BYTES;
    const before = this.#assemblyHave[assembly]!;
    const take = Math.min(lengthBytes, this.#assemblyWant[assembly]! - before);
    copyShort(this.#assemblyView, base + before, view, at, take);
    const have = before + take;
    this.#assemblyHave[assembly] = have;
    if (have < blueFlameHead.sizeBytes) return;
    if (before < blueFlameHead.sizeBytes && !this.#sizePost(assembly, base)) {
      this.#assemblyAt[assembly] = -1;
      this.#send(blueFlameHead.fields.qpn.get(this.#assemblyView, base), page, cycle);
      return;
    }
    if (have < this.#assemblyWant[assembly]!) return;
    this.#assemblyAt[assembly] = -1;
    this.blueFlameCount++;
    this.#post(base, page, cycle);
  }

  /** Reads the size of a WQE from its head. False: it does not fit into half a register. */
  #sizePost(assembly: number, base: number): boolean {
    const wqeBytes = blueFlameHead.fields.ds.get(this.#assemblyView, base) * wqeUnitBytes;
    const wantedBytes = Math.max(wqeUnitBytes, wqeBytes);
    this.#assemblyWant[assembly] = Math.ceil(wantedBytes / PIECE_BYTES) * PIECE_BYTES;
    return wantedBytes <= this.#geometry.blueFlameHalfBytes;
  }

  /** Abandons a post that the written pieces cannot complete: its QP, if they name it, executes the WQE from memory. */
  #tear(assembly: number, cycle: Cycles): void {
    this.#violations.count('blueFlameTorn');
    const page = Math.floor((this.#assemblyAt[assembly]! * this.#geometry.blueFlameHalfBytes) / uarPageBytes);
    this.#assemblyAt[assembly] = -1;
    if (this.#assemblyHave[assembly]! < blueFlameHead.sizeBytes) return;
    this.#send(blueFlameHead.fields.qpn.get(this.#assemblyView, assembly * WQE_LINE_BYTES), page, cycle);
  }

  /** Accepts a whole WQE written by BlueFlame: the QP's next WQE goes straight into a line of the WQE cache. */
  #post(base: number, page: number, cycle: Cycles): void {
    const fields = blueFlameHead.fields;
    const qp = this.#qps.slotOf(fields.qpn.get(this.#assemblyView, base));
    const counter = fields.wqeCounter.get(this.#assemblyView, base);
    const pair = qp === -1 ? undefined : this.#qps.rows[qp]!;
    if (pair !== undefined && this.#follows(pair, page, counter)) {
      this.#keep(pair, pair.wqeLine, counter, base, cycle);
      return;
    }
    // A WQE of an Ethernet ring may take several blocks: it is read from memory, as after a doorbell.
    const isRing = pair?.opcodeBase === ETHERNET_OPCODE_BASE;
    const isNext = !isRing && pair?.uarPage === page && pair.state === RTS && pair.sqCounter === counter;
    if (!isNext || pair.isFetching === 1 || pair.wqeLine.validCount > 0) {
      this.blueFlameFromMemoryCount++;
      this.#send(fields.qpn.get(this.#assemblyView, base), page, cycle);
      return;
    }
    const line = this.#lines.claim(qp, pair.wqeLine);
    if (line === noLine) {
      this.#send(fields.qpn.get(this.#assemblyView, base), page, cycle);
      return;
    }
    pair.wqeLine = line;
    line.firstCounter = counter;
    line.validCount = 0;
    line.mayHaveMore = 0;
    this.#keep(pair, line, counter, base, cycle);
  }

  /** Tells whether a BlueFlame WQE follows those of the QP that are on chip, and has a place after them. */
  #follows(pair: QueuePair, page: number, counter: number): boolean {
    const { validCount, mayHaveMore, endCounter } = pair.wqeLine;
    if (pair.opcodeBase === ETHERNET_OPCODE_BASE) return false;
    const isOnChip = validCount > 0 && mayHaveMore === 0 && pair.isFetching === 0;
    if (!isOnChip || pair.uarPage !== page || pair.state !== RTS || endCounter !== counter) return false;
    const places = WQE_LINE_BYTES / pair.sqStrideBytes;
    return validCount < places && validCount < this.#config.blueFlameWqes;
  }

  /** Copies an assembled WQE into the line of its QP, after those in it. */
  #keep(pair: QueuePair, line: WqeLine, counter: number, base: number, cycle: Cycles): void {
    const bytes = blueFlameHead.fields.ds.get(this.#assemblyView, base) * wqeUnitBytes;
    const to = line.placeOf(counter, pair.sqStrideBytes);
    copyShort(this.#sramView, to, this.#assemblyView, base, bytes);
    line.validCount++;
    line.setTimes(counter, cycle, cycle);
    this.#ports.arrivals.sendRequested(pair, cycle);
  }
}
