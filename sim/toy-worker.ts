/** A worker thread that runs toys, for the specs: it receives toys, answers with their digests, and waits for the next order. */

import { parentPort } from 'node:worker_threads';
import type { Picoseconds } from '../base/index.ts';
import { SharedControl, type SharedControlPlan } from './shared-control.ts';
import type { RunOutcome } from './single-runner.ts';
import { Toy, type ToyConfig } from './toy-process.ts';
import { WorkerRunner } from './worker-runner.ts';

/** Order to the worker. */
export interface ToyOrder {
  readonly plan: SharedControlPlan;
  readonly worker: number;
  readonly configs: readonly ToyConfig[];
  readonly drainPs: Picoseconds;
  /** Instants at which to stop in between; the last may be Infinity. */
  readonly limitsPs: readonly number[];
  readonly spinCount?: number;
}

/** Answer of the worker. */
export interface ToyAnswer {
  readonly outcome?: RunOutcome;
  readonly digests: readonly string[];
  readonly turnCount: number;
  readonly error?: { readonly name: string; readonly message: string; readonly instantPs: Picoseconds };
}

/** The toys of an order, and the runner that runs them. @throws errors of their construction, which end the thread */
function made(order: ToyOrder): { readonly toys: readonly Toy[]; readonly runner: WorkerRunner } {
  const toys = order.configs.map((config) => new Toy(config));
  const runner = new WorkerRunner(
    new SharedControl(order.plan),
    order.worker,
    toys.map((toy) => toy.process),
    order.spinCount === undefined ? {} : { spinCount: order.spinCount },
  );
  for (const toy of toys) toy.start();
  return { toys, runner };
}

async function answerTo(order: ToyOrder): Promise<ToyAnswer> {
  const { toys, runner } = made(order);
  const answer = () => ({ digests: toys.map((toy) => toy.digest), turnCount: runner.turnCount });
  try {
    let outcome: RunOutcome | undefined;
    for (const limitPs of order.limitsPs) outcome = await runner.runUntilEnded(order.drainPs, limitPs);
    return outcome === undefined ? answer() : { ...answer(), outcome };
  } catch (thrown) {
    const { name, message, instantPs } = thrown as Error & { instantPs: Picoseconds };
    return { ...answer(), error: { name, message, instantPs } };
  }
}

parentPort!.on('message', async (order: ToyOrder) => parentPort!.postMessage(await answerTo(order)));
