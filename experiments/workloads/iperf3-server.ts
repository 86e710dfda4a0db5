/**
 * The server of stock `iperf3` in a Linux guest, on a simulated host with a NIC: TCP, any number of streams, either
 * direction (`-R`).
 *
 *     control   cookie ─► PARAM_EXCHANGE ◄ parameters ─► CREATE_STREAMS … TEST_START, TEST_RUNNING … ◄ TEST_END
 *               EXCHANGE_RESULTS ◄ results ─► results ─► DISPLAY_RESULTS ◄ IPERF_DONE
 *     streams   cookie, then data
 *
 * States are one byte each; parameters and results are JSON after their length in four bytes. Source: iperf 3.12,
 * src/iperf_api.h (states), iperf_api.c (iperf_exchange_parameters, send_results, get_results), iperf_server_api.c.
 */
import { psPerSecond } from '../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import {
  acceptFrom,
  listenAt,
  type SocketStream,
  SocketStreamError,
  type SocketUser,
  socketsOf,
} from './socket-stream.ts';

const iperf3Port = 5201;
const State = {
  TEST_START: 1,
  TEST_RUNNING: 2,
  TEST_END: 4,
  PARAM_EXCHANGE: 9,
  CREATE_STREAMS: 10,
  EXCHANGE_RESULTS: 13,
  DISPLAY_RESULTS: 14,
  IPERF_DONE: 16,
} as const;
const cookieBytes = 37;
const lengthBytes = 4;
/** Greatest length of parameters and results: those of a hundred streams are shorter. */
const jsonBytesMax = 65_536;

/** Parameters of a test. */
export interface Iperf3Result {
  readonly isReverse: boolean;
  readonly streams: number;
  /** Bytes that this end has received or sent. */
  readonly bytes: number;
}

interface Parameters {
  readonly tcp?: boolean;
  readonly parallel?: number;
  readonly reverse?: boolean;
  readonly bidirectional?: boolean;
}

/** Serves the number of tests in the program's args, default one. */
export default async function iperf3(program: ProgramContext): Promise<JsonValue> {
  const listening = await listenAt(program, iperf3Port);
  const results: JsonValue[] = [];
  for (let left = Number(program.args ?? 1); left > 0; left--)
    results.push({ ...(await serveIperf3(program, listening)) });
  return results;
}

/**
 * Serves the next test at a listening socket.
 * @throws SocketStreamError for a test that is unknown or breaks off
 */
export async function serveIperf3(program: SocketUser, listening: number): Promise<Iperf3Result> {
  const control = await acceptFrom(program, listening);
  const streams: SocketStream[] = [];
  const watch = program.cpu.stopwatch();
  const say = (state: number): Promise<void> => control.write(Uint8Array.of(state));
  const open = [control];
  try {
    const cookie = await control.readAll(cookieBytes);
    await say(State.PARAM_EXCHANGE);
    const parameters = (await readJson(control)) as Parameters;
    const { tcp, parallel = 1, reverse: isReverse = false, bidirectional } = parameters;
    if (tcp !== true || bidirectional === true)
      throw new SocketStreamError(`iperf3 with ${JSON.stringify(parameters)}, expected TCP in one direction`);
    await say(State.CREATE_STREAMS);
    while (streams.length < parallel) {
      const stream = await acceptFrom(program, listening);
      open.push(stream);
      const own = await stream.readAll(cookieBytes);
      if (own.some((byte, at) => byte !== cookie[at]))
        throw new SocketStreamError('a stream of another test');
      streams.push(stream);
    }
    await say(State.TEST_START);
    await say(State.TEST_RUNNING);
    const moved = await moveUntilEnd(program, control, streams, isReverse ? 'out' : 'in');
    // A receiving client reads whole blocks until its streams end.
    if (isReverse) for (const stream of streams) await stream.close();
    await say(State.EXCHANGE_RESULTS);
    const theirs = (await readJson(control)) as { readonly streams: readonly { readonly id: number }[] };
    const seconds = watch.elapsedPs / psPerSecond;
    await writeJson(control, {
      ...{ cpu_util_total: 0, cpu_util_user: 0, cpu_util_system: 0 },
      sender_has_retransmits: isReverse ? 0 : -1,
      streams: theirs.streams.map(({ id }, at) => ({
        ...{ id, bytes: moved[at] ?? 0, retransmits: isReverse ? 0 : -1 },
        ...{ jitter: 0, errors: 0, packets: 0, start_time: 0, end_time: seconds },
      })),
    });
    await say(State.DISPLAY_RESULTS);
    const [state] = await control.readAll(1);
    if (state !== State.IPERF_DONE) throw new SocketStreamError(`state ${state}, expected IPERF_DONE`);
    // The client has ended its streams: reads the bytes after the end of the test, so that the connection is not reset.
    if (!isReverse) for (const stream of streams) while ((await stream.read()).length > 0);
    return { isReverse, streams: streams.length, bytes: moved.reduce((sum, bytes) => sum + bytes, 0) };
  } finally {
    for (const stream of open) await stream.close();
  }
}

/**
 * Moves data of all streams until the client ends the test, then reads the rest.
 * @returns the bytes of each
 */
async function moveUntilEnd(
  program: SocketUser,
  control: SocketStream,
  streams: readonly SocketStream[],
  direction: 'in' | 'out',
): Promise<number[]> {
  const { cpu } = program;
  const events = [direction === 'in' ? 'POLLIN' : 'POLLOUT'] as const;
  const requests = [control, ...streams].map(({ fd }, at) => ({
    fd,
    events: at === 0 ? (['POLLIN'] as const) : events,
  }));
  const moved = streams.map(() => 0);
  const ended = streams.map(() => false);
  const moveAll = async (): Promise<void> => {
    for (const [at, stream] of streams.entries()) {
      if (ended[at] === true) continue;
      const count = await stream.moveSome(direction);
      if (count === undefined) ended[at] = true;
      else moved[at]! += count;
    }
  };
  for (;;) {
    const waited = requests.filter((_, at) => at === 0 || ended[at - 1] !== true);
    const [ofControl = []] = await socketsOf(program).poll(cpu, waited);
    if (ofControl.length > 0) {
      const [state] = await control.readAll(1);
      if (state !== State.TEST_END) throw new SocketStreamError(`state ${state}, expected TEST_END`);
      if (direction === 'in') await moveAll();
      return moved;
    }
    await moveAll();
  }
}

async function readJson(control: SocketStream): Promise<JsonValue> {
  const head = await control.readAll(lengthBytes);
  const length = new DataView(head.buffer).getUint32(0);
  if (length > jsonBytesMax)
    throw new SocketStreamError(`JSON of ${length} bytes, expected at most ${jsonBytesMax}`);
  return JSON.parse(new TextDecoder().decode(await control.readAll(length))) as JsonValue;
}

async function writeJson(control: SocketStream, value: JsonValue): Promise<void> {
  const text = new TextEncoder().encode(JSON.stringify(value));
  const bytes = new Uint8Array(lengthBytes + text.length);
  new DataView(bytes.buffer).setUint32(0, text.length);
  bytes.set(text, lengthBytes);
  await control.write(bytes);
}
