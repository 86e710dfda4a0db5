/** The engine as a block: contexts on chip, frames that are not its own, reset, epochs, the other users of the port, hostile frames. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { CloseTcp, TcpState, tcpContext } from '../../../../abi/tcp-connection.ts';
import { readFrame } from '../testing/segment-reader.ts';
import { macBytesOf, TcpBench } from '../testing/tcp-bench.ts';

const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + seed * 31) & 0xff);
const contextBase = 0x10_0000;

describe('contexts on chip', () => {
  it('are read and written by DMA when connections outnumber them, each with its numbers of that moment', async () => {
    const bench = await TcpBench.open({ iwarp: { contextEntries: 1, contextWays: 1, delayedAckUs: 0 } });
    const first = await bench.connected();
    const second = await bench.connected({ localPort: 0x8001 });
    const { readLog, writeLog } = bench.a.dma;
    const before = { reads: readLog.length, writes: writeLog.length };
    await bench.send(bench.a, first.client, bytesOf(100));
    await bench.run(1000);
    await bench.send(bench.a, second.client, bytesOf(100));
    await bench.run(1000);
    const places = [first, second].map(({ client }) => contextBase + client * 256);
    const addressesFrom = (log: readonly { address: number }[], from: number) =>
      log.slice(from).map(({ address }) => address);
    expect(addressesFrom(readLog, before.reads)).toEqual(places);
    expect(addressesFrom(writeLog, before.writes)).toEqual([places[1], places[0]]);
    expect(new Set(readLog.map(({ requester, lengthBytes }) => `${requester} ${lengthBytes}`))).toEqual(
      new Set(['auxcRead 256']),
    );
    // As the context of the first was evicted: all of its bytes sent and acknowledged.
    const { sendUnacknowledged, sendNext } = await bench.query(bench.a, first.client);
    expect(tcpContext.decode(writeLog.at(-1)!.bytes)).toMatchObject({
      ...{ state: TcpState.ESTABLISHED, bytesSent: 100n, sendUnacknowledged, sendNext, localPort: 0x8000 },
    });
    const { account } = bench.a.blocks.tcpEngine;
    expect(bench.imbalances()).toEqual([]);
    expect(account.stalledCycles[account.stallReasons.indexOf('context')]).toBeGreaterThan(0);
    expect(bench.a.blocks.tcpContexts.evictionCount).toBeGreaterThan(1);
  });

  it('are read once while they are enough', async () => {
    const bench = await TcpBench.open();
    const { client } = await bench.connected();
    for (let count = 0; count < 5; count++) await bench.send(bench.a, client, bytesOf(100));
    await bench.run(100_000);
    expect(bench.a.dma.readLog.length).toBe(1);
    expect(bench.a.dma.writeLog.length).toBe(0);
  });
});

/** A frame from the other node with these bytes after the MACs. */
const frameTo = (mac: Uint8Array, ...rest: number[]): Uint8Array =>
  Uint8Array.of(
    ...mac,
    ...macBytesOf(2),
    ...rest,
    ...new Array<number>(Math.max(0, 48 - rest.length)).fill(0),
  );

describe('frames that are not of its connections', () => {
  it('go to the rings: of other protocols, fragments, and to other MACs', async () => {
    const bench = await TcpBench.open();
    await bench.connected();
    const syn = bench.a.sent[0]!.bytes;
    const changed = (change: (frame: Uint8Array) => void): Uint8Array => {
      const frame = syn.slice();
      change(frame);
      return frame;
    };
    const frames = [
      frameTo(macBytesOf(2), 0x08, 0x06, 0, 1),
      changed((frame) => frame.set([17], 23)),
      changed((frame) => frame.set([0x20, 0], 20)),
      changed((frame) => frame.set(macBytesOf(9))),
      changed((frame) => frame.set([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
      changed((frame) => frame.set([0xff, 0xff], 16)),
    ];
    for (const frame of frames) bench.a.act(() => bench.a.port.send(frame, 0, frame.length));
    await bench.run(10);
    expect(bench.b.ringFrames.map((frame) => [...frame.subarray(0, 40)])).toEqual(
      frames.map((frame) => [...frame.subarray(0, 40)]),
    );
    expect(bench.b.port.heldFrames).toBe(0);
  });

  it('all go to the rings if software has named no connections', async () => {
    const bench = await TcpBench.open();
    bench.b.blocks.tcpControl.place(0);
    await bench.connect(bench.a);
    await bench.run(100);
    expect(bench.b.ringFrames.length).toBe(1);
    expect(bench.b.sent.length).toBe(0);
  });

  it('are answered by RST if they belong to no connection, unless they are RSTs (RFC 9293, 3.5.2)', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    await bench.close(bench.b, server, CloseTcp.ABORT);
    await bench.until(() => bench.a.eventsOf(client).includes('RESET'));
    // The last segment of the client once more: an acknowledgement.
    const last = bench.a.sent.at(-1)!.bytes;
    bench.a.act(() => bench.a.port.send(last, 0, last.length));
    await bench.run(10);
    const answer = readFrame(bench.b.sent.at(-1)!.bytes);
    expect(answer).toMatchObject({ flags: 'R', sequence: readFrame(last).acknowledgement, wrong: [] });
    expect(bench.b.blocks.tcpEngine.counters).toMatchObject({ unmatched: 1, resetsSent: 1 });
  });
});

describe('segments that are wrong', () => {
  it.each<[string, (frame: Uint8Array) => void]>([
    ['a wrong checksum of IPv4', (frame) => frame.set([frame[24]! ^ 1], 24)],
    ['a wrong checksum of TCP', (frame) => frame.set([frame[50]! ^ 1], 50)],
    ['a header that is shorter than 20 bytes', (frame) => frame.set([0x40], 46)],
    ['a header that is longer than the segment', (frame) => frame.set([0xf0], 46)],
  ])('are dropped and counted: %s', async (_, change) => {
    const bench = await TcpBench.open();
    await bench.connected();
    const frame = bench.a.sent.at(-1)!.bytes.slice();
    change(frame);
    if (frame[46] !== 0x50) sumAgain(frame);
    const { length } = bench.b.sent;
    bench.a.act(() => bench.a.port.send(frame, 0, frame.length));
    await bench.run(10);
    expect(bench.b.blocks.tcpEngine.counters.damaged).toBe(1);
    expect([bench.b.sent.length, bench.b.port.heldFrames]).toEqual([length, 0]);
  });
});

describe('SEND_TCP', () => {
  it('beyond the room of the send buffer changes nothing; bytes are cut into segments of full size', async () => {
    const bench = await TcpBench.open({ iwarp: { connectionBytes: 2048 } });
    const { client, server } = await bench.connected({ maxSegmentBytes: 400 });
    bench.b.address.isActive = false;
    const statuses: number[] = [];
    for (let count = 0; count < 3; count++)
      statuses.push((await bench.send(bench.a, client, bytesOf(1000, count))).status);
    expect(statuses).toEqual([CommandStatus.OK, CommandStatus.OK, CommandStatus.EXCEED_LIM]);
    bench.b.address.isActive = true;
    const all = await bench.receiveAll(bench.b, server, 2000);
    expect(all).toEqual(Uint8Array.of(...bytesOf(1000, 0), ...bytesOf(1000, 1)));
    const lengths = new Set(bench.a.sent.map(({ bytes }) => readFrame(bytes).payload.length));
    expect([...lengths].sort()).toEqual([0, 200, 400]);
  });

  it('is for streams of software, as RECEIVE_TCP is; a Terminate has 16 bits', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    await bench.attach(bench.a, client);
    expect((await bench.send(bench.a, client, bytesOf(4))).status).toBe(CommandStatus.BAD_RES_STATE);
    await expect(bench.receive(bench.a, client)).rejects.toThrow(`status ${CommandStatus.BAD_RES_STATE}`);
    expect((await bench.terminate(bench.a, client, 0x1_0000)).status).toBe(CommandStatus.BAD_PARAM);
    await bench.close(bench.b, server);
    expect((await bench.send(bench.b, server, bytesOf(4))).status).toBe(CommandStatus.BAD_RES_STATE);
  });
});

describe('numbers', () => {
  it('of connections in TIME_WAIT are given up, the oldest first, when no other is free', async () => {
    const bench = await TcpBench.open();
    bench.a.blocks.tcpControl.place(3);
    const ended: number[] = [];
    for (const localPort of [0x8000, 0x8001]) {
      const { client, server } = await bench.connected({ localPort });
      await bench.close(bench.a, client);
      await bench.close(bench.b, server);
      await bench.until(() => bench.a.eventsOf(client).includes('CLOSED'));
      await bench.close(bench.a, client, CloseTcp.RELEASE);
      ended.push(client);
    }
    expect(ended).toEqual([1, 2]);
    expect((await bench.connect(bench.a, { localPort: 0x8002 })).out).toBe(1);
    expect((await bench.connect(bench.a, { localPort: 0x8003 })).out).toBe(2);
    expect((await bench.connect(bench.a, { localPort: 0x8004 })).status).not.toBe(0);
  });

  it('may be opened again while the peer is in TIME_WAIT: a later SYN ends that', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    // The passive end closes first, so that it waits.
    await bench.close(bench.b, server);
    await bench.until(() => bench.a.eventsOf(client).includes('PEER_CLOSED'));
    await bench.close(bench.a, client);
    await bench.until(() => bench.a.eventsOf(client).includes('CLOSED'));
    await bench.close(bench.a, client, CloseTcp.RELEASE);
    expect((await bench.query(bench.b, server)).state).toBe(TcpState.TIME_WAIT);
    const again = await bench.connected();
    await bench.send(bench.a, again.client, bytesOf(9));
    expect(await bench.receiveAll(bench.b, again.server, 9)).toEqual(bytesOf(9));
  });
});

describe('events', () => {
  it('are not lost, however long software has no room for them', async () => {
    const bench = await TcpBench.open();
    await bench.listen(bench.b, { backlog: 64 });
    bench.b.hasEventRoom = false;
    const numbers: number[] = [];
    for (let port = 0; port < 10; port++)
      numbers.push((await bench.connect(bench.a, { localPort: 0x8000 + port })).out);
    await bench.until(() => numbers.every((number) => bench.a.eventsOf(number).length > 0));
    for (const number of numbers) {
      await bench.send(bench.a, number, bytesOf(4));
      await bench.close(bench.a, number, CloseTcp.ABORT);
    }
    await bench.run(1000);
    expect(bench.b.reports).toEqual([]);
    bench.b.hasEventRoom = true;
    bench.b.act(() => bench.b.blocks.tcpEvents.eventSpace(bench.b.domain.cycle + 1));
    await bench.run(10);
    for (let number = 2; number < 12; number++) {
      const events = bench.b.eventsOf(number);
      expect([events[0], events.at(-1)]).toEqual(['ACCEPTED', 'RESET']);
    }
    expect(bench.imbalances()).toEqual([]);
  });
});

describe('the port', () => {
  it('is used in turns while a frame of a ring waits for it', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    bench.a.waitsForWire = true;
    for (let count = 0; count < 4; count++) await bench.send(bench.a, client, bytesOf(1000, count));
    expect((await bench.receiveAll(bench.b, server, 4000)).length).toBe(4000);
    const { account } = bench.a.blocks.tcpTransmitter;
    expect(bench.imbalances()).toEqual([]);
    // One cycle for each segment that let a ring's frame go first.
    expect(account.stalledCycles[account.stallReasons.indexOf('wire')]).toBeGreaterThanOrEqual(4);
  });

  it('that is paused holds the engine back, which goes on afterwards', async () => {
    const bench = await TcpBench.open({ iwarp: { transmitFrames: 2 } });
    const { client, server } = await bench.connected();
    const { port } = bench.a;
    const canTransmit = port.canTransmit.bind(port);
    port.canTransmit = () => false;
    for (let count = 0; count < 4; count++) await bench.send(bench.a, client, bytesOf(1000, count));
    await bench.run(100);
    expect(bench.a.blocks.tcpTransmitter.heldCount).toBe(2);
    port.canTransmit = canTransmit;
    bench.a.blocks.tcpTransmitter.spaceFreed();
    expect((await bench.receiveAll(bench.b, server, 4000)).length).toBe(4000);
  });
});

describe('a reset', () => {
  it('leaves nothing, in whatever state it comes', async () => {
    for (const us of [1, 5, 20, 100, 1000]) {
      const bench = await TcpBench.open();
      const fresh = Object.entries(bench.a.blocks).map(([name, block]) => [
        name,
        'inspect' in block ? block.inspect() : 0,
      ]);
      const { client } = await bench.connected();
      await bench.listen(bench.a, { localPort: 99 });
      const stream = await bench.attach(bench.a, client);
      bench.start(
        bench.a,
        stream,
        Array.from({ length: 50 }, () => 1400),
      );
      await bench.run(us);
      bench.a.act(() => {
        for (const block of Object.values(bench.a.blocks).toReversed()) if ('reset' in block) block.reset();
        bench.a.dma.reset();
        bench.a.blocks.tcpControl.place(64);
      });
      await bench.run(1);
      const after = Object.entries(bench.a.blocks).map(([name, block]) => [
        name,
        'inspect' in block ? block.inspect() : 0,
      ]);
      expect(after).toEqual(fresh);
      expect(bench.a.port.heldFrames).toBe(0);
      // No timer of the connection is left, and the next life works.
      const { client: next, server } = await bench.connected({ localPort: 0x9000 });
      expect(next).toBe(1);
      await bench.send(bench.a, next, bytesOf(3));
      expect(await bench.receiveAll(bench.b, server, 3)).toEqual(bytesOf(3));
    }
  });
});

describe('a new epoch', () => {
  it('moves no deadline', async () => {
    const timesOf = async (hasEpochs: boolean): Promise<number[]> => {
      const bench = await TcpBench.open();
      bench.b.address.isActive = false;
      await bench.connect(bench.a, { synRetries: 3 });
      let offset = 0;
      const times: number[] = [];
      for (let us = 0; us < 16_000_000; us += 500_000) {
        const { length } = bench.a.sent;
        await bench.run(500_000);
        times.push(...bench.a.sent.slice(length).map(({ atPs }) => atPs + offset));
        if (!hasEpochs) continue;
        const step = Math.floor(bench.nowPs / 1e6 - 1) * 1e6;
        bench.beginEpoch(step);
        offset += step;
      }
      return times;
    };
    const plain = await timesOf(false);
    expect(plain.length).toBe(3);
    expect(await timesOf(true)).toEqual(plain);
  });
});

describe('whatever arrives', () => {
  it('never makes the engine throw, and leaves no buffer behind', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            from: fc.nat(5),
            changes: fc.array(fc.tuple(fc.nat(90), fc.nat(255)), { maxLength: 6 }),
            isSummed: fc.boolean(),
          }),
          { minLength: 20, maxLength: 60 },
        ),
        async (draws) => {
          const bench = await TcpBench.open();
          const { client, server } = await bench.connected({ offersSack: 1, offersTimestamps: 1 });
          await bench.send(bench.a, client, bytesOf(30));
          await bench.run(10);
          const templates = bench.a.sent.map(({ bytes }) => bytes);
          for (const { from, changes, isSummed } of draws) {
            const frame = templates[from % templates.length]!.slice();
            for (const [at, value] of changes) if (at < frame.length - 14) frame[at + 14] = value;
            if (isSummed) sumAgain(frame);
            bench.a.act(() => bench.a.port.send(frame, 0, frame.length));
          }
          await bench.run(1_000_000);
          expect([bench.b.port.heldFrames, bench.a.port.heldFrames]).toEqual([0, 0]);
          expect(bench.imbalances()).toEqual([]);
          expect((await bench.query(bench.b, server)).port).toBe(1);
        },
      ),
      { numRuns: 40, seed: 46 },
    );
  });
});

/** Gives a frame right checksums where its lengths are those of its frame: else the engine would look no further. */
function sumAgain(frame: Uint8Array): void {
  const sum = (bytes: readonly number[]): number => {
    let total = 0;
    for (let at = 0; at < bytes.length; at += 2) total += bytes[at]! * 256 + (bytes[at + 1] ?? 0);
    while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
    return 0xffff - total;
  };
  const headerBytes = (frame[14]! & 15) * 4;
  const end = 14 + frame[16]! * 256 + frame[17]!;
  if (frame[14]! >> 4 !== 4 || headerBytes < 20 || end > frame.length || 14 + headerBytes + 20 > end) return;
  frame.set([0, 0], 24);
  const ip = sum([...frame.subarray(14, 14 + headerBytes)]);
  frame.set([ip >> 8, ip & 255], 24);
  const at = 14 + headerBytes;
  frame.set([0, 0], at + 16);
  const pseudo = [...frame.subarray(26, 34), 0, 6, (end - at) >> 8, (end - at) & 255];
  const tcp = sum([...pseudo, ...frame.subarray(at, end)]);
  frame.set([tcp >> 8, tcp & 255], at + 16);
}
