/**
 * A program that returns with work in flight, and its partner on the second host, which continues to send to it. The kernel
 * releases everything; other programs on the leaver's host learn from {@link departureOf} when it leaves and when it has left.
 */
import type { Host, Process } from '../../host/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { createCompChannel, createCq, createSrq, postRecv, postSend } from '../../userlib/index.ts';
import { statusesOf, takeAll } from './outcomes.ts';
import { readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { Side } from './side.ts';

export interface Departure {
  /** Set by the program that wants the leaver to start. */
  isWanted: boolean;
  /** Set by the leaver. */
  process: Process | undefined;
}

const departures = new WeakMap<Host, Departure>();
const bufferBytes = 262_144;
const microsecond = 1e6;

export function departureOf(host: Host): Departure {
  let departure = departures.get(host);
  if (departure === undefined) {
    departure = { isWanted: false, process: undefined };
    departures.set(host, departure);
  }
  return departure;
}

/** Starts the leaver, and waits until the kernel has released its resources. */
export async function untilGone({ host, cpu }: ProgramContext): Promise<void> {
  const departure = departureOf(host);
  departure.isWanted = true;
  while (departure.process?.isEnded !== true || departure.process.memory.space.mappedBytes > 0)
    await cpu.sleep(20 * microsecond);
}

export async function leave(program: ProgramContext): Promise<JsonValue> {
  const departure = departureOf(program.host);
  while (!departure.isWanted) await program.cpu.sleep(10 * microsecond);
  const side = await Side.open(program);
  const channel = await createCompChannel(side.context);
  await createCq(side.context, 8, null, channel);
  await createSrq(side.pd, { attr: { maxWr: 8, maxSge: 1 } });
  const pair = await side.pair('leaving', { bufferBytes });
  departure.process = program.process;
  const whole = segment(pair.buffer, 0, bufferBytes);
  for (let index = 0; index < 4; index++) {
    postRecv(pair.qp, receiveOf([whole]));
    postSend(pair.qp, writeOf([whole], remoteAt(pair, 0)));
    postSend(pair.qp, readOf([whole], remoteAt(pair, 0)));
    postSend(pair.qp, sendOf([whole]));
  }
  return { pinnedBytes: program.process.memory.space.pinnedBytes };
}

/** Writes to the leaver until it no longer answers: timeout code 4 (65.5 µs), two retries. */
export async function stay(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('leaving', { bufferBytes, timeoutCode: 4, retryCount: 2 });
  const statuses: string[] = [];
  for (let index = 0; index < 200 && statuses.at(-1) !== 'RETRY_EXC_ERR'; index++) {
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 4096)], remoteAt(pair, 0)));
    statuses.push(...statusesOf(await takeAll(pair.sendCq, 20)));
  }
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 4096)], remoteAt(pair, 0)));
  const last = statusesOf(await takeAll(pair.sendCq, 50));
  return {
    statuses: [...new Set(statuses)],
    last,
    state: await side.stateOf(pair),
    events: await side.events(),
  };
}
