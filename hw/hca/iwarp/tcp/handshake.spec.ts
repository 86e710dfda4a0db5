/** How connections of two cards begin and end, and what their frames are. Expected values are of RFC 9293 unless a title names another source. */
import { describe, expect, it } from 'vitest';
import { CloseTcp, TcpState } from '../../../../abi/tcp-connection.ts';
import { readFrame } from '../testing/segment-reader.ts';
import { ipv4Of, ipv6Of, macBytesOf, TcpBench, type TcpNode } from '../testing/tcp-bench.ts';

const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + seed * 31 + (index >> 8)) & 0xff);
const framesOf = ({ sent }: TcpNode) => sent.map(({ bytes }) => readFrame(bytes));
const flagsOf = (node: TcpNode): string[] => framesOf(node).map(({ flags }) => flags);
const secondPs = 1e12;
/** Three cycles of 427 MHz: an event waits for the next edge, the frame for the one after, and edges are whole picoseconds. */
const edgesPs = 3 * 2342;

/** Intervals between the frames that a node has sent, in seconds; each may be longer by the edges that it waits for. */
const secondsBetween = ({ sent }: TcpNode): number[] =>
  sent.slice(1).map(({ atPs }, index) => {
    const ps = atPs - sent[index]!.atPs;
    expect(ps % secondPs).toBeLessThan(edgesPs);
    return Math.floor(ps / secondPs);
  });

describe('a connection between two cards', () => {
  it.each([
    ['IPv4', {}],
    ['IPv6', { isIpv6: 1 }],
    ['IPv6 with all extensions', { isIpv6: 1, offersSack: 1, offersTimestamps: 1, congestion: 1 as const }],
    ['IPv4 with a tag of VLAN 5, priority 3', { hasVlan: 1, vlanTag: 0x6005 }],
  ])('is established and reported at both ends, and carries bytes both ways: %s', async (_, changes) => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected(changes);
    expect(bench.a.eventsOf(client)).toEqual(['ESTABLISHED']);
    expect(bench.b.eventsOf(server)).toEqual(['ACCEPTED']);
    expect((await bench.send(bench.a, client, bytesOf(1024))).status).toBe(0);
    expect(await bench.receiveAll(bench.b, server, 1024)).toEqual(bytesOf(1024));
    await bench.send(bench.b, server, bytesOf(500, 2));
    expect(await bench.receiveAll(bench.a, client, 500)).toEqual(bytesOf(500, 2));
    const frames = [...framesOf(bench.a), ...framesOf(bench.b)];
    expect(frames.flatMap(({ wrong }) => wrong)).toEqual([]);
    expect(new Set(frames.map(({ tag }) => tag))).toEqual(
      new Set(['hasVlan' in changes ? 0x6005 : undefined]),
    );
    expect(bench.imbalances()).toEqual([]);
  });

  it('sends SYN with the options of its context, between the addresses that it names', async () => {
    const bench = await TcpBench.open();
    const changes = { offersSack: 1, offersTimestamps: 1, trafficClass: 0x68, hopLimit: 33 };
    await bench.connected(changes);
    const [syn, ack] = framesOf(bench.a);
    const [answer] = framesOf(bench.b);
    expect(syn).toMatchObject({
      destination: '00:02:c9:12:34:02',
      source: '00:02:c9:12:34:01',
      ...{ from: '0a:00:00:01', to: '0a:00:00:02', hopLimit: 33, trafficClass: 0x68 },
      ...{ sourcePort: 0x8000, destinationPort: 7, flags: 'S', acknowledgement: 0, window: 4096 },
    });
    // Maximum segment size of 1440, SACK permitted, timestamps, scale of 3 (RFC 9293, 3.2; RFC 2018, 2; RFC 7323, 2 and 3).
    expect(syn!.options.map(([kind, ...value]) => [kind, value.length])).toEqual([
      [2, 2],
      [4, 0],
      [8, 8],
      [3, 1],
    ]);
    expect(syn!.options[0]).toEqual([2, 1440 >> 8, 1440 & 0xff]);
    expect(syn!.options[3]).toEqual([3, 3]);
    expect(answer).toMatchObject({ flags: 'SA', acknowledgement: syn!.sequence + 1 });
    expect(ack).toMatchObject({ flags: 'A', acknowledgement: answer!.sequence + 1 });
  });

  it('has a context with the numbers of this moment', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected({ isIpv6: 1 });
    const first = await bench.query(bench.a, client);
    // RFC 6298, 2.2: the variation begins as half of the round-trip time.
    expect(first.smoothedRoundTripNs).toBeGreaterThan(1000);
    expect(Math.abs(first.smoothedRoundTripNs - 2 * first.roundTripVariationNs)).toBeLessThanOrEqual(2);
    await bench.send(bench.a, client, bytesOf(300));
    await bench.run(100_000);
    const [syn] = framesOf(bench.a);
    const [answer] = framesOf(bench.b);
    const here = await bench.query(bench.a, client);
    const there = await bench.query(bench.b, server);
    expect(here).toMatchObject({
      ...{ state: TcpState.ESTABLISHED, isIpv6: 1, localPort: 0x8000, remotePort: 7, qpn: 0, cookie: 0x1111 },
      ...{ initialSendSequence: syn!.sequence, initialReceiveSequence: answer!.sequence },
      ...{ sendUnacknowledged: syn!.sequence + 301, sendNext: syn!.sequence + 301 },
      ...{ receiveNext: answer!.sequence + 1, bytesSent: 300n, bytesReceived: 0n, retransmissions: 0 },
      ...{ localAddress: ipv6Of(1), remoteAddress: ipv6Of(2), remoteMac: macBytesOf(2), sendScale: 3 },
    });
    expect(there).toMatchObject({
      ...{ state: TcpState.ESTABLISHED, isIpv6: 1, localPort: 7, remotePort: 0x8000, cookie: 0x2222 },
      ...{ receiveNext: syn!.sequence + 301, bytesSent: 0n, bytesReceived: 300n },
      ...{ localAddress: ipv6Of(2), remoteAddress: ipv6Of(1), remoteMac: macBytesOf(1) },
    });
  });

  it('reports bytes once until software has read all of them', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    for (let count = 0; count < 3; count++) await bench.send(bench.a, client, bytesOf(1000, count));
    await bench.run(1000);
    expect(bench.b.eventsOf(server)).toEqual(['ACCEPTED', 'READABLE']);
    expect(await bench.receiveAll(bench.b, server, 3000)).toEqual(
      Uint8Array.of(...bytesOf(1000, 0), ...bytesOf(1000, 1), ...bytesOf(1000, 2)),
    );
    expect(await bench.receive(bench.b, server)).toEqual(new Uint8Array(0));
    await bench.send(bench.a, client, bytesOf(1));
    await bench.run(1000);
    expect(bench.b.eventsOf(server)).toEqual(['ACCEPTED', 'READABLE', 'READABLE']);
  });

  it('holds the peer back while software reads nothing, and loses none of its bytes', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    for (let count = 0; count < 8; count++)
      expect((await bench.send(bench.a, client, bytesOf(1024, count))).status).toBe(0);
    await bench.run(100_000);
    // hca.iwarp.streamBytes.
    expect((await bench.query(bench.b, server)).bytesReceived).toBe(4096n);
    const all = await bench.receiveAll(bench.b, server, 8192);
    expect(all).toEqual(
      Uint8Array.from(Array.from({ length: 8 }, (__, at) => [...bytesOf(1024, at)]).flat()),
    );
  });
});

describe('the end of a connection', () => {
  it('is in agreement after FIN and ACK of both: the active end waits in TIME_WAIT for 60 s, the number even when it is released', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    await bench.close(bench.a, client);
    await bench.until(() => bench.b.eventsOf(server).includes('PEER_CLOSED'));
    await bench.run(50);
    expect((await bench.query(bench.a, client)).state).toBe(TcpState.FIN_WAIT_2);
    expect((await bench.query(bench.b, server)).state).toBe(TcpState.CLOSE_WAIT);
    await bench.close(bench.b, server);
    await bench.until(() => bench.a.eventsOf(client).includes('CLOSED'));
    await bench.until(() => bench.b.eventsOf(server).includes('CLOSED'));
    expect(bench.b.eventsOf(server)).toEqual(['ACCEPTED', 'PEER_CLOSED', 'CLOSED']);
    expect(bench.a.eventsOf(client)).toEqual(['ESTABLISHED', 'PEER_CLOSED', 'CLOSED']);
    expect(flagsOf(bench.a)).toEqual(['S', 'A', 'FA', 'A']);
    expect(flagsOf(bench.b)).toEqual(['SA', 'A', 'FA']);
    expect((await bench.query(bench.a, client)).state).toBe(TcpState.TIME_WAIT);
    expect((await bench.query(bench.b, server)).state).toBe(TcpState.CLOSED);
    const waitPs = bench.a.sent.at(-1)!.atPs;
    expect((await bench.close(bench.a, client, CloseTcp.RELEASE)).status).toBe(0);
    expect((await bench.close(bench.b, server, CloseTcp.RELEASE)).status).toBe(0);
    // The listener.
    expect(bench.b.blocks.tcpEngine.inspect()['connections']).toBe(1);
    await bench.run(60_000_000 - Math.ceil((bench.nowPs - waitPs) / 1e6) - 1);
    expect(bench.a.blocks.tcpEngine.inspect()['connections']).toBe(1);
    await bench.run(2);
    expect(bench.a.blocks.tcpEngine.inspect()['connections']).toBe(0);
    expect(bench.imbalances()).toEqual([]);
  });

  it('Linux 6.1, tcp_fin_timeout: comes 60 s after the peer has acknowledged the FIN, if that sends none, whatever else it sends', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    await bench.close(bench.a, client);
    await bench.until(() => bench.b.eventsOf(server).includes('PEER_CLOSED'));
    await bench.run(50_000_000);
    await bench.send(bench.b, server, bytesOf(100));
    expect(await bench.receiveAll(bench.a, client, 100)).toEqual(bytesOf(100));
    const frames = bench.a.sent.length;
    await bench.run(9_900_000);
    expect((await bench.query(bench.a, client)).state).toBe(TcpState.FIN_WAIT_2);
    await bench.run(200_000);
    expect(bench.a.eventsOf(client)).toEqual(['ESTABLISHED', 'READABLE', 'CLOSED']);
    expect((await bench.query(bench.a, client)).state).toBe(TcpState.CLOSED);
    // Nothing tells the peer but the answer to what it sends next (RFC 9293, 3.5.2).
    await bench.send(bench.b, server, bytesOf(10));
    await bench.until(() => bench.b.eventsOf(server).includes('RESET'));
    expect(
      flagsOf(bench.a)
        .slice(frames)
        .filter((flags) => flags !== 'A'),
    ).toEqual(['R']);
    expect((await bench.close(bench.a, client, CloseTcp.RELEASE)).status).toBe(0);
    expect(bench.a.blocks.tcpEngine.inspect()['connections']).toBe(0);
  });

  it('delivers everything sent before FIN, and takes bytes of the peer after it', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    await bench.send(bench.a, client, bytesOf(1000));
    await bench.close(bench.a, client);
    expect(await bench.receiveAll(bench.b, server, 1000)).toEqual(bytesOf(1000));
    await bench.send(bench.b, server, bytesOf(700, 3));
    expect(await bench.receiveAll(bench.a, client, 700)).toEqual(bytesOf(700, 3));
  });

  it('is a RST when software aborts: both ends report it, and the numbers are free after RELEASE', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    await bench.close(bench.a, client, CloseTcp.ABORT);
    await bench.until(() => bench.b.eventsOf(server).includes('RESET'));
    expect(bench.a.eventsOf(client)).toEqual(['ESTABLISHED', 'RESET']);
    expect(flagsOf(bench.a).at(-1)).toBe('RA');
    for (const [node, number] of [
      [bench.a, client],
      [bench.b, server],
    ] as const)
      expect((await bench.close(node, number, CloseTcp.RELEASE)).status).toBe(0);
    expect(bench.a.blocks.tcpEngine.inspect()['connections']).toBe(0);
  });

  it('comes at once when no program listens at the port: the card answers by RST (3.5.2)', async () => {
    const bench = await TcpBench.open();
    const { out } = await bench.connect(bench.a, { remotePort: 9 });
    await bench.until(() => bench.a.eventsOf(out).includes('RESET'));
    const [syn] = framesOf(bench.a);
    expect(framesOf(bench.b)).toMatchObject([
      { flags: 'RA', sequence: 0, acknowledgement: syn!.sequence + 1, sourcePort: 9, wrong: [] },
    ]);
  });

  it('is a time-out when no answer comes: SYNs after 1 s, 2 s, 4 s (RFC 6298, 2.1 and 5.5)', async () => {
    const bench = await TcpBench.open();
    bench.b.address.isActive = false;
    const { out } = await bench.connect(bench.a, { synRetries: 3 });
    await bench.until(() => bench.a.eventsOf(out).includes('TIMED_OUT'));
    expect(flagsOf(bench.a)).toEqual(['S', 'S', 'S', 'S']);
    expect(secondsBetween(bench.a)).toEqual([1, 2, 4]);
    expect(Math.floor((bench.nowPs - bench.a.sent.at(-1)!.atPs) / secondPs)).toBe(8);
    expect(bench.b.blocks.tcpEngine.counters.portClosed).toBe(4);
  });

  it('is a time-out when data is not acknowledged, after the retries of the context', async () => {
    const bench = await TcpBench.open({ iwarp: { retransmitMinUs: 1_000_000 } });
    const { client } = await bench.connected({ dataRetries: 2 });
    bench.b.address.isActive = false;
    const { length } = bench.a.sent;
    await bench.send(bench.a, client, bytesOf(10));
    await bench.until(() => bench.a.eventsOf(client).includes('TIMED_OUT'));
    const times = bench.a.sent.slice(length).map(({ atPs }) => atPs);
    expect(times.length).toBe(3);
    expect(times.slice(1).map((ps, index) => Math.floor((ps - times[index]!) / secondPs))).toEqual([1, 2]);
    expect(await bench.query(bench.a, client)).toMatchObject({
      retransmissions: 2,
      retransmissionTimeouts: 2,
    });
  });

  it('is a time-out when a silent peer answers no probe of keepalive (3.8.4)', async () => {
    const bench = await TcpBench.open({ iwarp: { keepaliveIntervalUs: 2_000_000, keepaliveProbes: 3 } });
    await bench.listen(bench.b);
    const { client } = await bench.connected({ keepAliveSeconds: 5 });
    await bench.run(20_000_000);
    // Answered: the silence begins again with each answer.
    const answered = bench.a.sent.slice(2).length;
    expect(answered).toBeGreaterThanOrEqual(3);
    bench.b.address.isActive = false;
    await bench.until(() => bench.a.eventsOf(client).includes('TIMED_OUT'), 40_000_000);
    const probes = bench.a.sent.slice(-4, -1);
    expect(flagsOf(bench.a).slice(-4)).toEqual(['A', 'A', 'A', 'RA']);
    expect(
      probes.slice(1).map(({ atPs }, index) => Math.floor((atPs - probes[index]!.atPs) / secondPs)),
    ).toEqual([2, 2]);
  });
});

describe('a listener', () => {
  it('takes no more connections than its backlog until software has learnt of them: the SYN is dropped and comes again', async () => {
    const bench = await TcpBench.open();
    await bench.listen(bench.b, { backlog: 1 });
    bench.b.hasEventRoom = false;
    const first = await bench.connect(bench.a);
    await bench.until(() => bench.a.eventsOf(first.out).includes('ESTABLISHED'));
    const second = await bench.connect(bench.a, { localPort: 0x8001 });
    await bench.run(900_000);
    expect(bench.a.eventsOf(second.out)).toEqual([]);
    expect(bench.b.blocks.tcpEngine.counters.refusedSyns).toBe(1);
    bench.b.hasEventRoom = true;
    bench.b.act(() => bench.b.blocks.tcpEvents.eventSpace(bench.b.domain.cycle + 1));
    await bench.until(() => bench.a.eventsOf(second.out).includes('ESTABLISHED'), 200_000);
    await bench.run(10);
    expect(bench.b.reports.map(({ listener }) => listener)).toEqual([1, 1]);
  });

  it('at one address answers SYNs to another by RST', async () => {
    const bench = await TcpBench.open();
    await bench.listen(bench.b, { localAddress: ipv4Of(2) });
    const refused = await bench.connect(bench.a, { remoteAddress: ipv4Of(3) });
    const taken = await bench.connect(bench.a);
    await bench.until(() => bench.a.eventsOf(taken.out).includes('ESTABLISHED'));
    expect(bench.a.eventsOf(refused.out)).toEqual(['RESET']);
  });

  it('resets half-open connections when it is released, and keeps the others', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    // The third step of the second handshake is lost.
    bench.a.fateOf = (_, bytes) => (readFrame(bytes).flags === 'A' ? 'lost' : 'carried');
    const second = await bench.connect(bench.a, { localPort: 0x8001 });
    await bench.until(() => bench.a.eventsOf(second.out).includes('ESTABLISHED'));
    bench.a.fateOf = () => 'carried';
    await bench.close(bench.b, 1, CloseTcp.RELEASE);
    await bench.until(() => bench.a.eventsOf(second.out).includes('RESET'));
    expect(bench.b.blocks.tcpEngine.inspect()['connections']).toBe(1);
    await bench.send(bench.a, client, bytesOf(5));
    expect(await bench.receiveAll(bench.b, server, 5)).toEqual(bytesOf(5));
  });
});
