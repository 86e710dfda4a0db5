import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { messageOf } from '../client/client.ts';
import { nativeUnavailableReason } from '../native/library.ts';
import { createEventfd } from '../native/poll.ts';
import { openDescriptorCount } from '../testing/bench.ts';
import { INCOMPLETE, MALFORMED, MessageStream } from './message-stream.ts';
import { header } from './protocol.ts';

const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);
const none = new Int32Array(0);
const messageBytesMax = 256;

describe.skipIf(unavailable !== undefined)('a stream of messages', () => {
  let before = 0;
  let stream: MessageStream;

  beforeEach(() => {
    before = openDescriptorCount();
    stream = new MessageStream(messageBytesMax, 4);
  });

  afterEach(() => {
    stream.close();
    expect(openDescriptorCount()).toBe(before);
  });

  /** Like the socket: appends bytes at the end, with new descriptors. */
  const append = (bytes: Uint8Array, descriptorCount = 0): boolean => {
    stream.prepare();
    stream.bytes.set(bytes, stream.end);
    const descriptors =
      descriptorCount === 0 ? none : Int32Array.from({ length: descriptorCount }, createEventfd);
    return stream.append(bytes.length, descriptors, descriptorCount);
  };
  const message = (id: number, payloadBytes = 0): Uint8Array =>
    messageOf({ id, command: 9 }, new Uint8Array(payloadBytes).fill(id));
  /** Takes the complete message: its ID, payload size and number of descriptors. */
  const take = (): [number, number, number] => {
    const sizeBytes = stream.peek();
    expect(sizeBytes).toBeGreaterThan(0);
    const { begin } = stream;
    stream.take(sizeBytes);
    const { id } = header.decode(stream.bytes, begin);
    const taken: [number, number, number] = [id, sizeBytes - header.sizeBytes, stream.descriptorCount];
    stream.closeTaken();
    return taken;
  };

  it('cuts the same messages from any chunks, with any sizes in between', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(messageBytesMax - header.sizeBytes), { minLength: 1, maxLength: 300 }),
        fc.array(fc.integer({ min: 1, max: 3 * messageBytesMax }), { minLength: 1, maxLength: 50 }),
        (payloads, chunks) => {
          const sent = Buffer.concat(payloads.map((bytes, at) => message(at, bytes)));
          const seen: number[] = [];
          for (let at = 0, turn = 0; at < sent.length; turn++) {
            stream.prepare();
            const count = Math.min(chunks[turn % chunks.length]!, sent.length - at, stream.room);
            expect(count).toBeGreaterThan(0);
            append(sent.subarray(at, at + count));
            at += count;
            while (stream.peek() !== INCOMPLETE) {
              const { begin } = stream;
              const [id, payloadBytes] = take();
              expect(id).toBe(seen.length);
              const payload = stream.bytes.subarray(
                begin + header.sizeBytes,
                begin + header.sizeBytes + payloadBytes,
              );
              expect(payload.every((byte) => byte === (id & 0xff))).toBe(true);
              seen.push(payloadBytes);
            }
          }
          expect(seen).toEqual(payloads);
        },
      ),
      { seed: 5, numRuns: 200 },
    );
  });

  it('keeps a beginning until the rest has arrived, byte by byte', () => {
    for (const byte of message(3, 5)) {
      expect(stream.peek()).toBe(INCOMPLETE);
      append(Uint8Array.of(byte));
    }
    expect(take()).toEqual([3, 5, 0]);
    expect(stream.peek()).toBe(INCOMPLETE);
  });

  it('gives descriptors to the message that began last in their read', () => {
    append(Buffer.concat([message(1, 8), message(2), message(3, 4)]), 2);
    expect(take()).toEqual([1, 8, 0]);
    expect(take()).toEqual([2, 0, 0]);
    expect(take()).toEqual([3, 4, 2]);
  });

  it('keeps them with a message of which only the beginning has arrived', () => {
    append(Buffer.concat([message(1), message(2, 20).subarray(0, 7)]), 1);
    expect(take()).toEqual([1, 0, 0]);
    append(message(2, 20).subarray(7));
    expect(take()).toEqual([2, 20, 1]);
  });

  it('separates those of two messages when the first is complete only with the second read', () => {
    append(message(1, 30).subarray(0, 20), 1);
    append(Buffer.concat([message(1, 30).subarray(20), message(2)]), 3);
    expect(take()).toEqual([1, 30, 1]);
    expect(take()).toEqual([2, 0, 3]);
  });

  it('assigns descriptors in the middle of a message to that message', () => {
    append(message(1, 30).subarray(0, 20), 1);
    append(message(1, 30).subarray(20), 2);
    expect(take()).toEqual([1, 30, 3]);
  });

  it('rejects more for one message than it may carry, and closes them', () => {
    expect(append(message(1, 30).subarray(0, 20), 3)).toBe(true);
    const open = openDescriptorCount();
    expect(append(message(1, 30).subarray(20), 2)).toBe(false);
    expect(openDescriptorCount()).toBe(open);
    expect(take()).toEqual([1, 30, 3]);
  });

  it('keeps the owner when bytes are moved to the front', () => {
    const before = new MessageStream(messageBytesMax, 4).room / messageBytesMax;
    for (let round = 0; round < before; round++) {
      append(Buffer.concat([message(round, 200), message(99, 100).subarray(0, 50)]), 1);
      expect(take()).toEqual([round, 200, 0]);
      append(message(99, 100).subarray(50));
      expect(take()).toEqual([99, 100, 1]);
    }
  });

  it('closes untaken ones when the stream is over, and restarts', () => {
    append(Buffer.concat([message(1), message(2, 40).subarray(0, 30)]), 4);
    stream.close();
    expect(openDescriptorCount()).toBe(before);
    expect(stream.peek()).toBe(INCOMPLETE);
    append(message(7));
    expect(take()).toEqual([7, 0, 0]);
  });

  it.each([
    ['shorter than its header', { sizeBytes: 15 }],
    ['of no size', { sizeBytes: 0 }],
    ['longer than allowed', { sizeBytes: messageBytesMax + 1 }],
    ['of 4 GiB', { sizeBytes: 0xffff_ffff }],
    ['a reply, which was not asked for', { type: 1 }],
    ['of an unknown type', { type: 7 }],
  ])('is over at a message %s, but not before it', (_, values) => {
    append(Buffer.concat([message(1), messageOf({ id: 2, ...values }), message(3)]));
    expect(take()).toEqual([1, 0, 0]);
    expect(stream.peek()).toBe(MALFORMED);
  });
});
