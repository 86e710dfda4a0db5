/** Programs that fail, or never end. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { IbvWc, pollCq, postRecv, postSend, spinCq } from '../../userlib/index.ts';
import { receiveOf, segment, sendOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

const sleepPs = 100e6;

/** Opens the device, waits 250 µs, and throws. */
export async function throws({ cpu, name, verbs }: ProgramContext): Promise<JsonValue> {
  await cpu.sleep(250e6);
  throw new RangeError(`${name} has ${verbs.devices.length} device and gives up`);
}

/** Waits for a message that is never sent. */
export async function waitsForNothing(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  return side.hear('nothing');
}

/** Never ends. */
export async function goesOn({ cpu }: ProgramContext): Promise<JsonValue> {
  for (;;) await cpu.sleep(sleepPs);
}

/** Polls in a loop for a message of the peer. @returns its arrival time */
export async function pollsInALoop(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const beforeReady = ({ qp, buffer }: Pair) => postRecv(qp, receiveOf([segment(buffer, 0, 64)]));
  const { recvCq } = await side.pair('a', { beforeReady });
  const wc = [new IbvWc()];
  while ((await pollCq(recvCq, 1, wc)) === 0);
  return program.cpu.localPs;
}

/** Sends to it after a given number of milliseconds; ends without sending if that is 0. */
export async function sendsLate(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { qp, buffer, sendCq } = await side.pair('a');
  const waitMs = Number(program.args);
  if (waitMs === 0) return null;
  await program.cpu.sleep(waitMs * 1e9);
  postSend(qp, sendOf([segment(buffer, 0, 64)]));
  return spinCq(sendCq, 1, [new IbvWc()]);
}
