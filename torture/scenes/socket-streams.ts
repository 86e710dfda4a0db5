/**
 * The traditional path: connections of sockets over the NIC, by either version of IP, on cables that lose and damage frames. Each
 * carries streams of its own in both directions, in calls of all lengths, half closed by either side first; what arrives is what was
 * sent, once and in order, and then the end (RFC 9293, 3.10.4). A port without a listener refuses (3.10.7.1).
 */
import { psPerUs } from '../../base/index.ts';
import {
  acceptFrom,
  barrier,
  connectTo,
  listenAt,
  type SocketStream,
  socketsOf,
} from '../../experiments/workloads/index.ts';
import { addressOf, type JsonValue, type ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { askerAndAnswerer } from './pair.ts';
import { differencesOf, patternOf, type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

/** One direction of a connection. */
interface Stream {
  /** Bytes of each call of send(2). */
  readonly writes: readonly number[];
  /** Bytes that each call of recv(2) asks for. */
  readonly readBytes: number;
  readonly restUs: number;
}

interface Args {
  /** From the asker, and from the answerer, which may answer before it has read all. */
  readonly connections: readonly (readonly [Stream, Stream])[];
  readonly readsFirst: boolean;
  /** Messages that each connection begins with: the next is sent when the one before has come back. */
  readonly echoes: readonly number[];
}

const port = 7000;
const closedPort = 7999;

function draw(random: Random): SceneDraft {
  const mtu = [576, 1500, 1500, 9000][random.below(4)]!;
  const perMillion = (): number => (random.chance(0.5) ? 0 : Math.round(100 * 300 ** random.unit()));
  const stream = (): Stream => {
    const most = [3, 200, 3000, 60_000][random.below(4)]!;
    return {
      writes: Array.from({ length: random.below(8) }, () => 1 + random.below(most)),
      readBytes: random.chance(0.5) ? 131_072 : 1 + random.below(2 * most),
      restUs: random.chance(0.7) ? 0 : random.below(300),
    };
  };
  const args: Args = {
    connections: Array.from({ length: 1 + random.below(4) }, () => [stream(), stream()] as const),
    readsFirst: random.chance(0.5),
    echoes: Array.from({ length: random.below(5) }, () => 1 + random.below(random.chance(0.5) ? 10 : 3000)),
  };
  const set = {
    'machine.adapter': 'nic',
    'ethernet.mtuBytes': mtu,
    'net.driver.mtu': mtu,
    'ethernet.gigabitsPerSecond': [1, 10, 40][random.below(3)]!,
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
    // Few: what adds up over a connection is soon too much, and so many losses in a row are none of chance.
    'net.stack.dataRetries': 5,
  };
  return { args: args as unknown as JsonValue, set, hasDrawnHardware: false, climate: 'lossy' };
}

const bytesOf = (connection: number, direction: number, { writes }: Stream): Uint8Array =>
  patternOf(
    2 * connection + direction,
    writes.reduce((sum, bytes) => sum + bytes, 0),
  );

async function write(
  program: ProgramContext,
  to: SocketStream,
  bytes: Uint8Array,
  { writes, restUs }: Stream,
): Promise<void> {
  let at = 0;
  for (const length of writes) {
    await to.write(bytes.subarray(at, at + length));
    at += length;
    if (restUs > 0) await program.cpu.sleep(restUs * psPerUs);
  }
  await to.end();
}

async function readToEnd(from: SocketStream, { readBytes }: Stream): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = await from.read(readBytes);
    if (piece.length === 0) return Buffer.concat(pieces);
    pieces.push(piece);
  }
}

/** Connects, and sends before it reads. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { connections, echoes } = program.args as unknown as Args;
  const wrong: string[] = [];
  const vlan = program.configuration.net.stack.vlanId;
  await barrier(program, 'listening');
  for (const [number, [own, other]] of connections.entries()) {
    const stream = await connectTo(program, addressOf(1, vlan), port);
    for (const length of echoes) {
      await stream.write(patternOf(length, length));
      wrong.push(...differencesOf(`an echo`, await stream.readAll(length), patternOf(length, length)));
    }
    await write(program, stream, bytesOf(number, 0, own), own);
    const came = await readToEnd(stream, other);
    wrong.push(...differencesOf(`connection ${number}`, came, bytesOf(number, 1, other)));
    await stream.close();
  }
  const refused = await connectTo(program, addressOf(1, vlan), closedPort).catch(String);
  if (typeof refused !== 'string' || !refused.includes('ECONNREFUSED'))
    wrong.push(`a port without a listener: ${typeof refused === 'string' ? refused : 'connected'}`);
  return { wrong };
}

/** Listens; answers before or after it has read. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { connections, readsFirst, echoes } = program.args as unknown as Args;
  const wrong: string[] = [];
  const listening = await listenAt(program, port);
  await barrier(program, 'listening');
  for (const [number, [other, own]] of connections.entries()) {
    const stream = await acceptFrom(program, listening);
    for (const length of echoes) await stream.write(await stream.readAll(length));
    const bytes = bytesOf(number, 1, own);
    // Before it reads it sends no more than buffers hold: the asker does not read yet.
    const isEarly = !readsFirst && bytes.length < 16_384;
    if (isEarly) await write(program, stream, bytes, own);
    const came = await readToEnd(stream, other);
    wrong.push(...differencesOf(`connection ${number}`, came, bytesOf(number, 0, other)));
    if (!isEarly) await write(program, stream, bytes, own);
    await stream.close();
  }
  await socketsOf(program).close(program.cpu, listening);
  return { wrong };
}

export const socketStreams: Scene = {
  name: 'socket-streams',
  about:
    'connections of sockets over the NIC carry streams of all lengths, on cables that lose and damage frames',
  module: import.meta.url,
  cable: 'ethernet',
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }: ScenePlayed) => wrongOf(results as unknown as readonly Wrong[]),
};
