/**
 * What each QP has accepted and not answered: a ring of READs and atomics in their order, as many as the responder's
 * resources, and one acknowledgement that a later one overwrites. Bounded, so the responder never waits for the wire.
 *
 * QPs with something to answer stand in a ring of their own, each once: a list of the rows.
 */
import { FLOAT_ZERO } from '../../base/float-zero.ts';
import { psnDistance } from '../../wire/psn.ts';
import { type PageFaults, SIDE_RESPONSE } from './page-faults.ts';
import type { QueuePair } from './queue-pair.ts';

/** READs and atomics one QP can have accepted and not answered. */
export const RESPONDER_RESOURCES = 16;

export const KIND_READ = 0;
export const KIND_ATOMIC = 1;
/** An atomic that was executed before: answered from the result kept. */
export const KIND_REPLAY = 2;

const NONE = -1;

/** Of one QP. A field that begins as FLOAT_ZERO may hold any number, the others hold 32-bit integers. */
export class PendingResponses {
  readonly pair: QueuePair;
  /** Place of the oldest READ or atomic, and how many there are. */
  head = 0;
  count = 0;
  /** Of these, requests not seen before: what the QP's responder resources bound. */
  newCount = 0;
  /** Waits for a page that the oldest answer needs. */
  isPaused = 0;
  /** Stands in the ring of QPs, and what stands behind it there. */
  isInRing = 0;
  next: PendingResponses | undefined;
  hasAck = 0;
  ackPsn = 0;
  /** Syndrome of a NAK, or -1 for an ACK, whose credits are counted when it is sent. */
  ackSyndrome = 0;
  ackDueCycle = FLOAT_ZERO;

  constructor(pair: QueuePair) {
    this.pair = pair;
    this.next = undefined;
  }
}

export class ResponderResources {
  /** By QP. */
  readonly rows: readonly PendingResponses[];
  /** By entry: a QP's are {@link RESPONDER_RESOURCES} places in a row. */
  readonly kind: Uint8Array;
  readonly psn: Int32Array;
  readonly address: Float64Array;
  readonly key: Float64Array;
  readonly bytes: Float64Array;
  /** Operands of an atomic as four words, or the result to repeat as two. */
  readonly operands: Int32Array;
  readonly opcode: Uint8Array;
  /** Packets of a READ's answer already sent. */
  readonly sent: Int32Array;
  /** Payload writes requested before the request came: it is answered when they have left. */
  readonly writesBefore: Float64Array;
  readonly #isNew: Uint8Array;
  /** QPs in the ring. */
  waitingCount = 0;
  #firstWaiting: PendingResponses | undefined;
  #lastWaiting: PendingResponses | undefined;

  constructor(pairs: readonly QueuePair[]) {
    const entries = pairs.length * RESPONDER_RESOURCES;
    this.rows = pairs.map((pair) => new PendingResponses(pair));
    this.kind = new Uint8Array(entries);
    this.psn = new Int32Array(entries);
    this.address = new Float64Array(entries);
    this.key = new Float64Array(entries);
    this.bytes = new Float64Array(entries);
    this.operands = new Int32Array(entries * 4);
    this.opcode = new Uint8Array(entries);
    this.sent = new Int32Array(entries);
    this.writesBefore = new Float64Array(entries);
    this.#isNew = new Uint8Array(entries);
    this.#firstWaiting = undefined;
    this.#lastWaiting = undefined;
  }

  /** Puts a QP that is not in the ring at its end. */
  enter(pending: PendingResponses): void {
    pending.isInRing = 1;
    pending.next = undefined;
    if (this.waitingCount === 0) this.#firstWaiting = pending;
    else this.#lastWaiting!.next = pending;
    this.#lastWaiting = pending;
    this.waitingCount++;
  }

  /** Takes the QP at the beginning of the ring out of it. The caller has checked that there is one. */
  leave(): PendingResponses {
    const pending = this.#firstWaiting!;
    pending.isInRing = 0;
    this.#firstWaiting = pending.next;
    this.waitingCount--;
    return pending;
  }

  /** Appends a request, new (1) or repeated (0), and returns its entry. The caller has checked the count. */
  append(qp: number, kind: number, psn: number, isNew: number, writesBefore: number): number {
    const pending = this.rows[qp]!;
    const entry = qp * RESPONDER_RESOURCES + ((pending.head + pending.count) % RESPONDER_RESOURCES);
    pending.count++;
    pending.newCount += isNew;
    this.#isNew[entry] = isNew;
    this.kind[entry] = kind;
    this.psn[entry] = psn;
    this.sent[entry] = 0;
    this.writesBefore[entry] = writesBefore;
    return entry;
  }

  /** Entry of the READ or atomic that is still to be answered with the packet of this PSN, -1 when there is none. */
  find(qp: number, psn: number): number {
    const { head, count, pair } = this.rows[qp]!;
    for (let place = head; place < head + count; place++) {
      const entry = qp * RESPONDER_RESOURCES + (place % RESPONDER_RESOURCES);
      const packets = this.kind[entry] === KIND_READ ? Math.ceil(this.bytes[entry]! / pair.mtuBytes) : 1;
      const distance = psnDistance(psn, this.psn[entry]!);
      if (distance >= 0 && distance < Math.max(1, packets)) return entry;
    }
    return NONE;
  }

  /** Entry of the QP's oldest request. */
  oldest(qp: number): number {
    return qp * RESPONDER_RESOURCES + this.rows[qp]!.head;
  }

  /** Removes the QP's oldest request. */
  pop(qp: number): void {
    const pending = this.rows[qp]!;
    pending.newCount -= this.#isNew[qp * RESPONDER_RESOURCES + pending.head]!;
    pending.head = (pending.head + 1) % RESPONDER_RESOURCES;
    pending.count--;
  }

  /** Asks for the page that `entry` needs, so many bytes into its memory. False: the driver has refused it. */
  askForPage(
    faults: PageFaults,
    qp: number,
    entry: number,
    skippedBytes: number,
    isWrite: number,
    cycle: number,
  ): boolean {
    const address = this.address[entry]! + skippedBytes;
    const rest = this.bytes[entry]! - skippedBytes;
    return faults.meet(qp, SIDE_RESPONSE, this.key[entry]!, address, rest, isWrite, cycle);
  }

  /** Drops the QP's READs and atomics; an acknowledgement or NAK stays. */
  dropRequests(qp: number): void {
    const pending = this.rows[qp]!;
    pending.count = 0;
    pending.newCount = 0;
    pending.isPaused = 0;
  }

  /** Drops all, of every QP. */
  reset(): void {
    this.waitingCount = 0;
    for (const pending of this.rows) {
      pending.isInRing = 0;
      pending.count = 0;
      pending.newCount = 0;
      pending.isPaused = 0;
      pending.hasAck = 0;
    }
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const pending of this.rows) pending.ackDueCycle -= cycles;
  }
}
