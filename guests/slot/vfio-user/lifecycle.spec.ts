import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createMemfd,
  messageOf,
  type VfioUserClient,
  versionPayload,
  writePayload,
} from '../client/client.ts';
import { INTERRUPT_MSIX, REGION_BAR0 } from '../device.ts';
import { nativeUnavailableReason } from '../native/library.ts';
import { createEventfd } from '../native/poll.ts';
import { openDescriptorCount, ServerBench } from '../testing/bench.ts';
import { Command, regionAccess, setInterrupts } from './protocol.ts';

const { EBUSY } = constants.errno;
const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);

describe.skipIf(unavailable !== undefined)('a vfio-user server outlives its clients', () => {
  let before = 0;
  let bench: ServerBench;
  const opened: number[] = [];

  beforeEach(() => {
    before = openDescriptorCount();
    bench = new ServerBench({ sendWaitMs: 50 });
  });

  afterEach(() => {
    bench.close();
    for (const descriptor of opened.splice(0)) closeSync(descriptor);
    expect(openDescriptorCount()).toBe(before);
  });

  const kept = (descriptor: number): number => {
    opened.push(descriptor);
    return descriptor;
  };
  /** A client that has provided RAM and interrupts. */
  const settled = (): VfioUserClient => {
    const client = bench.connectAgreed();
    expect(client.map({ sizeBytes: 8192n, readable: 1, writable: 1 }, kept(createMemfd(8192)))).toBe(0);
    const descriptors = [kept(createEventfd()), kept(createEventfd())];
    expect(client.setEventfds(INTERRUPT_MSIX, 0, 2, descriptors)).toBe(0);
    return client;
  };
  /** The next client is served, and finds no trace of its predecessor. */
  const expectFreshService = (): void => {
    const memory = bench.device.memory;
    const client = bench.connectAgreed();
    expect(client.write(REGION_BAR0, 0, Uint8Array.of(1, 2, 3, 4))).toBe(0);
    expect(client.read(REGION_BAR0, 0, 4)).toEqual(Uint8Array.of(1, 2, 3, 4));
    expect(bench.device.memory?.regions).toEqual([]);
    expect(bench.device.eventfds.size).toBe(0);
    expect(memory?.read(0, 4)).toBeUndefined();
    expect(memory?.write(0, 4, new Uint8Array(4), 0)).toBe(false);
  };
  const gone = ['interrupt 2:0 gone', 'interrupt 2:1 gone', 'gone'];

  it('releasing everything of the first before it serves the second, which came after the first had disconnected', () => {
    const idle = openDescriptorCount();
    const first = settled();
    for (let value = 0; value < 100; value++) first.post(REGION_BAR0, value, Uint8Array.of(value));
    first.close();
    const second = bench.connect();
    second.send(messageOf({ id: 7, command: Command.DEVICE_RESET }));
    // EINVAL: it should have begun with VERSION. It is served, although 100 messages of the first client were still unread.
    expect(second.answer()).toMatchObject({ id: 7, errno: 22 });
    expect(second.isDropped()).toBe(true);
    second.close();
    expect(bench.device.writeCount).toBe(100);
    expect(bench.device.notified.slice(-3)).toEqual(gone);
    // the memfd and the two eventfds of this test are still open, nothing else
    expect(openDescriptorCount()).toBe(idle + 3);
    expectFreshService();
  });

  it('telling a second at once that the first is served, and closing it', () => {
    const idle = openDescriptorCount();
    const first = settled();
    for (let at = 1; at <= 20; at++) {
      const second = bench.connect();
      second.send(messageOf({ id: 7, command: Command.VERSION }, versionPayload(0, 0, '{}\0')), [
        kept(createEventfd()),
      ]);
      expect(second.answer()).toMatchObject({ id: 7, command: Command.VERSION, errno: EBUSY });
      expect(second.isDropped()).toBe(true);
      second.close();
      expect(bench.server.counters.refusedCount).toBe(at);
    }
    expect(bench.ends).toEqual(Array(20).fill('refused'));
    expect(bench.device.notified.filter((line) => line === 'connected')).toHaveLength(1);
    expect(first.write(REGION_BAR0, 0, Uint8Array.of(5))).toBe(0);
    first.close();
    bench.settle();
    expect(openDescriptorCount()).toBe(idle + 3 + 20);
    expectFreshService();
  });

  it('telling so also while the first keeps it busy', () => {
    const first = settled();
    const second = bench.connect();
    second.send(messageOf({ id: 9, command: Command.VERSION }, versionPayload(0, 0, '{}\0')));
    for (let round = 0; round < 2000 && bench.server.counters.refusedCount === 0; round++) {
      first.post(REGION_BAR0, 0, Uint8Array.of(round));
      bench.pump();
    }
    expect(bench.server.counters.refusedCount).toBe(1);
    expect(second.answer()).toMatchObject({ id: 9, errno: EBUSY });
  });

  it('dropping a silent or disconnected second client without a message', () => {
    bench.close();
    bench = new ServerBench({ refusalWaitMs: 30 });
    settled();
    bench.connect().close();
    const silent = bench.connect();
    // Each poll ends with the first event: on a busy computer that is not yet the end of the wait.
    for (let looks = 0; looks < 100 && !silent.isDropped(); looks++) {
      bench.reactor.poll(20);
      bench.settle();
    }
    expect(silent.isDropped()).toBe(true);
    expect(bench.ends).toEqual([]);
    expect(bench.server.hasClient).toBe(true);
  });

  it.each([
    ['a header', 9],
    ['the body', 60],
    ['the data', 90],
  ])('dropping one that stops in the middle of %s, and serving the next', (_, count) => {
    bench.close();
    bench = new ServerBench({ messageWaitMs: 40 });
    const client = settled();
    const message = messageOf({ command: Command.REGION_WRITE }, writePayload(0, 0, new Uint8Array(64)));
    // A complete message before it, in the same send.
    client.send(Buffer.concat([message, message.subarray(0, count)]));
    const startMs = performance.now();
    bench.settle();
    expect(bench.server.hasClient).toBe(true);
    while (bench.server.hasClient && performance.now() < startMs + 5000) bench.reactor.poll(1000);
    expect(performance.now() - startMs).toBeLessThan(1000);
    expect(bench.ends).toEqual(['it stopped in the middle of a message']);
    expect(bench.device.writeCount).toBe(1);
    expectFreshService();
  });

  it('but not one that continues, however slowly, nor one that is silent between two messages', () => {
    bench.close();
    bench = new ServerBench({ messageWaitMs: 100 });
    const client = settled();
    const message = messageOf({ command: Command.REGION_WRITE }, writePayload(0, 0, new Uint8Array(1)));
    for (const byte of message.subarray(0, 12)) {
      client.send(Uint8Array.of(byte));
      bench.settle();
      bench.reactor.poll(20);
    }
    client.send(message.subarray(12));
    expect(client.answer()).toMatchObject({ errno: 0 });
    bench.reactor.poll(150);
    bench.settle();
    expect(bench.ends).toEqual([]);
  });

  it('processing the last messages of a client, even after it has disconnected', () => {
    const client = settled();
    for (let value = 0; value < 100; value++) client.post(REGION_BAR0, value, Uint8Array.of(value));
    client.close();
    bench.settle();
    expect(bench.device.writeCount).toBe(100);
    expect(bench.ends).toEqual(['it closed the connection']);
    expectFreshService();
  });

  it('keeping the state of the device', () => {
    const client = settled();
    client.write(REGION_BAR0, 64, Uint8Array.of(9));
    client.close();
    bench.settle();
    expect(bench.connectAgreed().read(REGION_BAR0, 64, 1)).toEqual(Uint8Array.of(9));
    expect(bench.device.notified).not.toContain('reset');
  });

  it.each([
    ['a header', messageOf({ command: Command.DEVICE_RESET }).subarray(0, 9)],
    [
      'the body',
      messageOf({ command: Command.REGION_WRITE }, writePayload(0, 0, new Uint8Array(64))).subarray(0, 60),
    ],
  ])('dropping one that goes in the middle of %s', (_, bytes) => {
    const client = settled();
    client.send(bytes, [kept(createEventfd())]);
    bench.settle();
    client.close();
    bench.settle();
    expect(bench.ends).toEqual(['the connection broke in the middle of a message']);
    expect(bench.device.notified.slice(-3)).toEqual(gone);
    expect(bench.server.counters.droppedCount).toBe(1);
    expectFreshService();
  });

  it.each([
    ['too short a size', { sizeBytes: 12 }],
    ['too long a size', { sizeBytes: 0x7fff_ffff }],
    ['a reply', { type: 1 }],
    ['an unknown type', { type: 15 }],
  ])('dropping one that sends %s', (_, values) => {
    const client = settled();
    client.send(messageOf({ command: Command.DEVICE_RESET, ...values }), [kept(createEventfd())]);
    expect(client.isDropped()).toBe(true);
    expect(bench.ends).toEqual(['it sent a message with an impossible size or type']);
    expectFreshService();
  });

  it('dropping one that sends more descriptors than agreed', () => {
    const client = settled();
    const descriptors = Array.from({ length: 17 }, () => kept(createEventfd()));
    const payload = setInterrupts.encode({ argumentBytes: 20 });
    client.send(messageOf({ command: Command.DEVICE_SET_IRQS }, payload), descriptors);
    expect(client.isDropped()).toBe(true);
    expect(bench.ends[0]).toContain('descriptors');
    expectFreshService();
  });

  it('dropping one that sends requests and never reads', () => {
    const client = settled();
    const ask = messageOf(
      { command: Command.REGION_READ },
      regionAccess.encode({ region: 0, count: 60_000 }),
    );
    const startMs = performance.now();
    for (let at = 0; at < 200 && bench.server.hasClient; at++) {
      try {
        client.send(ask);
      } catch {
        break;
      }
      bench.pump();
    }
    bench.settle();
    expect(bench.ends).toEqual(['it took no replies']);
    expect(performance.now() - startMs).toBeLessThan(5000);
    expectFreshService();
  });

  it('answering one that marks its command as an error with an error', () => {
    const client = bench.connectAgreed();
    client.send(messageOf({ id: 3, command: Command.DEVICE_RESET, isError: 1 }));
    expect(client.answer()).toMatchObject({ id: 3, errno: 22 });
    expect(bench.device.notified).toEqual(['connected']);
  });

  it('though its device closes the server in the middle of a command', () => {
    const client = settled();
    bench.device.reset = () => bench.server.close();
    client.command(Command.DEVICE_RESET, new Uint8Array(0));
    expect(client.isDropped()).toBe(true);
    expect(bench.device.notified.slice(-3)).toEqual(gone);
    expect(bench.server.descriptor).toBe(-1);
  });

  it('even if one is killed repeatedly during work', { timeout: 60_000 }, async () => {
    const idle = openDescriptorCount();
    for (let round = 0; round < 3; round++) {
      const script = join(import.meta.dirname, '../testing/hasty-client.ts');
      const child = spawn(process.execPath, [script, bench.path], { stdio: 'ignore' });
      const end = once(child, 'exit');
      const writes = bench.device.writeCount;
      const limitMs = performance.now() + 15_000;
      while (bench.device.writeCount < writes + 2000 && performance.now() < limitMs) bench.reactor.poll(100);
      expect(bench.device.writeCount).toBeGreaterThanOrEqual(writes + 2000);
      expect(bench.device.memory?.regions).toHaveLength(1);
      child.kill('SIGKILL');
      await end;
      bench.settle();
      expect(bench.server.hasClient).toBe(false);
      expect(openDescriptorCount()).toBe(idle);
    }
    expectFreshService();
  });
});
