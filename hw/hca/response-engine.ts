/**
 * The response engine: answers requests that the responder has accepted, in their order per QP.
 *
 *   responder ──READ, atomic, ACK, NAK──> per-QP queue ──> READ: translate, DMA read ──┐
 *                                                     ├──> atomic: DMA read, compute, DMA write ──> packet queue
 *                                                     └──> acknowledgement (coalesced) ┘
 *
 * Bounds: a QP queues at most its responder resources; an acknowledgement is one pending word per QP that a later one
 * overwrites, so the responder never waits for the wire. A READ or atomic begins only when the payload written before
 * it has left for memory. Atomics are executed one at a time for the whole device, as measured (rate independent of
 * the number of counters: measurements.csv D-062, D-063). Clauses: IBTA vol 1, 9.7.5, 9.4.
 */
import { BlockAccount, Fifo } from '../../sim/index.ts';
import * as aethConstants from '../../wire/aeth.ts';
import { ackSyndrome, creditCodeFor, NakCode, nakSyndrome } from '../../wire/aeth.ts';
import { Opcode } from '../../wire/opcodes.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import type { PacketQueue } from './packet-queue.ts';
import * as pageFaults from './page-faults.ts';
import type { PayloadWriter } from './payload-writer.ts';
import * as translationCache from './translation-cache.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { CREDIT_CODE_INVALID } = aethConstants;
const { PORT_RESPONSE } = coreConstants;
const { RIGHT_REMOTE_ATOMIC, RIGHT_REMOTE_READ } = translationCache;
const { BAD_KEY, PAGE_FAULT, PENDING } = translatorConstants;
const { SIDE_RESPONSE } = pageFaults;

/** READs and atomics one QP can have accepted and not answered. */
export const RESPONDER_RESOURCES = 16;

const KIND_READ = 0;
const KIND_ATOMIC = 1;
const KIND_REPLAY = 2;

const STALL_TRANSLATION = 0;
const STALL_DMA = 1;
const STALL_RESPONSE_BUFFER = 2;
const STALL_ORDERING = 3;
const STALL_ATOMIC = 4;

const ATOMIC_BYTES = 8;
const ATOMIC_IDLE = 0;
const ATOMIC_READING = 1;
const ATOMIC_READ = 2;
const ATOMIC_WRITING = 3;
const ATOMIC_WRITTEN = 4;

const STALLED = -1;
const FINISHED = 0;
/** A page has been asked for: the QP's answers wait for it, those of others go on. */
const ABSENT = -2;

export interface ResponseListener {
  /** Credits the QP can grant: receive WQEs known to be posted. */
  knownReceives(qp: number): number;
  /** A packet is complete and can be sent from `cycle` on; one that waits for DMA reads tells by itself. */
  packetSealed(cycle: number): void;
  /** A response could not be made: memory failed or the region is gone. */
  responseFailed(qp: number, cycle: number): void;
}

export class ResponseEngine {
  readonly account = new BlockAccount('responseEngine', [
    'translation',
    'dma',
    'responseBuffer',
    'ordering',
    'atomic',
  ]);
  acknowledgementCount = 0;
  coalescedCount = 0;
  atomicCount = 0;
  readonly #core: HcaCore;
  readonly #packets: PacketQueue;
  readonly #writer: PayloadWriter;
  readonly #listener: ResponseListener;
  readonly #readRequester: number;
  readonly #atomicRead: number;
  readonly #atomicWrite: number;
  readonly #sram: number;
  readonly #stage: number;
  /** QPs with something to answer, each once. */
  readonly #ring: Fifo;
  readonly #isInRing: Uint8Array;
  /** By QP and resource. */
  readonly #kind: Uint8Array;
  readonly #psn: Int32Array;
  readonly #address: Float64Array;
  readonly #key: Float64Array;
  readonly #bytes: Float64Array;
  readonly #operands: Int32Array;
  readonly #opcode: Uint8Array;
  readonly #sent: Int32Array;
  readonly #writesBefore: Float64Array;
  /** By QP. */
  readonly #head: Uint8Array;
  readonly #count: Uint8Array;
  /** Of these, requests not seen before: what the QP's responder resources bound. */
  readonly #newCount: Uint8Array;
  readonly #isPaused: Uint8Array;
  readonly #isNew: Uint8Array;
  readonly #hasAck: Uint8Array;
  readonly #ackPsn: Int32Array;
  readonly #ackSyndrome: Int32Array;
  readonly #ackDueCycle: Float64Array;
  readonly #resultPsn: Int32Array;
  readonly #results: Int32Array;
  readonly #resultNext: Uint8Array;

  #active = -1;
  #slot = -1;
  #filled = 0;
  #wanted = 0;
  #burst = 0;
  #atomic = ATOMIC_IDLE;
  #atomicStatus = 0;
  #atomicAddress = 0;

  /** @param sramOffset of 64 bytes */
  constructor(
    core: HcaCore,
    packets: PacketQueue,
    writer: PayloadWriter,
    classes: { readonly payloadRead: number; readonly payloadWrite: number },
    sramOffset: number,
    payloadRead: (slot: number, status: number, cycle: number) => void,
    listener: ResponseListener,
  ) {
    this.#core = core;
    this.#packets = packets;
    this.#writer = writer;
    this.#listener = listener;
    this.#sram = sramOffset;
    const qps = core.qps.capacity;
    const entries = qps * RESPONDER_RESOURCES;
    this.#ring = new Fifo(qps);
    this.#isInRing = new Uint8Array(qps);
    this.#kind = new Uint8Array(entries);
    this.#psn = new Int32Array(entries);
    this.#address = new Float64Array(entries);
    this.#key = new Float64Array(entries);
    this.#bytes = new Float64Array(entries);
    this.#operands = new Int32Array(entries * 4);
    this.#opcode = new Uint8Array(entries);
    this.#sent = new Int32Array(entries);
    this.#writesBefore = new Float64Array(entries);
    this.#head = new Uint8Array(qps);
    this.#count = new Uint8Array(qps);
    this.#newCount = new Uint8Array(qps);
    this.#isPaused = new Uint8Array(qps);
    this.#isNew = new Uint8Array(entries);
    this.#hasAck = new Uint8Array(qps);
    this.#ackPsn = new Int32Array(qps);
    this.#ackSyndrome = new Int32Array(qps);
    this.#ackDueCycle = new Float64Array(qps);
    this.#resultPsn = new Int32Array(qps * core.config.responderAtomicResults).fill(-1);
    this.#results = new Int32Array(qps * core.config.responderAtomicResults * 2);
    this.#resultNext = new Uint8Array(qps);
    const read = { trafficClass: classes.payloadRead, weight: 4 };
    this.#readRequester = core.dmaRead.addRequester(
      { name: 'responseRead', fifoDepth: 16, ...read },
      payloadRead,
    );
    this.#atomicRead = core.dmaRead.addRequester(
      { name: 'atomicRead', fifoDepth: 1, ...read },
      (_c, status, cycle) => {
        this.#atomicStatus = status;
        this.#atomic = ATOMIC_READ;
        this.wake(cycle + core.config.atomicCycles);
      },
    );
    this.#atomicWrite = core.dmaWrite.addRequester(
      { name: 'atomicWrite', trafficClass: classes.payloadWrite, fifoDepth: 1 },
      (_cookie, cycle) => {
        this.#atomic = ATOMIC_WRITTEN;
        this.wake(cycle + 1);
      },
    );
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    core.translator.attach(PORT_RESPONSE, (cycle) => this.wake(cycle));
    core.dmaRead.onSpace(this.#readRequester, () => this.wake(core.domain.cycle + 1));
  }

  wake(cycle: number): void {
    this.#core.domain.wake(this.#stage, cycle);
  }

  /** Payload has left for memory. */
  payloadLeft(cycle: number): void {
    if (this.account.isStalledFor(STALL_ORDERING)) this.wake(cycle + 1);
  }

  /** A slot of the packet queue became free. */
  slotFreed(cycle: number): void {
    if (this.account.isStalledFor(STALL_RESPONSE_BUFFER)) this.wake(cycle + 1);
  }

  /** READs and atomics the QP still has to answer. */
  queuedCount(qp: number): number {
    return this.#count[qp]!;
  }

  /** The same without those that were repeated, whose first answer may have been lost. */
  newCount(qp: number): number {
    return this.#newCount[qp]!;
  }

  /** True while the memory of an atomic is being read or written. */
  get isInAtomic(): boolean {
    return this.#atomic !== ATOMIC_IDLE;
  }

  /** True while anything of the QP is queued or being answered. */
  isBusy(qp: number): boolean {
    return this.#count[qp]! > 0 || this.#hasAck[qp] === 1 || this.#active === qp;
  }

  /** Accepts a READ request, new (1) or repeated (0). The caller has checked {@link queuedCount}. */
  addRead(
    qp: number,
    psn: number,
    address: number,
    key: number,
    bytes: number,
    isNew: number,
    cycle: number,
  ): void {
    const entry = this.#append(qp, KIND_READ, psn, isNew);
    this.#address[entry] = address;
    this.#key[entry] = key;
    this.#bytes[entry] = bytes;
    this.#enter(qp, cycle + 1);
  }

  /** Accepts an atomic; operands are four words at `word` of `words`: swap or add, compare. */
  addAtomic(
    qp: number,
    psn: number,
    opcode: number,
    address: number,
    key: number,
    words: Int32Array,
    word: number,
    cycle: number,
  ): void {
    const entry = this.#append(qp, KIND_ATOMIC, psn, 1);
    this.#address[entry] = address;
    this.#key[entry] = key;
    this.#bytes[entry] = ATOMIC_BYTES;
    this.#opcode[entry] = opcode;
    for (let index = 0; index < 4; index++) this.#operands[entry * 4 + index] = words[word + index]!;
    this.#enter(qp, cycle + 1);
  }

  /** Repeats the answer of an atomic already executed. False when its result is no longer kept. */
  replayAtomic(qp: number, psn: number, cycle: number): boolean {
    if (this.#count[qp] === RESPONDER_RESOURCES) return false;
    const kept = this.#core.config.responderAtomicResults;
    for (let index = 0; index < kept; index++) {
      if (this.#resultPsn[qp * kept + index] !== psn) continue;
      const entry = this.#append(qp, KIND_REPLAY, psn, 0);
      this.#operands[entry * 4] = this.#results[(qp * kept + index) * 2]!;
      this.#operands[entry * 4 + 1] = this.#results[(qp * kept + index) * 2 + 1]!;
      this.#enter(qp, cycle + 1);
      return true;
    }
    return false;
  }

  /** Acknowledges everything up to `psn`, after a short while in which later ones may take its place. */
  acknowledge(qp: number, psn: number, cycle: number): void {
    if (this.#hasAck[qp] === 1) this.coalescedCount++;
    else this.#ackDueCycle[qp] = cycle + this.#core.config.ackDelayCycles;
    this.#hasAck[qp] = 1;
    this.#ackPsn[qp] = psn;
    this.#ackSyndrome[qp] = -1;
    this.#enter(qp, this.#ackDueCycle[qp]!);
  }

  /** Refuses the request at `psn`: NAK or RNR NAK. */
  refuse(qp: number, psn: number, syndrome: number, cycle: number): void {
    this.#hasAck[qp] = 1;
    this.#ackPsn[qp] = psn;
    this.#ackSyndrome[qp] = syndrome;
    this.#ackDueCycle[qp] = cycle + 1;
    this.#enter(qp, cycle + 1);
  }

  /** Drops the READs and atomics queued for the QP; an acknowledgement or NAK still goes out. */
  dropRequests(qp: number): void {
    this.#count[qp] = 0;
    this.#newCount[qp] = 0;
    this.#isPaused[qp] = 0;
  }

  /** Drops everything queued for the QP. */
  drop(qp: number): void {
    this.dropRequests(qp);
    this.#hasAck[qp] = 0;
  }

  /** The page that the QP's oldest answer waited for is there, or is refused. */
  resume(qp: number, cycle: number): void {
    if (this.#isPaused[qp] === 0) return;
    this.#isPaused[qp] = 0;
    if (this.#count[qp]! > 0 || this.#hasAck[qp] === 1) this.#enter(qp, cycle + 1);
  }

  /** A new life of the QP: no result is kept. */
  open(qp: number): void {
    const kept = this.#core.config.responderAtomicResults;
    this.#resultPsn.fill(-1, qp * kept, (qp + 1) * kept);
    this.#resultNext[qp] = 0;
    this.#head[qp] = 0;
    this.drop(qp);
  }

  reset(): void {
    this.#ring.clear();
    this.#isInRing.fill(0);
    this.#count.fill(0);
    this.#newCount.fill(0);
    this.#isPaused.fill(0);
    this.#hasAck.fill(0);
    this.#active = -1;
    this.#slot = -1;
    this.#atomic = ATOMIC_IDLE;
  }

  #append(qp: number, kind: number, psn: number, isNew: number): number {
    const entry = qp * RESPONDER_RESOURCES + ((this.#head[qp]! + this.#count[qp]!) % RESPONDER_RESOURCES);
    this.#count[qp] = this.#count[qp]! + 1;
    this.#newCount[qp] = this.#newCount[qp]! + isNew;
    this.#isNew[entry] = isNew;
    this.#kind[entry] = kind;
    this.#psn[entry] = psn;
    this.#sent[entry] = 0;
    this.#writesBefore[entry] = this.#writer.requestedCount;
    return entry;
  }

  #enter(qp: number, cycle: number): void {
    if (this.#isInRing[qp] === 0 && this.#active !== qp) {
      this.#isInRing[qp] = 1;
      this.#ring.push(qp, 0);
    }
    this.wake(cycle);
  }

  #run(cycle: number): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#active === -1 && !this.#choose(cycle)) return;
    const qp = this.#active;
    const busyCycles = this.#serve(qp, cycle);
    if (busyCycles === STALLED) return;
    if (busyCycles > 0) this.account.serve(cycle, busyCycles);
    if (this.#active !== -1 || !this.#ring.isEmpty) this.wake(cycle + Math.max(1, busyCycles));
  }

  /** Takes the next QP that has something due. */
  #choose(cycle: number): boolean {
    let nextCycle = Number.POSITIVE_INFINITY;
    for (let tries = this.#ring.count; tries > 0; tries--) {
      const qp = this.#ring.pop();
      if (this.#isPaused[qp] === 1) {
        this.#isInRing[qp] = 0;
        continue;
      }
      const hasEntry = this.#count[qp]! > 0;
      const isAckDue = this.#hasAck[qp] === 1 && this.#ackDueCycle[qp]! <= cycle;
      if (hasEntry || isAckDue) {
        this.#isInRing[qp] = 0;
        this.#active = qp;
        this.#burst = 0;
        return true;
      }
      if (this.#hasAck[qp] === 1) {
        this.#ring.push(qp, 0);
        nextCycle = Math.min(nextCycle, this.#ackDueCycle[qp]!);
      } else {
        this.#isInRing[qp] = 0;
      }
    }
    this.account.rest(cycle);
    if (nextCycle < Number.POSITIVE_INFINITY) this.wake(nextCycle);
    return false;
  }

  #serve(qp: number, cycle: number): number {
    if (this.#count[qp] === 0) {
      if (this.#slot !== -1) this.#abandonPacket(cycle);
      if (this.#atomic !== ATOMIC_IDLE && this.#atomic !== ATOMIC_READ && this.#atomic !== ATOMIC_WRITTEN) {
        this.account.stall(cycle, STALL_ATOMIC);
        return STALLED;
      }
      this.#atomic = ATOMIC_IDLE;
      return this.#sendAck(qp, cycle);
    }
    const entry = qp * RESPONDER_RESOURCES + this.#head[qp]!;
    if (this.#writer.doneCount < this.#writesBefore[entry]!) {
      this.account.stall(cycle, STALL_ORDERING);
      return STALLED;
    }
    if (this.#kind[entry] === KIND_READ) return this.#sendRead(qp, entry, cycle);
    if (this.#kind[entry] === KIND_ATOMIC) return this.#executeAtomic(qp, entry, cycle);
    return this.#sendAtomicAck(qp, entry, this.#operands[entry * 4]!, this.#operands[entry * 4 + 1]!, cycle);
  }

  #sendAck(qp: number, cycle: number): number {
    if (this.#hasAck[qp] === 0 || this.#ackDueCycle[qp]! > cycle) return this.#endTurn(qp, cycle, FINISHED);
    if (!this.#openSlot(qp, cycle)) return STALLED;
    const slot = this.#slot;
    this.#hasAck[qp] = 0;
    this.acknowledgementCount++;
    const syndrome = this.#ackSyndrome[qp]! === -1 ? this.#creditSyndrome(qp) : this.#ackSyndrome[qp]!;
    this.#seal(slot, Opcode.RC_ACKNOWLEDGE, this.#ackPsn[qp]!, syndrome, qp, cycle);
    return this.#endTurn(qp, cycle, this.#core.config.responseCycles);
  }

  /** One packet of a READ response. */
  #sendRead(qp: number, entry: number, cycle: number): number {
    const { qps, config } = this.#core;
    const mtu = qps.rows[qp]!.mtuBytes;
    const packets = Math.max(1, Math.ceil(this.#bytes[entry]! / mtu));
    const index = this.#sent[entry]!;
    if (this.#slot === -1) {
      if (!this.#openSlot(qp, cycle)) return STALLED;
      this.#filled = 0;
      this.#wanted = Math.min(mtu, this.#bytes[entry]! - index * mtu);
    }
    const gathered = this.#gather(qp, entry, index * mtu, cycle);
    if (gathered !== 1) return this.#leave(gathered, qp, entry, cycle);
    const slot = this.#slot;
    this.#packets.rows[slot]!.payloadBytes = this.#wanted;
    this.#seal(
      slot,
      readResponseOpcode(index === 0, index === packets - 1),
      (this.#psn[entry]! + index) & 0xffffff,
      this.#creditSyndrome(qp),
      qp,
      cycle,
    );
    this.#sent[entry] = index + 1;
    this.#burst++;
    if (index === packets - 1) {
      this.#popEntry(qp);
      return this.#endTurn(qp, cycle, config.responseCycles);
    }
    return this.#burst >= config.burstPackets
      ? this.#endTurn(qp, cycle, config.responseCycles)
      : config.responseCycles;
  }

  #leave(gathered: number, qp: number, entry: number, cycle: number): number {
    if (gathered === STALLED) return STALLED;
    return gathered === ABSENT ? this.#pause(qp, cycle) : this.#fail(qp, entry, cycle);
  }

  /** Leaves the QP out until {@link resume}. */
  #pause(qp: number, cycle: number): number {
    if (this.#slot !== -1) this.#abandonPacket(cycle);
    this.#isPaused[qp] = 1;
    this.#active = -1;
    return 1;
  }

  /** ABSENT, or FINISHED when the memory is refused. */
  #missing(
    found: number,
    qp: number,
    entry: number,
    skipped: number,
    isWrite: number,
    cycle: number,
  ): number {
    const { pageFaults: faults } = this.#core;
    const key = this.#key[entry]!;
    const address = this.#address[entry]! + skipped;
    const rest = this.#bytes[entry]! - skipped;
    const isAsked =
      found === PAGE_FAULT && faults.meet(qp, SIDE_RESPONSE, key, address, rest, isWrite, cycle);
    return isAsked ? ABSENT : FINISHED;
  }

  /** Begins the DMA reads of the response's payload. FINISHED means refused; or ABSENT. */
  #gather(qp: number, entry: number, skippedBytes: number, cycle: number): number {
    const { qps, translator, dmaRead } = this.#core;
    while (this.#filled < this.#wanted) {
      const address = this.#address[entry]! + skippedBytes + this.#filled;
      const wanted = this.#wanted - this.#filled;
      const found = translator.translate(
        PORT_RESPONSE,
        this.#key[entry]!,
        qps.rows[qp]!.pd,
        address,
        wanted,
        RIGHT_REMOTE_READ,
      );
      if (found === PENDING) {
        this.account.stall(cycle, STALL_TRANSLATION);
        return STALLED;
      }
      if (found >= BAD_KEY) return this.#missing(found, qp, entry, skippedBytes + this.#filled, 0, cycle);
      if (!dmaRead.canRequest(this.#readRequester)) {
        this.account.stall(cycle, STALL_DMA);
        return STALLED;
      }
      const bytes = Math.min(translator.contiguousBytes, wanted);
      this.#packets.rows[this.#slot]!.pendingReads++;
      dmaRead.request(
        this.#readRequester,
        translator.physicalAddress,
        bytes,
        this.#packets.payloadOffset(this.#slot) + this.#filled,
        this.#slot,
      );
      this.#filled += bytes;
    }
    return 1;
  }

  /** One step of an atomic: read, compute and write, answer. */
  #executeAtomic(qp: number, entry: number, cycle: number): number {
    const { translator, qps, dmaRead, dmaWrite, sram, sramView, config } = this.#core;
    if (this.#atomic === ATOMIC_IDLE) {
      if (this.#packets.isFull) {
        this.account.stall(cycle, STALL_RESPONSE_BUFFER);
        return STALLED;
      }
      const found = translator.translate(
        PORT_RESPONSE,
        this.#key[entry]!,
        qps.rows[qp]!.pd,
        this.#address[entry]!,
        ATOMIC_BYTES,
        RIGHT_REMOTE_ATOMIC,
      );
      if (found === PENDING) {
        this.account.stall(cycle, STALL_TRANSLATION);
        return STALLED;
      }
      if (found >= BAD_KEY)
        return this.#leave(this.#missing(found, qp, entry, 0, 1, cycle), qp, entry, cycle);
      this.#atomicAddress = translator.physicalAddress;
      dmaRead.request(this.#atomicRead, this.#atomicAddress, ATOMIC_BYTES, this.#sram, 0);
      this.#atomic = ATOMIC_READING;
      return 1;
    }
    if (this.#atomic === ATOMIC_READ) {
      if (this.#atomicStatus !== 0) {
        this.#atomic = ATOMIC_IDLE;
        return this.#fail(qp, entry, cycle);
      }
      this.#compute(entry, sramView);
      dmaWrite.request(
        this.#atomicWrite,
        this.#atomicAddress,
        ATOMIC_BYTES,
        sram,
        this.#sram + ATOMIC_BYTES,
        0,
      );
      this.#atomic = ATOMIC_WRITING;
      return config.atomicCycles;
    }
    if (this.#atomic === ATOMIC_WRITTEN) {
      this.#atomic = ATOMIC_IDLE;
      this.atomicCount++;
      const low = sramView.getInt32(this.#sram, true);
      const high = sramView.getInt32(this.#sram + 4, true);
      this.#keepResult(qp, this.#psn[entry]!, low, high);
      return this.#sendAtomicAck(qp, entry, low, high, cycle);
    }
    this.account.stall(cycle, STALL_ATOMIC);
    return STALLED;
  }

  /** Puts the new value behind the old one in the HCA's memory. Values are in the host's byte order, little-endian. */
  #compute(entry: number, view: DataView): void {
    const low = view.getUint32(this.#sram, true);
    const high = view.getUint32(this.#sram + 4, true);
    const operandLow = this.#operands[entry * 4]! >>> 0;
    const operandHigh = this.#operands[entry * 4 + 1]! >>> 0;
    let newLow = low;
    let newHigh = high;
    if (this.#opcode[entry] === Opcode.RC_FETCH_ADD) {
      newLow = (low + operandLow) >>> 0;
      newHigh = (high + operandHigh + (low + operandLow > 0xffffffff ? 1 : 0)) >>> 0;
    } else if (
      low === this.#operands[entry * 4 + 2]! >>> 0 &&
      high === this.#operands[entry * 4 + 3]! >>> 0
    ) {
      newLow = operandLow;
      newHigh = operandHigh;
    }
    view.setUint32(this.#sram + ATOMIC_BYTES, newLow, true);
    view.setUint32(this.#sram + ATOMIC_BYTES + 4, newHigh, true);
  }

  #keepResult(qp: number, psn: number, low: number, high: number): void {
    const kept = this.#core.config.responderAtomicResults;
    const at = qp * kept + this.#resultNext[qp]!;
    this.#resultPsn[at] = psn;
    this.#results[at * 2] = low;
    this.#results[at * 2 + 1] = high;
    this.#resultNext[qp] = (this.#resultNext[qp]! + 1) % kept;
  }

  #sendAtomicAck(qp: number, entry: number, low: number, high: number, cycle: number): number {
    if (!this.#openSlot(qp, cycle)) return STALLED;
    const slot = this.#slot;
    this.#packets.operands[slot * 4] = low;
    this.#packets.operands[slot * 4 + 1] = high;
    this.#seal(slot, Opcode.RC_ATOMIC_ACKNOWLEDGE, this.#psn[entry]!, this.#creditSyndrome(qp), qp, cycle);
    this.#popEntry(qp);
    return this.#endTurn(qp, cycle, this.#core.config.responseCycles);
  }

  #openSlot(qp: number, cycle: number): boolean {
    const { qps } = this.#core;
    if (this.#packets.isFull) {
      this.account.stall(cycle, STALL_RESPONSE_BUFFER);
      return false;
    }
    this.#slot = this.#packets.open(qp, 0, -1);
    const pair = qps.rows[qp]!;
    pair.inPipelineCount++;
    return true;
  }

  #seal(slot: number, opcode: number, psn: number, syndrome: number, qp: number, cycle: number): void {
    const { qps, config } = this.#core;
    const packet = this.#packets.rows[slot]!;
    packet.opcode = opcode;
    packet.psn = psn;
    packet.aeth = (syndrome << 24) | qps.rows[qp]!.msn;
    packet.readyCycle = cycle + config.responseCycles + config.transmitLatencyCycles;
    packet.isSealed = 1;
    this.#slot = -1;
    if (packet.pendingReads === 0) this.#listener.packetSealed(packet.readyCycle);
  }

  #creditSyndrome(qp: number): number {
    if (this.#core.qps.rows[qp]!.creditsInvalid === 1) return ackSyndrome(CREDIT_CODE_INVALID);
    return ackSyndrome(creditCodeFor(this.#listener.knownReceives(qp)));
  }

  #popEntry(qp: number): void {
    const head = this.#head[qp]!;
    this.#newCount[qp] = this.#newCount[qp]! - this.#isNew[qp * RESPONDER_RESOURCES + head]!;
    this.#head[qp] = (head + 1) % RESPONDER_RESOURCES;
    this.#count[qp] = this.#count[qp]! - 1;
  }

  #endTurn(qp: number, cycle: number, busyCycles: number): number {
    this.#active = -1;
    if (this.#count[qp]! > 0 || this.#hasAck[qp] === 1) this.#enter(qp, cycle + 1);
    return busyCycles;
  }

  /** The request was accepted but its memory cannot be used: NAK, and the QP fails (9.7.5.2.4). */
  #fail(qp: number, entry: number, cycle: number): number {
    if (this.#slot !== -1) this.#abandonPacket(cycle);
    const psn = (this.#psn[entry]! + this.#sent[entry]!) & 0xffffff;
    this.drop(qp);
    this.refuse(qp, psn, nakSyndrome(NakCode.REMOTE_OPERATIONAL_ERROR), cycle);
    this.#listener.responseFailed(qp, cycle);
    return this.#endTurn(qp, cycle, 1);
  }

  #abandonPacket(cycle: number): void {
    this.#packets.rows[this.#slot]!.epoch = -1;
    this.#packets.rows[this.#slot]!.isSealed = 1;
    this.#slot = -1;
    this.#listener.packetSealed(cycle + 1);
  }
}

function readResponseOpcode(isFirst: boolean, isLast: boolean): number {
  if (isFirst && isLast) return Opcode.RC_RDMA_READ_RESPONSE_ONLY;
  if (isFirst) return Opcode.RC_RDMA_READ_RESPONSE_FIRST;
  return isLast ? Opcode.RC_RDMA_READ_RESPONSE_LAST : Opcode.RC_RDMA_READ_RESPONSE_MIDDLE;
}
