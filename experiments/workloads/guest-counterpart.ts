/**
 * A program that plays the other side of whatever stock program the guest runs next, as it is told in its mailbox `task`; what came of it
 * is put into `done`. It ends by `null`.
 */
import { textOfThrown } from '../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { type GuestPingpongArgs, guestPingpong } from './guest-pingpong.ts';
import { type GuestRpingArgs, guestRping } from './guest-rping.ts';

/** The guest's command and its arguments. */
export type CounterpartTask =
  | ({ readonly program: 'ibv_rc_pingpong' } & GuestPingpongArgs)
  | ({ readonly program: 'rping' } & GuestRpingArgs);

/** Outcome of a task. */
export type CounterpartOutcome =
  | { readonly result: JsonValue }
  /** Its error, in words. */
  | { readonly error: string };

/** Plays the other side of `rping` once, as its args say. */
export async function rping(program: ProgramContext<GuestRpingArgs>): Promise<JsonValue> {
  return { ...(await guestRping(program, program.args)) };
}

/** Plays the other side of `ibv_rc_pingpong` once, as its args say. */
export async function pingpong(program: ProgramContext<GuestPingpongArgs>): Promise<JsonValue> {
  return { ...(await guestPingpong(program, program.args)) };
}

/** @returns how many tasks it was given */
export async function guestCounterpart(program: ProgramContext): Promise<number> {
  const { exchange, log } = program;
  for (let count = 0; ; count++) {
    const task = await exchange.take<CounterpartTask | null>('task');
    if (task === null) return count;
    let outcome: CounterpartOutcome;
    try {
      const result =
        task.program === 'rping' ? await guestRping(program, task) : await guestPingpong(program, task);
      outcome = { result: { ...result } };
    } catch (thrown) {
      outcome = { error: textOfThrown(thrown) };
    }
    log(`${task.program}, the guest being the ${task.guest}: ${JSON.stringify(outcome)}`);
    await exchange.put('done', outcome);
  }
}
