/**
 * Connections of sockets over the NIC, on cables that lose and damage frames. Each carries a stream in each direction, in calls of all lengths, half
 * closed by either side first; sent bytes arrive once and in order, and then the end (RFC 9293, 3.10.4). A port without a listener refuses
 * (3.10.7.1).
 */
import * as sockets from '../../experiments/workloads/index.ts';
import { addressOf } from '../../machine/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { patternOf, scene, sumOf, times } from './language/index.ts';

const port = 7000;
const closedPort = 7999;

function draw(random: Draws) {
  const mtu = random.oneOf([576, 1500, 1500, 9000]);
  const perMillion = (): number => (random.chance(0.5) ? 0 : Math.round(100 * 600 ** random.unit()));
  const stream = () => {
    const most = random.oneOf([3, 200, 3000, 60_000]);
    return {
      // Bytes of each call of send(2).
      writes: times(random.below(8), () => 1 + random.below(most)),
      // Bytes that each call of recv(2) requests.
      readBytes: random.chance(0.5) ? 131_072 : 1 + random.below(2 * most),
      restUs: random.chance(0.7) ? 0 : random.below(300),
    };
  };
  const args = {
    // Streams from the client and from the server, which may answer before it has read everything.
    connections: times(1 + random.below(4), () => [stream(), stream()] as const),
    readsFirst: random.chance(0.5),
    // Messages with which each connection begins: the next is sent when the previous one has returned.
    echoes: times(
      random.below(random.chance(0.5) ? 5 : 40),
      () => 1 + random.below(random.chance(0.5) ? 10 : 3000),
    ),
  };
  const set = {
    'machine.adapter': 'nic',
    'ethernet.mtuBytes': mtu,
    'net.driver.mtu': mtu,
    'ethernet.gigabitsPerSecond': random.oneOf([1, 10, 40]),
    'ethernet.lossPerMillion': perMillion(),
    'ethernet.corruptionPerMillion': perMillion(),
    'ethernet.receiveFifoFrames': 4 + random.below(60),
    'net.driver.checksumOffload': random.chance(0.5),
    'net.driver.transmitRing': 2 ** (3 + random.below(6)),
    'net.driver.receiveRing': 2 ** (3 + random.below(6)),
    'net.stack.receiveBufferKib': 32 + random.below(300),
    'net.stack.sendBufferKib': 32 + random.below(200),
    'net.stack.windowScale': random.below(8),
    'net.stack.isDelayed': random.chance(0.5),
    'net.stack.vlanId': random.chance(0.3) ? 1 + random.below(4094) : 0,
    'net.stack.timeWaitUs': 1000,
    'net.stack.retransmitInitialUs': 20_000,
    // Few retries: a connection's losses soon add up to too many, and this many in a row do not occur by chance.
    'net.stack.dataRetries': 5,
  };
  return { args, set, climate: 'lossy' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Stream = Args['connections'][number][number];

const bytesOf = (connection: number, direction: number, { writes }: Stream): Uint8Array =>
  patternOf(2 * connection + direction, sumOf(writes));

async function write(
  stage: Stage<Args>,
  to: sockets.SocketStream,
  bytes: Uint8Array,
  plan: Stream,
): Promise<void> {
  let at = 0;
  for (const length of plan.writes) {
    await to.write(bytes.subarray(at, at + length));
    at += length;
    if (plan.restUs > 0) await stage.sleepUs(plan.restUs);
  }
  await to.end();
}

/** No call returns more than it asked for. */
async function readToEnd(
  stage: Stage<Args>,
  from: sockets.SocketStream,
  { readBytes }: Stream,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = await from.read(readBytes);
    if (piece.length > readBytes) stage.accuse(`recv(2) of ${readBytes} bytes returned ${piece.length}`);
    if (piece.length === 0) return Buffer.concat(pieces);
    pieces.push(piece);
  }
}

/** Connects, and sends before it reads. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { connections, echoes } = stage.args;
  const there = addressOf(1, stage.context.configuration.net.stack.vlanId);
  await stage.meet('listening');
  for (const [number, [own, other]] of connections.entries()) {
    const stream = await sockets.connectTo(stage.context, there, port);
    for (const length of echoes) {
      await stream.write(patternOf(length, length));
      stage.expectBytes('an echo', await stream.readAll(length), patternOf(length, length));
    }
    await write(stage, stream, bytesOf(number, 0, own), own);
    stage.expectBytes(
      `connection ${number}`,
      await readToEnd(stage, stream, other),
      bytesOf(number, 1, other),
    );
    await stream.close();
  }
  const refused = await sockets.connectTo(stage.context, there, closedPort).catch(String);
  const what = typeof refused === 'string' ? refused : 'connected';
  if (!what.includes('ECONNREFUSED')) stage.accuse(`a port without a listener: ${what}`);
}

/** Listens; answers before or after it has read. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const { connections, readsFirst, echoes } = stage.args;
  const listening = await sockets.listenAt(stage.context, port);
  await stage.meet('listening');
  for (const [number, [other, own]] of connections.entries()) {
    const stream = await sockets.acceptFrom(stage.context, listening);
    for (const length of echoes) await stream.write(await stream.readAll(length));
    const bytes = bytesOf(number, 1, own);
    // Before it reads it sends no more than the buffers hold: the client does not read yet.
    const isEarly = !readsFirst && bytes.length < 16_384;
    if (isEarly) await write(stage, stream, bytes, own);
    stage.expectBytes(
      `connection ${number}`,
      await readToEnd(stage, stream, other),
      bytesOf(number, 0, other),
    );
    if (!isEarly) await write(stage, stream, bytes, own);
    await stream.close();
  }
  await sockets.socketsOf(stage.context).close(stage.cpu, listening);
}

export const socketStreams = scene({
  about:
    'connections of sockets over the NIC carry streams of all lengths, on cables that lose and damage frames',
  cable: 'ethernet',
  draw,
  programs: [asker, answerer],
});
