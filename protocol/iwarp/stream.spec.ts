/** Both ends of a stream: whatever TCP does to the segments between them, the same messages arrive once and in order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sequenceAdd, sequenceDistance } from '../tcp/index.ts';
import {
  maySendMessages,
  Operand,
  OutboundMessage,
  PlacingStream,
  RdmapOpcode,
  RdmapReceiver,
  RdmapSender,
  ReadyMessage,
  type SegmentBuffer,
  type StreamEvent,
  type StreamState,
  stateAfter,
} from './index.ts';
import { RecordingOwner } from './testing/recording-owner.ts';

interface Work {
  readonly kind: 'send' | 'write' | 'immediate';
  readonly lengthBytes: number;
}

interface Transfer {
  readonly works: readonly Work[];
  readonly hasMarkers: boolean;
  readonly usesCrc: boolean;
  /** Payload of a segment of TCP. */
  readonly segmentBytes: number;
  /** Segments of TCP that a middlebox cuts again: bytes of each, or none. */
  readonly cuts: readonly number[];
  /** FPDUs fill segments of TCP, instead of one each. */
  readonly isPacked: boolean;
  readonly firstSequence: number;
  /** Draws of the next segment to arrive. */
  readonly order: readonly number[];
  readonly keptMax: number;
  /** Segments that arrive before the reader is attached, and the bytes that may wait for it. */
  readonly attachAt: number;
  readonly unreadMax: number;
}

const works = fc.record({
  kind: fc.constantFrom('send' as const, 'write' as const, 'immediate' as const),
  lengthBytes: fc.oneof(fc.integer({ min: 0, max: 64 }), fc.integer({ min: 0, max: 6000 })),
});
const transfers: fc.Arbitrary<Transfer> = fc.record({
  works: fc.array(works, { minLength: 1, maxLength: 8 }),
  hasMarkers: fc.boolean(),
  usesCrc: fc.boolean(),
  segmentBytes: fc.integer({ min: 160, max: 2000 }),
  cuts: fc.oneof(fc.constant([]), fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 5 })),
  isPacked: fc.boolean(),
  firstSequence: fc.constantFrom(1, 0xffff_fc00, 0xffff_ffff),
  order: fc.array(fc.nat(), { minLength: 1, maxLength: 60 }),
  keptMax: fc.constantFrom(0, 2, 64),
  attachAt: fc.constantFrom(0, 0, 3, 20),
  unreadMax: fc.constantFrom(0, 1500, 100_000),
});

const payloadOf = ({ lengthBytes }: Work, index: number): Uint8Array =>
  Uint8Array.from({ length: lengthBytes }, (_, byte) => byte * 13 + index * 31 + (byte >> 8));

/** Segments of TCP that carry the works. */
function sent(transfer: Transfer): Uint8Array[] {
  const { hasMarkers, usesCrc, segmentBytes, isPacked } = transfer;
  const sender = new RdmapSender({ hasMarkers, usesCrc, effectiveSegmentBytes: segmentBytes });
  const segments: Uint8Array[] = [];
  let current = new Uint8Array(segmentBytes);
  let filled = 0;
  const flush = (): void => {
    if (filled > 0) segments.push(current.slice(0, filled));
    current = new Uint8Array(segmentBytes);
    filled = 0;
  };
  transfer.works.forEach((work, index) => {
    const message = new OutboundMessage();
    const payload = payloadOf(work, index);
    if (work.kind === 'immediate') {
      if (!isPacked || segmentBytes - filled < 48) flush();
      const data = Object.assign(new Operand(), { high: index, low: work.lengthBytes });
      filled += sender.writeImmediate(current, filled, RdmapOpcode.IMMEDIATE, data);
      return;
    }
    if (work.kind === 'send') sender.beginSend(message, RdmapOpcode.SEND, 0, work.lengthBytes);
    else sender.beginTagged(message, RdmapOpcode.WRITE, 100 + index, 2 ** 52 - 8, 7, work.lengthBytes);
    while (!message.isWritten) {
      const count = sender.nextPayloadBytes(message, segmentBytes - filled);
      if (count < 0 || (!isPacked && filled > 0)) {
        flush();
        continue;
      }
      filled += sender.writeSegment(message, current, filled, payload, message.writtenBytes, count);
      expect(filled).toBeLessThanOrEqual(segmentBytes);
    }
  });
  flush();
  return segments;
}

/** Cuts the same bytes into other segments. */
function recut(segments: readonly Uint8Array[], cuts: readonly number[]): Uint8Array[] {
  if (cuts.length === 0) return [...segments];
  const all = Uint8Array.from(segments.flatMap((segment) => [...segment]));
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < all.length; ) {
    const to = at + cuts[pieces.length % cuts.length]!;
    pieces.push(all.slice(at, to));
    at = to;
  }
  return pieces;
}

interface Outcome {
  readonly owner: RecordingOwner;
  readonly early: number;
}

/** Has the segments arrive in the drawn order, each as often as it is drawn, and the missing ones at last. */
function arrive(transfer: Transfer, pieces: readonly Uint8Array[]): Outcome {
  const owner = new RecordingOwner();
  owner.openBytes = 8192;
  owner.postedBytes = 8192;
  transfer.works.forEach((_, index) => {
    owner.regions.set(100 + index, { base: 2 ** 52 - 8, baseTop: 7, bytes: new Uint8Array(8192) });
  });
  const receiver = new RdmapReceiver(owner, {
    hasMarkers: transfer.hasMarkers,
    usesCrc: transfer.usesCrc,
    inboundReads: 0,
    outboundReads: 0,
    hasExtensions: true,
    awaitedReady: ReadyMessage.NONE,
    earlySegmentsMax: 16,
  });
  let released = 0;
  let early = 0;
  const stream = new PlacingStream<SegmentBuffer>(transfer.firstSequence, {
    keptMax: transfer.keptMax,
    unreadMax: transfer.unreadMax,
    release: () => released++,
  });
  // Bytes that arrive before the stream is that of a queue pair wait for it.
  let attachAt = transfer.attachAt;

  const buffers = pieces.map((bytes, index): SegmentBuffer => {
    const before = pieces.slice(0, index).reduce((sum, piece) => sum + piece.length, 0);
    const sequence = sequenceAdd(transfer.firstSequence, before);
    return { sequence, length: bytes.length, isSent: true, bytes, start: 0 };
  });
  let arrived = 0;
  const take = (buffer: SegmentBuffer): void => {
    if (attachAt-- === 0) stream.attach(receiver.reader);
    arrived++;
    const placed = owner.placed.length;
    if (stream.arrive({ ...buffer }) === 'behindGap' && owner.placed.length > placed) early++;
  };
  for (const draw of transfer.order) take(buffers[draw % buffers.length]!);
  if (attachAt >= 0) stream.attach(receiver.reader);
  attachAt = -1;
  for (const buffer of buffers) take(buffer);
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
  expect(sequenceDistance(stream.next, transfer.firstSequence)).toBe(total);
  expect([stream.hasGap, stream.keptBuffers, released]).toEqual([false, 0, arrived]);
  expect(receiver.reader.isBetween).toBe(true);
  return { owner, early };
}

/** Deliveries of these works, in order. */
const wantedLog = (all: readonly Work[]): string[] => {
  let message = 0;
  return all.map((work, index) => {
    if (work.kind === 'write') return `write ${100 + index}`;
    message++;
    if (work.kind === 'immediate') return `immediate 8 ${message} ${index} ${work.lengthBytes}`;
    return `send 3 ${message} ${Buffer.from(payloadOf(work, index)).toString('hex')}`;
  });
};

function expectDelivered({ works: all }: Transfer, owner: RecordingOwner): void {
  expect(owner.failure).toBeUndefined();
  expect(owner.log).toEqual(wantedLog(all));
  all.forEach((work, index) => {
    if (work.kind !== 'write') return;
    const bytes = owner.regions.get(100 + index)!.bytes.subarray(0, work.lengthBytes);
    expect(Buffer.from(bytes).equals(payloadOf(work, index))).toBe(true);
  });
}

describe('a stream', () => {
  it('RFC 5041, 5.3: delivers each message once and in order, however TCP cuts, repeats and reorders segments', () => {
    fc.assert(
      fc.property(transfers, (transfer) => {
        const { owner } = arrive(transfer, recut(sent(transfer), transfer.cuts));
        expectDelivered(transfer, owner);
      }),
      { numRuns: 300 },
    );
  });

  it.each([true, false])('RFC 5044, 4.2: places segments after a gap only with markers: %s', (hasMarkers) => {
    const transfer: Transfer = {
      works: [
        { kind: 'write', lengthBytes: 6000 },
        { kind: 'send', lengthBytes: 3000 },
      ],
      hasMarkers,
      ...{ usesCrc: true, segmentBytes: 1448, cuts: [], isPacked: false, firstSequence: 0xffff_fc00 },
      ...{ order: [6, 4, 2, 3, 5], keptMax: 8, attachAt: 0, unreadMax: 0 },
    };
    const { owner, early } = arrive(transfer, sent(transfer));
    expectDelivered(transfer, owner);
    expect(early).toBe(hasMarkers ? 5 : 0);
  });

  it('RFC 5044, 7.1.2: is read as bytes until MPA has agreed; what is unread then are FPDUs', () => {
    const transfer: Transfer = {
      works: [{ kind: 'send', lengthBytes: 40 }],
      ...{
        hasMarkers: false,
        usesCrc: true,
        segmentBytes: 1448,
        cuts: [],
        isPacked: false,
        firstSequence: 0,
      },
      ...{ order: [], keptMax: 1, attachAt: 0, unreadMax: 0 },
    };
    const handshake = Uint8Array.of(1, 2, 3, 4, 5);
    const [fpdu] = sent(transfer) as [Uint8Array];
    const bytes = Uint8Array.from([...handshake, ...fpdu]);
    const stream = new PlacingStream<SegmentBuffer>(0, {
      keptMax: 1,
      unreadMax: bytes.length,
      release: () => undefined,
    });
    const buffer = { sequence: 0, length: bytes.length, isSent: true, bytes, start: 0 };
    expect([stream.arrive(buffer), stream.readableBytes]).toEqual(['inOrder', bytes.length]);
    expect(stream.arrive({ ...buffer, sequence: bytes.length, length: 1 })).toBe('refused');
    const read = new Uint8Array(5);
    expect([stream.read(read), read]).toEqual([5, handshake]);
    const owner = new RecordingOwner();
    owner.postedBytes = 64;
    const receiver = new RdmapReceiver(owner, {
      ...{ hasMarkers: false, usesCrc: true, inboundReads: 0, outboundReads: 0 },
      ...{ hasExtensions: false, awaitedReady: ReadyMessage.NONE, earlySegmentsMax: 0 },
    });
    stream.attach(receiver.reader);
    expect([owner.log, stream.readableBytes]).toEqual([wantedLog(transfer.works), 0]);
  });

  it('RFC 5044, 8: never delivers damaged bytes if CRCs are used', () => {
    const damaged = fc.record({ transfer: transfers, place: fc.nat(), bit: fc.integer({ min: 0, max: 7 }) });
    fc.assert(
      fc.property(damaged, ({ transfer, place, bit }) => {
        const withCrc = { ...transfer, usesCrc: true };
        const pieces = sent(withCrc);
        const all = Uint8Array.from(pieces.flatMap((piece) => [...piece]));
        all[place % all.length]! ^= 1 << bit;
        const owner = new RecordingOwner();
        owner.openBytes = 8192;
        owner.postedBytes = 8192;
        const receiver = new RdmapReceiver(owner, {
          ...{ hasMarkers: transfer.hasMarkers, usesCrc: true, inboundReads: 0, outboundReads: 0 },
          ...{ hasExtensions: true, awaitedReady: ReadyMessage.NONE, earlySegmentsMax: 0 },
        });
        receiver.reader.take(all, 0, all.length);
        expect(owner.log).toEqual(wantedLog(withCrc.works).slice(0, owner.log.length));
        expect(owner.log.length).toBeLessThan(withCrc.works.length);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the state of a stream', () => {
  const events: readonly StreamEvent[] = [
    ...(['established', 'closed', 'finArrived', 'finEarly', 'terminateSent'] as const),
    ...(['terminateArrived', 'connectionClosed', 'connectionLost', 'reset'] as const),
  ];
  const play = (...all: StreamEvent[]): StreamState => all.reduce(stateAfter, 'IDLE' as StreamState);

  it.each([
    ['IDLE', [], 'IDLE'],
    ['an orderly close', ['established', 'closed', 'connectionClosed'], 'IDLE'],
    ['the peer closing', ['established', 'finArrived', 'connectionClosed'], 'IDLE'],
    ['a FIN within a message', ['established', 'finEarly'], 'ERROR'],
    ['a Terminate that was sent', ['established', 'terminateSent', 'connectionClosed'], 'ERROR'],
    ['a Terminate that has arrived', ['established', 'terminateArrived'], 'TERMINATE'],
    ['a lost connection', ['established', 'connectionLost', 'connectionClosed'], 'ERROR'],
    ['a lost connection while closing', ['established', 'closed', 'connectionLost'], 'ERROR'],
    ['a reset after an error', ['established', 'connectionLost', 'reset'], 'IDLE'],
    ['events that change nothing', ['closed', 'terminateSent', 'established', 'reset', 'established'], 'RTS'],
  ] as const)('RFC 5040, 6.2: after %s', (_what, all, state) => {
    expect(play(...all)).toBe(state);
  });

  it('RFC 5040, 6.2: lets messages be sent in RTS alone, and every end of it is final until the connection is closed', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...events)), (all) => {
        const state = play('established', ...all);
        expect(maySendMessages(state)).toBe(state === 'RTS');
        if (state !== 'ERROR') return;
        expect(
          all.reduce(
            (each: StreamState, event) => (event === 'reset' ? each : stateAfter(each, event)),
            state,
          ),
        ).toBe('ERROR');
      }),
    );
  });
});
