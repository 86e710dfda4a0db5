import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addresses, TestNetwork, type TestOptions } from '../testing/machine.ts';

const port = 5000;

/** Bytes that encode their own position. */
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
  test('carries bytes intact in both directions', async () => {
    const { net, received } = await exchange(300_000);
    expect(received[0]).toEqual(pattern(300_000, 1));
    expect(received[1]).toEqual(pattern(300_000, 0));
    const { counts } = net.nodes[0]!.network;
    expect(counts.retransmissions).toBe(0);
    expect([counts.copiedInBytes, counts.copiedOutBytes]).toEqual([300_000, 300_000]);
  });

  test('copies every byte once in and once out, and wakes a thread for each block of waiting', async () => {
    const { net } = await exchange(100_000);
    for (const { network } of net.nodes) {
      const { counts } = network;
      expect([counts.copiedInBytes, counts.copiedOutBytes]).toEqual([100_000, 100_000]);
      expect(counts.wakeUps).toBeLessThanOrEqual(counts.contextSwitches);
      expect(counts.systemCalls).toBeGreaterThan(40);
    }
  });

  test('arrives intact in both directions when the cable loses, duplicates, reorders and corrupts', async () => {
    const faults = fc.record({
      loss: fc.double({ min: 0, max: 0.1, noNaN: true }),
      duplication: fc.double({ min: 0, max: 0.1, noNaN: true }),
      reordering: fc.double({ min: 0, max: 0.3, noNaN: true }),
      corruption: fc.double({ min: 0, max: 0.05, noNaN: true }),
      seed: fc.integer({ min: 1, max: 1e6 }),
    });
    const sizes = fc.integer({ min: 1, max: 60_000 });
    const pieces = fc.constantFrom(1_459, 1_460, 1_461, 5_000, 40_000);
    await fc.assert(
      fc.asyncProperty(faults, sizes, pieces, async (cable, lengthBytes, piece) => {
        const { received, net } = await exchange(lengthBytes, { cable }, piece);
        expect(received[0]).toEqual(pattern(lengthBytes, 1));
        expect(received[1]).toEqual(pattern(lengthBytes, 0));
        for (const { network } of net.nodes) expect(network.stack.connectionCount).toBeLessThanOrEqual(1);
      }),
      { numRuns: 60, seed: 20261121 },
    );
  });

  test('arrives intact through rings and buffers that are far too small', async () => {
    const { received, net } = await exchange(80_000, {
      driver: { transmitRing: 8, receiveRing: 8, refillBatch: 1, buffersMax: 48 },
      cable: { loss: 0.01, seed: 5 },
    });
    expect(received[0]).toEqual(pattern(80_000, 1));
    expect(received[1]).toEqual(pattern(80_000, 0));
    expect(net.nodes[0]!.network.driver.buffers.taken).toBeLessThanOrEqual(48);
  });

  test('is checksummed by the CPU if the NIC does not, at a cost for every byte', async () => {
    const { received, net } = await exchange(50_000, { driver: { checksumOffload: false } });
    expect(received[1]).toEqual(pattern(50_000, 0));
    const { counts } = net.nodes[0]!.network;
    expect(counts.checksummedBytes).toBeGreaterThan(100_000);
    const { checksum } = net.nodes[0]!.host.report().cores[0]!.cycles;
    expect(checksum).toBeGreaterThanOrEqual(counts.checksummedBytes / 4);
  });

  test('uses jumbo frames when the MTU is 9000', async () => {
    const { received, net } = await exchange(200_000, { driver: { mtu: 9000 } }, 50_000);
    expect(received[0]).toEqual(pattern(200_000, 1));
    // 8,960 bytes a segment: 23 of them, plus the short ones that Nagle's rule sends early.
    expect(net.nodes[0]!.network.counts.segmentsSent).toBeLessThan(100);
  });

  test.each([7, 14])(
    'arrives intact in jumbo frames if the buffer is set to less than one of them, scale %i',
    async (windowScale) => {
      const { received } = await exchange(60_000, {
        driver: { mtu: 9000 },
        stack: { receiveBufferKib: 4, windowScale },
      });
      expect(received[1]).toEqual(pattern(60_000, 0));
    },
  );

  test('is throttled by a reader that does not read, also in segments smaller than a unit of the window', async () => {
    const net = new TestNetwork();
    let sent = 0;
    let isEnough = false;
    net.run(0, 'sender', async ({ cpu, memory }, calls) => {
      await cpu.sleep(100e6);
      const fd = await calls.socket(cpu);
      await calls.setsockopt(cpu, fd, 'TCP_NODELAY', 1);
      await calls.connect(cpu, fd, { address: addresses[1], port });
      const source = memory.map(4096);
      while (!isEnough) {
        await calls.poll(cpu, [{ fd, events: ['POLLOUT'] }], 1e9);
        sent += await calls.send(cpu, fd, source, 40, { dontWait: true }).catch(() => 0);
      }
    });
    net.run(1, 'reader', async ({ cpu }, calls) => {
      const fd = await calls.socket(cpu);
      await calls.bind(cpu, fd, { address: 0, port });
      await calls.listen(cpu, fd, 1);
      await calls.accept(cpu, fd);
      await cpu.sleep(50e9);
      isEnough = true;
    });
    await net.toEnd();
    // SO_RCVBUF and a unit of 128 bytes, plus the sender's queue: 2 × SO_SNDBUF in buffers of 2 KiB that hold a segment.
    expect(sent).toBeLessThanOrEqual(131_072 + 128 + 128 * 1460);
    expect(sent).toBeGreaterThan(131_072);
  });

  test('releases everything when the NIC is removed', async () => {
    const { net } = await exchange(50_000, { cable: { loss: 0.05, seed: 3 } });
    for (const { index, network, host } of net.nodes) {
      await net.kernel(index, (cpu) => network.remove(cpu));
      expect(network.driver.buffers.taken).toBe(0);
      expect(network.stack.connectionCount).toBe(0);
      expect(host.report().isBalanced).toBe(true);
    }
  });
});
