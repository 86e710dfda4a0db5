/**
 * What the runners themselves cost: four processes in a row pass one record to and fro for ever, so that every turn
 * delivers one record and sends one.
 */
import { Worker } from 'node:worker_threads';
import {
  ChannelReader,
  ChannelWriter,
  channelBufferBytes,
  LogicalProcess,
  planSharedControl,
  type Runner,
  SharedControl,
  type SharedControlPlan,
  SingleRunner,
  WorkerRunner,
  watchWorker,
} from '../sim/index.ts';

const LATENCY_PS = 150_000;
const CHANNEL_BYTES = 65_536;
export const ROW_LENGTH = 4;

/** Memory of the channels of the row: up, down, up, down … between neighbours. */
export function rowBuffers(): SharedArrayBuffer[] {
  return Array.from(
    { length: 2 * (ROW_LENGTH - 1) },
    () => new SharedArrayBuffer(channelBufferBytes(CHANNEL_BYTES)),
  );
}

/** Builds process `index` of the row; the first one starts the record. */
export function rowProcess(index: number, buffers: readonly SharedArrayBuffer[]): LogicalProcess {
  const process = new LogicalProcess(`process${index}`);
  const up = index < ROW_LENGTH - 1 ? new ChannelWriter(buffers[2 * index]!) : undefined;
  const down = index > 0 ? new ChannelWriter(buffers[2 * index - 1]!) : undefined;
  const connect = (buffer: SharedArrayBuffer, answer: ChannelWriter): void => {
    const reader = new ChannelReader(buffer);
    process.addInbound(reader, LATENCY_PS, (offset) => {
      reader.release(offset);
      answer.append(process.nowPs + LATENCY_PS, 1, 0);
    });
  };
  if (down !== undefined) connect(buffers[2 * index - 2]!, up ?? down);
  if (up !== undefined) connect(buffers[2 * index + 1]!, down ?? up);
  for (const writer of [up, down]) if (writer !== undefined) process.addOutbound(writer);
  if (index === 0) {
    const start = process.queue.addHandler(() => up!.append(process.nowPs + LATENCY_PS, 1, 0));
    process.queue.schedule(0, start);
  }
  return process;
}

/** Runs so many hops and returns nanoseconds of wall time per hop. */
export async function timeHops(runner: Runner, startPs: number, hops: number): Promise<number> {
  const start = performance.now();
  await runner.runTo(startPs + hops * LATENCY_PS);
  return ((performance.now() - start) * 1e6) / hops;
}

/** Nanoseconds per turn in one thread. */
export async function turnCostSingle(hops: number): Promise<number> {
  const buffers = rowBuffers();
  const runner = new SingleRunner(
    Array.from({ length: ROW_LENGTH }, (_, index) => rowProcess(index, buffers)),
  );
  await timeHops(runner, 0, hops);
  return timeHops(runner, runner.nowPs, hops);
}

/** Plain data for one worker of {@link turnCostThreaded}. */
export interface RowOrder {
  readonly plan: SharedControlPlan;
  readonly worker: number;
  readonly indices: readonly number[];
  readonly buffers: readonly SharedArrayBuffer[];
  readonly hops: number;
  readonly spinCount: number;
}

/** The work of one worker. */
export async function runRow(order: RowOrder): Promise<number> {
  const processes = order.indices.map((index) => rowProcess(index, order.buffers));
  const control = new SharedControl(order.plan);
  const runner = new WorkerRunner(control, order.worker, processes, { spinCount: order.spinCount });
  await timeHops(runner, 0, order.hops);
  return timeHops(runner, order.hops * LATENCY_PS, order.hops);
}

/** Nanoseconds per hop with the row's processes placed on workers. */
export async function turnCostThreaded(
  placement: readonly (readonly number[])[],
  hops: number,
  spinCount: number,
): Promise<number> {
  const buffers = rowBuffers();
  const plan = planSharedControl(
    placement.map((indices) => indices.map((index) => `process${index}`)),
    buffers,
  );
  const control = new SharedControl(plan);
  const answers = placement.map((indices, worker) => {
    const order: RowOrder = { plan, worker, indices, buffers, hops, spinCount };
    const thread = new Worker(new URL('./kernel-turns-worker.ts', import.meta.url), { workerData: order });
    const answer = new Promise<number>((resolve) => thread.once('message', resolve));
    return Promise.race([answer, watchWorker(control, worker, thread)]);
  });
  return Math.max(...(await Promise.all(answers)));
}
