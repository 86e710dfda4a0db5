import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sendWith } from '../client/socket.ts';
import { Connection, NOTHING_YET } from '../native/connection.ts';
import { nativeLibrary, nativeUnavailableReason } from '../native/library.ts';
import { connectTo } from '../native/listener.ts';
import { createEventfd } from '../native/poll.ts';
import { Reactor } from '../reactor.ts';
import { openDescriptorCount } from '../testing/bench.ts';
import { FrameServer } from './frame-server.ts';
import { FRAME_BYTES_MAX } from './frame-stream.ts';

const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);

/** Encodes frames in QEMU's form: four bytes of length, highest first, and the frame. */
function framed(...frames: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    frames.flatMap((frame) => {
      const prefix = Buffer.alloc(4);
      prefix.writeUInt32BE(frame.length);
      return [prefix, frame];
    }),
  );
}

const frameOf = (bytes: number, value: number): Uint8Array => new Uint8Array(bytes).fill(value);

describe.skipIf(unavailable !== undefined)('the end of a cable on a socket', () => {
  let before = 0;
  let folder = '';
  let server: FrameServer;
  let reactor: Reactor;
  let room = Number.POSITIVE_INFINITY;
  let frames: Buffer[];
  let said: string[];
  const buffer = new Uint8Array(new ArrayBuffer(2 ** 21));
  const clients: Connection[] = [];

  beforeEach(() => {
    before = openDescriptorCount();
    folder = mkdtempSync(join(tmpdir(), 'hca-frames-'));
    room = Number.POSITIVE_INFINITY;
    frames = [];
    said = [];
    server = new FrameServer({
      path: join(folder, 'wire'),
      onFrame: (bytes, at, length) => frames.push(Buffer.from(bytes.subarray(at, at + length))),
      hasRoom: () => frames.length < room,
      onConnect: () => said.push('connected'),
      onDisconnect: (reason) => said.push(reason),
    });
    reactor = new Reactor([server]);
  });

  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    reactor.close();
    rmSync(folder, { recursive: true });
    expect(openDescriptorCount()).toBe(before);
  });

  const settle = (): void => {
    while (reactor.poll(0));
  };
  const connect = (): Connection => {
    const client = new Connection(connectTo(server.path), 0);
    clients.push(client);
    settle();
    return client;
  };
  const write = (client: Connection, bytes: Uint8Array): void => {
    sendWith(client.descriptor, bytes);
    settle();
  };
  /** All bytes that the client can read now. */
  const read = (client: Connection): Buffer => {
    const address = nativeLibrary().addressOf(buffer.buffer);
    const parts: Buffer[] = [];
    for (;;) {
      const count = client.receive(address, buffer.length);
      if (count <= 0) return Buffer.concat(parts);
      parts.push(Buffer.from(buffer.subarray(0, count)));
      settle();
    }
  };

  it('passes frames on in order, for any cuts of the stream', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(sizes, fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1 }), (lengths, cuts) => {
        frames = [];
        const sent = lengths.map((length, index) => frameOf(length, index + 1));
        const stream = framed(...sent);
        const client = connect();
        for (let at = 0, cut = 0; at < stream.length; cut++) {
          const end = at + cuts[cut % cuts.length]!;
          write(client, stream.subarray(at, end));
          at = end;
        }
        expect(frames.map((frame) => [...frame])).toEqual(sent.map((frame) => [...frame]));
        client.close();
        settle();
      }),
      { numRuns: 30 },
    );
  });

  it('does not read a client whose frames have no room, and loses none of them', () => {
    const client = connect();
    room = 3;
    write(client, framed(...Array.from({ length: 10 }, (_, index) => frameOf(100, index))));
    expect(frames.map((frame) => frame[0])).toEqual([0, 1, 2]);
    room = 5;
    settle();
    expect(frames).toHaveLength(5);
    room = 100;
    settle();
    expect(frames.map((frame) => frame[0])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('sends frames to the client, and drops those for which a client that does not read leaves no room', () => {
    server.send(frameOf(60, 1), 0, 60);
    expect(server.counters).toMatchObject({ framesToClient: 0, unreadFrames: 1 });
    const client = connect();
    const bytes = Uint8Array.from({ length: 1000 }, (_, index) => index & 0xff);
    server.send(bytes, 10, 900);
    expect(read(client)).toEqual(framed(bytes.subarray(10, 910)));
    for (let count = 0; count < 3000; count++) server.send(bytes, 0, 1000);
    const { framesToClient, unreadFrames } = server.counters;
    expect(unreadFrames).toBeGreaterThan(1);
    expect(framesToClient + unreadFrames).toBe(3002);
    // Linux accepts net.core.wmem_default, 212,992 bytes including its overhead; a MiB waits here.
    const waitingBytes = server.waitingBytes();
    expect(waitingBytes).toBeGreaterThan(2 ** 20 - 1004);
    expect(waitingBytes).toBeLessThan((framesToClient - 1) * 1004);
    const taken = read(client);
    expect(server.waitingBytes()).toBe(0);
    expect(taken.length).toBe((framesToClient - 1) * 1004);
    expect(taken.subarray(taken.length - 1004)).toEqual(framed(bytes));
    server.send(bytes, 0, 50);
    expect(read(client)).toEqual(framed(bytes.subarray(0, 50)));
  });

  it('disconnects a second client, and accepts it when the first has disconnected', () => {
    const first = connect();
    const second = connect();
    expect(second.receive(nativeLibrary().addressOf(buffer.buffer), 10)).not.toBe(NOTHING_YET);
    expect(server.counters).toMatchObject({ clients: 1, refused: 1 });
    write(first, framed(frameOf(20, 7)));
    first.close();
    settle();
    const third = connect();
    write(third, framed(frameOf(30, 8)));
    expect(frames.map(({ length }) => length)).toEqual([20, 30]);
    expect(said).toEqual(['connected', 'it hung up', 'connected']);
  });

  it('ends with a client that sends an impossible frame, and forgets half a frame of a disconnected one', () => {
    const client = connect();
    write(client, framed(frameOf(40, 1)).subarray(0, 20));
    client.close();
    settle();
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32BE(FRAME_BYTES_MAX + 1);
    write(connect(), Buffer.concat([framed(frameOf(14, 2)), prefix]));
    expect(frames.map((frame) => [...frame])).toEqual([[...frameOf(14, 2)]]);
    expect(said.at(-1)).toBe(`it sent a frame of ${FRAME_BYTES_MAX + 1} bytes`);
    write(connect(), framed(frameOf(FRAME_BYTES_MAX, 3)));
    expect(frames.at(-1)).toHaveLength(FRAME_BYTES_MAX);
  });

  it('notices within a turn that the client has disconnected, and keeps no descriptor from a client', () => {
    const client = connect();
    const descriptor = createEventfd();
    sendWith(client.descriptor, framed(frameOf(20, 1)), [descriptor]);
    settle();
    expect(frames).toHaveLength(1);
    client.close();
    server.send(frameOf(60, 1), 0, 60);
    expect(said).toEqual(['connected']);
    settle();
    expect(said).toHaveLength(2);
    expect(server.hasClient).toBe(false);
    new Connection(descriptor, 0).close();
  });
});
