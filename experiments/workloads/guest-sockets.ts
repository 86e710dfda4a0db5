/**
 * A sockets program on a simulated host with a NIC, at the other end of a guest's Ethernet cable. Its mailbox `task`
 * receives each task; it puts the outcome into `done`. `null` ends it.
 */
import { msToPs, textOfThrown } from '../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { CounterpartOutcome } from './guest-counterpart.ts';
import { serveIperf3 } from './iperf3-server.ts';
import { acceptFrom, connectTo, listenAt, SocketStreamError, socketsOf } from './socket-stream.ts';

/** `listening` is put into the exchange when the guest may connect. */
export type SocketTask =
  | { readonly service: 'iperf3'; readonly port: number }
  /** Returns all bytes received over one connection, until it ends. */
  | { readonly service: 'echo'; readonly port: number }
  /** Receives this many bytes over one connection, after a pause without reading. */
  | {
      readonly service: 'discard';
      readonly port: number;
      readonly bytes: number;
      readonly pauseMs: number;
    }
  /** Sends this many zero bytes over one connection. */
  | { readonly service: 'zeros'; readonly port: number; readonly bytes: number }
  /** Connects to the guest, sends this many bytes, and expects them back. */
  | {
      readonly service: 'call';
      readonly address: number | string;
      readonly port: number;
      readonly bytes: number;
    };

/** @returns the number of tasks received */
export async function guestSockets(program: ProgramContext): Promise<number> {
  const { exchange, log } = program;
  for (let count = 0; ; count++) {
    const task = await exchange.take<SocketTask | null>('task');
    if (task === null) return count;
    let outcome: CounterpartOutcome;
    try {
      outcome = { result: await carryOut(program, task) };
    } catch (thrown) {
      outcome = { error: textOfThrown(thrown) };
    }
    log(`${task.service}: ${JSON.stringify(outcome)}`);
    await exchange.put('done', outcome);
  }
}

async function carryOut(program: ProgramContext, task: SocketTask): Promise<JsonValue> {
  if (task.service === 'call') return await call(program, task.address, task.port, task.bytes);
  const listening = await listenAt(program, task.port);
  await program.exchange.put('listening', task.port);
  try {
    if (task.service === 'echo') return await echo(program, listening);
    if (task.service === 'discard') return await discard(program, listening, task);
    if (task.service === 'zeros') return await sendZeros(program, listening, task.bytes);
    return { ...(await serveIperf3(program, listening)) };
  } finally {
    await socketsOf(program).close(program.cpu, listening);
  }
}

async function echo(program: ProgramContext, listening: number): Promise<number> {
  const stream = await acceptFrom(program, listening);
  let count = 0;
  for (let bytes = await stream.read(); bytes.length > 0; bytes = await stream.read()) {
    await stream.write(bytes);
    count += bytes.length;
  }
  await stream.close();
  return count;
}

async function discard(
  program: ProgramContext,
  listening: number,
  { bytes: expected, pauseMs }: { readonly bytes: number; readonly pauseMs: number },
): Promise<number> {
  const stream = await acceptFrom(program, listening);
  await program.cpu.sleep(msToPs(pauseMs));
  let count = 0;
  for (let bytes = await stream.read(); bytes.length > 0; bytes = await stream.read()) count += bytes.length;
  await stream.close();
  if (count !== expected) throw new SocketStreamError(`${count} bytes came, expected ${expected}`);
  return count;
}

async function sendZeros(program: ProgramContext, listening: number, lengthBytes: number): Promise<number> {
  const stream = await acceptFrom(program, listening);
  await stream.write(new Uint8Array(lengthBytes));
  await stream.close();
  return lengthBytes;
}

async function call(
  program: ProgramContext,
  address: number | string,
  port: number,
  lengthBytes: number,
): Promise<number> {
  const stream = await connectTo(program, address, port);
  const sent = Uint8Array.from({ length: lengthBytes }, () => program.random.below(256));
  await stream.write(sent);
  await stream.end();
  const came = await stream.readAll(lengthBytes);
  const wrong = came.findIndex((byte, at) => byte !== sent[at]);
  if (wrong >= 0) throw new SocketStreamError(`byte ${wrong} is ${came[wrong]}, expected ${sent[wrong]}`);
  await stream.close();
  return lengthBytes;
}
