import { describe, expect, test } from 'vitest';
import { defaultsOf } from '../../base/parameter.ts';
import { netStackParameters } from '../parameters.ts';
import type { KernelMemory } from '../platform.ts';
import { addresses, ms, TestNetwork, type TestOptions, us } from '../testing/machine.ts';
import { folded, sumFrom, sumOf } from './checksum.ts';
import { PacketBuffers } from './packet-buffer.ts';
import { ReceiveQueue } from './receive-queue.ts';

test('the checksum is that of the example of RFC 1071', () => {
  const bytes = Uint8Array.of(0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7);
  expect(folded(sumOf(bytes, 0, 8))).toBe(0xddf2);
  expect(folded(sumOf(Uint8Array.of(0x12, 0x34, 0x56), 0, 3))).toBe(0x1234 + 0x5600);
  // From the fifth byte on: f4f5 + f6f7, plus the carry.
  expect(folded(sumFrom(bytes, 0, 4, sumOf(bytes, 0, 8)))).toBe(0xebed);
});

describe('the receive queue', () => {
  function newQueue(outOfOrderMax = 8) {
    const bytes = new Uint8Array(256 * 4096);
    let next = 1;
    const memory = {
      sizeBytes: bytes.length,
      bytes,
      view: new DataView(bytes.buffer),
      allocateFrames: (count: number) => {
        next += count;
        return (next - count) * 4096;
      },
      leaveToDevice: () => {},
      freeFrames: () => {},
    } satisfies KernelMemory;
    const buffers = new PacketBuffers(memory, 2048, 100);
    const queue = new ReceiveQueue(buffers, memory, outOfOrderMax);
    const arrive = (sequence: number, lengthBytes: number) => {
      const buffer = buffers.take()!;
      buffer.start = 54;
      buffer.length = lengthBytes;
      buffer.sequence = sequence;
      for (let at = 0; at < lengthBytes; at++) bytes[buffer.physical + at] = (sequence + at) & 0xff;
      return queue.arrive(buffer);
    };
    const read = () => {
      const out: number[] = [];
      while (queue.head !== undefined) {
        const { physical, length } = queue.head;
        out.push(...bytes.subarray(physical, physical + length));
        queue.consume(length);
      }
      return out;
    };
    return { queue, buffers, arrive, read };
  }
  const counting = (count: number): number[] => Array.from({ length: count }, (_, at) => at & 0xff);

  test('merges data after gaps, overlaps and repetitions into one stream', () => {
    const { queue, buffers, arrive, read } = newQueue();
    expect(arrive(100, 50)).toBe('behindGap');
    expect(arrive(30, 40)).toBe('behindGap');
    expect(arrive(100, 50)).toBe('duplicate');
    expect(arrive(0, 40)).toBe('inOrder');
    expect([queue.next, queue.hasGap]).toEqual([70, true]);
    expect(arrive(20, 20)).toBe('duplicate');
    expect(arrive(60, 60)).toBe('inOrder');
    expect([queue.next, queue.hasGap, queue.readableBytes]).toEqual([150, false, 150]);
    expect(read()).toEqual(counting(150));
    expect(buffers.taken).toBe(0);
  });

  test('holds no more memory for small segments than for large ones', () => {
    const { queue, buffers, arrive, read } = newQueue();
    for (let at = 0; at < 10_000; at += 10) arrive(at, 10);
    expect(buffers.taken).toBeLessThanOrEqual(6);
    expect(queue.readableBytes).toBe(10_000);
    expect(read()).toEqual(counting(10_000));
  });

  test('rejects more data after a gap than its limit', () => {
    const { queue, buffers, arrive } = newQueue(3);
    const outcomes = [1, 2, 3, 4].map((at) => arrive(at * 100, 10));
    expect(outcomes).toEqual(['behindGap', 'behindGap', 'behindGap', 'refused']);
    queue.clear();
    expect(buffers.taken).toBe(0);
  });
});

describe('on the wire', () => {
  const port = 4000;
  const flagsOf = (frame: Uint8Array): number => frame[14 + 20 + 13]!;
  const payloadOf = (frame: Uint8Array): number =>
    ((frame[16]! << 8) | frame[17]!) - 20 - (frame[46]! >> 4) * 4;

  interface Seen {
    readonly from: number;
    readonly atPs: number;
    readonly flags: number;
    readonly payload: number;
    readonly frame: Uint8Array;
  }

  /** A client sends `lengthBytes` in one call and closes. @returns the frames on the cable, and the network */
  async function watch(
    lengthBytes: number,
    options: TestOptions = {},
    isLost: (seen: Seen, index: number, net: TestNetwork) => boolean = () => false,
  ) {
    const net = new TestNetwork(options);
    const seen: Seen[] = [];
    net.onFrame = (from, frame) => {
      const what = { flags: flagsOf(frame), payload: payloadOf(frame), frame: frame.slice() };
      const one = { from, atPs: net.process.nowPs, ...what };
      seen.push(one);
      return !isLost(one, seen.length - 1, net);
    };
    net.run(0, 'client', async ({ cpu, memory }, calls) => {
      await cpu.sleep(100 * us);
      const fd = await calls.socket(cpu);
      await calls.connect(cpu, fd, { address: addresses[1], port });
      await calls.send(cpu, fd, memory.map(1 << 20), lengthBytes);
      await cpu.sleep(100 * ms);
      await calls.close(cpu, fd);
    });
    net.run(1, 'server', async ({ cpu, memory }, calls) => {
      const listening = await calls.socket(cpu);
      await calls.bind(cpu, listening, { address: 0, port });
      await calls.listen(cpu, listening, 1);
      const fd = await calls.accept(cpu, listening);
      const buffer = memory.map(1 << 20);
      expect(await calls.recv(cpu, fd, buffer, lengthBytes, { waitAll: true })).toBe(lengthBytes);
      expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
      await calls.close(cpu, fd);
    });
    await net.toEnd(ms);
    return { net, seen };
  }

  test('a connection is SYN, SYN and ACK, ACK; data; a delayed ACK; FIN and ACK from both sides', async () => {
    // A buffer that the SYN's window announces completely: reading adds nothing.
    const { seen } = await watch(100, { stack: { receiveBufferKib: 32 } });
    const [fin, syn, psh, ack] = [1, 2, 8, 16];
    expect(seen.map(({ from, flags, payload }) => [from, flags, payload])).toEqual([
      [0, syn, 0],
      [1, syn | ack, 0],
      [0, ack, 0],
      [0, psh | ack, 100],
      [1, ack, 0],
      [0, fin | ack, 0],
      [1, ack, 0],
      [1, fin | ack, 0],
      [0, ack, 0],
    ]);
    // TCP_DELACK_MIN.
    const heldMs = (seen[4]!.atPs - seen[3]!.atPs) / ms;
    expect(heldMs).toBeGreaterThan(39.9);
    expect(heldMs).toBeLessThan(40.1);
  });

  /** The ACK of a frame, as if it had been sent this many bytes later; its checksum follows RFC 1624, equation 3. */
  function laterBy(bytes: number, ack: Uint8Array): Uint8Array {
    const frame = ack.slice();
    const view = new DataView(frame.buffer);
    const [sequence, checksum] = [14 + 20 + 4, 14 + 20 + 16];
    const before = [view.getUint16(sequence), view.getUint16(sequence + 2)];
    view.setUint32(sequence, view.getUint32(sequence) + bytes);
    const after = [view.getUint16(sequence), view.getUint16(sequence + 2)];
    let sum = 0xffff - view.getUint16(checksum);
    for (const [at, word] of before.entries()) sum += 0xffff - word + after[at]!;
    view.setUint16(checksum, 0xffff - ((sum % 0x1_0000) + Math.floor(sum / 0x1_0000)));
    return frame;
  }

  test('a keep-alive probe, of the byte before the next one, is answered by an ACK (RFC 9293, 3.8.4)', async () => {
    let ack: Uint8Array | undefined;
    const { net, seen } = await watch(
      100,
      { stack: { receiveBufferKib: 32 } },
      ({ frame }, index, { nodes }) => {
        // The ACK of the SYN tells where the 100 bytes begin; the delayed ACK tells that they have arrived.
        if (index === 2) ack = frame;
        if (index === 4) nodes[1]!.nic.frameArrived(laterBy(99, ack!));
        return false;
      },
    );
    const numbers = ({ frame }: Seen): number[] => {
      const view = new DataView(frame.buffer);
      return [view.getUint32(14 + 20 + 4), view.getUint32(14 + 20 + 8)];
    };
    const [delayed, answer] = [seen[4]!, seen[5]!];
    expect([answer.from, answer.flags, answer.payload]).toEqual([1, 16, 0]);
    expect(numbers(answer)).toEqual(numbers(delayed));
    expect((answer.atPs - delayed.atPs) / ms).toBeLessThan(1);
    // No trace of it is left: the connection ends normally.
    expect(seen.slice(6).map(({ from, flags }) => [from, flags & 1])).toEqual([
      [0, 1],
      [1, 0],
      [1, 1],
      [0, 0],
    ]);
    expect(net.nodes[1]!.network.counts.duplicates).toBe(1);
  });

  test('no segment is longer than the MTU allows, and two are acknowledged together', async () => {
    const { seen } = await watch(14_600);
    const data = seen.filter(({ payload }) => payload > 0);
    expect(data.map(({ payload }) => payload)).toEqual(new Array(10).fill(1460));
    const acks = seen.filter(({ from, payload, flags }) => from === 1 && payload === 0 && flags === 16);
    expect(acks.length).toBeLessThanOrEqual(7);
  });

  test('one lost segment among many is retransmitted after three duplicates, without waiting for a timeout', async () => {
    let data = 0;
    const { net } = await watch(100_000, {}, ({ payload }) => payload > 0 && ++data === 20);
    const { counts } = net.nodes[0]!.network;
    expect([counts.fastRetransmissions, counts.retransmissions, counts.retransmissionTimeouts]).toEqual([
      1, 1, 0,
    ]);
  });

  test('a lost last segment waits for the timeout, not less than 200 ms', async () => {
    let data = 0;
    const { net, seen } = await watch(2920, {}, ({ payload }) => payload > 0 && ++data === 2);
    expect(net.nodes[0]!.network.counts.retransmissionTimeouts).toBe(1);
    const sent = seen.filter(({ payload }) => payload > 0);
    expect((sent[2]!.atPs - sent[1]!.atPs) / ms).toBeGreaterThan(199);
  });

  test('never more data is in flight than the reader has announced', async () => {
    const { net, seen } = await watch(300_000, { stack: { receiveBufferKib: 8, initialWindowSegments: 64 } });
    expect(seen.length).toBeGreaterThan(200);
    expect(net.nodes[1]!.network.counts.droppedForRoom).toBe(0);
    expect(net.nodes[0]!.network.counts.retransmissions).toBe(0);
  });

  test('nothing is left of a connection when TIME_WAIT is over', async () => {
    const { net } = await watch(100, { stack: { timeWaitUs: 1000 } });
    await net.for(200 * ms);
    expect(net.nodes.map(({ network }) => network.stack.connectionCount)).toEqual([0, 0]);
  });
});

test('the defaults are those of Linux if they claim to be', () => {
  const defaults = defaultsOf(netStackParameters);
  expect([
    defaults.retransmitMinUs,
    defaults.delayedAckUs,
    defaults.synRetries,
    defaults.dataRetries,
  ]).toEqual([200_000, 40_000, 6, 15]);
});
