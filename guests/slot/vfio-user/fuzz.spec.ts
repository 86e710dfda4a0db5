/**
 * Checks for any input that the server stays up, accesses nothing forbidden, and releases everything. Seeds are fixed;
 * a failure prints the smallest stream that causes it.
 */
import { closeSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemfd, messageOf, type VfioUserClient } from '../client/client.ts';
import { REGION_BAR0 } from '../device.ts';
import { nativeUnavailableReason } from '../native/library.ts';
import { NativeCallError } from '../native/native-call-error.ts';
import { createEventfd } from '../native/poll.ts';
import { openDescriptorCount, ServerBench } from '../testing/bench.ts';
import { header } from './protocol.ts';

const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);

const smallNumber = fc.oneof(fc.nat(64), fc.constantFrom(4096, 8192, 0xffff_ffff, 0x8000_0000, 65_536));
/** Words with a meaning in many places: the closer a message is to a valid one, the further it proceeds. */
const payload = fc
  .array(smallNumber, { maxLength: 16 })
  .map((words) => new Uint8Array(Uint32Array.from(words).buffer));
const message = fc
  .record({
    command: fc.oneof(fc.integer({ min: 1, max: 19 }), fc.nat(0xffff)),
    noReply: fc.nat(1),
    payload: fc.oneof(payload, fc.uint8Array({ maxLength: 80 })),
    sizeBytes: fc.option(fc.nat(200), { freq: 20 }),
    type: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9),
  })
  .map(({ payload: body, sizeBytes, command, noReply, type }) =>
    messageOf({ command, noReply, type, sizeBytes: sizeBytes ?? header.sizeBytes + body.length }, body),
  );
const chunk = fc.record({
  lengthBytes: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2000 })),
  descriptors: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(17) }),
});

describe.skipIf(unavailable !== undefined)('a vfio-user server', () => {
  let bench: ServerBench;
  let before = 0;
  const gifts: number[] = [];

  beforeAll(() => {
    before = openDescriptorCount();
    bench = new ServerBench({ sendWaitMs: 20 });
    for (let at = 0; at < 17; at++) gifts.push(at % 2 === 0 ? createMemfd(16_384) : createEventfd());
  });

  afterAll(() => {
    bench.close();
    for (const descriptor of gifts) closeSync(descriptor);
    expect(openDescriptorCount()).toBe(before);
  });

  /** Sends in these chunks until all is sent or the server has disconnected. */
  const send = (
    client: VfioUserClient,
    bytes: Uint8Array,
    chunks: { lengthBytes: number; descriptors: number }[],
  ) => {
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const { lengthBytes, descriptors } = chunks[turn % chunks.length]!;
      try {
        client.send(bytes.subarray(at, at + lengthBytes), gifts.slice(0, descriptors));
      } catch (error) {
        if (error instanceof NativeCallError) return;
        throw error;
      }
      if (turn % 3 === 0) bench.pump();
      at += lengthBytes;
    }
  };
  const expectUnharmed = (idle: number): void => {
    bench.settle();
    expect(bench.server.hasClient).toBe(false);
    expect(openDescriptorCount()).toBe(idle);
    const client = bench.connectAgreed();
    expect(client.write(REGION_BAR0, 0, Uint8Array.of(5))).toBe(0);
    expect(client.read(REGION_BAR0, 0, 1)).toEqual(Uint8Array.of(5));
    client.close();
    bench.settle();
  };

  it('survives any messages in any chunks with any descriptors', () => {
    const chunks = fc.array(chunk, { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 40 }),
        chunks,
        fc.boolean(),
        (messages, sizes, hasAgreed) => {
          const idle = openDescriptorCount();
          const client = hasAgreed ? bench.connectAgreed() : bench.connect();
          send(client, Buffer.concat(messages), sizes);
          bench.settle();
          bench.device.memory?.write(0, 64, new Uint8Array(64), 0);
          bench.device.memory?.read(4090, 100);
          client.close();
          expectUnharmed(idle);
        },
      ),
      { seed: 20_261_121, numRuns: 400 },
    );
  });

  it('survives any bytes', () => {
    const chunks = fc.array(chunk, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 500 }), chunks, (bytes, sizes) => {
        const idle = openDescriptorCount();
        const client = bench.connectAgreed();
        send(client, bytes, sizes);
        client.close();
        expectUnharmed(idle);
      }),
      { seed: 7, numRuns: 200, endOnFailure: true },
    );
  });
});
