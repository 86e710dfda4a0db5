/** Streams of iWARP on a cable, falsified: each rule finds what breaks it. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Played, playStory } from '../run-story.ts';
import { sceneOf } from '../scenes/index.ts';
import { drawScene } from '../story-of-seed.ts';
import { type Segment, segmentIn } from './iwarp/segment.ts';
import { judgeIwarp } from './iwarp.ts';
import { type Frame, withFrames } from './testing/altered-capture.ts';

/** Ethernet, IPv4 and TCP without options. */
const network = 14;
const tcp = network + 20;

const clean = {
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.transport': 'iwarp',
  'ethernet.mtuBytes': 1500,
  'hca.iwarp.delayedAckUs': 500,
  'hca.iwarp.retransmitMinUs': 200_000,
};

const request = (kind: 'SEND' | 'WRITE' | 'READ', lengthBytes: number) => ({
  ...{ kind, lengthBytes, pieces: 1, isInline: false, isSignalled: true },
  ...{ isSolicited: false, isFenced: false, gapBytes: 3, spareBytes: 0 },
});

const reads = [
  { inbound: 4, outbound: 2 },
  { inbound: 4, outbound: 4 },
];
const messages = {
  links: [
    {
      plan: { asker: 0, isIpv6: false, reads, privateBytes: 0 },
      sides: [
        {
          requests: [
            request('WRITE', 5001),
            request('SEND', 4000),
            ...[1, 2, 3].map(() => request('READ', 3000)),
          ],
          depth: 8,
        },
        { requests: [request('SEND', 333)], depth: 4 },
      ],
    },
  ],
  sharesReceives: [false, false],
};
const refusal = {
  rounds: [
    {
      plan: { asker: 0, isIpv6: false, reads, privateBytes: 0 },
      flaw: 'readBounds',
      asker: 0,
      lengthBytes: 500,
      good: [],
    },
  ],
};

const playOf = (name: string, args: unknown, set: Record<string, boolean> = {}): Promise<Played> => {
  const { again: _, stopsAfter: _part, ...story } = drawScene(1, sceneOf({ name }));
  const played = {
    ...story,
    again: undefined,
    faults: [],
    set: { ...clean, ...set },
    scene: { ...story.scene!, args },
  };
  return playStory(played, { partition: 'single', shuffleSeed: undefined });
};

let plain: Played;
let marked: Played;
let refused: Played;
beforeAll(async () => {
  plain = await playOf('iwarp-streams', messages, { 'driver.tcpTimestamps': true });
  marked = await playOf('iwarp-streams', messages, { 'driver.mpaMarkers': true });
  refused = await playOf('iwarp-refusals', refusal);
}, 120_000);

const sentBy =
  (node: number, of: (segment: Segment, bytes: Uint8Array) => boolean) =>
  (frame: Frame): boolean => {
    if (frame.interface !== node || frame.direction !== 'outbound') return false;
    const segment = segmentIn(frame.bytes);
    return segment !== undefined && of(segment, frame.bytes);
  };

/** Recomputes the checksums of IPv4 and TCP: a sender that errs has right ones. */
function rightened(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  const end = network + view.getUint16(network + 2);
  const sum = (from: number, to: number, start: number): number => {
    let total = start;
    for (let at = from; at < to; at++) total += copy[at]! << ((at - from) % 2 === 0 ? 8 : 0);
    while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
    return ~total & 0xffff;
  };
  view.setUint16(network + 10, 0);
  view.setUint16(network + 10, sum(network, tcp, 0));
  view.setUint16(tcp + 16, 0);
  view.setUint16(tcp + 16, sum(tcp, end, 6 + end - tcp + (0xffff & ~sum(network + 12, tcp, 0))));
  return copy;
}

/** Findings when one frame is another. */
function foundIn(
  played: Played,
  which: (frame: Frame) => boolean,
  change: (bytes: Uint8Array, view: DataView) => void,
  { skipped = 0, isRight = true } = {},
): string {
  const altered = withFrames(played, (frames) => {
    const at = frames.flatMap((frame, index) => (which(frame) ? [index] : []))[skipped]!;
    const bytes = frames[at]!.bytes.slice();
    change(bytes, new DataView(bytes.buffer));
    return frames.with(at, { ...frames[at]!, bytes: isRight ? rightened(bytes) : bytes });
  });
  return judgeIwarp(altered).join('\n');
}

/** Flips bits of a byte. */
function flip(bytes: Uint8Array, at: number, bits: number): void {
  bytes[at]! ^= bits;
}

const isData = ({ payload }: Segment): boolean => payload.length > 100;
const payloadAt = (bytes: Uint8Array): number => tcp + (bytes[tcp + 12]! >> 4) * 4;
/** The first bytes of an FPDU, which begins with its segment in these plays, are its length; then come control bytes. */
const isOpcode =
  (opcode: number) =>
  ({ payload }: Segment): boolean =>
    payload.length > 16 && (payload[3]! & 0xcf) === 0x40 + opcode && (payload[2]! & 3) === 1;
const add = (view: DataView, at: number, amount: number): void =>
  view.setUint32(at, view.getUint32(at) + amount);

describe('the judge of iWARP', () => {
  it('finds nothing where all went well', () => {
    expect([plain, marked, refused].flatMap((played) => judgeIwarp(played))).toEqual([]);
    expect([plain, marked, refused].map(({ results }) => JSON.stringify(results)).join()).not.toContain(
      'wrong":["',
    );
  });

  it.each([
    ['a wrong checksum of TCP', (bytes) => flip(bytes, tcp + 17, 1), /a wrong checksum of TCP/],
    ['a wrong checksum of IPv4', (bytes) => flip(bytes, network + 11, 1), /a wrong checksum of IPv4/],
  ] as [string, (bytes: Uint8Array) => void, RegExp][])('RFC 9293, 3.1: finds %s', (_what, change, words) => {
    expect(foundIn(plain, sentBy(0, isData), change, { isRight: false })).toMatch(words);
  });

  it.each([
    [
      'an ACK of what has not arrived',
      (_: Uint8Array, view: DataView) => add(view, tcp + 8, 9000),
      /acknowledges place \d+, and \d+ bytes have arrived/,
    ],
    [
      'an ACK that goes backwards',
      (_: Uint8Array, view: DataView) => add(view, tcp + 8, -9),
      /acknowledges place \d+ after \d+/,
    ],
    [
      'a window that shrinks',
      (_: Uint8Array, view: DataView) => view.setUint16(tcp + 14, 8),
      /its window ends at/,
    ],
    [
      'bytes that were never sent before it',
      (_: Uint8Array, view: DataView) => add(view, tcp + 4, 5),
      /data from place \d+ on, after place/,
    ],
    [
      'data beyond the window',
      (_: Uint8Array, view: DataView) => add(view, tcp + 4, 400_000),
      /beyond the window/,
    ],
    [
      'other bytes in a place that was sent',
      (_: Uint8Array, view: DataView) => add(view, tcp + 4, -9),
      /a retransmission with other bytes/,
    ],
    ['no timestamps', (bytes: Uint8Array) => bytes.fill(1, tcp + 20, tcp + 32), /no timestamps/],
    [
      'an echo of what has not arrived',
      (_: Uint8Array, view: DataView) => add(view, tcp + 28, 77),
      /echoes the timestamp/,
    ],
    ['a RST that data follow', (bytes: Uint8Array) => bytes.fill(4, tcp + 13, tcp + 14), /it follows a RST/],
  ])('RFC 9293, RFC 7323: finds %s', (_what, change, words) => {
    expect(foundIn(plain, sentBy(0, isData), change, { skipped: 2 })).toMatch(words);
  });

  it('RFC 9293, 3.7.1: finds a segment that is longer than the peer’s maximum', () => {
    const shorten = (bytes: Uint8Array): void => {
      const options = bytes.subarray(tcp + 20);
      new DataView(options.buffer, options.byteOffset).setUint16(2, 900);
    };
    const isSyn = (frame: Frame): boolean =>
      frame.interface === 0 && frame.direction === 'inbound' && segmentIn(frame.bytes)?.isSyn === true;
    expect(foundIn(plain, isSyn, shorten)).toMatch(/exceed the peer’s segment of 900/);
  });

  it('RFC 9293, 3.8.6.3: finds data that are not acknowledged in time', () => {
    const isLate = sentBy(1, ({ isSyn }) => !isSyn);
    const altered = withFrames(plain, (frames) => {
      let seen = 0;
      return frames.filter((frame) => !isLate(frame) || seen++ < 2);
    });
    expect(judgeIwarp(altered).join('\n')).toMatch(/should have been acknowledged by/);
  });

  it.each([
    ['a key', 0, /begins with/],
    ['a revision', 17, /revision \d+ of MPA/],
    ['reserved flags', 16, /reserved flags/],
  ])('RFC 5044, 7.1: finds another first frame by %s', (_what, at, words) => {
    const change = (bytes: Uint8Array): void => flip(bytes, payloadAt(bytes) + at, 0x0f);
    expect(
      foundIn(
        plain,
        sentBy(0, ({ payload }) => payload.length > 0),
        change,
      ),
    ).toMatch(words);
  });

  it('RFC 5044, 4: finds a wrong CRC, marker and padding', () => {
    const last = (bytes: Uint8Array): void => flip(bytes, bytes.length - 1, 1);
    expect(foundIn(plain, sentBy(0, isOpcode(3)), last)).toMatch(/the CRC of the FPDU at place \d+ is/);
    const marker = (bytes: Uint8Array): void => flip(bytes, payloadAt(bytes) + 3, 4);
    const isFirst = sentBy(
      0,
      ({ payload }) => payload.length > 8 && payload.subarray(0, 4).every((byte) => byte === 0),
    );
    expect(foundIn(marked, isFirst, marker)).toMatch(/the marker at place \d+ is 0x4, due 0/);
    // A WRITE of 5001 bytes ends in an FPDU with padding.
    const isPadded = sentBy(
      0,
      ({ payload }, bytes) =>
        isOpcode(0)({ payload } as Segment) && (bytes[payloadAt(bytes) + 1]! + 2) % 4 !== 0,
    );
    expect(foundIn(plain, isPadded, (bytes) => flip(bytes, bytes.length - 5, 1))).toMatch(
      /padding of an FPDU/,
    );
  });

  it.each([
    ['an MSN', 3, (at: number, view: DataView) => add(view, at + 12, 1), /MSN \d+ of queue 0, due \d+/],
    ['an MO', 3, (at: number, view: DataView) => add(view, at + 16, 4), /MO \d+, due \d+/],
    ['a queue', 3, (at: number, view: DataView) => add(view, at + 8, 1), /SEND in queue 1/],
    ['an opcode', 3, (at: number, view: DataView) => view.setUint8(at + 3, 0x4f), /opcode 15/],
    [
      'a version',
      3,
      (at: number, view: DataView) => view.setUint8(at + 3, 0x83),
      /versions of DDP and RDMAP/,
    ],
    [
      'the offset of a later segment',
      0,
      (at: number, view: DataView) => add(view, at + 12, 4),
      /WRITE continues at/,
    ],
    [
      'the tag of a response',
      2,
      (at: number, view: DataView) => add(view, at + 4, 1),
      /READ response|response of READ|continues/,
    ],
  ] as const)('RFC 5041, 4; RFC 5040, 4: finds another %s', (_what, opcode, change, words) => {
    const node = opcode === 2 ? 1 : 0;
    const altered = foundIn(
      plain,
      sentBy(node, isOpcode(opcode)),
      (bytes, view) => {
        change(payloadAt(bytes), view);
        rightenCrc(bytes, payloadAt(bytes));
      },
      { skipped: opcode === 0 ? 1 : 0 },
    );
    expect(altered).toMatch(words);
  });

  it('RFC 6581, 9: finds more READs outstanding than were agreed', () => {
    // The request offers ORD 2: the reply of a peer that serves one at once.
    const isReply = (frame: Frame): boolean => {
      if (frame.interface !== 0 || frame.direction !== 'inbound') return false;
      return Buffer.from(segmentIn(frame.bytes)?.payload.subarray(0, 10) ?? []).toString() === 'MPA ID Rep';
    };
    const change = (bytes: Uint8Array, view: DataView): void => view.setUint16(payloadAt(bytes) + 20, 0xc001);
    expect(foundIn(plain, isReply, change)).toMatch(/leaves with 1 outstanding, and ORD is 1/);
  });

  it.each([
    ['a code that is undefined', 20, 0x0f, /which no document defines/],
    ['the length of its segment', 25, 1, /quotes a segment of \d+ bytes that has not arrived/],
    ['a flag', 22, 0x80, /with the flags/],
  ])('RFC 5040, 4.8: finds a Terminate with another %s', (_what, at, bits, words) => {
    const change = (bytes: Uint8Array): void => {
      const from = payloadAt(bytes);
      flip(bytes, from + at, bits);
      rightenCrc(bytes, from);
    };
    expect(foundIn(refused, sentBy(1, isOpcode(7)), change)).toMatch(words);
  });
});

/** CRC32c (RFC 3385), bit by bit, of the FPDU that ends with the frame. */
function rightenCrc(bytes: Uint8Array, from: number): void {
  let crc = 0xffff_ffff;
  for (const byte of bytes.subarray(from, bytes.length - 4)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0);
  }
  new DataView(bytes.buffer).setUint32(bytes.length - 4, ~crc >>> 0, true);
}
