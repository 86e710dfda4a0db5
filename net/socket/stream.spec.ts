import { describe, expect, test } from 'vitest';
import { addresses, TestNetwork, type TestOptions } from '../testing/machine.ts';

const port = 5000;

/** Bytes that say where they belong. */
const pattern = (lengthBytes: number, seed: number): Uint8Array =>
  Uint8Array.from({ length: lengthBytes }, (_, at) => (at * 31 + (at >> 8) * 7 + seed) & 0xff);

/** Sends a file each way over one connection, in pieces of `piece`; returns what arrived. */
async function exchange(lengthBytes: number, options: TestOptions = {}, piece = 5000) {
  const net = new TestNetwork(options);
  const received: Uint8Array[] = [];
  const side =
    (node: 0 | 1): Parameters<TestNetwork['run']>[2] =>
    async ({ cpu, memory }, calls) => {
      let fd = await calls.socket(cpu);
      if (node === 1) {
        await calls.bind(cpu, fd, { address: 0, port });
        await calls.listen(cpu, fd, 1);
        fd = await calls.accept(cpu, fd);
      } else {
        await cpu.sleep(100e6);
        await calls.connect(cpu, fd, { address: addresses[1], port });
      }
      const source = memory.map(lengthBytes);
      const target = memory.map(lengthBytes);
      await memory.store(cpu, source, pattern(lengthBytes, node));
      let sent = 0;
      let got = 0;
      while (sent < lengthBytes || got < lengthBytes) {
        const events = [
          ...(got < lengthBytes ? (['POLLIN'] as const) : []),
          ...(sent < lengthBytes ? (['POLLOUT'] as const) : []),
        ];
        const [ready] = await calls.poll(cpu, [{ fd, events }]);
        if (ready!.includes('POLLIN')) {
          const count = await calls.recv(cpu, fd, target + got, Math.min(piece, lengthBytes - got));
          if (count === 0) throw new Error('early end');
          got += count;
        }
        if (ready!.includes('POLLOUT')) {
          const count = Math.min(piece, lengthBytes - sent);
          sent += await calls.send(cpu, fd, source + sent, count, { dontWait: true });
        }
      }
      const bytes = new Uint8Array(lengthBytes);
      await memory.load(cpu, target, bytes);
      received[node] = bytes;
      await calls.shutdown(cpu, fd, 'SHUT_WR');
      expect(await calls.recv(cpu, fd, target, 1)).toBe(0);
      await calls.close(cpu, fd);
    };
  net.run(0, 'client', side(0));
  net.run(1, 'server', side(1));
  await net.toEnd();
  return { net, received };
}

describe('a stream', () => {
  test('carries bytes whole both ways', async () => {
    const { net, received } = await exchange(300_000);
    expect(received[0]).toEqual(pattern(300_000, 1));
    expect(received[1]).toEqual(pattern(300_000, 0));
    const { counts } = net.nodes[0]!.network;
    expect(counts.retransmissions).toBe(0);
    expect([counts.copiedInBytes, counts.copiedOutBytes]).toEqual([300_000, 300_000]);
  });
});
