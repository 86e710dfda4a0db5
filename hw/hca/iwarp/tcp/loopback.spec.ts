/** Connections of a card to itself. Sizes of frames: 14 of Ethernet, 20 of IPv4, 20 of TCP and the payload; SYNs have 8 bytes of options. */
import { describe, expect, it } from 'vitest';
import { ipv4Of, macBytesOf, TcpBench, type TcpNode } from '../testing/tcp-bench.ts';
import { segmentOf } from '../testing/test-stream.ts';
import { TcpLoopback } from './tcp-loopback.ts';

/** A connection of node a to itself. @returns the numbers of its ends */
async function connectedToSelf(bench: TcpBench): Promise<{ client: number; server: number }> {
  const { a } = bench;
  await bench.listen(a);
  const { out: client } = await bench.connect(a, ofSelf(a));
  const accepted = () => a.reports.find(({ connection }) => connection !== client && connection !== 0);
  await bench.until(() => accepted() !== undefined && a.eventsOf(client).includes('ESTABLISHED'));
  return { client, server: accepted()!.connection };
}

const ofSelf = ({ number }: TcpNode) => ({
  remoteMac: macBytesOf(number),
  remoteAddress: ipv4Of(number),
});

const loopedFrames = ({ blocks }: TcpNode) => blocks.tcpLoopback.counters;

describe('a connection of a card to itself', () => {
  it('is established, carries segments both ways and closes, and nothing of it is on the cable', async () => {
    const bench = await TcpBench.open();
    const { a } = bench;
    const { client, server } = await connectedToSelf(bench);
    const [near, far] = [await bench.attach(a, client), await bench.attach(a, server, 0x41)];
    const lengths = Array.from({ length: 40 }, (_, index) => (index * 337) % 1400);
    bench.start(a, near, lengths);
    bench.start(a, far, lengths.toReversed());
    await bench.until(() => near.arrived.length === 40 && far.arrived.length === 40);
    expect(far.arrived).toEqual(lengths.map((bytes, index) => segmentOf(index, bytes, 1)));
    expect(near.arrived).toEqual(lengths.toReversed().map((bytes, index) => segmentOf(index, bytes, 1)));
    for (const connection of [client, server]) await bench.close(a, connection);
    await bench.until(() => [client, server].every((one) => a.eventsOf(one).includes('CLOSED')));
    for (const { log } of [near, far]) expect(log).toContain('peerClosed');
    expect(a.sent).toEqual([]);
    expect(a.blocks.tcpEngine.arrivedCount).toBe(0);
    const { sentFrames, sentBytes, receivedFrames, receivedBytes, droppedFrames } = loopedFrames(a);
    expect([receivedFrames, receivedBytes, droppedFrames]).toEqual([sentFrames, sentBytes, 0]);
    expect(a.blocks.tcpEngine.counters).toMatchObject({ sent: sentFrames, received: sentFrames, damaged: 0 });
    expect(a.blocks.tcpLoopback.heldCount).toBe(0);
    expect(bench.imbalances()).toEqual([]);
  });

  it('is refused by RST at a port without a listener', async () => {
    const bench = await TcpBench.open();
    const { out: client } = await bench.connect(bench.a, ofSelf(bench.a));
    await bench.until(() => bench.a.eventsOf(client).length > 0);
    expect(bench.a.eventsOf(client)).toEqual(['RESET']);
    expect(bench.a.sent).toEqual([]);
    // A SYN of 8 bytes of options, and a RST: the segment size and the scale, padded to 4 bytes (RFC 9293, 3.1).
    expect(loopedFrames(bench.a)).toMatchObject({ sentFrames: 2, sentBytes: 2 * 54 + 8 });
  });

  it('leaves frames of a port that is not open to the cable, where the link discards or carries them', async () => {
    const bench = await TcpBench.open();
    bench.a.address.isActive = false;
    await bench.connect(bench.a, ofSelf(bench.a));
    await bench.until(() => bench.a.sent.length === 1);
    expect(loopedFrames(bench.a).sentFrames).toBe(0);
  });

  it('waits for places that the RDMA side holds, and continues when it releases them', async () => {
    const bench = await TcpBench.open();
    const { a } = bench;
    const { client, server } = await connectedToSelf(bench);
    const [near, far] = [await bench.attach(a, client), await bench.attach(a, server, 0x41)];
    await bench.until(() => a.blocks.tcpLoopback.heldCount === 0);
    far.holds = true;
    bench.start(a, near, new Array<number>(40).fill(1000));
    // The default of hca.loopbackBufferPackets is 16.
    await bench.until(() => far.arrived.length === 16);
    await bench.run(100);
    expect([far.arrived.length, a.blocks.tcpLoopback.hasRoom]).toEqual([16, false]);
    const { account } = a.blocks.tcpTransmitter;
    expect(account.isStalledFor(account.stallReasons.indexOf('loopback'))).toBe(true);
    far.holds = false;
    a.act(() => {
      for (const name of far.held.splice(0)) a.blocks.tcpStreams.release(name);
    });
    await bench.until(() => far.arrived.length === 40);
    expect(bench.imbalances()).toEqual([]);
  });

  it('forgets frames on their way with a reset', async () => {
    const bench = await TcpBench.open();
    const { a } = bench;
    const { client, server } = await connectedToSelf(bench);
    const near = await bench.attach(a, client);
    await bench.attach(a, server, 0x41);
    bench.start(a, near, new Array<number>(10).fill(1400));
    await bench.until(() => a.blocks.tcpLoopback.heldCount > 0);
    const { tcpEngine, tcpTransmitter, tcpLoopback } = a.blocks;
    a.act(() => {
      for (const block of [tcpTransmitter, tcpEngine, tcpLoopback]) block.reset();
    });
    await bench.run(100);
    expect([tcpLoopback.heldCount, tcpEngine.keptSegments]).toEqual([0, 0]);
    const { sentFrames, receivedFrames, droppedFrames } = tcpLoopback.counters;
    expect([droppedFrames > 0, receivedFrames + droppedFrames]).toEqual([true, sentFrames]);
  });
});

describe('the loopback', () => {
  it('delivers a frame when its bytes have passed and the latency is over, one frame after the other', () => {
    const loopback = new TcpLoopback(
      { loopbackBufferPackets: 2, loopbackBytesPerCycle: 16, loopbackLatencyCycles: 8 },
      1518,
    );
    const arrivals: number[][] = [];
    let roomCalls = 0;
    loopback.connect({
      transmitter: { loopbackSpace: () => roomCalls++ },
      engine: { frameLooped: (slot, cycle) => arrivals.push([slot, cycle]) },
    });
    const frame = Uint8Array.from({ length: 100 }, (_, index) => index);
    // 100 bytes take 7 cycles of 16 bytes: from 50 to 57, and from there to 64.
    loopback.send(frame, 0, 100, 50);
    loopback.send(frame, 10, 90, 51);
    expect(arrivals).toEqual([
      [0, 57 + 8],
      [1, 57 + 6 + 8],
    ]);
    expect([loopback.hasRoom, loopback.frameBytes(1)]).toEqual([false, 90]);
    const at = loopback.frameStart(1);
    expect(loopback.rxBytes.slice(at, at + 90)).toEqual(frame.subarray(10));
    loopback.consume(0);
    expect([loopback.hasRoom, roomCalls]).toEqual([true, 1]);
  });
});
