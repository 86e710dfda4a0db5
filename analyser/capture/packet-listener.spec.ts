/**
 * Captures of stock Linux read as conversations. Expected are the numbers of their page: NAKs by kind, and the packets
 * that the relay dropped, duplicated and delayed (reference/wire/README.md).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { encodePacket, Opcode } from '../../wire/index.ts';
import { CaptureReading } from './capture-reading.ts';
import { type Conversation, LinkType, packetsIn, readCapture } from './index.ts';
import { conversationsOf } from './testing/conversations.ts';

const everything = { lines: Number.POSITIVE_INFINITY, isTroubleOnly: false };
const folder = new URL('../../reference/wire/', import.meta.url);
const page = readFileSync(new URL('README.md', folder), 'utf8');
const names = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name) && !name.startsWith('siw-'));

const toldIn = (name: string): Conversation[] =>
  conversationsOf(packetsIn(readCapture(readFileSync(new URL(name, folder)))).packets);

/** A number that the page states for a file. */
function counted(name: string, what: string): number {
  const row = page.split('\n').find((line) => line.startsWith(`| ${name} |`)) ?? '';
  return Number(new RegExp(`${what} (\\d+)`).exec(row)?.[1] ?? 0);
}

const sumOf = (told: readonly Conversation[], what: string): number =>
  told.reduce((sum, { counts }) => sum + (counts[what] ?? 0), 0);
const wordsOf = (told: readonly Conversation[]): string[] =>
  told.flatMap(({ utterances }) => utterances.map(({ words }) => words));

describe('a capture read as a conversation', () => {
  it.each(names)('has the NAKs that the page counts: %s', (name) => {
    const told = toldIn(name);
    const naks = [
      'NAK PSN sequence error',
      'NAK remote access error',
      'NAK invalid request',
      'NAK remote operational error',
    ];
    expect(sumOf(told, 'NAKs')).toBe(naks.reduce((sum, nak) => sum + counted(name, nak), 0));
    expect(sumOf(told, 'RNR NAKs')).toBe(counted(name, 'RNR NAK'));
  });

  it('reports nothing if the packets were not manipulated', () => {
    const sound = names.filter(
      (name) => /^(rc|uc|ud|pingpong|perftest)-/.test(name) && name.endsWith('.pcap'),
    );
    expect(sound.length).toBeGreaterThan(20);
    for (const name of sound) {
      const trouble = toldIn(name).flatMap(({ utterances }) =>
        utterances.filter(({ isTrouble }) => isTrouble),
      );
      expect([name, trouble]).toEqual([name, []]);
    }
  });

  it.each([
    ['rc-read-ipv4.pcap', 15, 3],
    ['rc-read-ipv6.pcap', 15, 0x30],
  ])('RFC 3168, 5: shows congestion marks in IP headers of requests and answers: %s', (name, at, ce) => {
    const capture = readCapture(readFileSync(new URL(name, folder)));
    const plain = wordsOf(conversationsOf(packetsIn(capture).packets));
    for (const { bytes } of capture.frames) {
      bytes[at]! |= ce;
      // Raises the first word of an IPv4 header by this amount and lowers its checksum by the same (RFC 1624).
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      if (ce === 3) view.setUint16(24, view.getUint16(24) - ce);
    }
    const words = wordsOf(conversationsOf(packetsIn(capture).packets));
    expect(plain.some((line) => /marked/.test(line))).toBe(false);
    expect(words.length).toBe(plain.length);
    expect(words.length).toBeGreaterThan(3);
    for (const line of words) expect(line).toMatch(/marked for congestion/);
  });

  it('shows retransmitted, missing and repeatedly answered packets', () => {
    // The third WRITE last was dropped; it and the two after it are sent again (frames 8 to 10).
    expect(sumOf(toldIn('drop-write-last-ipv4.pcapng'), 'sent again')).toBe(3);
    expect(wordsOf(toldIn('dup-send-ipv4.pcapng')).filter((words) => /sent again/.test(words))).toHaveLength(
      1,
    );
    expect(
      wordsOf(toldIn('dup-ack-ipv4.pcapng')).filter((words) => /answered before/.test(words)),
    ).toHaveLength(1);
    expect(wordsOf(toldIn('rnr-retry-ipv4.pcap'))).toContain(
      'RNR NAK, PSN 256: not ready, again after 1.28 ms',
    );
  });

  it('joins two directions, and keeps connections separate', () => {
    expect(toldIn('rc-bidirectional-ipv4.pcap').map(({ first, second }) => [first, second])).toEqual([
      ['10.0.0.1 QP 31', '10.0.0.2 QP 31'],
    ]);
    expect(toldIn('perftest-send-bw-2qp-ipv6.pcap')).toHaveLength(2);
    expect(toldIn('rc-psn-wrap-ipv4.pcap')).toHaveLength(1);
  });

  it.each(['drop-read-response-middle-ipv4.pcapng', 'reorder-read-response-ipv4.pcapng'])(
    'IBTA 9.7.5.1: shows a READ that is resumed in its middle, and takes the responses again: %s',
    (name) => {
      // PSN 258 is the third of six packets of 1024 bytes (reference/wire/README.md: the relay dropped or delayed it).
      const lines = wordsOf(toldIn(name));
      expect(lines[7]).toMatch(
        /^READ request, PSN 258, 3952 at .*; resumes the READ of frame 1 at byte 2048$/,
      );
      expect(lines.filter((words) => /answered before|gap/.test(words))).toEqual([]);
    },
  );
});

/** Lines of a conversation of packets of an RC connection between LIDs 1 (QP 10) and 2 (QP 20). */
const linesOf = (...sent: readonly Uint8Array[]): string[] => {
  const frames = sent.map((bytes) => ({ interface: 0, bytes }));
  return wordsOf(toldOf([''], frames));
};

interface Seen {
  readonly interface: number;
  readonly bytes: Uint8Array;
  readonly direction?: 'inbound' | 'outbound';
  readonly comment?: string;
}

/** @param names of the interfaces */
function readingOf(names: readonly string[], seen: readonly Seen[]): CaptureReading {
  const reading = new CaptureReading(everything);
  seen.forEach(({ interface: number, bytes, direction = 'unknown', comment = '' }, index) => {
    const frame = { interface: number, timePs: BigInt(index) * 1_000_000n, bytes, comment };
    const from = {
      ...{ linkType: LinkType.INFINIBAND, name: names[number]!, unitsPerSecond: 1n },
      ...{ snapBytes: 0, offsetPs: 0n, droppedPackets: 0 },
    };
    reading.feed.take({ ...frame, originalBytes: bytes.length, direction }, from);
  });
  reading.end();
  return reading;
}

const toldOf = (names: readonly string[], seen: readonly Seen[]): Conversation[] =>
  readingOf(names, seen).conversations();

const request = (psn: number, opcode: number, parts: object = {}, lids = [1, 2]): Uint8Array =>
  encodePacket({
    lrh: { linkNextHeader: 2, sourceLid: lids[0]!, destinationLid: lids[1]! },
    bth: { opcode, psn, destinationQp: 20, partitionKey: 0xffff },
    ...parts,
  });
const answer = (psn: number, opcode: number, parts: object = {}, lids = [1, 2]): Uint8Array =>
  encodePacket({
    lrh: { linkNextHeader: 2, sourceLid: lids[1]!, destinationLid: lids[0]! },
    bth: { opcode, psn, destinationQp: 10, partitionKey: 0xffff },
    headers: { AETH: { syndrome: 0x1f } },
    ...parts,
  });
const send = (psn: number, lids?: number[], first = 0): Uint8Array =>
  request(psn, Opcode.RC_SEND_ONLY, { payload: Uint8Array.of(first, 1, 2, 3) }, lids);
const ack = (psn: number, lids?: number[]): Uint8Array => answer(psn, Opcode.RC_ACKNOWLEDGE, {}, lids);
const nak = (psn: number): Uint8Array =>
  answer(psn, Opcode.RC_ACKNOWLEDGE, { headers: { AETH: { syndrome: 0x60 } } });
const read = (psn: number, virtualAddress: bigint, dmaLength: number): Uint8Array =>
  request(psn, Opcode.RC_RDMA_READ_REQUEST, { headers: { RETH: { virtualAddress, rKey: 7, dmaLength } } });
const respond = (psn: number, opcode: number, payloadBytes = 256): Uint8Array =>
  answer(psn, opcode, { payload: new Uint8Array(payloadBytes) });
const FIRST = Opcode.RC_RDMA_READ_RESPONSE_FIRST;
const MIDDLE = Opcode.RC_RDMA_READ_RESPONSE_MIDDLE;
const LAST = Opcode.RC_RDMA_READ_RESPONSE_LAST;

/** Words of a line after those that describe the packet itself. */
const remarksOf = (lines: readonly string[]): string[] =>
  lines.map((words) => words.split('; ').slice(1).join('; '));

describe('a conversation', () => {
  it('IBTA 9.7.2: reports an overtaken packet as late, and a repeated one as sent again', () => {
    expect(remarksOf(linesOf(send(1), send(3), send(4), send(2), send(5), send(3)))).toEqual([
      '',
      'gap: PSN 2 not seen',
      '',
      'late: 2 later packets were seen before it',
      '',
      'sent again',
    ]);
  });

  it('IBTA 9.7.5.2.8: reports a packet that a NAK requested as sent again, whether or not it was seen before', () => {
    expect(remarksOf(linesOf(send(1), ack(1), send(3), nak(2), send(2), send(3)))).toEqual([
      '',
      '',
      'gap: PSN 2 not seen',
      '',
      'sent again, not seen before',
      'sent again',
    ]);
  });

  it('IBTA 9.7.3.1: marks a gap if READ responses are lost, in the middle and at the end', () => {
    const lines = linesOf(
      read(10, 0x1000n, 1024),
      respond(10, FIRST),
      respond(12, MIDDLE),
      send(14),
      ack(14),
      read(11, 0x1100n, 768),
      respond(11, FIRST),
      respond(12, MIDDLE),
      respond(13, LAST),
    );
    expect(remarksOf(lines)).toEqual([
      '',
      '',
      'gap: READ response PSN 11 of frame 1 not seen',
      '',
      'gap: READ response PSN 13 of frame 1 not seen',
      'resumes the READ of frame 1 at byte 256',
      '',
      '',
      '',
    ]);
  });

  it('IBTA 9.7.3.1: marks a gap if all responses of a READ are lost, even if the MTU is unknown', () => {
    const lines = linesOf(read(10, 0x1000n, 1024), send(12), ack(12));
    expect(remarksOf(lines)).toEqual(['', '', 'gap: READ responses PSN 10 to 11 of frame 1 not seen']);
  });

  it('reports an overtaken READ response as late, and a repeated one as answered before', () => {
    const lines = linesOf(
      read(10, 0x1000n, 768),
      respond(10, FIRST),
      respond(12, LAST),
      respond(11, MIDDLE),
      respond(12, LAST),
    );
    expect(remarksOf(lines)).toEqual([
      '',
      '',
      'gap: READ response PSN 11 of frame 1 not seen',
      'late: later responses were seen before it',
      'answered before',
    ]);
  });

  it('distinguishes a READ of the rest of a region from a resumed one', () => {
    // The first response carries 2048 bytes in one packet, so PSN 11 belongs to another READ.
    const whole = [read(10, 0x1000n, 2048), respond(10, Opcode.RC_RDMA_READ_RESPONSE_ONLY, 2048)];
    expect(remarksOf(linesOf(...whole, read(11, 0x1400n, 1024)))).toEqual(['', '', '']);
  });

  it('marks a gap if the answer of an atomic is lost', () => {
    const add = request(10, Opcode.RC_FETCH_ADD, { headers: { AtomicETH: { virtualAddress: 8n } } });
    expect(remarksOf(linesOf(add, send(11), ack(11)))).toEqual([
      '',
      '',
      'gap: atomic acknowledge PSN 10 of frame 1 not seen',
    ]);
  });

  it('keeps a limited number of lines, and counts all packets', () => {
    const reading = new CaptureReading({ lines: 3, isTroubleOnly: false });
    const from = {
      ...{ linkType: LinkType.INFINIBAND, name: '', unitsPerSecond: 1n },
      ...{ snapBytes: 0, offsetPs: 0n, droppedPackets: 0 },
    };
    for (let psn = 0; psn < 10; psn++) {
      const bytes = send(psn);
      const frame = { interface: 0, timePs: 0n, bytes, originalBytes: bytes.length, comment: '' };
      reading.feed.take({ ...frame, direction: 'unknown' }, from);
    }
    reading.end();
    expect(reading.conversations()).toMatchObject([
      { utterances: { length: 3 }, unkept: 7, counts: { requests: 10 } },
    ]);
  });
});

describe('a capture of several places', () => {
  const out = (number: number, bytes: Uint8Array): Seen => ({
    interface: number,
    bytes,
    direction: 'outbound',
  });
  const into = (number: number, bytes: Uint8Array): Seen => ({
    interface: number,
    bytes,
    direction: 'inbound',
  });
  const ends = ['hca0', 'hca1'];

  it('from both ends of a cable counts each packet once, and a packet that was sent twice twice', () => {
    const seen = [
      ...[out(0, send(1)), into(1, send(1))],
      ...[out(1, ack(1)), into(0, ack(1))],
      // Lost once and retransmitted.
      ...[out(0, send(2)), out(0, send(2)), into(1, send(2))],
    ];
    const reading = readingOf(ends, seen);
    const [told, ...others] = reading.conversations();
    expect(others).toEqual([]);
    expect(told!.counts).toEqual({ requests: 3, answers: 1, 'sent again': 1 });
    expect(told!.utterances.map(({ number }) => number)).toEqual([1, 3, 5, 6]);
    expect(reading.feed.repeatedCount).toBe(3);
  });

  it('without directions, like merged pcap files, also counts each packet once', () => {
    const seen = [send(1), ack(1), send(2)].flatMap((bytes) => [
      { interface: 0, bytes },
      { interface: 1, bytes },
    ]);
    expect(toldOf(['', ''], seen)).toMatchObject([{ counts: { requests: 2, answers: 1 } }]);
  });

  it('in one interface, as mergecap writes two tcpdump files, counts each packet once', () => {
    const both = [send(1), send(2), ack(2), send(3), ack(3)].flatMap((bytes) => [
      { interface: 0, bytes },
      { interface: 0, bytes },
    ]);
    const reading = readingOf([''], both);
    expect(reading.conversations()).toMatchObject([{ counts: { requests: 3, answers: 2 } }]);
    expect([reading.feed.isTwoEnded, reading.feed.repeatedCount]).toEqual([true, 5]);
    // A packet that was lost on its way and retransmitted appears three times.
    const again = readingOf(
      [''],
      [...both, ...[send(4), send(4), send(4), ack(4), ack(4)].map((bytes) => ({ interface: 0, bytes }))],
    );
    expect(again.conversations()).toMatchObject([{ counts: { requests: 5, answers: 3, 'sent again': 1 } }]);
  });

  it('from one place is not mistaken for one from two because everything is retransmitted', () => {
    // Each request finds no receive WQE and is sent four times: every packet appears an even number of times.
    const rnr = answer(1, Opcode.RC_ACKNOWLEDGE, { headers: { AETH: { syndrome: 0x2e } } });
    const told = linesOf(send(1), rnr, send(1), rnr, send(1), rnr, send(1), rnr);
    expect(told.filter((words) => /sent again/.test(words))).toHaveLength(3);
    // All requests time out; the capture has no answer.
    const silent = linesOf(send(1), send(2), send(1), send(2));
    expect(silent.filter((words) => /sent again/.test(words))).toHaveLength(2);
  });

  it.each(names)('of one place is not taken for one of two: %s', (name) => {
    const reading = new CaptureReading(everything);
    reading.push(readFileSync(new URL(name, folder)));
    reading.end();
    expect(reading.feed.isTwoEnded).toBe(false);
  });

  it('of inbound packets joins those that arrived at either end', () => {
    const told = toldOf(ends, [into(1, send(1)), into(0, ack(1)), into(1, send(2))]);
    expect(told).toMatchObject([{ counts: { requests: 2, answers: 1 } }]);
  });

  it.each<[string, string[], number[]]>([
    ['other LIDs', ['hca0', 'hca1'], [3, 4]],
    ['the same LIDs and the same name', ['hca0', 'hca0'], [1, 2]],
  ])('shows both cables of a merged file: %s', (_what, names, lids) => {
    const second = lids[0] === 1 ? 9 : 0;
    const told = toldOf(names, [
      out(0, send(1)),
      out(1, send(1, lids, second)),
      into(0, ack(1)),
      into(1, ack(1, lids)),
      out(0, send(2)),
      out(1, send(2, lids, second)),
    ]);
    expect(told).toMatchObject([
      { counts: { requests: 2, answers: 1 } },
      { counts: { requests: 2, answers: 1 } },
    ]);
    expect(told.flatMap(({ utterances }) => utterances.filter(({ isTrouble }) => isTrouble))).toEqual([]);
  });

  it('shows two cables with bit-identical packets: a packet is sent once', () => {
    const seen = [0, 1].flatMap((number) => [out(number, send(1)), into(number, ack(1))]);
    expect(toldOf(['hca0', 'hca0'], seen)).toMatchObject([
      { counts: { requests: 1, answers: 1 } },
      { counts: { requests: 1, answers: 1 } },
    ]);
  });

  it('shows a packet that was damaged between two places, and facts that only the second place has', () => {
    const damaged = send(1);
    damaged[20]! ^= 1;
    const seen = [
      ...[out(0, send(1)), into(1, damaged)],
      ...[out(0, send(2)), { ...into(1, send(2)), comment: 'the receiver was full' }],
    ];
    const [told] = toldOf(ends, seen);
    expect(told!.counts).toEqual({ requests: 2, damaged: 1 });
    expect(told!.utterances.map(({ words }) => words.replace(/^.*?PSN \d+, 4 bytes/, 'SEND'))).toEqual([
      'SEND',
      'damaged: wrong ICRC; a receiver drops it',
      'SEND (the receiver was full, in frame 4)',
    ]);
  });
});
