/**
 * Two programs of two threads each over one connection: they send, read, shut down and close at random, over a cable that
 * loses, duplicates and reorders frames, over either version of IP, with and without a VLAN tag. Each direction is judged by
 * byte counts alone: bytes that send() accepted arrive once and in order, the end of the stream is seen after all of them, an
 * error is seen only if the other side has closed, and unread bytes are bounded by the buffers of both sides.
 */
import { describe, expect, test } from 'vitest';
import type { ProgramContext } from '../../host/index.ts';
import { Random } from '../../sim/random.ts';
import {
  addresses,
  ipv6Addresses,
  linkLocalAddresses,
  ms,
  TestNetwork,
  us,
  vlanAddresses,
  vlanId,
  vlanIpv6Addresses,
} from '../testing/machine.ts';
import { NetError } from './net-error.ts';
import type { SocketCalls } from './socket-calls.ts';

/** Stories: `npm run fuzz` sets them, and the seed. */
const stories = Math.ceil(Number(process.env['HOSTILE_PACKETS'] ?? 4_000) / 200);
const firstSeed = Number(process.env['HOSTILE_SEED'] ?? 17) * 1000;

const port = 5000;
/** Address to which the left end connects. */
const remotes = [
  addresses[1],
  ipv6Addresses[1],
  vlanAddresses[1],
  vlanIpv6Addresses[1],
  `${linkLocalAddresses[1]}%eth0.${vlanId}`,
] as const;
type Remote = (typeof remotes)[number];
const regionBytes = 16_384;
const sizeMax = 6000;
/** Longer than a segment, and without a common factor with any size of the path. */
const period = 251;
/** SO_RCVBUF plus a unit of the window and a segment that arrives at its edge; SO_SNDBUF twice, in buffers of one segment. */
const receiveBytes = 4096 + 128 + 1460;
const sendBytes = 2 * 4096 + 1460;

/** One direction of the connection, as its two programs see it. */
interface Stream {
  sent: number;
  got: number;
  hasEnded: boolean;
}

class End {
  readonly random: Random;
  readonly out: Stream;
  readonly in: Stream;
  readonly isNoDelay: boolean;
  /** Belongs to the writer's process, whose sockets both threads use. */
  calls: SocketCalls | undefined;
  memory!: Memory;
  fd = -1;
  source = 0;
  threads = 2;
  isShut = false;
  isClosed = false;
  /** One of its threads was notified of a reset: the second one is not notified again (Linux: sock_error). */
  wasReset = false;

  constructor(random: Random, out: Stream, into: Stream) {
    this.random = random;
    this.out = out;
    this.in = into;
    this.isNoDelay = random.unit() < 0.5;
  }

  below(limit: number): number {
    return Math.floor(this.random.unit() * limit);
  }

  /** Mostly small, sometimes several segments. */
  size(): number {
    return 1 + this.below(this.below(3) === 0 ? sizeMax : 90);
  }
}

type Cpu = ProgramContext['cpu'];
type Memory = ProgramContext['memory'];

/** Runs a call; returns its errno instead of throwing it. */
async function attempt(call: Promise<number>): Promise<number | string> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
    return error.code;
  }
}

/** Errors that a call may return: caused by this side, or by the peer. */
function expectError(code: string, end: End, other: End, isShut: boolean): void {
  const mine = end.isClosed ? ['EBADF'] : [];
  const its = other.isClosed ? ['ECONNRESET', 'EPIPE'] : [];
  if (code === 'ECONNRESET') end.wasReset = true;
  expect([...mine, ...its, ...(isShut ? ['EPIPE'] : [])]).toContain(code);
}

async function write(cpu: Cpu, end: End, other: End): Promise<void> {
  for (let step = 40 + end.below(200); step > 0; step--) {
    if (end.below(10) === 0) await cpu.sleep(end.below(300) * us);
    const size = end.size();
    const from = end.source + (end.out.sent % period);
    const result = await attempt(end.calls!.send(cpu, end.fd, from, size, { dontWait: end.below(3) === 0 }));
    if (result === 'EAGAIN') continue;
    if (typeof result === 'string') {
      expectError(result, end, other, end.isShut);
      return;
    }
    end.out.sent += result;
    expect(end.out.sent - end.out.got).toBeLessThanOrEqual(receiveBytes + sendBytes + sizeMax);
  }
  await shut(cpu, end);
}

async function shut(cpu: Cpu, end: End): Promise<void> {
  end.isShut = true;
  await attempt(end.calls!.shutdown(cpu, end.fd, 'SHUT_WR').then(() => 0));
}

async function read(cpu: Cpu, end: End, other: End): Promise<void> {
  const { memory } = end;
  const target = memory.map(regionBytes);
  const bytes = new Uint8Array(sizeMax);
  const isPatient = end.below(4) > 0;
  for (let step = 30 + end.below(100); isPatient || step > 0; step--) {
    if (end.below(isPatient ? 20 : 4) === 0) await cpu.sleep(end.below(500) * us);
    if (end.below(60) === 0) await shut(cpu, end);
    const options = { dontWait: end.below(4) === 0, waitAll: end.below(3) === 0 };
    const result = await attempt(end.calls!.recv(cpu, end.fd, target, end.size(), options));
    if (result === 'EAGAIN') {
      await cpu.sleep(end.below(100) * us);
      continue;
    }
    if (typeof result === 'string') {
      expectError(result, end, other, false);
      return;
    }
    if (result === 0) {
      end.in.hasEnded = true;
      expect(other.isShut || other.isClosed).toBe(true);
      return;
    }
    await memory.load(cpu, target, bytes.subarray(0, result));
    for (let at = 0; at < result; at++)
      if (bytes[at] !== (end.in.got + at) % period) expect.fail(`byte ${at}`);
    end.in.got += result;
  }
}

/** The last thread of an end closes it, or a reader that stops waiting: otherwise the other end's writer would have no reader. */
async function leave(cpu: Cpu, end: End, isImpatient: boolean): Promise<void> {
  if (--end.threads > 0 && !isImpatient) return;
  if (end.isClosed) return;
  end.isClosed = true;
  // The process may have ended earlier.
  await attempt(end.calls!.close(cpu, end.fd).then(() => 0));
}

async function connect(cpu: Cpu, calls: SocketCalls, node: number, address: Remote): Promise<number> {
  const fd = await calls.socket(cpu, node === 0 && typeof address === 'number' ? 'AF_INET' : 'AF_INET6');
  await calls.setsockopt(cpu, fd, 'SO_RCVBUF', 4096);
  await calls.setsockopt(cpu, fd, 'SO_SNDBUF', 4096);
  if (node === 0) {
    await cpu.sleep(100 * us);
    await calls.connect(cpu, fd, { address, port });
    return fd;
  }
  await calls.bind(cpu, fd, { address: '::', port });
  await calls.listen(cpu, fd, 1);
  return calls.accept(cpu, fd);
}

function newStory(seed: number): { net: TestNetwork; ends: readonly [End, End]; remote: Remote } {
  const random = new Random(seed, 'story');
  const faulty = random.unit() < 0.5 ? 0 : 0.04;
  const net = new TestNetwork({
    cable: { loss: faulty, duplication: faulty, reordering: 2 * faulty, seed },
    asksForNeighbours: random.unit() < 0.5,
    // A lost neighbour request is repeated after a second: a SYN waits longer than that.
    stack: {
      synRetries: 12,
      retransmitMinUs: 2000,
      retransmitInitialUs: 2000,
      delayedAckUs: 500,
      timeWaitUs: 1000,
    },
  });
  const streams = [0, 1].map((): Stream => ({ sent: 0, got: 0, hasEnded: false }));
  const ends = [
    new End(new Random(seed, 'left'), streams[0]!, streams[1]!),
    new End(new Random(seed, 'right'), streams[1]!, streams[0]!),
  ] as const;
  return { net, ends, remote: remotes[Math.floor(random.unit() * remotes.length)]! };
}

async function play(seed: number): Promise<void> {
  const { net, ends, remote } = newStory(seed);
  for (const [node, end] of ends.entries()) {
    const other = ends[1 - node]!;
    net.run(node, 'writer', async ({ cpu, memory }, calls) => {
      end.memory = memory;
      end.source = memory.map(regionBytes);
      await memory.store(
        cpu,
        end.source,
        Uint8Array.from({ length: regionBytes }, (_, at) => at % period),
      );
      end.fd = await connect(cpu, calls, node, remote);
      if (end.isNoDelay) await calls.setsockopt(cpu, end.fd, 'TCP_NODELAY', 1);
      end.calls = calls;
      await write(cpu, end, other);
      await leave(cpu, end, false);
      // The process lives while its other thread lives.
      while (end.threads > 0) await cpu.sleep(100 * us);
    });
    net.run(
      node,
      'reader',
      async ({ cpu }) => {
        while (end.calls === undefined) await cpu.sleep(10 * us);
        await read(cpu, end, other);
        await leave(cpu, end, !end.in.hasEnded);
      },
      1,
    );
  }
  await net.toEnd(1, 20_000 * ms);
  for (const {
    in: { hasEnded, got, sent },
    wasReset,
  } of ends)
    if (hasEnded && !wasReset) expect(got).toBe(sent);
  for (const { index, network } of net.nodes) {
    await net.kernel(index, (cpu) => network.remove(cpu));
    expect([network.driver.buffers.taken, network.stack.connectionCount]).toEqual([0, 0]);
  }
}

describe('sockets', () => {
  test('keep a count of bytes, for any actions of two threads at each end', async () => {
    for (let seed = firstSeed; seed < firstSeed + stories; seed++) {
      try {
        await play(seed);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
  });
});
