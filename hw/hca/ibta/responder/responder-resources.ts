/**
 * Requests that each QP has accepted and not answered: READs and atomics in order, up to its responder resources, and
 * one acknowledgement that a later one overwrites. Bounded, so the responder never waits for the wire. The entries of
 * all QPs come from one pool, which grows with what is outstanding: a QP without a READ takes none.
 *
 * A ring, linked through the rows, holds each QP that has something to answer once.
 */
import type { Cycles, Wide } from '../../../../base/index.ts';
import { PSN_MASK, psnDistance } from '../../../../wire/index.ts';
import { SIDE_RESPONSE, type WantedPages } from '../../memory/index.ts';
import { enlarged, type QpSlot, type QpTable, QueuePair } from '../../objects/index.ts';
import type { ReorderBuffer } from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';

/** READs and atomics one QP can have accepted and not answered, new and repeated ones: 16, or its own resources if more. */
const PLACES_MIN = 16;
export const responderPlaces = (pair: QueuePair): number => Math.max(PLACES_MIN, pair.readResourcesMax);

const FIRST_ENTRIES = 64;

export const KIND_READ = 0;
export const KIND_ATOMIC = 1;
/** An atomic that was executed before: answered from the result kept. */
export const KIND_REPLAY = 2;

const NONE = -1;

/** Words of the operands of an atomic: four numbers of 64 bits at most. */
export const OPERAND_WORDS = 8;

/** Pending responses of one QP. Fields that are not Wide hold 32-bit integers. */
export class PendingResponses {
  readonly pair: QueuePair;
  /** Entries of the oldest and newest READ or atomic, and how many there are. */
  head = NONE;
  tail = NONE;
  count = 0;
  /** The number of these requests that were not seen before; the QP's responder resources bound it. */
  newCount = 0;
  /** Waits for a page that the oldest answer needs. */
  isPaused = 0;
  /** 1 while the QP is in the ring; `next` is the QP after it there. */
  isInRing = 0;
  next: PendingResponses | undefined;
  hasAck = 0;
  ackPsn = 0;
  /** Syndrome of a NAK, or -1 for an ACK, whose credits are counted when it is sent. */
  ackSyndrome = 0;
  /** With a NAK for a gap, the later request that is held; -1 if none is. */
  heldPsn = NONE;
  ackDueCycle: Wide = 0;

  constructor(pair: QueuePair) {
    this.pair = pair;
    this.next = undefined;
  }
}

/** Shared row of QPs that have never owed a response: writes to it only repeat that nothing is owed. */
const nothingPending = new PendingResponses(new QueuePair());

export class ResponderResources {
  /**
   * Rows by QP, for reading; grows with the table of QPs. Callers that write more than "nothing is owed" use {@link
   * of}.
   */
  readonly rows: PendingResponses[] = [];
  /** Columns by entry of the pool; replaced by larger arrays when it grows. */
  kind = new Uint8Array(0);
  psn = new Int32Array(0);
  address = new Float64Array(0);
  addressTop = new Uint16Array(0);
  key = new Float64Array(0);
  /** Under which it reaches its memory. */
  pd = new Int32Array(0);
  bytes = new Float64Array(0);
  /** Operands of an atomic, {@link OPERAND_WORDS} for each entry, or the result to repeat as two. */
  operands = new Int32Array(0);
  opcode = new Uint8Array(0);
  /** MSN that the response reports: that of the messages up to this one, if it is new. */
  msn = new Int32Array(0);
  /** Receive WQEs that those messages have consumed from the QP's queue, 16 bits. */
  takenCounter = new Uint16Array(0);
  /** Packets of a READ's answer already sent. */
  sent = new Int32Array(0);
  /** Payload writes requested before the request arrived: it is answered when they have left. */
  writesBefore = new Float64Array(0);
  /** Cycle from which it can be answered. */
  dueCycle = new Float64Array(0);
  #isNew = new Uint8Array(0);
  /** The entry after it of its QP, or of the free ones. */
  #next = new Int32Array(0);
  #firstFree = NONE;
  /** QPs in the ring. */
  waitingCount = 0;
  #firstWaiting: PendingResponses | undefined;
  #lastWaiting: PendingResponses | undefined;

  readonly #qps: QpTable;
  readonly #states: IbtaStates;
  /** The peer keeps responses that came before their turn: those after a repeated request stay as they are. */
  readonly #keepsOrder: boolean;

  /** @param reorder of this end: the peer recovers from losses as this one does */
  constructor(qps: QpTable, states: IbtaStates, reorder: Pick<ReorderBuffer, 'isOn'>) {
    this.#qps = qps;
    this.#states = states;
    this.#keepsOrder = reorder.isOn;
    this.#firstWaiting = undefined;
    this.#enlarge(FIRST_ENTRIES);
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    while (this.rows.length < slotCount) this.rows.push(nothingPending);
  }

  /** Returns the row of a QP, creating it when it first owes a response: most QPs of many only send requests. */
  of(qp: QpSlot): PendingResponses {
    const pending = this.rows[qp]!;
    return pending === nothingPending ? this.#make(qp) : pending;
  }

  #make(qp: QpSlot): PendingResponses {
    const pending = new PendingResponses(this.#qps.rows[qp]!);
    this.rows[qp] = pending;
    return pending;
  }

  /** READs and atomics accepted and not answered, and acknowledgements not sent. */
  get heldCount(): number {
    return this.rows.reduce((sum, { count, hasAck }) => sum + count + hasAck, 0);
  }

  /** The QP at the beginning of the ring, if any. */
  get firstWaiting(): PendingResponses | undefined {
    return this.waitingCount > 0 ? this.#firstWaiting : undefined;
  }

  /** Adds a QP that is not in the ring at its end. */
  enter(pending: PendingResponses): void {
    pending.isInRing = 1;
    pending.next = undefined;
    if (this.waitingCount === 0) this.#firstWaiting = pending;
    else this.#lastWaiting!.next = pending;
    this.#lastWaiting = pending;
    this.waitingCount++;
  }

  /** Removes and returns the QP at the beginning of the ring. The caller has checked that the ring is not empty. */
  leave(): PendingResponses {
    const pending = this.#firstWaiting!;
    pending.isInRing = 0;
    this.#firstWaiting = pending.next;
    this.waitingCount--;
    return pending;
  }

  /** Appends a request, new or repeated, and returns its entry. The caller has checked the count. */
  append(qp: QpSlot, kind: number, psn: number, isNew: boolean, writesBefore: number): number {
    const pending = this.of(qp);
    if (this.#firstFree === NONE) this.#enlarge(2 * this.kind.length);
    const entry = this.#firstFree;
    this.#firstFree = this.#next[entry]!;
    this.#next[entry] = NONE;
    if (pending.count === 0) pending.head = entry;
    else this.#next[pending.tail] = entry;
    pending.tail = entry;
    pending.count++;
    if (isNew) pending.newCount++;
    this.#isNew[entry] = isNew ? 1 : 0;
    this.kind[entry] = kind;
    this.psn[entry] = psn;
    this.sent[entry] = 0;
    this.writesBefore[entry] = writesBefore;
    this.dueCycle[entry] = 0;
    return entry;
  }

  /**
   * Inserts a repeated request before those that arrived after it when it was new, because its response must precede
   * theirs; but not before the oldest request while that is being answered. A READ after it is answered from its
   * beginning, because a requester that requests the earlier response again drops the later one and requests that
   * again, too. Requests after it are held until `heldCycle`: others before them may be repeated as well, and without
   * those responses theirs are useless.
   */
  insert(
    qp: QpSlot,
    kind: number,
    psn: number,
    isOldestKept: boolean,
    writesBefore: number,
    heldCycle: Cycles,
  ): number {
    const pending = this.of(qp);
    const { head, tail, count } = pending;
    let before = NONE;
    let after = head;
    for (let left = count; left > 0; left--, after = this.#next[after]!) {
      const isKept = isOldestKept && before === NONE;
      if (!isKept && psnDistance(psn, this.psn[after]!) < 0) break;
      before = after;
    }
    const entry = this.append(qp, kind, psn, false, writesBefore);
    if (before === tail || count === 0) return entry;
    this.#next[tail] = NONE;
    this.#next[entry] = after;
    if (!this.#keepsOrder) this.sent[after] = 0;
    pending.tail = tail;
    if (before === NONE) pending.head = entry;
    else this.#next[before] = entry;
    for (let held = this.#keepsOrder ? NONE : after; held !== NONE; held = this.#next[held]!)
      this.dueCycle[held] = Math.max(this.dueCycle[held]!, heldCycle);
    return entry;
  }

  /** Returns the entry of the READ or atomic whose response to this PSN is still owed; -1 if no such entry exists. */
  find(qp: QpSlot, psn: number): number {
    const { head, count, pair } = this.rows[qp]!;
    let entry = head;
    for (let left = count; left > 0; left--, entry = this.#next[entry]!) {
      const packets = this.kind[entry] === KIND_READ ? Math.ceil(this.bytes[entry]! / pair.mtuBytes) : 1;
      const distance = psnDistance(psn, this.psn[entry]!);
      if (distance >= 0 && distance < Math.max(1, packets)) return entry;
    }
    return NONE;
  }

  /** Responses from `psn` on that the READ `entry` has been answered by. */
  sentAfter(entry: number, psn: number): number {
    return this.sent[entry]! - psnDistance(psn, this.psn[entry]!);
  }

  /**
   * True if a response still owed for this PSN will precede that of an earlier PSN: the peer that requested the earlier
   * one again drops this one, and requests it again, too.
   */
  isAhead(qp: QpSlot, psn: number): boolean {
    if (this.#keepsOrder) return false;
    const { head, count } = this.rows[qp]!;
    let isFound = false;
    let isAhead = false;
    let entry = head;
    for (let left = count; left > 0; left--, entry = this.#next[entry]!) {
      const distance = psnDistance(psn, this.psn[entry]!);
      if (distance === 0) {
        isFound = true;
        isAhead = false;
      } else if (isFound && distance > 0) isAhead = true;
    }
    return isAhead;
  }

  /** Stores an atomic's result in its repetitions, which arrived while it was executed. */
  giveResult(qp: QpSlot, psn: number, low: number, high: number): void {
    const { head, count } = this.rows[qp]!;
    let entry = head;
    for (let left = count; left > 0; left--, entry = this.#next[entry]!)
      if (this.kind[entry] === KIND_REPLAY && this.psn[entry] === psn) this.setResult(entry, low, high);
  }

  setResult(entry: number, low: number, high: number): void {
    this.operands[entry * OPERAND_WORDS] = low;
    this.operands[entry * OPERAND_WORDS + 1] = high;
  }

  /**
   * Returns the cycle from which the QP has something to answer, Infinity if nothing. READs wait for the QP's rate; its
   * acknowledgement follows its READs.
   */
  dueCycleOf({ pair, count, head, hasAck, ackDueCycle }: PendingResponses): number {
    if (count > 0) return Math.max(this.dueCycle[head]!, pair.pacedCycle);
    return hasAck === 1 ? ackDueCycle : Number.POSITIVE_INFINITY;
  }

  /** Entry of the QP's oldest request. */
  oldest(qp: QpSlot): number {
    return this.rows[qp]!.head;
  }

  /** Removes the QP's oldest request. */
  pop(qp: QpSlot): void {
    const pending = this.rows[qp]!;
    const entry = pending.head;
    if (this.#isNew[entry] !== 0) pending.newCount--;
    pending.head = this.#next[entry]!;
    this.#next[entry] = this.#firstFree;
    this.#firstFree = entry;
    pending.count--;
  }

  /** The part of its memory that `entry` still needs, for a page request. */
  wantedFrom(entry: number, skippedBytes: number, isWrite: boolean): WantedPages {
    return {
      side: SIDE_RESPONSE,
      key: this.key[entry]!,
      address: this.address[entry]! + skippedBytes,
      addressTop: this.addressTop[entry]!,
      lengthBytes: this.bytes[entry]! - skippedBytes,
      isWrite,
    };
  }

  /**
   * Sets the MSN and the count of receives that the response of `entry` reports. A new entry reports all messages up to
   * its own; an inserted one reports those before the next entry, in which a READ is counted since it was accepted.
   * `msn` and `takenCounter` cover everything that the QP has accepted.
   */
  countMessages(entry: number, msn: number, takenCounter: number): void {
    const next = this.#next[entry]!;
    const isLast = next === NONE;
    this.msn[entry] = isLast ? msn : this.#msnBefore(next);
    this.takenCounter[entry] = isLast ? takenCounter : this.takenCounter[next]!;
  }

  /** MSN of an answer before that of `entry`. */
  #msnBefore(entry: number): number {
    const isComplete = this.kind[entry] !== KIND_ATOMIC;
    return isComplete ? this.msn[entry]! : (this.msn[entry]! - 1) & PSN_MASK;
  }

  /** MSN of a QP whose READs and atomics are not answered: of the messages before its first new atomic, or of all. */
  msnWithoutAtomics(qp: QpSlot): number {
    const { head, count, pair } = this.rows[qp]!;
    let entry = head;
    for (let left = count; left > 0; left--, entry = this.#next[entry]!)
      if (this.kind[entry] === KIND_ATOMIC) return this.#msnBefore(entry);
    return this.#states.rows[pair.slot]!.msn;
  }

  /** Drops the QP's READs and atomics; an acknowledgement or NAK stays. */
  dropRequests(qp: QpSlot): void {
    const pending = this.rows[qp]!;
    while (pending.count > 0) this.pop(qp);
    pending.isPaused = 0;
  }

  /** Drops all, of every QP. */
  reset(): void {
    this.waitingCount = 0;
    for (const pending of this.rows) {
      if (pending === nothingPending) continue;
      pending.isInRing = 0;
      pending.hasAck = 0;
      this.dropRequests(pending.pair.slot);
    }
  }

  #enlarge(entries: number): void {
    const first = this.kind.length;
    this.kind = enlarged(this.kind, entries);
    this.psn = enlarged(this.psn, entries);
    this.address = enlarged(this.address, entries);
    this.addressTop = enlarged(this.addressTop, entries);
    this.key = enlarged(this.key, entries);
    this.pd = enlarged(this.pd, entries);
    this.bytes = enlarged(this.bytes, entries);
    this.operands = enlarged(this.operands, entries * OPERAND_WORDS);
    this.opcode = enlarged(this.opcode, entries);
    this.msn = enlarged(this.msn, entries);
    this.takenCounter = enlarged(this.takenCounter, entries);
    this.sent = enlarged(this.sent, entries);
    this.writesBefore = enlarged(this.writesBefore, entries);
    this.dueCycle = enlarged(this.dueCycle, entries);
    this.#isNew = enlarged(this.#isNew, entries);
    this.#next = enlarged(this.#next, entries);
    for (let entry = entries - 1; entry >= first; entry--) {
      this.#next[entry] = this.#firstFree;
      this.#firstFree = entry;
    }
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const pending of this.rows) if (pending !== nothingPending) pending.ackDueCycle -= cycles;
    for (let entry = 0; entry < this.dueCycle.length; entry++) this.dueCycle[entry]! -= cycles;
  }
}
