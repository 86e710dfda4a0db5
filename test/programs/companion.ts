/**
 * Runs scenarios one after another. Meanwhile a companion QP of the same process and PD, and the bystander processes of the
 * host, move data before, during and after each.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { postSend } from '../../userlib/index.ts';
import { progressOf, roundsMore } from './bystander.ts';
import { statusesOf, take } from './outcomes.ts';
import { areEqual, patternOf, readOf, remoteAt, segment, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

/** Actions of one side in a scenario, and their results. */
export type Act = (side: Side, name: string) => Promise<JsonValue>;
export type Acts = Readonly<Record<string, Act>>;

/** Result of a scenario that disturbed no other program. */
export interface Told {
  readonly told: JsonValue;
  readonly companionIsRight: boolean;
  readonly bystanderWentOn: boolean;
}

/** Posts a WRITE now; the returned function posts a READ after it, and compares the result. */
export function companionBegins(side: Side, pair: Pair, seed: number): () => Promise<boolean> {
  const pattern = patternOf(seed + 500, 1500);
  side.write(pair.buffer, pattern);
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 1500)], remoteAt(pair, 0)));
  return async () => {
    postSend(pair.qp, readOf([segment(pair.buffer, 2048, 1500)], remoteAt(pair, 0)));
    const statuses = statusesOf(await take(pair.sendCq, 2));
    return statuses.join() === 'SUCCESS,SUCCESS' && areEqual(side.read(pair.buffer, 1500, 2048), pattern);
  };
}

/** The side on the bystander client's host. */
export async function provoke(program: ProgramContext, acts: Acts): Promise<Record<string, Told>> {
  const side = await Side.open(program);
  const companion = await side.pair('companion');
  await roundsMore(program, 2);
  const results: Record<string, Told> = {};
  for (const [name, act] of chosen(program, acts)) {
    const { rounds } = progressOf(program.host);
    const check = companionBegins(side, companion, Object.keys(results).length);
    const told = await act(side, name);
    const companionIsRight = await check();
    await side.barrier(`${name} is over`);
    await roundsMore(program, 1);
    const bystanderWentOn = progressOf(program.host).rounds > rounds;
    results[name] = { told, companionIsRight, bystanderWentOn } satisfies Told;
  }
  progressOf(program.host).isStopping = true;
  return results;
}

/** The side on the second host. */
export async function accompany(program: ProgramContext, acts: Acts): Promise<JsonValue> {
  const side = await Side.open(program);
  await side.pair('companion');
  const results: Record<string, JsonValue> = {};
  for (const [name, act] of chosen(program, acts)) {
    results[name] = await act(side, name);
    await side.barrier(`${name} is over`);
  }
  return results;
}

/** The scenarios named by the arguments, or all. */
function chosen({ args }: ProgramContext, acts: Acts): [string, Act][] {
  const all = Object.entries(acts);
  return Array.isArray(args) ? all.filter(([name]) => args.includes(name)) : all;
}

/** Action of a side that has nothing to do. */
export const idle: Act = async () => null;
