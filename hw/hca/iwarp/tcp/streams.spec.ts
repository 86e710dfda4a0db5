/** Streams of QPs over two engines: exact bytes whatever the cable does, memory and back-pressure, buffers that the RDMA side holds. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CloseTcp, TcpEvent, TcpState } from '../../../../abi/tcp-connection.ts';
import { readFrame } from '../testing/segment-reader.ts';
import { type Fate, TcpBench, type TcpBenchOptions } from '../testing/tcp-bench.ts';
import { fpduBytes, segmentOf, type TestStream } from '../testing/test-stream.ts';

/** A connection whose both ends are streams of QPs. */
async function attached(options: TcpBenchOptions = {}, changes = {}) {
  const bench = await TcpBench.open(options);
  const { client, server } = await bench.connected(changes);
  const near = await bench.attach(bench.a, client);
  const far = await bench.attach(bench.b, server, 0x41);
  return { bench, client, server, near, far };
}

const lengthsOf = (count: number, bytes: number): number[] => Array.from({ length: count }, () => bytes);

/** The segments that a stream has received are those that node `sender` has sent. */
function expectArrived({ arrived }: TestStream, lengths: readonly number[], sender: number): void {
  expect(arrived.length).toBe(lengths.length);
  expect(arrived.every((bytes, at) => Buffer.compare(bytes, segmentOf(at, lengths[at]!, sender)) === 0)).toBe(
    true,
  );
}

describe('a stream of a QP', () => {
  it('carries FPDUs both ways at the rate of the cable', async () => {
    const { bench, near, far } = await attached();
    const lengths = lengthsOf(400, 1400);
    const startPs = bench.nowPs;
    bench.start(bench.a, near, lengths);
    bench.start(bench.b, far, lengths);
    await bench.until(() => far.arrived.length === 400 && near.arrived.length === 400);
    expectArrived(far, lengths, 1);
    expectArrived(near, lengths, 2);
    // 400 frames of 14 + 20 + 20 + 1408 + 4 and 20 around them at 10 Gb/s.
    const leastPs = 400 * 1486 * 800;
    expect((bench.nowPs - startPs) / leastPs).toBeLessThan(1.5);
    const frames = [bench.a, bench.b].flatMap(({ sent }) => sent.map(({ bytes }) => readFrame(bytes)));
    expect(frames.flatMap(({ wrong }) => wrong)).toEqual([]);
    expect(bench.imbalances()).toEqual([]);
  });

  it('begins with the bytes that software has not read, and is told of a FIN that came before', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    const near = await bench.attach(bench.a, client);
    bench.start(bench.a, near, [100, 200, 300]);
    await bench.run(100);
    bench.a.act(() => bench.a.blocks.tcpStreams.close(client));
    await bench.until(() => bench.b.eventsOf(server).includes('PEER_CLOSED'));
    const far = await bench.attach(bench.b, server);
    expectArrived(far, [100, 200, 300], 1);
    expect(far.log).toEqual(['peerClosed']);
  });

  it('belongs to one QP, named in the context, and to software no more', async () => {
    const { bench, client } = await attached();
    await expect(bench.attach(bench.a, client)).rejects.toThrow('takes no stream');
    await expect(bench.attach(bench.a, 33)).rejects.toThrow('takes no stream');
    expect((await bench.query(bench.a, client)).qpn).toBe(0x40);
  });

  it('closes after what was sent, and ends at both when both have closed', async () => {
    const { bench, client, server, near, far } = await attached();
    bench.start(bench.a, near, lengthsOf(20, 1000));
    await bench.close(bench.a, client);
    await bench.until(() => far.log.includes('peerClosed'));
    expectArrived(far, lengthsOf(20, 1000), 1);
    await bench.close(bench.b, server);
    await bench.until(() => near.log.some((line) => line.startsWith('ended')));
    await bench.run(50);
    expect(near.log).toEqual(['closeRequested', 'peerClosed', `ended ${TcpEvent.CLOSED}`]);
    expect(far.log).toEqual(['peerClosed', 'closeRequested', `ended ${TcpEvent.CLOSED}`]);
  });

  it('that has little to send has its turn beside one that has much, with few frames at a time', async () => {
    const { bench, near } = await attached({ iwarp: { transmitFrames: 2 } });
    const second = await bench.connected({ localPort: 0x8001 });
    const little = await bench.attach(bench.a, second.client, 0x42);
    const received = await bench.attach(bench.b, second.server, 0x43);
    bench.start(bench.a, near, lengthsOf(400, 1400));
    await bench.until(() => bench.a.blocks.tcpTransmitter.room === 0);
    bench.start(bench.a, little, [100]);
    // Ten frames of 1,400 bytes at 10 Gb/s take 12 µs, all of them 480.
    await bench.run(12);
    expect(received.arrived.length).toBe(1);
  });

  it('that is aborted while the transmitter is full sends RST when it has room', async () => {
    const { bench, client, near, far } = await attached({ iwarp: { transmitFrames: 2 } });
    bench.start(bench.a, near, lengthsOf(50, 1000));
    await bench.until(() => bench.a.blocks.tcpTransmitter.room === 0);
    bench.a.act(() => bench.a.blocks.tcpStreams.abort(client));
    // Frames of 1 KiB take less than a microsecond each; a time-out of the peer would take 200 ms.
    await bench.run(100);
    expect(far.log).toEqual([`ended ${TcpEvent.RESET}`]);
  });

  it('is told that the peer has reset it; the one that resets is called no more', async () => {
    const { bench, client, near, far } = await attached();
    bench.start(bench.a, near, lengthsOf(50, 1000));
    await bench.run(5);
    bench.a.act(() => bench.a.blocks.tcpStreams.abort(client));
    await bench.until(() => far.log.length > 0);
    expect(far.log).toEqual([`ended ${TcpEvent.RESET}`]);
    expect(near.log).toEqual([]);
    expect(bench.a.eventsOf(client)).toEqual(['ESTABLISHED', 'RESET']);
    // All of the retransmission memory is free again.
    expect(bench.a.blocks.tcpEngine.inspect()['sendMemory']).toBe(0);
  });

  it('gets a Terminate of software with its code; reports of Terminates name code and QP', async () => {
    const { bench, client, near } = await attached();
    expect((await bench.terminate(bench.a, client, 0x1202)).status).toBe(0);
    expect(near.log).toEqual(['terminate 1202']);
    bench.a.act(() => bench.a.blocks.tcpStreams.terminated(client, TcpEvent.TERMINATE_SENT, 0x1202));
    await bench.run(1);
    expect(bench.a.reports.at(-1)).toMatchObject({ event: 9, terminate: 0x1202, qpn: 0x40, cookie: 0x1111 });
  });

  it('that is detached drops what arrives', async () => {
    const { bench, client, server, near, far } = await attached();
    bench.b.act(() => bench.b.blocks.tcpStreams.detach(server));
    bench.start(bench.a, near, lengthsOf(5, 1000));
    await bench.run(100_000);
    expect(far.arrived.length).toBe(0);
    // FPDUs of 2 + 1000 bytes, 2 of padding and 4 of CRC.
    expect(bench.b.blocks.tcpEngine.discardedBytes).toBe(5 * 1008);
    const { sendUnacknowledged, sendNext } = await bench.query(bench.a, client);
    expect(sendUnacknowledged).toBe(sendNext);
  });
});

describe('a cable that loses, doubles, damages and reorders frames', () => {
  const fates: readonly Fate[] = ['lost', 'doubled', 'damaged', 'late'];
  const met = new Set<Fate>();
  const forms = fc.record({
    offersSack: fc.nat(1),
    offersTimestamps: fc.nat(1),
    congestion: fc.constantFrom(0 as const, 1 as const),
    isIpv6: fc.nat(1),
  });

  it('leaves the bytes of both directions as they were sent', async () => {
    await fc.assert(
      fc.asyncProperty(
        forms,
        fc.infiniteStream(fc.nat(39)),
        fc.array(fc.integer({ min: 4, max: 1400 }), { minLength: 20, maxLength: 120 }),
        fc.boolean(),
        async (form, draws, lengths, packsFpdus) => {
          // Close to the wrap of the sequence numbers.
          const { bench, near, far } = await attached(
            {
              iwarp: {
                ...{ firstSequence: 0xffff_f000, retransmitMinUs: 1000, delayedAckUs: 100 },
                packsFpdus,
              },
            },
            form,
          );
          const iterator = draws[Symbol.iterator]();
          for (const node of [bench.a, bench.b])
            node.fateOf = () => {
              const fate = fates[iterator.next().value! as number] ?? 'carried';
              met.add(fate);
              return fate;
            };
          bench.start(bench.a, near, lengths);
          bench.start(bench.b, far, lengths.toReversed());
          const { length } = lengths;
          await bench.until(
            () => far.arrived.length === length && near.arrived.length === length,
            60_000_000,
          );
          expectArrived(far, lengths, 1);
          expectArrived(near, lengths.toReversed(), 2);
          expect(bench.imbalances()).toEqual([]);
        },
      ),
      { numRuns: 25, seed: 46 },
    );
    expect([...met].sort()).toEqual([...fates, 'carried'].sort());
  });

  it('is noticed by the checksum: a damaged segment is dropped and sent again', async () => {
    const { bench, near, far } = await attached({ iwarp: { retransmitMinUs: 1000 } });
    const { length } = bench.a.sent;
    bench.a.fateOf = (ordinal) => (ordinal === length + 3 ? 'damaged' : 'carried');
    bench.start(bench.a, near, lengthsOf(10, 1000));
    await bench.until(() => far.arrived.length === 10);
    expectArrived(far, lengthsOf(10, 1000), 1);
    expect(bench.b.blocks.tcpEngine.counters.damaged).toBe(1);
    expect(bench.a.port.transmitted.frames).toBe(bench.a.sent.length);
  });

  it('holds the segments that it loses, as long as they are to be sent again', async () => {
    const { bench, near, far } = await attached({
      iwarp: { retransmitInitialUs: 1000, retransmitMinUs: 1000 },
    });
    const { tcpEngine } = bench.a.blocks;
    const held = () => tcpEngine.unacknowledged(false);
    expect(held()).toEqual({ segments: 0, streamBytes: 0 });
    const { length } = bench.a.sent;
    bench.a.fateOf = (ordinal) => (ordinal < length + 3 ? 'lost' : 'carried');
    bench.start(bench.a, near, lengthsOf(3, 1000));
    let beforeTurn: unknown;
    bench.a.act(() => {
      beforeTurn = held();
    });
    await bench.run(50);
    expect(beforeTurn).toEqual({ segments: 3, streamBytes: 3 * 1008 });
    expect(held()).toEqual({ segments: 3, streamBytes: 3 * 1008 });
    await bench.until(() => far.arrived.length === 3);
    await bench.until(() => held().segments === 0, 100_000);
  });

  it('costs one retransmission for one loss, reported by SACK, without a time-out (RFC 6675)', async () => {
    const { bench, client, near, far } = await attached({}, { offersSack: 1 });
    const { length } = bench.a.sent;
    bench.a.fateOf = (ordinal) => (ordinal === length + 3 ? 'lost' : 'carried');
    bench.start(bench.a, near, lengthsOf(30, 1400));
    await bench.until(() => far.arrived.length === 30, 100_000);
    expect(await bench.query(bench.a, client)).toMatchObject({
      retransmissions: 1,
      retransmissionTimeouts: 0,
    });
    const blocks = bench.b.sent.flatMap(({ bytes }) =>
      readFrame(bytes).options.filter(([kind]) => kind === 5),
    );
    expect(blocks.length).toBeGreaterThanOrEqual(3);
    expect(bench.b.blocks.tcpEngine.inspect()['reorderMemory']).toBe(0);
  });

  it('does no harm when the memory for reordering is as small as can be', async () => {
    const { bench, near, far } = await attached(
      { iwarp: { reorderBytes: 2048, retransmitMinUs: 1000 } },
      { offersSack: 1 },
    );
    bench.a.fateOf = (ordinal) => (ordinal % 10 === 9 ? 'lost' : 'carried');
    bench.start(bench.a, near, lengthsOf(100, 1400));
    await bench.until(() => far.arrived.length === 100);
    expectArrived(far, lengthsOf(100, 1400), 1);
  });
});

describe('FPDUs with hca.iwarp.packsFpdus', () => {
  /** Bytes of each FPDU in the frames that node a has sent as data, by frame: RFC 5044, 4: a length, the segment, pad and a CRC. */
  const fpdusOf = (bench: TcpBench, from: number): number[][] =>
    bench.a.sent.slice(from).flatMap(({ bytes }) => {
      const { payload } = readFrame(bytes);
      const found: number[] = [];
      for (let at = 0; at < payload.length; at += found.at(-1)!)
        found.push(fpduBytes((payload[at]! << 8) | payload[at + 1]!));
      expect(found.reduce((sum, count) => sum + count, 0)).toBe(payload.length);
      return payload.length === 0 ? [] : [found];
    });

  it('share segments while they wait, each of which begins with an FPDU and is no longer than the peer takes', async () => {
    const lengths = [...lengthsOf(30, 100), 1400, ...lengthsOf(30, 37), 1, 0, 2];
    const counts: number[] = [];
    for (const packsFpdus of [false, true]) {
      const { bench, near, far } = await attached({ iwarp: { packsFpdus, initialWindowSegments: 2 } });
      const from = bench.a.sent.length;
      bench.start(bench.a, near, lengths);
      await bench.until(() => far.arrived.length === lengths.length);
      expectArrived(far, lengths, 1);
      const frames = fpdusOf(bench, from);
      expect(frames.flat()).toEqual(lengths.map(fpduBytes));
      expect(
        Math.max(...frames.map((sizes) => sizes.reduce((sum, size) => sum + size, 0))),
      ).toBeLessThanOrEqual(1440);
      counts.push(frames.length);
      const { tcpEngine } = bench.a.blocks;
      expect(tcpEngine.counters.packedFpdus).toBe(lengths.length - frames.length);
      await bench.until(() => tcpEngine.unacknowledged(false).segments === 0);
      expect(tcpEngine.inspect()['sendMemory']).toBe(0);
      expect(bench.imbalances()).toEqual([]);
    }
    // At best 3 segments for 30 FPDUs of 108 bytes, one for that of 1408, and one for 30 of 44 and the last three.
    expect(counts[0]).toBe(lengths.length);
    expect(counts[1]).toBeLessThan(10);
  });

  it('keep their segment when it is sent again, and count each until it is acknowledged', async () => {
    const { bench, near, far } = await attached({
      iwarp: { packsFpdus: true, retransmitInitialUs: 1000, retransmitMinUs: 1000 },
    });
    const from = bench.a.sent.length;
    bench.a.fateOf = (ordinal) => (ordinal <= from + 2 ? 'lost' : 'carried');
    bench.start(bench.a, near, lengthsOf(20, 100));
    await bench.run(50);
    expect(bench.a.blocks.tcpEngine.unacknowledged(false)).toEqual({ segments: 20, streamBytes: 20 * 108 });
    await bench.until(() => far.arrived.length === 20);
    expectArrived(far, lengthsOf(20, 100), 1);
    const frames = fpdusOf(bench, from);
    // The first frames come again as they were.
    expect(frames.filter((sizes) => sizes.length === frames[0]!.length).length).toBeGreaterThan(1);
  });
});

describe('memory', () => {
  it('of one connection is bounded, and more is offered when segments are acknowledged', async () => {
    const { bench, near, far } = await attached({ iwarp: { connectionBytes: 8192 } });
    bench.b.address.isActive = false;
    bench.start(bench.a, near, lengthsOf(40, 1000));
    await bench.run(100);
    // Eight FPDUs of 1008 bytes fit into 8192.
    expect([near.sentCount, near.refusedCount]).toEqual([8, 1]);
    expect(fpduBytes(1000)).toBe(1008);
    bench.b.address.isActive = true;
    await bench.until(() => far.arrived.length === 40);
    expectArrived(far, lengthsOf(40, 1000), 1);
  });

  it('of all connections is shared: one that finds none waits, and gets what another one frees', async () => {
    const { bench, near, far } = await attached({ iwarp: { retransmissionBytes: 8 * 1472 } });
    const second = await bench.connected({ localPort: 0x8001 });
    const other = await bench.attach(bench.a, second.client);
    const otherFar = await bench.attach(bench.b, second.server);
    bench.start(bench.a, near, lengthsOf(30, 1400));
    bench.start(bench.a, other, lengthsOf(30, 1400));
    await bench.until(() => far.arrived.length === 30 && otherFar.arrived.length === 30);
    expect(other.refusedCount).toBeGreaterThan(0);
    expectArrived(far, lengthsOf(30, 1400), 1);
    expectArrived(otherFar, lengthsOf(30, 1400), 1);
    expect(bench.a.blocks.tcpEngine.inspect()).toMatchObject({ sendMemory: 0, poolWaiters: [] });
  });

  it('that is open is given back, also when the connection has ended meanwhile', async () => {
    const { bench, client, far } = await attached();
    const streams = bench.a.blocks.tcpStreams;
    const segment = streams.open(client, 500);
    expect(bench.a.blocks.tcpEngine.inspect()['sendMemory']).toBe(1);
    bench.a.act(() => streams.abort(client));
    await bench.until(() => far.log.length > 0);
    await bench.run(10);
    await bench.close(bench.a, client, CloseTcp.RELEASE);
    bench.a.act(() => streams.discard(client, segment));
    await bench.run(1);
    expect(bench.a.blocks.tcpEngine.inspect()).toMatchObject({ sendMemory: 0, connections: 0 });
  });

  it('of received frames stays theirs while the RDMA side holds it', async () => {
    const { bench, near, far } = await attached();
    far.holds = true;
    // Two FPDUs in one segment, as a stream that was sent by software; then one that is cut in two.
    bench.start(bench.a, near, [600, 700]);
    await bench.until(() => far.arrived.length === 2);
    expect(bench.b.port.heldFrames).toBe(2);
    bench.b.act(() => {
      for (const name of far.held.splice(0)) bench.b.blocks.tcpStreams.release(name);
    });
    await bench.run(1);
    expect(bench.b.port.heldFrames).toBe(0);
  });

  it('of segments that waited for a gap is held, too', async () => {
    const { bench, near, far } = await attached({ iwarp: { retransmitMinUs: 1000 } });
    far.holds = true;
    const { length } = bench.a.sent;
    bench.a.fateOf = (ordinal) => (ordinal === length + 1 ? 'lost' : 'carried');
    bench.start(bench.a, near, lengthsOf(4, 1000));
    await bench.until(() => far.arrived.length === 4);
    expect(bench.b.port.heldFrames).toBe(1);
    expect(bench.b.blocks.tcpEngine.inspect()['reorderMemory']).toBe(3);
    bench.b.act(() => {
      for (const name of far.held) bench.b.blocks.tcpStreams.release(name);
    });
    await bench.run(1);
    expect([bench.b.port.heldFrames, bench.b.blocks.tcpEngine.inspect()['reorderMemory']]).toEqual([0, 0]);
  });

  it('of a busy RDMA side stalls the receiver, which still sends for others', async () => {
    const { bench, near, far } = await attached();
    far.isBusy = true;
    bench.start(bench.a, near, lengthsOf(4, 1000));
    await bench.run(50);
    expect(far.arrived.length).toBe(0);
    bench.start(bench.b, far, lengthsOf(4, 1000));
    await bench.until(() => near.arrived.length === 4, 1000);
    bench.b.act(() => {
      far.isBusy = false;
      bench.b.blocks.tcpStreams.placed(bench.b.domain.cycle);
    });
    await bench.until(() => far.arrived.length === 4, 1000);
    const { account } = bench.b.blocks.tcpEngine;
    expect(bench.imbalances()).toEqual([]);
    expect(account.stalledCycles[account.stallReasons.indexOf('placement')]).toBeGreaterThan(40 * 427);
  });
});

describe('a stream that is not there', () => {
  it('has no room and no segments, and closes without effect', async () => {
    const bench = await TcpBench.open();
    const { tcpStreams } = bench.a.blocks;
    expect([tcpStreams.hasRoom(5, 10), tcpStreams.maxSegmentBytes(5)]).toEqual([false, 0]);
    bench.a.act(() => {
      tcpStreams.close(5);
      tcpStreams.abort(5);
      tcpStreams.detach(5);
      tcpStreams.terminated(5, TcpEvent.TERMINATE_SENT, 1);
    });
    await bench.run(1);
    expect(bench.a.reports).toEqual([]);
  });

  it('has the size of a full segment after the handshake: options of each segment are deducted', async () => {
    const { bench, client } = await attached({}, { offersTimestamps: 1, maxSegmentBytes: 1000 });
    expect(bench.a.blocks.tcpStreams.maxSegmentBytes(client)).toBe(988);
    expect(await bench.query(bench.a, client)).toMatchObject({
      maxSegmentBytes: 988,
      state: TcpState.ESTABLISHED,
    });
  });
});
