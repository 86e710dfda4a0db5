import { describe, expect, test } from 'vitest';
import { addresses, ms, type NetProgram, TestNetwork, type TestOptions, us } from '../testing/machine.ts';
import { NetError } from './net-error.ts';
import type { SocketCalls } from './socket-calls.ts';

const port = 5000;
type Cpu = Parameters<NetProgram>[0]['cpu'];

/** The errno of a call that must fail. */
async function errnoOf(call: Promise<unknown>): Promise<string> {
  try {
    return `returned ${String(await call)}`;
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
    return error.code;
  }
}

async function listening(cpu: Cpu, calls: SocketCalls, backlog = 4): Promise<number> {
  const fd = await calls.socket(cpu);
  await calls.bind(cpu, fd, { address: 0, port });
  await calls.listen(cpu, fd, backlog);
  return fd;
}

async function connected(cpu: Cpu, calls: SocketCalls): Promise<number> {
  await cpu.sleep(100 * us);
  const fd = await calls.socket(cpu);
  await calls.connect(cpu, fd, { address: addresses[1], port });
  return fd;
}

/** Runs a client on host 0 and a server that has accepted it on host 1. */
async function pair(
  client: (cpu: Cpu, calls: SocketCalls, fd: number, buffer: number, net: TestNetwork) => Promise<void>,
  server: (cpu: Cpu, calls: SocketCalls, fd: number, buffer: number, net: TestNetwork) => Promise<void>,
  options: TestOptions = {},
): Promise<TestNetwork> {
  const net = new TestNetwork(options);
  net.run(0, 'client', async ({ cpu, memory }, calls) => {
    await client(cpu, calls, await connected(cpu, calls), memory.map(1 << 20), net);
  });
  net.run(1, 'server', async ({ cpu, memory }, calls) => {
    const fd = await calls.accept(cpu, await listening(cpu, calls));
    await server(cpu, calls, fd, memory.map(1 << 20), net);
  });
  await net.toEnd();
  return net;
}

/** Runs one program on host 0. */
async function alone(body: NetProgram, options: TestOptions = {}): Promise<TestNetwork> {
  const net = new TestNetwork(options);
  net.run(0, 'program', body);
  await net.toEnd();
  return net;
}

describe('a connection that does not come up', () => {
  test('is ECONNREFUSED without a listener', async () => {
    const net = await alone(async ({ cpu }, calls) => {
      const fd = await calls.socket(cpu);
      expect(await errnoOf(calls.connect(cpu, fd, { address: addresses[1], port }))).toBe('ECONNREFUSED');
    });
    expect(net.nodes[1]!.network.counts.resetsSent).toBe(1);
    expect(net.nodes[0]!.network.stack.connectionCount).toBe(0);
  });

  test('is ETIMEDOUT without an answer, after the allowed tries, each after twice the time', async () => {
    const net = new TestNetwork({
      stack: { synRetries: 3, retransmitInitialUs: 1000, retransmitMinUs: 1000 },
    });
    const sentPs: number[] = [];
    net.onFrame = () => {
      sentPs.push(net.process.nowPs);
      return false;
    };
    net.run(0, 'client', async ({ cpu }, calls) => {
      const fd = await calls.socket(cpu);
      expect(await errnoOf(calls.connect(cpu, fd, { address: addresses[1], port }))).toBe('ETIMEDOUT');
    });
    await net.toEnd();
    expect(sentPs).toHaveLength(4);
    const gaps = sentPs.slice(1).map((at, index) => Math.round((at - sentPs[index]!) / ms));
    expect(gaps).toEqual([1, 2, 4]);
  });

  test('is EHOSTUNREACH for a host that is not a neighbour', async () => {
    await alone(async ({ cpu }, calls) => {
      const fd = await calls.socket(cpu);
      expect(await errnoOf(calls.connect(cpu, fd, { address: 0x0b00_0001, port }))).toBe('EHOSTUNREACH');
    });
  });

  test('waits when the backlog is full, and is established when it has room', async () => {
    const net = new TestNetwork({ stack: { retransmitInitialUs: 1000, retransmitMinUs: 1000 }, cores: 4 });
    let accepted = 0;
    for (let core = 0; core < 3; core++) {
      net.run(
        0,
        `client ${core}`,
        async ({ cpu, memory }, calls) => {
          const fd = await connected(cpu, calls);
          expect(await calls.recv(cpu, fd, memory.map(4096), 1)).toBe(0);
        },
        core,
      );
    }
    net.run(1, 'server', async ({ cpu }, calls) => {
      const fd = await listening(cpu, calls, 1);
      await cpu.sleep(20 * ms);
      for (; accepted < 3; accepted++) await calls.close(cpu, await calls.accept(cpu, fd));
    });
    await net.toEnd();
    expect(accepted).toBe(3);
    expect(net.nodes[1]!.network.counts.droppedForRoom).toBeGreaterThan(0);
  });
});

describe('a connection that ends', () => {
  test('is ECONNRESET for a reader when the peer closes with bytes unread, reported once', async () => {
    await pair(
      async (cpu, calls, fd, buffer) => {
        await calls.send(cpu, fd, buffer, 5000);
        expect(await errnoOf(calls.recv(cpu, fd, buffer, 1))).toBe('ECONNRESET');
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
        expect(await errnoOf(calls.send(cpu, fd, buffer, 1))).toBe('EPIPE');
      },
      async (cpu, calls, fd) => {
        await cpu.sleep(ms);
        await calls.close(cpu, fd);
      },
    );
  });

  test('is ECONNRESET for the next call of a reader that has received a part', async () => {
    await pair(
      async (cpu, calls, fd, buffer) => {
        await calls.send(cpu, fd, buffer, 1000);
        await cpu.sleep(10 * ms);
        await calls.close(cpu, fd);
      },
      async (cpu, calls, fd, buffer) => {
        await calls.send(cpu, fd, buffer, 100);
        expect(await calls.recv(cpu, fd, buffer, 4000, { waitAll: true })).toBe(1000);
        expect(await errnoOf(calls.recv(cpu, fd, buffer, 4000))).toBe('ECONNRESET');
        expect(await calls.recv(cpu, fd, buffer, 4000)).toBe(0);
      },
    );
  });

  test('is ECONNRESET for the next call of a writer that has sent a part', async () => {
    await pair(
      async (cpu, calls, fd) => {
        await cpu.sleep(10 * ms);
        await calls.close(cpu, fd);
      },
      async (cpu, calls, fd, buffer) => {
        expect(await calls.send(cpu, fd, buffer, 1 << 20)).toBeLessThan(1 << 20);
        expect(await errnoOf(calls.send(cpu, fd, buffer, 100))).toBe('ECONNRESET');
        expect(await errnoOf(calls.send(cpu, fd, buffer, 100))).toBe('EPIPE');
      },
    );
  });

  test('has its FIN after the accepted bytes, and nothing else, when it is shut while another thread sends', async () => {
    for (let delayPs = 3 * us; delayPs < 5 * us; delayPs += us / 10) {
      const net = new TestNetwork();
      let mine: { calls: SocketCalls; fd: number } | undefined;
      let taken = 0;
      let got = 0;
      net.run(0, 'sender', async ({ cpu, memory }, calls) => {
        const fd = await connected(cpu, calls);
        const buffer = memory.map(8192);
        // Nagle's rule delays the second write: the third is appended to it, which takes time.
        for (let count = 0; count < 2; count++) taken += await calls.send(cpu, fd, buffer, 100);
        mine = { calls, fd };
        await cpu.sleep(3 * us);
        const left = await calls.send(cpu, fd, buffer + 4096, 1000).catch((error: NetError) => error.code);
        if (left !== 'EPIPE') taken += Number(left);
        await cpu.sleep(100 * ms);
      });
      net.run(
        0,
        'shutter',
        async ({ cpu }) => {
          while (mine === undefined) await cpu.sleep(us / 10);
          await cpu.sleep(delayPs);
          await mine.calls.shutdown(cpu, mine.fd, 'SHUT_WR');
        },
        1,
      );
      net.run(1, 'reader', async ({ cpu, memory }, calls) => {
        const fd = await calls.accept(cpu, await listening(cpu, calls));
        const buffer = memory.map(8192);
        for (let count = -1; count !== 0; got += count) count = await calls.recv(cpu, fd, buffer, 8192);
      });
      await net.toEnd(1, 2000 * ms);
      expect([delayPs, got]).toEqual([delayPs, taken]);
    }
  });

  test('is EPIPE for a writer that has shut its side, while it can still read', async () => {
    await pair(
      async (cpu, calls, fd, buffer) => {
        await calls.shutdown(cpu, fd, 'SHUT_WR');
        expect(await errnoOf(calls.send(cpu, fd, buffer, 1))).toBe('EPIPE');
        expect(await calls.recv(cpu, fd, buffer, 3000, { waitAll: true })).toBe(3000);
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
      },
      async (cpu, calls, fd, buffer) => {
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
        expect(await calls.send(cpu, fd, buffer, 3000)).toBe(3000);
      },
    );
  });

  test('is ETIMEDOUT when the cable is cut under data', async () => {
    await pair(
      async (cpu, calls, fd, buffer, net) => {
        net.onFrame = () => false;
        await calls.send(cpu, fd, buffer, 1000);
        expect(await errnoOf(calls.recv(cpu, fd, buffer, 1))).toBe('ETIMEDOUT');
      },
      async (cpu) => {
        await cpu.sleep(ms);
      },
      { stack: { dataRetries: 4, retransmitMinUs: 500, retransmitInitialUs: 500, finTimeoutUs: 1000 } },
    );
  });

  test('is closed by the end of its process, even of one that is killed while it waits', async () => {
    const net = new TestNetwork();
    let victim: { kill(reason: string): void } | undefined;
    let openAtEnd = -1;
    net.run(0, 'client', async ({ cpu, memory, process }, calls) => {
      const fd = await connected(cpu, calls);
      process.onExit(async () => {
        openAtEnd = calls.openCount;
      });
      victim = process;
      await calls.recv(cpu, fd, memory.map(4096), 1);
      throw new Error('a killed program goes no further');
    });
    net.run(1, 'server', async ({ cpu, memory }, calls) => {
      const fd = await calls.accept(cpu, await listening(cpu, calls));
      await cpu.sleep(ms);
      victim!.kill('the test says so');
      expect(await calls.recv(cpu, fd, memory.map(4096), 1)).toBe(0);
    });
    await net.toEnd();
    expect(openAtEnd).toBe(1);
  });
});

describe('a call with invalid arguments', () => {
  test('reports what POSIX specifies', async () => {
    await alone(async ({ cpu, memory }, calls) => {
      const fd = await calls.socket(cpu);
      const buffer = memory.map(4096);
      expect(await errnoOf(calls.send(cpu, 99, buffer, 1))).toBe('EBADF');
      expect(await errnoOf(calls.send(cpu, fd, buffer, 1))).toBe('ENOTCONN');
      expect(await errnoOf(calls.recv(cpu, fd, buffer, 1))).toBe('ENOTCONN');
      expect(await errnoOf(calls.accept(cpu, fd))).toBe('EINVAL');
      expect(await errnoOf(calls.bind(cpu, fd, { address: 0, port: 70_000 }))).toBe('EINVAL');
      expect(await errnoOf(calls.bind(cpu, fd, { address: addresses[1], port }))).toBe('EADDRNOTAVAIL');
      await calls.bind(cpu, fd, { address: 0, port });
      expect(await errnoOf(calls.bind(cpu, fd, { address: 0, port: 1 }))).toBe('EINVAL');
      const other = await calls.socket(cpu);
      expect(await errnoOf(calls.bind(cpu, other, { address: 0, port }))).toBe('EADDRINUSE');
      await calls.listen(cpu, fd, 1);
      expect(await errnoOf(calls.accept(cpu, fd, { dontWait: true }))).toBe('EAGAIN');
      expect(await errnoOf(calls.connect(cpu, fd, { address: addresses[1], port }))).toBe('EOPNOTSUPP');
      expect(await errnoOf(calls.setsockopt(cpu, fd, 'SO_RCVBUF', -1))).toBe('EINVAL');
      expect(await errnoOf(calls.shutdown(cpu, other, 'SHUT_WR'))).toBe('ENOTCONN');
      await calls.close(cpu, other);
      expect(await errnoOf(calls.close(cpu, other))).toBe('EBADF');
    });
  });

  test('is EMFILE for one socket too many', async () => {
    await alone(
      async ({ cpu }, calls) => {
        await calls.socket(cpu);
        await calls.socket(cpu);
        expect(await errnoOf(calls.socket(cpu))).toBe('EMFILE');
      },
      { stack: { socketsMax: 2 } },
    );
  });

  test('is EFAULT for unmapped memory, and the stream continues intact', async () => {
    await pair(
      async (cpu, calls, fd, buffer) => {
        expect(await errnoOf(calls.send(cpu, fd, 0x7000_0000_0000, 100))).toBe('EFAULT');
        expect(await calls.send(cpu, fd, buffer, 100)).toBe(100);
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
      },
      async (cpu, calls, fd, buffer) => {
        expect(await errnoOf(calls.recv(cpu, fd, 0x7000_0000_0000, 100))).toBe('EFAULT');
        expect(await calls.recv(cpu, fd, buffer, 100, { waitAll: true })).toBe(100);
      },
    );
  });
});

describe('exhausted memory', () => {
  test('is ENOBUFS for a sender when no packet buffer becomes free', async () => {
    await pair(
      async (cpu, calls, fd, buffer, net) => {
        await cpu.sleep(ms);
        const { buffers } = net.nodes[0]!.network.driver;
        const hoard = [];
        for (let one = buffers.take(); one !== undefined; one = buffers.take()) hoard.push(one);
        expect(await errnoOf(calls.send(cpu, fd, buffer, 100))).toBe('ENOBUFS');
        for (const one of hoard) buffers.give(one);
        expect(await calls.send(cpu, fd, buffer, 100)).toBe(100);
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
      },
      async (cpu, calls, fd, buffer) => {
        expect(await calls.recv(cpu, fd, buffer, 100, { waitAll: true })).toBe(100);
      },
      { driver: { buffersMax: 1000 } },
    );
  });

  test('drops frames on the receiving side, which are retransmitted when memory is available', async () => {
    const net = await pair(
      async (cpu, calls, fd, buffer) => {
        await cpu.sleep(ms);
        expect(await calls.send(cpu, fd, buffer, 20_000)).toBe(20_000);
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
      },
      async (cpu, calls, fd, buffer, machine) => {
        const { buffers } = machine.nodes[1]!.network.driver;
        const hoard = [];
        for (let one = buffers.take(); one !== undefined; one = buffers.take()) hoard.push(one);
        await cpu.sleep(50 * ms);
        for (const one of hoard) buffers.give(one);
        expect(await calls.recv(cpu, fd, buffer, 20_000, { waitAll: true })).toBe(20_000);
      },
      { driver: { buffersMax: 1000 } },
    );
    expect(net.nodes[1]!.network.counts.droppedForMemory).toBeGreaterThan(0);
    expect(net.nodes[0]!.network.counts.retransmissions).toBeGreaterThan(0);
  });

  test('waits for the reader: a sender blocks on a full window, and a lost window update is requested', async () => {
    let isUpdateLost = false;
    const net = await pair(
      async (cpu, calls, fd, buffer, machine) => {
        machine.onFrame = (from) => {
          // The reader's first frame after the read begins is the window update.
          if (from === 0 || !isReading || isUpdateLost) return true;
          isUpdateLost = true;
          return false;
        };
        expect(await calls.send(cpu, fd, buffer, 400_000)).toBe(400_000);
        expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
      },
      async (cpu, calls, fd, buffer) => {
        await cpu.sleep(100 * ms);
        isReading = true;
        expect(await calls.recv(cpu, fd, buffer, 400_000, { waitAll: true })).toBe(400_000);
      },
    );
    expect(isUpdateLost).toBe(true);
    expect(net.nodes[1]!.network.driver.buffers.taken).toBeLessThan(1000);
  });
  let isReading = false;
});
