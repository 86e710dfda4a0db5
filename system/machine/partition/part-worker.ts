/** A worker thread that runs one part of a machine: builds it from the plan, and does what it is called to do. */
import { parentPort, workerData } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { InvariantError } from '../../../base/assert.ts';
import type { MachinePlan } from '../plan.ts';
import { type Answer, errorRecordOf } from './answer.ts';
import { endpointOf } from './endpoint.ts';
import { MachinePart } from './part.ts';
import { localPort, type PartPort } from './part-port.ts';

/** What a worker is started with. */
export interface PartOrder {
  readonly plan: MachinePlan;
  readonly thread: number;
}

/** What a worker exposes: one call, so that every answer carries its error with its type. */
export interface WorkerApi {
  call(method: keyof PartPort, args: readonly unknown[]): Promise<Answer>;
}

const { plan, thread } = workerData as PartOrder;
let port: PartPort | undefined;

const api: WorkerApi = {
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

if (parentPort === null) throw new InvariantError('part worker', 'the main thread', 'a worker thread');
Comlink.expose(api, endpointOf(parentPort));
