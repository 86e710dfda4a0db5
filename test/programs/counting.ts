/** Counts on a word of the second host by FETCH_ADDs that are posted together: for faults that lose or repeat some of them. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { postSend } from '../../userlib/index.ts';
import { statusesOf, take, takeAll } from './outcomes.ts';
import { fetchAddOf, remoteAt, segment } from './requests.ts';
import { Side } from './side.ts';

export const countings = 6;
const wordBytes = 8;
const options = { timeoutCode: 6, readsMax: 16 };

export interface CounterResult {
  readonly statuses: readonly string[];
  /** Value found by each of them, in the order of posting. */
  readonly found: readonly number[];
  readonly surplus: readonly string[];
}

/** Result of the program on the second host: the final value of the word. */
export interface CountedResult {
  readonly count: number;
}

const numberIn = (bytes: Uint8Array): number => Number(Buffer.from(bytes).readBigUInt64LE());

export async function counter(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('counting', options);
  const { buffer, qp, sendCq } = pair;
  for (let index = 0; index < countings; index++) {
    const found = segment(buffer, wordBytes * index, wordBytes);
    postSend(qp, fetchAddOf(found, remoteAt(pair, 0), 1n, { wrId: index }));
  }
  const statuses = statusesOf(await take(sendCq, countings));
  const surplus = statusesOf(await takeAll(sendCq));
  const found = Array.from({ length: countings }, (_, index) =>
    numberIn(side.read(buffer, wordBytes, wordBytes * index)),
  );
  await side.barrier('counted');
  return { statuses, found, surplus } satisfies CounterResult;
}

export async function counted(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { buffer } = await side.pair('counting', options);
  await side.barrier('counted');
  return { count: numberIn(side.read(buffer, wordBytes, 0)) } satisfies CountedResult;
}
