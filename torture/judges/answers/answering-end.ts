/**
 * One end of a connection as an observer of its cable sees it: the requests that arrived, and the responses that it
 * sent. It can have accepted at most the requests that arrived, since it may have refused some. A NAK or RNR NAK tells
 * that nothing from its PSN on had been accepted when that request arrived.
 *
 *     requests ──▶ in order: accepted at most · after a gap: nothing, or kept until it is filled · before that: repeated
 *     answers  ──▶ each rule of 9.7.5.1 and 9.7.7.1 that it breaks, in words
 *
 * Places are PSNs counted from the first of the connection on, without wrapping.
 */
import {
  endsMessage,
  isAtomic,
  operations,
  packetsOf,
  psnCount,
  type TransportPacket,
} from './transport-packet.ts';

const { readRequest, readLast, readOnly, acknowledge, atomicAcknowledge } = operations;

/** Rules that the story's faults suspend. */
export interface AnswerRules {
  /** Whether responses may overtake each other on the cable: their order is then not that in which they were sent. */
  readonly isDisordered: boolean;
  /** Answers may vanish before they are on the cable. */
  readonly hasGaps: boolean;
  /** Selective repeat: requests after a gap are kept, and the NAK names one of them instead of the MSN. */
  readonly keepsLater: boolean;
}

/** A READ or an atomic. */
interface Owed {
  readonly from: number;
  readonly to: number;
  readonly isAtomic: boolean;
  /** Place of the next response; beyond `to`: all have been sent. */
  next: number;
}

interface Request {
  readonly place: number;
  readonly packet: TransportPacket;
}

/** Places between two PSNs, the nearer way round. */
function placesBetween(from: number, to: number): number {
  const distance = (to - from + psnCount) % psnCount;
  return distance < psnCount / 2 ? distance : distance - psnCount;
}

const isDone = ({ next, to }: Owed): boolean => next > to;

/** Returns how many of the first items satisfy the condition without interruption. */
function countOf<Item>(items: readonly Item[], isSo: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(items[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A NAK with the code 0: PSN sequence error. */
const nakOfGap = 3 << 5;
const isNak = ({ syndrome }: TransportPacket): boolean => syndrome >= 0 && syndrome >> 5 !== 0;

export class AnsweringEnd {
  readonly #firstPsn: number;
  readonly #mtuBytes: number;
  readonly #rules: AnswerRules;
  /** The place after the last one that can have been accepted. */
  #expected = 0;
  /** All requests that arrived since the last NAK, and all in order before. */
  #requests: Request[] = [];
  /** With selective repeat, requests that came before their turn, by place. */
  readonly #kept = new Map<number, Request>();
  /** Places of the last packets of messages that can have been accepted. */
  #ends: number[] = [];
  /** READs and atomics that can have been accepted, and how many of them have been answered, the oldest first. */
  #owed: Owed[] = [];
  #answeredCount = 0;
  /**
   * Places of repeated requests. Each explains that responses go back once, and again if its response was interrupted
   * by another.
   */
  readonly #repeated: number[] = [];
  /** The repetition that is being answered, and the place at which its answer ends. */
  #again: { readonly repeated: number; readonly to: number } | undefined;
  /** The highest place that was acknowledged, and that of the last answer. */
  #highest = -1;
  #last = -1;
  #msn = 0;

  constructor(firstPsn: number, mtuBytes: number, rules: AnswerRules) {
    this.#firstPsn = firstPsn;
    this.#mtuBytes = mtuBytes;
    this.#rules = rules;
  }

  /** A request has arrived whole. */
  requested(packet: TransportPacket): void {
    const request = { place: this.#placeOf(packet.psn), packet };
    this.#requests.push(request);
    this.#take(request);
  }

  /**
   * Judges a response that has left. @returns the violations
   */
  answered(packet: TransportPacket): string[] {
    const place = this.#placeOf(packet.psn);
    const acknowledged = isNak(packet) ? place - 1 : place;
    const wrong = [
      ...this.#judgeReach(packet, place, acknowledged),
      ...(this.#rules.isDisordered ? [] : this.#judgeOrder(packet, place, acknowledged)),
    ];
    this.#note(packet, place);
    if (this.#rules.keepsLater && packet.syndrome === nakOfGap) wrong.push(...this.#judgeKept(packet, place));
    else if (packet.syndrome >= 0 && wrong.length === 0) wrong.push(...this.#judgeMsn(packet, acknowledged));
    // A NAK for a gap may already be on its way out when the missing request arrives.
    if (isNak(packet) && packet.syndrome !== nakOfGap && place > this.#highest) this.#refused(place);
    this.#highest = Math.max(this.#highest, acknowledged);
    this.#last = acknowledged;
    return wrong;
  }

  /** 9.7.5.1: a response belongs to a request that has arrived, and is of the requested kind. */
  #judgeReach({ operation }: TransportPacket, place: number, acknowledged: number): string[] {
    if (acknowledged >= this.#expected)
      return [
        `acknowledges PSN ${this.#psnAt(acknowledged)}, of the requests only those before ${this.#psnAt(this.#expected)} have come`,
      ];
    if (operation === acknowledge) return [];
    const asked = this.#askedAt(place);
    if (asked === undefined || asked.isAtomic !== (operation === atomicAcknowledge))
      return [`answers PSN ${this.#psnAt(place)} without a request for it`];
    return [];
  }

  /** 9.7.5.1: answers leave in the order of their PSNs, and go back only for a request that was repeated. */
  #judgeOrder(packet: TransportPacket, place: number, acknowledged: number): string[] {
    const isBack = isNak(packet) ? acknowledged < this.#last : acknowledged <= this.#last;
    if (isBack && !this.#explainedByRepetition(place))
      return [
        `acknowledges PSN ${this.#psnAt(acknowledged)} behind ${this.#psnAt(this.#last)}, though no request from before was repeated`,
      ];
    if (this.#rules.hasGaps || acknowledged <= this.#highest) return [];
    const passed = this.#oldestWaiting;
    const isPassed =
      passed !== undefined && passed.next < (packet.operation === acknowledge ? acknowledged + 1 : place);
    return isPassed
      ? [
          `acknowledges PSN ${this.#psnAt(acknowledged)}, though the ${passed.isAtomic ? 'atomic' : 'READ'} of ${this.#psnAt(passed.from)} waits for its answer of ${this.#psnAt(passed.next)}`,
        ]
      : [];
  }

  /** IRN: a NAK for a gap names a request after the gap that has come. */
  #judgeKept({ msn }: TransportPacket, place: number): string[] {
    const named = place + placesBetween(this.#psnAt(place), msn);
    return named > place && this.#kept.has(named)
      ? []
      : [`lacks PSN ${this.#psnAt(place)} and names ${msn}, which has not come after it`];
  }

  /** C9-148: the MSN counts the messages that are complete, each once, a READ from when it is accepted on. */
  #judgeMsn({ operation, msn }: TransportPacket, acknowledged: number): string[] {
    const isRest = operation === readLast || operation === readOnly || operation === acknowledge;
    const isWhole = isRest || operation === atomicAcknowledge;
    const least = this.#endsThrough(isWhole ? acknowledged : acknowledged - 1);
    const waiting = this.#mayHaveAnswered ? undefined : this.#oldestAtomicWaiting;
    const most = this.#endsThrough(waiting === undefined ? this.#expected - 1 : waiting.from - 1);
    const count = this.#msn + placesBetween(this.#msn % psnCount, msn);
    if (count < least)
      return [`says MSN ${msn} with PSN ${this.#psnAt(acknowledged)}, which ends ${least} messages at least`];
    if (count > most)
      return [
        `says MSN ${msn} with PSN ${this.#psnAt(acknowledged)}, at most ${most} messages can be complete`,
      ];
    if (count < this.#msn && !this.#rules.isDisordered) return [`says MSN ${msn} behind ${this.#msn}`];
    this.#msn = Math.max(this.#msn, count);
    return [];
  }

  /** Whether requests that seem unanswered may have been answered. */
  get #mayHaveAnswered(): boolean {
    return this.#rules.isDisordered || this.#rules.hasGaps;
  }

  /** Uses up the repetition that explains a response for a place, and could explain the fewest others. */
  #explainedByRepetition(place: number): boolean {
    let best = -1;
    for (const [at, repeated] of this.#repeated.entries())
      if (repeated <= place && (best < 0 || repeated > this.#repeated[best]!)) best = at;
    if (best < 0) return false;
    const [repeated] = this.#repeated.splice(best, 1) as [number];
    if (this.#again !== undefined && this.#last < this.#again.to) this.#repeated.push(this.#again.repeated);
    this.#again = { repeated, to: this.#askedAt(place)?.to ?? place };
    return true;
  }

  #note({ operation }: TransportPacket, place: number): void {
    if (operation === acknowledge) return;
    const asked = this.#askedAt(place);
    if (asked?.next === place) asked.next++;
    while (this.#answeredCount < this.#owed.length && isDone(this.#owed[this.#answeredCount]!))
      this.#answeredCount++;
  }

  #take({ place, packet }: Request): void {
    const { operation } = packet;
    if (place < this.#expected) this.#repeated.push(place);
    else if (this.#rules.keepsLater) this.#kept.set(place, { place, packet });
    if (place !== this.#expected) return;
    const to = place + packetsOf(packet, this.#mtuBytes) - 1;
    const isOfAtomic = isAtomic(operation);
    if (operation === readRequest || isOfAtomic)
      this.#owed.push({ from: place, to, isAtomic: isOfAtomic, next: place });
    if (endsMessage(operation)) this.#ends.push(to);
    this.#expected = to + 1;
    const next = this.#kept.get(this.#expected);
    if (next !== undefined) this.#take(next);
  }

  /** The end had accepted nothing from this place on when it refused: later requests count as new ones. */
  #refused(place: number): void {
    const at = this.#requests.findIndex((request) => request.place === place);
    if (at < 0) return;
    const later = this.#requests.splice(0).slice(at + 1);
    this.#ends = this.#ends.filter((end) => end < place);
    this.#owed = this.#owed.filter(({ from }) => from < place);
    this.#answeredCount = Math.min(this.#answeredCount, this.#owed.length);
    this.#expected = Math.min(this.#expected, place);
    this.#kept.delete(place);
    for (const request of later) {
      this.#requests.push(request);
      this.#take(request);
    }
  }

  get #oldestWaiting(): Owed | undefined {
    return this.#owed[this.#answeredCount];
  }

  get #oldestAtomicWaiting(): Owed | undefined {
    for (let at = this.#answeredCount; at < this.#owed.length; at++)
      if (this.#owed[at]!.isAtomic && !isDone(this.#owed[at]!)) return this.#owed[at];
    return undefined;
  }

  /** The READ or atomic that a place belongs to. */
  #askedAt(place: number): Owed | undefined {
    const asked = this.#owed[countOf(this.#owed, ({ from }) => from <= place) - 1];
    return asked !== undefined && place <= asked.to ? asked : undefined;
  }

  #endsThrough(place: number): number {
    return countOf(this.#ends, (end) => end <= place);
  }

  #placeOf(psn: number): number {
    return this.#expected + placesBetween(this.#psnAt(this.#expected), psn);
  }

  #psnAt(place: number): number {
    return (((this.#firstPsn + place) % psnCount) + psnCount) % psnCount;
  }
}
