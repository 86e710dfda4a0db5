/** TCP without a kernel: both ends are engines of a card, which count processed segments and have no core, route or packet buffer. */
import { describe, expect, it } from 'vitest';
import { Flag, newSegmentFields, output, segmentArrived, sequenceAdd } from './index.ts';
import { limits, linkDelayPs, open, segmentBytes, usToPs } from './testing/card-link.ts';

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

  it('starts the time-out again when an ACK comes for a part of the data (RFC 6298, 5.3)', () => {
    // The third payload, the last one, is lost; the second one is acknowledged at once (RFC 9293, 3.8.6.3).
    const { link, client, server } = open([5]);
    for (let at = 0; at < 3; at++) client.queue(at * segmentBytes, segmentBytes);
    const startPs = link.nowPs;
    output(client.engine, client);
    link.run(1e13);
    const instants = link.sent.filter(({ length }) => length > 0).map(({ atPs }) => atPs - startPs);
    // A round trip is far below the least time-out (RFC 6298, 2.4).
    expect(instants).toEqual([0, 0, 0, 2 * linkDelayPs + limits.retransmitMinUs * usToPs]);
    expect(server.received.positions).toEqual([0, segmentBytes, 2 * segmentBytes]);
  });

  it('probes a window that is closed, at twice the interval each time, until it opens (RFC 9293, 3.8.6.1)', () => {
    const { link, client, server } = open();
    // The receiver reads nothing: its announced window is used up, and it announces no more.
    server.received.readableBytes = server.receiveLimitBytes;
    for (let at = 0; at < 60; at++) client.queue(at * segmentBytes, segmentBytes);
    output(client.engine, client);
    link.run(link.nowPs + 0.1e12);
    const { length } = link.sent;
    // 44 segments leave 1295 of the 65535 bytes that the SYN granted: ten units of the scaled window.
    expect([client.sendWindow, client.flightBytes]).toEqual([10 * 128, 0]);
    const startPs = link.nowPs;
    link.run(startPs + 4e12);
    const probes = link.sent
      .slice(length)
      .filter(({ sequence }) => sequence === sequenceAdd(client.sendMax, -1));
    const gaps = probes.map(({ atPs }, index) =>
      Math.round((atPs - (probes[index - 1]?.atPs ?? startPs)) / 1e11),
    );
    expect(gaps.slice(1)).toEqual([4, 8, 16]);
    server.received.readableBytes = 0;
    link.run(link.nowPs + 10e12);
    expect(server.received.positions).toHaveLength(60);
  });

  it('takes the window of a segment that acknowledges more, though its bytes are older (Linux, tcp_may_update_window)', () => {
    const { client } = open();
    for (let at = 0; at < 4; at++) client.queue(at * segmentBytes, segmentBytes);
    output(client.engine, client);
    const [first, next] = [client.sendUnacknowledged, client.received.next];
    const arrives = (length: number, fields: { sequence: number; acknowledgement: number; window: number }) =>
      segmentArrived(
        client.engine,
        client,
        { ...newSegmentFields(), flags: Flag.ACK, ...fields },
        { sequence: fields.sequence, length, isSent: false, position: 0 },
      );
    // After a gap of two segments; then the first of them again, which was sent later. The scale is 2^7.
    arrives(0, { sequence: sequenceAdd(next, 2 * segmentBytes), acknowledgement: first, window: 100 });
    arrives(segmentBytes, { sequence: next, acknowledgement: sequenceAdd(first, segmentBytes), window: 89 });
    expect(client.sendUnacknowledged).toBe(sequenceAdd(first, segmentBytes));
    expect(client.sendWindow).toBe(89 * 128);
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
