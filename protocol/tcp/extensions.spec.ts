/** Features of a card's engine beyond those of a kernel's connection: SACK, timestamps, CUBIC, keepalive, and taking a connection over. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readCapture } from '../../analyser/capture/capture-reader.ts';
import { toHex, viewOf } from '../../base/index.ts';
import { Congestion } from './congestion.ts';
import { Cubic } from './cubic.ts';
import {
  carryOn,
  establishedStateOf,
  Flag,
  newSegmentFields,
  output,
  plainTcp,
  readSegmentHeader,
  segmentArrived,
  segmentHeaderBytes,
  sequenceAdd,
  type TcpExtensions,
  writeSegmentHeader,
} from './index.ts';
import { SequenceRanges } from './sequence-ranges.ts';
import { CardConnection, type Fate, linkDelayPs, open, segmentBytes } from './testing/card-link.ts';

const sack: TcpExtensions = { ...plainTcp, hasSack: true };
const stamped: TcpExtensions = { ...plainTcp, hasTimestamps: true };
const second = 1e12;

describe('the options of a segment', () => {
  /** Headers of TCP in a capture of siw, by frame. */
  const headers = readCapture(
    readFileSync(new URL('../../reference/wire/siw-read-response-loss-crc-ipv4.pcapng', import.meta.url)),
  ).frames.flatMap(({ bytes }) => {
    if (viewOf(bytes).getUint16(12) !== 0x0800) return [];
    const at = 14 + (bytes[14]! & 15) * 4;
    return [bytes.slice(at, at + (bytes[at + 12]! >> 4) * 4)];
  });

  it('RFC 9293, 3.1: are read from Linux’ segments, and written again byte by byte', () => {
    let withBlocks = 0;
    let withScale = 0;
    for (const header of headers) {
      const fields = newSegmentFields();
      const view = viewOf(header);
      expect(readSegmentHeader(view, 0, header.length, fields)).toBe(header.length);
      if (fields.sackBlocks > 0) withBlocks++;
      if (fields.windowScale >= 0) withScale++;
      const again = new Uint8Array(header.length);
      expect(segmentHeaderBytes(fields)).toBe(header.length);
      writeSegmentHeader(
        viewOf(again),
        0,
        { localPort: view.getUint16(0), remotePort: view.getUint16(2) },
        fields,
      );
      // The checksum is the caller's.
      again.set(header.subarray(16, 18), 16);
      expect(toHex(again)).toBe(toHex(header));
    }
    expect([withBlocks > 0, withScale]).toEqual([true, 2]);
  });

  it.each([
    [
      'SACK permitted without timestamps',
      { maximumSegment: 1460, windowScale: 7, isSackPermitted: true },
      '020405b40101040201030307',
    ],
    ['no scale', { maximumSegment: 1460 }, '020405b401010101'],
    ['timestamps alone', { timestamp: 1, timestampEcho: 2 }, '0101080a0000000100000002'],
    [
      'a block',
      { sackBlocks: 1, sackEdges: Uint32Array.of(5, 9, 0, 0, 0, 0, 0, 0) },
      '0101050a0000000500000009',
    ],
  ])('RFC 2018, RFC 7323: are padded as Linux pads them: %s', (_what, changes, hex) => {
    const fields = { ...newSegmentFields(), ...changes };
    const bytes = new Uint8Array(segmentHeaderBytes(fields));
    writeSegmentHeader(viewOf(bytes), 0, { localPort: 1, remotePort: 2 }, fields);
    expect(toHex(bytes.subarray(20))).toBe(hex);
  });
});

describe('received ranges', () => {
  it('RFC 2018, 4: are reported as in its example, in which every other segment is lost', () => {
    const ranges = new SequenceRanges(8);
    const edges = new Uint32Array(8);
    const blocks = (): number[] => [...edges.subarray(0, 2 * ranges.write(edges, 3))];
    const reports = [6000, 7000, 8000].map((start) => {
      ranges.add(start, start + 500);
      return blocks();
    });
    expect(reports).toEqual([
      [6000, 6500],
      [7000, 7500, 6000, 6500],
      [8000, 8500, 7000, 7500, 6000, 6500],
    ]);
    // The fourth segment arrives, then the second one: everything up to 7500 is acknowledged.
    ranges.add(6500, 7000);
    expect(blocks()).toEqual([6000, 7500, 8000, 8500]);
    ranges.removeBefore(7500);
    expect(blocks()).toEqual([8000, 8500]);
  });

  it('RFC 2018, 3: are those of a set of numbers, across the wrap too', () => {
    const adds = fc.array(fc.record({ start: fc.nat(60), length: fc.integer({ min: 1, max: 12 }) }), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(adds, fc.constantFrom(0, 0xffff_ffe0), fc.nat(70), (all, base, cut) => {
        const ranges = new SequenceRanges(64);
        const known = new Set<number>();
        for (const { start, length } of all) {
          const numbers = Array.from({ length }, (_, index) => start + index);
          const isNew = numbers.some((number) => !known.has(number));
          expect(ranges.add(sequenceAdd(base, start), sequenceAdd(base, start + length))).toBe(isNew);
          for (const number of numbers) known.add(number);
        }
        expect(ranges.bytes).toBe(known.size);
        ranges.removeBefore(sequenceAdd(base, cut));
        for (let number = 0; number < 75; number++)
          expect(ranges.covers(sequenceAdd(base, number), sequenceAdd(base, number + 1))).toBe(
            known.has(number) && number >= cut,
          );
      }),
    );
  });

  it('forget the range that grew first when there are too many', () => {
    const ranges = new SequenceRanges(2);
    for (const start of [10, 20, 30]) ranges.add(start, start + 5);
    expect([ranges.count, ranges.covers(10, 15), ranges.covers(30, 35)]).toEqual([2, false, true]);
  });
});

/** Sends `count` full segments from client to server, and runs for a time. */
function transfer(
  count: number,
  extensions: TcpExtensions,
  fate: (ordinal: number) => Fate,
  untilPs = second,
) {
  const scene = open([], extensions, fate);
  const { link, client } = scene;
  for (let at = 0; at < count; at++) client.queue(at * client.segmentBytes, client.segmentBytes);
  output(client.engine, client);
  link.run(link.nowPs + untilPs);
  return scene;
}

const dropping =
  (...ordinals: number[]) =>
  (ordinal: number): Fate =>
    ordinals.includes(ordinal) ? 'dropped' : 'carried';

describe('SACK', () => {
  it('RFC 6675, 5: retransmits each lost segment once, in one recovery, without a time-out', () => {
    // Segments 1 and 2 open the connection; of the ten that follow, four are lost.
    const { link, client, server } = transfer(30, sack, dropping(4, 6, 8, 10));
    expect(server.received.positions).toHaveLength(30);
    expect(client.counts).toMatchObject({
      retransmissions: 4,
      fastRetransmissions: 1,
      retransmissionTimeouts: 0,
    });
    const sequences = link.sent.filter(({ length }) => length > 0).map(({ sequence }) => sequence);
    expect(sequences.length - new Set(sequences).size).toBe(4);
  });

  it('RFC 6675, 5: halves the window once for all losses of a flight', () => {
    const { client } = transfer(30, sack, dropping(4, 6, 8, 10));
    // The first segment is acknowledged, which opens the window to 11 segments in flight.
    expect(client.congestion.thresholdBytes).toBe(5.5 * segmentBytes);
  });

  it('RFC 2018, 4: reports what arrived after a gap, the newest range first', () => {
    const { link } = transfer(10, sack, dropping(4, 6));
    const reports = link.sent.filter(({ segment }) => segment.sackBlocks > 0).map(({ segment }) => segment);
    const first = 0xffff_fff1 + segmentBytes - 2 ** 32;
    expect(reports[0]).toMatchObject({ acknowledgement: first, sackBlocks: 1 });
    expect([...reports[0]!.sackEdges.subarray(0, 2)]).toEqual([
      first + segmentBytes,
      first + 2 * segmentBytes,
    ]);
    expect(reports[1]!.sackEdges[0]).toBe(first + 3 * segmentBytes);
  });

  it('RFC 2018, 3: is not used unless both sides permit it', () => {
    const { link, client } = transfer(10, plainTcp, dropping(4, 6), 10 * second);
    expect(link.sent.some(({ segment }) => segment.sackBlocks > 0 || segment.isSackPermitted)).toBe(false);
    expect(client.hasSack).toBe(false);
  });

  it('RFC 2018, 8: forgets reports at a time-out, since the peer may have discarded what it reported', () => {
    const { client, server } = transfer(4, sack, dropping(3, 7, 8, 9), 10 * second);
    expect(server.received.positions).toHaveLength(4);
    expect(client.counts.retransmissionTimeouts).toBeGreaterThan(0);
    expect(client.scoreboard.count).toBe(0);
  });
});

describe('timestamps', () => {
  it('RFC 7323, 3.2: shorten the segments by 12 bytes, and leave the maximum segment size as it is', () => {
    const { link, client, server } = transfer(2, stamped, () => 'carried');
    expect([client.segmentBytes, server.segmentBytes]).toEqual([1448, 1448]);
    expect(link.sent[0]!.segment.maximumSegment).toBe(1460);
    expect(link.sent.slice(2).every(({ segment }) => segment.timestamp >= 0)).toBe(true);
  });

  it('RFC 7323, 3.2: count milliseconds, and echo those of the peer', () => {
    const { link, client, server } = transfer(1, stamped, () => 'carried');
    link.run(link.nowPs + 5 * second);
    const startMs = Math.floor(link.nowPs / 1e9);
    client.queue(0, 100);
    output(client.engine, client);
    link.run(link.nowPs + second);
    const last = link.sent.filter(({ length }) => length === 100).at(-1)!;
    expect(last.segment.timestamp).toBe(startMs);
    expect(server.recentTimestamp).toBe(startMs);
    expect(link.sent.at(-1)!.segment.timestampEcho).toBe(startMs);
  });

  it('RFC 7323, 5.3: have an older segment answered and dropped, and one without them dropped', () => {
    const { link, server } = transfer(1, stamped, () => 'carried');
    link.run(link.nowPs + 5 * second);
    const arrive = (timestamp: number): number => {
      const fields = {
        ...newSegmentFields(),
        ...{
          sequence: server.received.next,
          acknowledgement: server.sendMax,
          flags: Flag.ACK,
          window: 1000,
          timestamp,
        },
      };
      const sent = link.sent.length;
      segmentArrived(server.engine, server, fields, { sequence: 0, length: 10, isSent: true, position: 0 });
      return link.sent.length - sent;
    };
    server.recentTimestamp = 0xffff_fff0;
    expect([arrive(0xffff_ffef), server.received.positions.length]).toEqual([1, 1]);
    expect([arrive(-1), server.received.positions.length]).toEqual([0, 1]);
    // The sequence number is newer, across the wrap.
    arrive(5);
    expect([server.received.positions.length, server.recentTimestamp]).toEqual([2, 5]);
  });

  it('RFC 7323, 4: go on when the simulated time begins a new epoch', () => {
    const { client } = transfer(1, stamped, () => 'carried');
    const before = client.timestampNow;
    client.rebase(2.5e9);
    expect(client.timestampNow).toBe(before + 2);
    client.rebase(0.5e9);
    expect(client.timestampNow).toBe(before + 3);
  });

  it('RFC 7323, 4.1: measure the round trip of what was retransmitted', () => {
    const lost = dropping(3);
    const plain = transfer(1, plainTcp, lost, 10 * second).client.roundTrip.smoothedPs;
    const measured = transfer(1, stamped, lost, 10 * second).client.roundTrip.smoothedPs;
    // Without timestamps only the handshake is measured, in microseconds; with them the clock's tick counts.
    expect(measured).toBeGreaterThan(plain);
  });
});

describe('a segment of a stranger', () => {
  const arrive = (connection: CardConnection, changes: object): void =>
    segmentArrived(
      connection.engine,
      connection,
      {
        ...newSegmentFields(),
        ...{
          sequence: connection.received.next,
          acknowledgement: connection.sendMax,
          flags: Flag.ACK,
          window: 100,
        },
        ...changes,
      },
      { sequence: 0, length: 0, isSent: true, position: 0 },
    );

  it('RFC 5961, 3.2: resets the connection with the next number only; another one in the window is challenged', () => {
    const { link, server } = open();
    const sent = link.sent.length;
    arrive(server, { flags: Flag.RST, sequence: sequenceAdd(server.received.next, 5) });
    expect([server.state, link.sent.length - sent]).toEqual(['ESTABLISHED', 1]);
    arrive(server, { flags: Flag.RST });
    expect([server.state, server.error]).toEqual(['CLOSED', 'ECONNRESET']);
  });

  it('RFC 5961, 3.2: resets a half-closed connection with the number after the FIN only', () => {
    const { link, client, server } = open();
    client.isFinQueued = true;
    client.state = 'FIN_WAIT_1';
    output(client.engine, client);
    link.run(link.nowPs + 4 * linkDelayPs);
    arrive(server, { flags: Flag.RST, sequence: sequenceAdd(server.received.next, 9) });
    expect(server.state).toBe('CLOSE_WAIT');
    arrive(server, { flags: Flag.RST, sequence: sequenceAdd(server.received.next, 1) });
    expect(server.state).toBe('CLOSED');
  });

  it('RFC 5961, 4.2: is challenged if it has SYN', () => {
    const { link, server } = open();
    const sent = link.sent.length;
    arrive(server, { flags: Flag.SYN });
    expect([server.state, link.sent.length - sent]).toEqual(['ESTABLISHED', 1]);
  });

  it.each([
    ['bytes that were never sent', 1, 1],
    ['bytes of long ago', -1_000_000_000, 1],
    ['bytes of the last window', -50, 0],
  ])('RFC 5961, 5.2: is challenged if it acknowledges %s', (_what, distance, challenges) => {
    const { link, server } = open();
    const sent = link.sent.length;
    arrive(server, { acknowledgement: sequenceAdd(server.sendMax, distance) });
    expect(link.sent.length - sent).toBe(challenges);
  });
});

describe('keepalive', () => {
  const keepalive = { idleUs: 1_000_000, intervalUs: 100_000, probes: 3 };
  const alive: TcpExtensions = { ...plainTcp, keepalive };

  it('RFC 9293, 3.8.4: probes an idle connection with a number that was acknowledged, which the peer answers', () => {
    const { link, client, server } = open([], alive);
    link.run(link.nowPs + 1.5 * second);
    expect(link.sent[2]).toMatchObject({ length: 0, sequence: sequenceAdd(client.sendMax, -1) });
    expect([client.state, server.state]).toEqual(['ESTABLISHED', 'ESTABLISHED']);
  });

  it('is off unless its owner wants it', () => {
    const { link } = open();
    link.run(link.nowPs + 10 * second);
    expect(link.sent).toHaveLength(2);
  });

  it('RFC 9293, 3.8.4: ends a connection whose peer answers none of the probes', () => {
    const { link, client } = open([], alive, (ordinal) => (ordinal > 2 ? 'dropped' : 'carried'));
    const startPs = link.nowPs;
    link.run(startPs + 1.25 * second);
    expect(client.state).toBe('ESTABLISHED');
    link.run(startPs + 1.35 * second);
    expect([client.state, client.error]).toEqual(['CLOSED', 'ETIMEDOUT']);
  });
});

describe('CUBIC', () => {
  /** RFC 9438, 4.2 in segments and seconds. */
  const windowAt = (seconds: number, lossWindow: number): number => {
    const k = Math.cbrt((lossWindow * 0.3) / 0.4);
    return 0.4 * (seconds - k) ** 3 + lossWindow;
  };

  it('RFC 9438, 4.2: follows its curve after a loss', () => {
    const congestion = new Congestion(1000, 10, new Cubic(1000));
    congestion.windowBytes = 100_000;
    congestion.lost(100_000, 1000, 3);
    expect(congestion.thresholdBytes).toBe(70_000);
    congestion.isRecovering = false;
    congestion.windowBytes = congestion.thresholdBytes;
    const roundTripPs = 0.1e12;
    // One acknowledgement a segment, a window a round trip.
    for (let round = 0; round < 60; round++) {
      const segments = Math.floor(congestion.windowBytes / 1000);
      for (let each = 0; each < segments; each++)
        congestion.acknowledged(
          1000,
          2000,
          round * roundTripPs + (each / segments) * roundTripPs,
          roundTripPs,
        );
      if (round % 10 !== 9) continue;
      const wanted = windowAt((round + 1) * 0.1 + 0.1, 100) * 1000;
      expect(Math.abs(congestion.windowBytes - wanted) / wanted).toBeLessThan(0.03);
    }
  });

  it('RFC 9438, 4.3: grows as NewReno does where that is faster', () => {
    const congestion = new Congestion(1000, 10, new Cubic(1000));
    congestion.windowBytes = 10_000;
    congestion.lost(10_000, 1000, 3);
    congestion.isRecovering = false;
    congestion.windowBytes = congestion.thresholdBytes;
    // With round trips of 1 ms the curve is flat: α = 3 · 0.3 / 1.7 = 0.53 segments a round trip up to 10 segments, one beyond it.
    let rounds = 0;
    for (; congestion.windowBytes < 10_000; rounds++) {
      const segments = congestion.windowBytes / 1000;
      for (let each = 0; each < segments; each++) congestion.acknowledged(1000, 2000, rounds * 1e9, 1e9);
    }
    expect(rounds).toBeGreaterThan(4);
    expect(rounds).toBeLessThan(8);
  });

  it('RFC 9438, 4.7: leaves room to others when its window does not reach the last one', () => {
    const growth = new Cubic(1000);
    growth.afterLoss(0, 100_000);
    // W_max = 80 · 0.85 = 68 segments, and the window begins at 56.
    growth.afterLoss(0, 80_000);
    const k = Math.cbrt((68 - 56) / 0.4);
    growth.grow(56_000, 1000, 0, 0);
    const wanted = 0.4 * (1 - k) ** 3 + 68;
    expect(growth.grow(56_000, 56_000, 1e12, 0)).toBeCloseTo(wanted * 1000, -2);
  });

  it('RFC 9438, 4.8: begins at its own window after a time-out', () => {
    const congestion = new Congestion(1000, 10, new Cubic(1000));
    congestion.windowBytes = 100_000;
    congestion.timedOut(100_000, 0, true);
    expect([congestion.windowBytes, congestion.thresholdBytes]).toEqual([1000, 70_000]);
  });
});

describe('a connection that is handed over', () => {
  /** Hands the client's end, with its unacknowledged data, over to a card. */
  function handOver(extensions: TcpExtensions, unacknowledged: number) {
    const { link, client, server } = open([], extensions);
    for (let at = 0; at < 3; at++) client.queue(at * client.segmentBytes, client.segmentBytes);
    output(client.engine, client);
    if (unacknowledged === 0) link.run(link.nowPs + second);
    const state = establishedStateOf(client)!;
    const card: CardConnection = new CardConnection(link, () => server, 0, false, {
      ...extensions,
      hasSack: true,
    });
    carryOn(card, state, client.sendQueue.splice(0));
    server.turnTo(() => card);
    client.state = 'CLOSED';
    client.retransmitPs = Number.POSITIVE_INFINITY;
    return { link, card, server, state };
  }

  it.each([plainTcp, { ...stamped, hasSack: true }])('goes on in both directions: %o', (extensions) => {
    const { link, card, server, state } = handOver(extensions, 0);
    expect(state).toMatchObject({
      sendNext: card.sendMax,
      sendScale: 7,
      receiveScale: 7,
      hasSack: extensions.hasSack,
    });
    expect(card.hasSack).toBe(extensions.hasSack);
    const { segmentBytes: bytes } = card;
    for (let at = 3; at < 20; at++) card.queue(at * bytes, bytes);
    output(card.engine, card);
    server.queue(0, 700);
    output(server.engine, server);
    link.run(link.nowPs + second);
    expect(server.received.positions).toEqual(Array.from({ length: 20 }, (_, at) => at * bytes));
    expect(card.received.positions).toEqual([0]);
    expect(card.counts.retransmissions + server.counts.retransmissions).toBe(0);
  });

  it('retransmits what its first owner has sent', () => {
    const { link, card, server } = handOver(plainTcp, 3);
    expect(card.sendQueue).toHaveLength(3);
    link.run(link.nowPs + 10 * second);
    expect(server.received.positions).toHaveLength(3);
    expect(card.sendUnacknowledged).toBe(card.sendMax);
  });

  it('is not handed over with bytes that were not sent, nor after a FIN', () => {
    const { client, server } = open();
    client.queue(0, 10);
    expect(establishedStateOf(client)).toBeUndefined();
    server.isFinQueued = true;
    expect(establishedStateOf(server)).toBeUndefined();
  });
});

describe('after a time-out', () => {
  it('RFC 6675, 5.1: segments that the peer has reported again stay where they are, also next to one that is sent', () => {
    // The first two segments open the connection; all later ones are lost.
    const { link, client } = open([], sack, (ordinal) => (ordinal > 2 ? 'dropped' : 'carried'));
    const first = client.sendUnacknowledged;
    const start = (segment: number): number => sequenceAdd(first, segment * segmentBytes);
    for (let at = 0; at < 8; at++) client.queue(at * segmentBytes, segmentBytes);
    output(client.engine, client);
    link.run(1.5 * second);
    expect(client.counts.retransmissionTimeouts).toBe(1);
    const before = link.sent.length;
    const report = {
      ...{ flags: Flag.ACK, sequence: client.received.next, acknowledgement: start(4), window: 0xff },
      ...{ sackBlocks: 1, sackEdges: Uint32Array.of(start(5), start(6), 0, 0, 0, 0, 0, 0) },
    };
    const none = { sequence: 0, length: 0, isSent: false, position: 0 };
    segmentArrived(client.engine, client, { ...newSegmentFields(), ...report }, none);
    // The window is one segment after a time-out, and two after an acknowledgement (RFC 5681, 3.1); the reported one takes the second.
    expect(link.sent.slice(before).map(({ sequence }) => sequence)).toEqual([start(4)]);
  });
});

describe('a connection with all extensions', () => {
  it('delivers all bytes once and in order, whatever the link does', () => {
    const fates = fc.array(
      fc.oneof(
        { weight: 6, arbitrary: fc.constant('carried' as const) },
        { weight: 2, arbitrary: fc.constant('dropped' as const) },
        { weight: 1, arbitrary: fc.constantFrom('doubled' as const, 'late' as const) },
      ),
      { minLength: 8, maxLength: 60 },
    );
    const drawn = fc.record({
      fates,
      hasSack: fc.boolean(),
      hasTimestamps: fc.boolean(),
      congestion: fc.constantFrom('newReno' as const, 'cubic' as const),
      count: fc.integer({ min: 1, max: 60 }),
    });
    fc.assert(
      fc.property(drawn, ({ fates: all, count, ...rest }) => {
        const fate = (ordinal: number): Fate => (ordinal <= 2 ? 'carried' : (all[ordinal - 3] ?? 'carried'));
        const { client, server } = transfer(count, { ...rest, keepalive: undefined }, fate, 600 * second);
        const { segmentBytes: bytes } = client;
        expect(server.received.positions).toEqual(Array.from({ length: count }, (_, at) => at * bytes));
        expect([client.sendQueue.length, client.sendUnacknowledged]).toEqual([0, client.sendMax]);
      }),
      { numRuns: 200 },
    );
  });
});

describe('segments of a plain connection', () => {
  it('have the options of a SYN only, and no others', () => {
    const { link } = transfer(10, plainTcp, () => 'carried');
    const lengths = link.sent.map(({ segment }) => segmentHeaderBytes(segment));
    expect([lengths[0], new Set(lengths.slice(1))]).toEqual([28, new Set([20])]);
  });
});
