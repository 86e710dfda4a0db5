/**
 * A program that acts as the peer of the stock program that the guest runs next. Its mailbox `task` receives each task;
 * it puts the outcome into `done`. `null` ends it.
 */
import { textOfThrown } from '../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { type GuestPerftestArgs, guestPerftest } from './guest-perftest.ts';
import { type GuestPingpongArgs, guestPingpong } from './guest-pingpong.ts';
import { type GuestRefusalArgs, guestRefusal } from './guest-refusal.ts';
import { type GuestRpingArgs, guestRping } from './guest-rping.ts';
import { type GuestUcmatoseArgs, guestUcmatose } from './guest-ucmatose.ts';

/** The guest's command and its arguments. */
export type CounterpartTask =
  | ({ readonly program: 'ibv_rc_pingpong' } & GuestPingpongArgs)
  | ({ readonly program: 'rping' } & GuestRpingArgs)
  | ({ readonly program: 'ucmatose' } & GuestUcmatoseArgs)
  | ({ readonly program: 'refusal' } & GuestRefusalArgs)
  | ({ readonly program: 'perftest' } & GuestPerftestArgs);

/** Outcome of a task. */
export type CounterpartOutcome =
  | { readonly result: JsonValue }
  /** The error, in words. */
  | { readonly error: string };

/** Acts as the peer of `rping` once, according to its args. */
export async function rping(program: ProgramContext<GuestRpingArgs>): Promise<JsonValue> {
  return { ...(await guestRping(program, program.args)) };
}

/** Acts as the peer of `ucmatose` once, according to its args. */
export async function ucmatose(program: ProgramContext<GuestUcmatoseArgs>): Promise<JsonValue> {
  return { ...(await guestUcmatose(program, program.args)) };
}

/** Acts as the peer of a program of perftest once, according to its args. */
export async function perftest(program: ProgramContext<GuestPerftestArgs>): Promise<JsonValue> {
  return { ...(await guestPerftest(program, program.args)) };
}

/** Acts as the peer of `ibv_rc_pingpong` once, according to its args. */
export async function pingpong(program: ProgramContext<GuestPingpongArgs>): Promise<JsonValue> {
  return { ...(await guestPingpong(program, program.args)) };
}

function carryOut(program: ProgramContext, task: CounterpartTask): Promise<object> {
  if (task.program === 'rping') return guestRping(program, task);
  if (task.program === 'perftest') return guestPerftest(program, task);
  if (task.program === 'ucmatose') return guestUcmatose(program, task);
  if (task.program === 'refusal') return guestRefusal(program, task);
  return guestPingpong(program, task);
}

/** @returns the number of tasks received */
export async function guestCounterpart(program: ProgramContext): Promise<number> {
  const { exchange, log } = program;
  for (let count = 0; ; count++) {
    const task = await exchange.take<CounterpartTask | null>('task');
    if (task === null) return count;
    let outcome: CounterpartOutcome;
    try {
      outcome = { result: { ...(await carryOut(program, task)) } };
    } catch (thrown) {
      outcome = { error: textOfThrown(thrown) };
    }
    log(`${task.program}, the guest being the ${task.guest}: ${JSON.stringify(outcome)}`);
    await exchange.put('done', outcome);
  }
}
