/** TCP without a kernel: both ends are engines of a card, which count processed segments and have no core, route or packet buffer. */
import { describe, expect, it } from 'vitest';
import {
  type Arrival,
  deadlinesDue,
  Flag,
  newSegmentFields,
  output,
  plainTcp,
  type ReceivedBytes,
  type SegmentFields,
  segmentArrived,
  sendSyn,
  sequenceAdd,
  sequenceDistance,
  TcpConnection,
} from './index.ts';
import type { StreamBuffer } from './tcp-connection.ts';

const usToPs = 1_000_000;
const linkDelayPs = 10 * usToPs;
const segmentBytes = 1460;
const limits = {
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

interface Slot extends StreamBuffer {
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

/** Two connections and the link between them: events in order of time. */
class Link {
  nowPs = 0;
  sent: {
    readonly atPs: number;
    readonly flags: number;
    readonly sequence: number;
    readonly length: number;
  }[] = [];
  readonly #events: { readonly atPs: number; readonly act: () => void }[] = [];
  /** Ordinals of segments that the link drops, counted over both directions. */
  readonly #dropped: ReadonlySet<number>;

  constructor(dropped: readonly number[] = []) {
    this.#dropped = new Set(dropped);
  }

  at(atPs: number, act: () => void): void {
    this.#events.push({ atPs, act });
    this.#events.sort((left, right) => left.atPs - right.atPs);
  }

  carry(fields: SegmentFields, slot: Slot | undefined, to: () => CardConnection): void {
    const segment = { ...fields };
    const payload = slot === undefined ? { sequence: 0, length: 0, isSent: true, position: 0 } : { ...slot };
    this.sent.push({
      atPs: this.nowPs,
      flags: segment.flags,
      sequence: segment.sequence,
      length: payload.length,
    });
    if (this.#dropped.has(this.sent.length)) return;
    this.at(this.nowPs + linkDelayPs, () => segmentArrived(to().engine, to(), segment, payload));
  }

  run(untilPs: number): void {
    for (let next = this.#events[0]; next !== undefined && next.atPs <= untilPs; next = this.#events[0]) {
      this.#events.shift();
      this.nowPs = next.atPs;
      next.act();
    }
  }
}

class CardConnection extends TcpConnection<Engine, Slot> {
  readonly engine = new Engine();
  readonly received = new PlacedBytes();
  readonly room = 64;
  readonly hasSendRoom = true;
  readonly #link: Link;
  readonly #peer: () => CardConnection;

  constructor(link: Link, peer: () => CardConnection, initialSequence: number, isPassive: boolean) {
    const counts = {
      ...{ acknowledgementsSent: 0, retransmissions: 0, fastRetransmissions: 0, retransmissionTimeouts: 0 },
      ...{ duplicates: 0, outOfOrder: 0, droppedForRoom: 0, resetsSent: 0 },
    };
    super({
      limits,
      extensions: plainTcp,
      counts,
      initialSequence,
      isPassive,
      segmentBytes,
      defaultSegmentBytes: 536,
    });
    this.#link = link;
    this.#peer = peer;
    this.receiveLimitBytes = 0x4_0000;
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
    this.#link.carry(fields, slot, this.#peer);
    return true;
  }

  sendControl(engine: Engine, fields: SegmentFields): boolean {
    engine.segments++;
    this.#link.carry(fields, undefined, this.#peer);
    return true;
  }

  takeBuffer(): Slot {
    return { sequence: 0, length: 0, isSent: false, position: 0 };
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
}

/** Opens a connection whose passive end has processed the SYN. Both initial sequence numbers are close to the wrap. */
function open(dropped: readonly number[] = []): {
  link: Link;
  client: CardConnection;
  server: CardConnection;
} {
  const link = new Link(dropped);
  const client: CardConnection = new CardConnection(link, () => server, 0xffff_fff0, false);
  const server: CardConnection = new CardConnection(link, () => client, 0xffff_ff00, true);
  for (const end of [client, server]) {
    end.sendNext = sequenceAdd(end.initialSequence, 1);
    end.sendMax = end.sendNext;
  }
  server.received.next = client.sendNext;
  server.agree({ ...newSegmentFields(), maximumSegment: segmentBytes, windowScale: 7 });
  server.state = 'SYN_RECEIVED';
  client.state = 'SYN_SENT';
  sendSyn(server.engine, server);
  link.run(linkDelayPs * 2);
  return { link, client, server };
}

describe('TCP on a card', () => {
  it('is established by SYN with ACK and ACK, and both ends agree on segment size and scale (RFC 9293, 3.5)', () => {
    const { link, client, server } = open();
    expect([client.state, server.state]).toEqual(['ESTABLISHED', 'ESTABLISHED']);
    expect([client.segmentBytes, client.sendScale]).toEqual([segmentBytes, 7]);
    expect(link.sent.map(({ flags }) => flags)).toEqual([Flag.SYN | Flag.ACK, Flag.ACK]);
  });

  it('delivers all bytes once and in order across the wrap of the sequence numbers', () => {
    const { link, client, server } = open();
    for (let at = 0; at < 100; at++) client.queue(at * segmentBytes, segmentBytes);
    output(client.engine, client);
    link.run(1e12);
    expect(server.received.positions).toEqual(Array.from({ length: 100 }, (_, at) => at * segmentBytes));
    expect(client.sendUnacknowledged).toBe(sequenceAdd(0xffff_fff1, 100 * segmentBytes));
    expect(client.counts.retransmissions).toBe(0);
  });

  it('retransmits a lost segment after three duplicate acknowledgements, without a time-out (RFC 5681, 3.2)', () => {
    // Segments 1 and 2 open the connection; the fourth one carries the second payload.
    const { link, client, server } = open([4]);
    for (let at = 0; at < 8; at++) client.queue(at * segmentBytes, segmentBytes);
    output(client.engine, client);
    link.run(1e12);
    expect(server.received.positions).toEqual(Array.from({ length: 8 }, (_, at) => at * segmentBytes));
    expect(client.counts).toMatchObject({
      fastRetransmissions: 1,
      retransmissions: 1,
      retransmissionTimeouts: 0,
    });
    const last = link.sent.filter(({ length }) => length > 0).at(-1)!;
    expect(last.atPs).toBeLessThan(limits.retransmitMinUs * usToPs);
  });

  it('retransmits after the initial time-out of 1 s, then after 2 s (RFC 6298, 2.1 and 5.5)', () => {
    const { link, client, server } = open([3, 4]);
    client.queue(0, segmentBytes);
    const startPs = link.nowPs;
    output(client.engine, client);
    link.run(1e13);
    const instants = link.sent
      .filter(({ length }) => length > 0)
      .map(({ atPs }) => (atPs - startPs) / usToPs);
    expect(instants).toEqual([0, 1_000_000, 3_000_000]);
    expect(server.received.positions).toEqual([0]);
    expect(client.counts.retransmissionTimeouts).toBe(2);
  });

  it('closes by FIN and ACK of both ends; the active one waits in TIME_WAIT (RFC 9293, 3.6)', () => {
    const { link, client, server } = open();
    client.isFinQueued = true;
    client.state = 'FIN_WAIT_1';
    output(client.engine, client);
    link.run(link.nowPs + 4 * linkDelayPs);
    expect([client.state, server.state]).toEqual(['FIN_WAIT_2', 'CLOSE_WAIT']);
    server.isFinQueued = true;
    server.state = 'LAST_ACK';
    output(server.engine, server);
    link.run(link.nowPs + 4 * linkDelayPs);
    expect([client.state, server.state]).toEqual(['TIME_WAIT', 'CLOSED']);
  });
});
