/** Programs that wait for events that never occur, each in another call. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createCompChannel,
  createCq,
  getAsyncEvent,
  getCqEvent,
  IbvWc,
  pollCq,
  reqNotifyCq,
  spinCq,
} from '../../userlib/index.ts';
import { Side } from './side.ts';

export async function inCqEvent(program: ProgramContext): Promise<JsonValue> {
  const { context } = await Side.open(program);
  const channel = await createCompChannel(context);
  const cq = await createCq(context, 4, null, channel);
  reqNotifyCq(cq, 0);
  await getCqEvent(channel);
  return null;
}

export async function inAsyncEvent(program: ProgramContext): Promise<JsonValue> {
  const { context } = await Side.open(program);
  await getAsyncEvent(context);
  return null;
}

export async function inSpin(program: ProgramContext): Promise<JsonValue> {
  const { context } = await Side.open(program);
  return spinCq(await createCq(context, 4), 1, [new IbvWc()]);
}

export async function inPolls(program: ProgramContext): Promise<JsonValue> {
  const { context } = await Side.open(program);
  const cq = await createCq(context, 4);
  const wc = [new IbvWc()];
  while ((await pollCq(cq, 1, wc)) === 0);
  return null;
}

export async function inExchange(program: ProgramContext): Promise<JsonValue> {
  return program.exchange.take('an answer');
}
