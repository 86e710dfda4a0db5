/** One point of `hca sweep`: a whole simulation and its figures. Also the task of the pool's workers. */
import { ConfigurationError } from '../../base/index.ts';
import { BootedMachines } from '../../machine/index.ts';
import { isFabric, type Outcome, outcomeOfFabric, outcomeOfRun, type PointOrder } from '../sweep/index.ts';
import runFabric, { fabricFailure } from './fabric-run.ts';
import { fabricTotalsOf } from './fabric-totals.ts';
import runPerf from './perf-run.ts';

/** Machines of this thread, for all points that it runs. */
const machines = new BootedMachines();

/** Never throws: a run that ends with an error produces a row too. */
export default async function runPoint({ machine, args }: PointOrder): Promise<Outcome> {
  try {
    if (!isFabric(args)) return outcomeOfRun(await runPerf({ machine, args }, undefined, machines));
    const row = await runFabric({ machine, args });
    return outcomeOfFabric(fabricTotalsOf(row), fabricFailure(row));
  } catch (error) {
    return outcomeOfError(error);
  }
}

/** Outcome `refused` if the machine rejects the point; any other error is `failed`. */
export function outcomeOfError(error: unknown): Outcome {
  const text = error instanceof Error ? error.message : String(error);
  return { status: error instanceof ConfigurationError ? 'refused' : 'failed', error: text };
}
