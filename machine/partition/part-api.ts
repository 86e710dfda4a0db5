/** Interface of a thread that runs one part of a machine: it builds the part from the plan and executes calls. */
import type { MachinePlan } from '../plan.ts';
import { type Answer, errorRecordOf } from './answer.ts';
import { MachinePart } from './machine-part.ts';
import { localPort, type PartPort } from './part-port.ts';

/** Arguments of a thread. */
export interface PartOrder {
  readonly plan: MachinePlan;
  readonly thread: number;
}

/** One call, so that every answer carries its error with its type. */
export interface PartApi {
  call(method: keyof PartPort, args: readonly unknown[]): Promise<Answer>;
}

export function partApiOf({ plan, thread }: PartOrder): PartApi {
  let port: PartPort | undefined;
  return {
    async call(method, args) {
      try {
        port ??= localPort(new MachinePart(plan, thread));
        const action = port[method] as (...values: readonly unknown[]) => Promise<unknown>;
        return { value: await action(...args) };
      } catch (thrown) {
        return { error: errorRecordOf(thrown) };
      }
    },
  };
}
