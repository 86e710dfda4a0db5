/**
 * One end of a TCP connection, as a stranger at its side of the cable sees it: what arrived there decides what may leave.
 *
 *     arrived ─► bytes of the peer, its window, its ACKs and SACKs ─┐
 *     left ─► the same bytes each time, within window and MSS ◄─────┴─► ACKs of what arrived, in time, and of nothing else
 *
 * A place counts from the first byte after a SYN. Sources: RFC 9293, 3.4, 3.7, 3.8; RFC 7323, 2 and 3; RFC 2018; RFC 5681; RFC 6675; RFC 6928.
 */
import { ByteStream } from './byte-stream.ts';
import type { Segment } from './segment.ts';

export interface TcpRules {
  /** Faults of the cable let segments leave out of order. */
  readonly isDisordered: boolean;
  /** Segments may leave, or take effect, without being captured; or the card dropped what had arrived. */
  readonly hasGaps: boolean;
  /** Segments that were damaged before they left are not read. */
  readonly hasDamage: boolean;
  /** Longest time from data in order to their acknowledgement. */
  readonly acknowledgePs: bigint;
  /** Longest time that a formed segment waits for the cable. */
  readonly queuePs: bigint;
  /** Shortest time after which a sender may take everything for lost. */
  readonly timeoutPs: bigint;
  /** Initial congestion window. */
  readonly initialSegments: number;
}

/** Sender of one direction. */
interface Sender {
  readonly stream: ByteStream;
  /** Initial sequence number; undefined before its SYN. */
  initial: number | undefined;
  scale: number | undefined;
  maximumSegment: number;
  permitsSack: boolean;
  hasTimestamps: boolean;
  /** Place of its FIN. */
  finAt: number;
}

const newSender = (): Sender => ({
  stream: new ByteStream(),
  initial: undefined,
  scale: undefined,
  maximumSegment: 536,
  permitsSack: false,
  hasTimestamps: false,
  finAt: Number.POSITIVE_INFINITY,
});

/** Sequence numbers wrap: the place that is next to `near`. */
const placeOf = ({ initial = 0 }: Sender, sequence: number, near: number): number =>
  near + ((sequence - initial - 1 - near) | 0);

export class TcpEnd {
  readonly own: Sender = newSender();
  readonly peer: Sender = newSender();
  /** It sent the first SYN. */
  readonly isInitiator: boolean;
  /** One of both sent RST. */
  isReset = false;
  readonly #rules: TcpRules;
  #hasSentReset = false;
  /** Right edge of the window that the peer granted, and the highest ACK. */
  #edge = 0;
  #acknowledged = 0;
  #advancedPs = 0n;
  #duplicates = 0;
  /** Ranges that the peer has reported, with the instant of the first report. */
  #reported: { readonly from: number; readonly end: number; readonly atPs: bigint }[] = [];
  /** Highest place that this end acknowledged, and right edge that it granted. */
  #lastAcknowledgement = 0;
  #granted = 0;
  #lastStamp: number | undefined;
  readonly #stampsSeen = new Set<number>();
  /** Places to be acknowledged, and when. */
  #due: { readonly place: number; readonly atPs: bigint }[] = [];

  constructor(isInitiator: boolean, rules: TcpRules) {
    this.isInitiator = isInitiator;
    this.#rules = rules;
  }

  /** Whether another connection may have its addresses. */
  get isOver(): boolean {
    return this.isReset || Math.max(this.own.finAt, this.peer.finAt) < Number.POSITIVE_INFINITY;
  }

  /** A whole segment has arrived. */
  received(segment: Segment, atPs: bigint): string[] {
    const { own, peer } = this;
    if (segment.isReset) {
      this.isReset = true;
      return [];
    }
    if (segment.isSyn) takeSyn(peer, segment);
    if (peer.initial === undefined) return [];
    if (segment.timestamps !== undefined) this.#stampsSeen.add(segment.timestamps.value);
    if (segment.isAck && own.initial !== undefined) this.#acknowledge(segment, atPs);
    const found = this.#overdue(atPs);
    const { stream } = peer;
    const before = stream.contiguous;
    const place = placeOf(peer, segment.sequence, before);
    if (segment.payload.length > 0) stream.put(place, segment.payload, atPs);
    if (segment.isFin) peer.finAt = place + segment.payload.length;
    if (stream.contiguous > before)
      this.#due.push({ place: stream.contiguous, atPs: atPs + this.#rules.acknowledgePs });
    return found;
  }

  /** A segment has left; faults may have lost it afterwards. */
  sent(segment: Segment, atPs: bigint): string[] {
    const { own } = this;
    if (segment.isReset) {
      this.isReset = true;
      this.#hasSentReset = true;
      return [];
    }
    if (this.#hasSentReset && !segment.isSyn) return this.#rules.isDisordered ? [] : ['it follows a RST'];
    const found = this.#overdue(atPs);
    if (segment.isSyn) {
      if (own.initial !== undefined && own.initial !== segment.sequence)
        found.push('a SYN with another number than before');
      takeSyn(own, segment);
      found.push(...this.#judgeSyn(segment));
    } else if (own.initial === undefined) return this.#mayMissSegments ? [] : ['it precedes its SYN'];
    else {
      const place = placeOf(own, segment.sequence, own.stream.end);
      if (segment.payload.length > 0) found.push(...this.#judgeData(segment, place, atPs));
      if (segment.isFin) found.push(...this.#judgeFin(place + segment.payload.length));
    }
    if (segment.isAck) found.push(...this.#judgeAcknowledgement(segment));
    else if (!segment.isSyn) found.push('it acknowledges nothing');
    found.push(...this.#judgeStamps(segment));
    return found;
  }

  /** The capture ends. */
  ended(atPs: bigint): string[] {
    return this.#overdue(atPs);
  }

  #acknowledge({ acknowledgement, isSyn, window, payload, sackBlocks }: Segment, atPs: bigint): void {
    const { own, peer } = this;
    const place = placeOf(own, acknowledgement, this.#acknowledged);
    if (payload.length === 0 && place === this.#acknowledged) this.#duplicates++;
    this.#timeOut(atPs);
    if (place > this.#acknowledged) this.#advancedPs = atPs;
    this.#acknowledged = Math.max(this.#acknowledged, place);
    const scale = isSyn || own.scale === undefined ? 0 : (peer.scale ?? 0);
    this.#edge = Math.max(this.#edge, place + window * 2 ** scale);
    for (const [left, right] of sackBlocks) {
      const [from, end] = [placeOf(own, left, place), placeOf(own, right, place)];
      if (!this.#reported.some((range) => range.from <= from && end <= range.end))
        this.#reported.push({ from, end, atPs });
    }
    this.#reported = this.#reported.filter(({ end }) => end > this.#acknowledged);
  }

  get #mayMissSegments(): boolean {
    const { hasGaps, hasDamage, isDisordered } = this.#rules;
    return hasGaps || hasDamage || isDisordered;
  }

  /** After a time-out a sender forgets what was reported (RFC 2018, 8). */
  #timeOut(atPs: bigint): void {
    if (atPs - this.#advancedPs >= this.#rules.timeoutPs) this.#reported = [];
  }

  #judgeSyn({ isAck, maximumSegment, windowScale, isSackPermitted, timestamps }: Segment): string[] {
    const { peer } = this;
    const found: string[] = [];
    if (maximumSegment === undefined) found.push('a SYN without a maximum segment size');
    if ((windowScale ?? 0) > 14) found.push(`a window scale of ${windowScale}`);
    if (isAck && windowScale !== undefined && peer.scale === undefined)
      found.push('a window scale that was not offered');
    if (isAck && isSackPermitted && !peer.permitsSack) found.push('SACK that was not offered');
    if (isAck && timestamps !== undefined && !peer.hasTimestamps)
      found.push('timestamps that were not offered');
    return found;
  }

  #judgeData({ payload, optionBytes }: Segment, place: number, atPs: bigint): string[] {
    const { own, peer } = this;
    const { stream } = own;
    const end = place + payload.length;
    const found: string[] = [];
    if (peer.initial === undefined) found.push('data before the SYN of the peer');
    if (payload.length + optionBytes > peer.maximumSegment)
      found.push(
        `${payload.length} bytes and ${optionBytes} of options exceed the peer’s segment of ${peer.maximumSegment}`,
      );
    if (end > this.#edge) found.push(`data up to place ${end}, beyond the window that ends at ${this.#edge}`);
    if (end > own.finAt) found.push('data after its FIN');
    const isAgain = end <= stream.end;
    if (!this.#mayMissSegments && place > stream.end)
      found.push(`data from place ${place} on, after place ${stream.end}`);
    // Without a loss the window grows by what is acknowledged at most (RFC 5681, 3.1).
    const windowBytes = this.#rules.initialSegments * peer.maximumSegment + this.#acknowledged;
    if (!isAgain && this.#duplicates === 0 && end - this.#acknowledged > windowBytes)
      found.push(`${end - this.#acknowledged} bytes in flight, which no congestion window allows`);
    this.#timeOut(atPs);
    const reported = this.#reported.find((range) => range.from <= place && end <= range.end);
    if (isAgain && reported !== undefined && reported.atPs + this.#rules.queuePs < atPs)
      found.push(`data from place ${place} on again, which the peer had reported at ${reported.atPs} ps`);
    if (!stream.put(place, payload, atPs)) found.push('a retransmission with other bytes');
    return found;
  }

  #judgeFin(place: number): string[] {
    const { own } = this;
    const found = place < own.stream.end ? ['a FIN before data that were sent'] : [];
    if (own.finAt !== Number.POSITIVE_INFINITY && own.finAt !== place) found.push('a FIN at another place');
    own.finAt = place;
    return found;
  }

  #judgeAcknowledgement({ acknowledgement, isSyn, window, sackBlocks }: Segment): string[] {
    const { own, peer } = this;
    const { stream } = peer;
    if (peer.initial === undefined) return ['an ACK before anything arrived'];
    const place = placeOf(peer, acknowledgement, stream.contiguous);
    const hasFin = peer.finAt === stream.contiguous;
    const found: string[] = [];
    if (place > stream.contiguous + (hasFin ? 1 : 0))
      found.push(`it acknowledges place ${place}, and ${stream.contiguous} bytes have arrived`);
    const unit = isSyn || peer.scale === undefined ? 1 : 2 ** (own.scale ?? 0);
    const edge = place + window * unit;
    if (!this.#rules.isDisordered) {
      if (place < this.#lastAcknowledgement)
        found.push(`it acknowledges place ${place} after ${this.#lastAcknowledgement}`);
      // A window is rounded to its scale.
      if (edge + 2 ** (own.scale ?? 0) <= this.#granted)
        found.push(`its window ends at ${edge}, and ended at ${this.#granted}`);
    }
    this.#lastAcknowledgement = Math.max(this.#lastAcknowledgement, place);
    this.#granted = Math.max(this.#granted, edge);
    this.#due = this.#due.filter((due) => due.place > place);
    if (sackBlocks.length > 0 && !(own.permitsSack && peer.permitsSack))
      found.push('SACK that is not agreed');
    for (const [left, right] of sackBlocks) {
      const [from, end] = [placeOf(peer, left, place), placeOf(peer, right, place)];
      if (from <= place || end <= from || !stream.has(from, end))
        found.push(`it reports bytes ${from} to ${end}, which have not arrived`);
    }
    return found;
  }

  #judgeStamps({ isSyn, isAck, timestamps }: Segment): string[] {
    const { own, peer } = this;
    if (timestamps === undefined)
      return !isSyn && own.hasTimestamps && peer.hasTimestamps ? ['no timestamps'] : [];
    if (!isSyn && !(own.hasTimestamps && peer.hasTimestamps)) return ['timestamps that are not agreed'];
    const found: string[] = [];
    if (isAck && !this.#stampsSeen.has(timestamps.echo))
      found.push(`it echoes the timestamp ${timestamps.echo}, which has not arrived`);
    const since = this.#lastStamp === undefined ? 0 : (timestamps.value - this.#lastStamp) | 0;
    if (since < 0 && !this.#rules.isDisordered) found.push('a timestamp that goes backwards');
    this.#lastStamp = timestamps.value;
    return found;
  }

  #overdue(atPs: bigint): string[] {
    const late = this.#due.find((due) => due.atPs < atPs);
    if (late === undefined || this.isReset || this.#rules.hasGaps || this.#rules.hasDamage) return [];
    this.#due = [];
    return [`place ${late.place} should have been acknowledged by ${late.atPs} ps`];
  }
}

function takeSyn(sender: Sender, segment: Segment): void {
  const { sequence, windowScale, maximumSegment = 536, isSackPermitted, timestamps } = segment;
  sender.initial ??= sequence;
  sender.scale = windowScale;
  sender.maximumSegment = maximumSegment;
  sender.permitsSack = isSackPermitted;
  sender.hasTimestamps = timestamps !== undefined;
}
