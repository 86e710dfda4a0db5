/**
 * Input of a hostile peer: options of TCP, frames of MPA, and FPDUs whose headers and lengths are drawn. The code
 * throws no error, places nothing outside the memory that the owner has allowed, delivers nothing after an error, and
 * reports only errors that a document defines. `npm run fuzz` plays a million of each.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { viewOf } from '../../base/index.ts';
import { newSegmentFields, readSegmentHeader } from '../tcp/index.ts';
import {
  checkRequest,
  concludeReply,
  encodeMpaFrame,
  isKnownError,
  type MpaParameters,
  parseMpaFrame,
  RdmapReceiver,
  ReadyMessage,
  replyOf,
  requestOf,
} from './index.ts';
import { readTerminate, TerminateNotice } from './terminate.ts';
import { RecordingOwner } from './testing/recording-owner.ts';

/** Inputs in all: `npm run fuzz` sets it, and a seed. */
const inputs = Number(process.env['HOSTILE_PACKETS'] ?? 3000);
const seed = Number(process.env['HOSTILE_SEED'] ?? 46);
const timeout = 24 * 3600_000;
const play = <T>(drawn: fc.Arbitrary<T>, perDraw: number, check: (input: T) => void): void => {
  const numRuns = Math.ceil(inputs / perDraw);
  fc.assert(fc.property(drawn, check), { seed, numRuns, endOnFailure: true });
};

interface SegmentDraw {
  readonly control: number;
  readonly opcode: number;
  /** Fields after the control bytes: those of the header, then payload. */
  readonly words: readonly number[];
  /** A byte of the header that is changed, if it is one. */
  readonly place: number;
  readonly change: number;
  readonly cut: number;
}

const payload = (maxLength: number) => fc.array(fc.nat(0xffff_ffff), { maxLength });
const tagged = (opcode: number) =>
  fc
    .record({
      tag: fc.constantFrom(0xaa, 0xaa, 0xaa, 0xab),
      offset: fc.constantFrom(0, 0, 4, 60),
      tail: payload(4),
    })
    .map(({ tag, offset, tail }) => ({ opcode, isTagged: true, words: [tag, 0, offset, ...tail] }));
const untagged = (opcode: number, queue: number, words: fc.Arbitrary<number[]>) =>
  fc
    .record({ message: fc.constantFrom(1, 1, 1, 2), offset: fc.constantFrom(0, 0, 0, 4), words })
    .map(({ message, offset, words: tail }) => ({
      opcode,
      isTagged: false,
      words: [0, queue, message, offset, ...tail],
    }));
const wordsOf = (count: number) => fc.array(fc.nat(0xffff_ffff), { minLength: count, maxLength: count + 1 });

/** DDP segments that are valid, or close to it. */
const segments = fc
  .record({
    segment: fc.oneof(
      tagged(0),
      tagged(2),
      ...[3, 4, 5, 6].map((opcode) => untagged(opcode, 0, payload(9))),
      ...[8, 9].map((opcode) => untagged(opcode, 0, wordsOf(2))),
      untagged(1, 1, wordsOf(7)),
      untagged(1, 1, fc.constant([0xaa, 0, 0, 0, 0xaa, 0, 0])),
      untagged(10, 1, wordsOf(13)),
      untagged(7, 2, wordsOf(1)),
      untagged(11, 3, wordsOf(3)),
    ),
    isLast: fc.constantFrom(true, true, true, false),
    place: fc.oneof(fc.constant(-1), fc.nat(17)),
    change: fc.nat(0xff),
    cut: fc.constantFrom(0, 0, 0, 0, 1, 14),
  })
  .map(({ segment: { opcode, isTagged, words }, isLast, ...rest }): SegmentDraw => {
    const control = 0x01 | (isTagged ? 0x80 : 0) | (isLast ? 0x40 : 0);
    return { control, opcode: 0x40 | opcode, words, ...rest };
  })
  .map(({ control, opcode, words, place, change, cut }) => {
    const bytes = new Uint8Array(2 + words.length * 4);
    bytes[0] = control;
    bytes[1] = opcode;
    words.forEach((value, index) => {
      viewOf(bytes).setUint32(2 + index * 4, value);
    });
    if (place >= 0 && place < bytes.length) bytes[place]! ^= change;
    return bytes.subarray(0, Math.max(0, bytes.length - cut));
  });

interface FpduDraw {
  readonly segment: Uint8Array;
  /** Added to the length that the FPDU has. */
  readonly lengthError: number;
}

const fpdus = fc.record({
  segment: segments,
  lengthError: fc.oneof(
    { weight: 9, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: -8, max: 40 }) },
  ),
}) satisfies fc.Arbitrary<FpduDraw>;

function fpduOf({ segment, lengthError }: FpduDraw): number[] {
  const length = Math.max(0, segment.length + lengthError);
  const padding = new Array<number>((4 - ((2 + segment.length) % 4)) % 4).fill(0);
  return [length >> 8, length & 0xff, ...segment, ...padding, 0, 0, 0, 0];
}

const guardBytes = 64;

class Stranger {
  readonly owner = new RecordingOwner();
  readonly memory = new Uint8Array(64 + 2 * guardBytes);
  readonly receiver: RdmapReceiver;

  constructor(hasMarkers: boolean, awaitedReady: number) {
    this.owner.regions.set(0xaa, {
      base: 0,
      baseTop: 0,
      bytes: this.memory.subarray(guardBytes, guardBytes + 64),
    });
    this.owner.receives.set(1, new Uint8Array(32));
    this.owner.receives.set(2, new Uint8Array(0));
    this.receiver = new RdmapReceiver(this.owner, {
      ...{ hasMarkers, usesCrc: false, inboundReads: 2, outboundReads: 2, hasExtensions: true },
      ...{ awaitedReady, earlySegmentsMax: 4 },
    });
    this.receiver.outstanding.addRead(0xaa, 0, 0, 4);
    this.receiver.outstanding.addAtomic(1);
  }

  check(): void {
    const { failure, notice } = this.owner;
    if (failure !== undefined) expect(isKnownError(failure.error)).toBe(true);
    expect(this.receiver.reader.isStopped).toBe(failure !== undefined || notice !== undefined);
    const guards = [...this.memory.subarray(0, guardBytes), ...this.memory.subarray(guardBytes + 64)];
    expect(guards.every((byte) => byte === 0)).toBe(true);
  }
}

describe('a stranger at the other end', () => {
  it('RFC 5041, 7: has only allowed bytes placed by the segments that it sends', { timeout }, () => {
    const perDraw = 4;
    const drawn = fc.record({
      all: fc.array(fpdus, { minLength: 1, maxLength: 2 * perDraw }),
      awaitedReady: fc.constantFrom(0, 0, 0, ReadyMessage.SEND, ReadyMessage.WRITE, ReadyMessage.READ),
      cut: fc.integer({ min: 1, max: 200 }),
    });
    const errors = new Set<number>();
    play(drawn, perDraw, ({ all, awaitedReady, cut }) => {
      const stranger = new Stranger(false, awaitedReady);
      const bytes = Uint8Array.from(all.flatMap(fpduOf));
      for (let at = 0; at < bytes.length; at += cut)
        stranger.receiver.reader.take(bytes, at, Math.min(bytes.length, at + cut));
      stranger.check();
      if (stranger.owner.failure !== undefined) errors.add(stranger.owner.failure.error);
    });
    // The draws reach most checks.
    expect(errors.size).toBeGreaterThan(11);
  });

  it('RFC 5044, 4.3: has nothing placed outside by bytes with markers, in order or after a gap', {
    timeout,
  }, () => {
    const drawn = fc.record({
      all: fc.array(fpdus, { minLength: 1, maxLength: 6 }),
      pointers: fc.array(fc.nat(0xffff), { maxLength: 2 }),
      distance: fc.oneof(fc.constant(512), fc.nat(4096)),
    });
    play(drawn, 4, ({ all, pointers, distance }) => {
      const stranger = new Stranger(true, 0);
      const plain = all.flatMap(fpduOf);
      const bytes = Uint8Array.from([0, 0, 0, 0, ...plain]);
      pointers.forEach((pointer, index) => {
        if (bytes.length > index * 512 + 4) viewOf(bytes).setUint16(index * 512 + 2, pointer);
      });
      stranger.receiver.reader.takeEarly(distance, bytes, 0, bytes.length);
      stranger.receiver.reader.take(bytes, 0, bytes.length);
      stranger.check();
    });
  });

  it('RFC 5044, 7.1: is answered or refused, whatever its request or reply has', { timeout }, () => {
    const own: MpaParameters = {
      ...{ revision: 2, wantsMarkers: false, canSendMarkers: false, wantsCrc: true, isPeerToPeer: true },
      ...{ readyKinds: ReadyMessage.WRITE, inboundReads: 4, outboundReads: 4, inboundReadsMax: 8 },
    };
    const drawn = fc.record({
      isReply: fc.boolean(),
      flags: fc.nat(0xff),
      revision: fc.oneof(fc.constantFrom(1, 2), fc.nat(0xff)),
      length: fc.oneof(fc.nat(8), fc.nat(0xffff)),
      tail: fc.uint8Array({ maxLength: 12 }),
      damage: fc.oneof({ weight: 9, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(15) }),
    });
    play(drawn, 1, ({ isReply, flags, revision, length, tail, damage }) => {
      const key = Buffer.from(isReply ? 'MPA ID Rep Frame' : 'MPA ID Req Frame');
      const bytes = Uint8Array.from([...key, flags, revision, length >> 8, length & 0xff, ...tail]);
      if (damage >= 0) bytes[damage]! ^= 0x20;
      const parsed = parseMpaFrame(bytes, isReply);
      if (parsed.kind !== 'frame') return;
      const { frame } = parsed;
      expect(frame.privateData.length).toBeLessThanOrEqual(length);
      if (isReply) {
        const result = concludeReply(own, requestOf(own, new Uint8Array(0)), frame);
        if (result.kind === 'agreed') expect(result.agreement.outboundReads).toBeLessThanOrEqual(4);
        return;
      }
      if (checkRequest(own, frame) !== 'accepted') return;
      const reply = encodeMpaFrame(replyOf(own, frame, 'accept', new Uint8Array(0)));
      expect(parseMpaFrame(reply, true)).toMatchObject({ kind: 'frame', lengthBytes: reply.length });
    });
  });

  it('RFC 5040, 4.8: has its Terminate read as far as it goes', { timeout }, () => {
    play(fc.uint8Array({ maxLength: 60 }), 1, (bytes) => {
      const notice = new TerminateNotice();
      const isRead = readTerminate(viewOf(bytes), 0, bytes.length, notice);
      expect(isRead).toBe(bytes.length >= 4);
      expect([0, 14, 18]).toContain(notice.quoted.headerBytes);
    });
  });

  it('RFC 9293, 3.1: has the options of its segments of TCP read within their header', { timeout }, () => {
    const option = fc.oneof(
      fc.constantFrom([1], [0], [2, 4, 5, 180], [3, 3, 7], [4, 2], [8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
      fc.array(fc.nat(0xff), { minLength: 8, maxLength: 8 }).map((edges) => [5, 10, ...edges]),
      fc.array(fc.nat(0xff), { minLength: 1, maxLength: 6 }),
      fc.tuple(fc.constantFrom(2, 3, 4, 5, 8), fc.nat(0xff)),
    );
    const drawn = fc.record({
      options: fc.array(option, { maxLength: 8 }),
      offset: fc.nat(15),
      cut: fc.nat(60),
    });
    play(drawn, 1, ({ options, offset, cut }) => {
      const bytes = Uint8Array.from([...new Array<number>(20).fill(0), ...options.flat()].slice(0, cut));
      if (bytes.length > 12) bytes[12] = offset << 4;
      const fields = newSegmentFields();
      const headerBytes = readSegmentHeader(viewOf(bytes), 0, bytes.length, fields);
      expect(headerBytes).toBeLessThanOrEqual(bytes.length);
      if (headerBytes === 0) return;
      expect(headerBytes).toBe(offset * 4);
      expect(fields.sackBlocks).toBeLessThanOrEqual(4);
    });
  });
});
