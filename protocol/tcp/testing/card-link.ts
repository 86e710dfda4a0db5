/** Two connections of cards and a link: engines that count processed segments and have no core, route or packet buffer. */
import {
  type Arrival,
  deadlinesDue,
  newSegmentFields,
  noTcpCounts,
  plainTcp,
  type ReceivedBytes,
  type SegmentFields,
  segmentArrived,
  sendSyn,
  sequenceAdd,
  sequenceDistance,
  TcpConnection,
  type TcpExtensions,
} from '../index.ts';
import type { StreamBuffer } from '../tcp-connection.ts';

export const usToPs = 1_000_000;
export const linkDelayPs = 10 * usToPs;
export const segmentBytes = 1460;
export const limits = {
  ...{ windowScale: 7, initialWindowSegments: 10, synRetries: 6, dataRetries: 15, duplicateAcks: 3 },
  ...{ retransmitInitialUs: 1_000_000, retransmitMinUs: 200_000, retransmitMaxUs: 120_000_000 },
  ...{
    delayedAckUs: 40_000,
    finTimeoutUs: 60_000_000,
    timeWaitUs: 60_000_000,
    memoryWaitUs: 2000,
    isDelayed: false,
  },
};

/** A unit of the card that executes the transport, with its own accounting. */
class Engine {
  segments = 0;
}

export interface Slot extends StreamBuffer {
  length: number;
  /** First byte of the stream that it holds, counted from 0: its contents. */
  position: number;
}

class PlacedBytes implements ReceivedBytes<Slot> {
  next = 0;
  readableBytes = 0;
  readonly copiedBytes = 0;
  readonly positions: number[] = [];
  readonly #afterGap = new Map<number, Slot>();

  get hasGap(): boolean {
    return this.#afterGap.size > 0;
  }

  arrive(slot: Slot): Arrival {
    if (sequenceDistance(slot.sequence, this.next) < 0) return 'duplicate';
    this.#afterGap.set(slot.sequence, { ...slot });
    if (slot.sequence !== this.next) return 'behindGap';
    for (let at = this.#afterGap.get(this.next); at !== undefined; at = this.#afterGap.get(this.next)) {
      this.#afterGap.delete(this.next);
      this.next = sequenceAdd(this.next, at.length);
      this.positions.push(at.position);
    }
    return 'inOrder';
  }

  clear(): void {
    this.#afterGap.clear();
  }
}

/** Draws of what a link does to a segment. */
export type Fate = 'dropped' | 'doubled' | 'late' | 'carried';

/** Two connections and the link between them: events in order of time. */
export class Link {
  nowPs = 0;
  sent: {
    readonly atPs: number;
    readonly segment: SegmentFields;
    readonly flags: number;
    readonly sequence: number;
    readonly length: number;
  }[] = [];
  readonly #events: { readonly atPs: number; readonly act: () => void }[] = [];
  /** Fate of each segment, counted over both directions from 1. */
  readonly #fate: (ordinal: number) => Fate;

  constructor(fate: (ordinal: number) => Fate = () => 'carried') {
    this.#fate = fate;
  }

  at(atPs: number, act: () => void): void {
    this.#events.push({ atPs, act });
    this.#events.sort((left, right) => left.atPs - right.atPs);
  }

  /** Carries a segment of `length` bytes: `arrive` is called as often as it arrives. */
  carry(fields: SegmentFields, length: number, arrive: (segment: SegmentFields) => void): void {
    const segment = { ...fields, sackEdges: fields.sackEdges.slice() };
    const { flags, sequence } = segment;
    this.sent.push({ atPs: this.nowPs, segment, flags, sequence, length });
    const fate = this.#fate(this.sent.length);
    if (fate === 'dropped') return;
    this.at(this.nowPs + (fate === 'late' ? 4 : 1) * linkDelayPs, () => arrive(segment));
    if (fate === 'doubled') this.at(this.nowPs + 2 * linkDelayPs, () => arrive(segment));
  }

  run(untilPs: number): void {
    for (let next = this.#events[0]; next !== undefined && next.atPs <= untilPs; next = this.#events[0]) {
      this.#events.shift();
      this.nowPs = next.atPs;
      next.act();
    }
  }
}

const emptySlot: Slot = { sequence: 0, length: 0, isSent: false, position: 0 };

export class CardConnection extends TcpConnection<Engine, Slot> {
  readonly engine = new Engine();
  readonly received = new PlacedBytes();
  readonly room = 64;
  readonly hasSendRoom = true;
  readonly #link: Link;
  #peer: () => CardConnection;

  constructor(
    link: Link,
    peer: () => CardConnection,
    initialSequence: number,
    isPassive: boolean,
    extensions: TcpExtensions = plainTcp,
  ) {
    super({
      limits,
      extensions,
      counts: noTcpCounts(),
      initialSequence,
      isPassive,
      segmentBytes,
      defaultSegmentBytes: 536,
    });
    this.#link = link;
    this.#peer = peer;
    this.receiveLimitBytes = 0x4_0000;
  }

  /** Segments go to another end from now on. */
  turnTo(peer: () => CardConnection): void {
    this.#peer = peer;
  }

  queue(position: number, length: number): void {
    this.sendQueue.push({ sequence: this.queueEnd, length, isSent: false, position });
    this.queueEnd = sequenceAdd(this.queueEnd, length);
  }

  nowPs(): number {
    return this.#link.nowPs;
  }

  isHeld(): boolean {
    return false;
  }

  sendData(engine: Engine, fields: SegmentFields, slot: Slot): boolean {
    engine.segments++;
    this.#carry(fields, slot);
    return true;
  }

  sendControl(engine: Engine, fields: SegmentFields): boolean {
    engine.segments++;
    this.#carry(fields, emptySlot);
    return true;
  }

  takeBuffer(): Slot {
    return { ...emptySlot };
  }

  deadlineChanged(): void {
    this.#link.at(this.deadlinePs, () => deadlinesDue(this.engine, this));
  }

  established(): boolean {
    return true;
  }

  allocated(): void {}
  freed(): void {}
  copied(): void {}
  release(): void {}
  discard(): void {}
  pathConfirmed(): void {}
  readable(): void {}
  writable(): void {}
  throttle(): void {}
  timeWaits(): void {}
  forget(): void {}

  #carry(fields: SegmentFields, slot: Slot): void {
    const payload = { ...slot };
    this.#link.carry(fields, slot.length, (segment) => {
      const peer = this.#peer();
      if (peer.state !== 'CLOSED') segmentArrived(peer.engine, peer, segment, { ...payload });
    });
  }
}

/** Opens a connection whose passive end has processed the SYN. Both initial sequence numbers are close to the wrap. */
export function open(
  dropped: readonly number[] = [],
  extensions: TcpExtensions = plainTcp,
  fate: (ordinal: number) => Fate = (ordinal) => (dropped.includes(ordinal) ? 'dropped' : 'carried'),
): { link: Link; client: CardConnection; server: CardConnection } {
  const link = new Link(fate);
  const client: CardConnection = new CardConnection(link, () => server, 0xffff_fff0, false, extensions);
  const server: CardConnection = new CardConnection(link, () => client, 0xffff_ff00, true, extensions);
  for (const end of [client, server]) {
    end.sendNext = sequenceAdd(end.initialSequence, 1);
    end.sendMax = end.sendNext;
  }
  server.received.next = client.sendNext;
  server.agree({
    ...newSegmentFields(),
    ...{ maximumSegment: segmentBytes, windowScale: 7 },
    ...{ isSackPermitted: extensions.hasSack, timestamp: extensions.hasTimestamps ? 0 : -1 },
  });
  server.state = 'SYN_RECEIVED';
  client.state = 'SYN_SENT';
  sendSyn(server.engine, server);
  link.run(linkDelayPs * 2);
  return { link, client, server };
}
