/**
 * A program that outlives its device: creates and destroys objects until the device dies, fetches the event, closes its
 * objects, waits until the device can be opened again, and continues. Its observations at each step are its result.
 */

import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { ProgramContext } from '../../machine/program.ts';
import {
  ackCqEvents,
  allocPd,
  closeDevice,
  createCompChannel,
  createCq,
  createQp,
  deregMr,
  destroyCq,
  destroyQp,
  eventTypeStr,
  getAsyncEvent,
  getCqEvent,
  getDeviceList,
  IBV_QPT_RC,
  type IbvContext,
  type IbvDevice,
  type IbvPd,
  openDevice,
  queryPort,
  regMr,
} from '../../userlib/index.ts';
import { codeOf } from './outcomes.ts';

export interface SurvivorArgs {
  /** Limit of rounds of work before it stops. */
  readonly rounds?: number;
  /** Pause between two rounds. */
  readonly pauseUs?: number;
  /** Time for which it waits for the event, and then for the device. */
  readonly patienceMs?: number;
  /** Number of restarts. */
  readonly lives?: number;
}

const microsecond = 1e6;
const millisecond = 1e9;

export interface SurvivorResult {
  /** Successful rounds of work, and the end of the last one. */
  readonly worked: Work;
  readonly event: string | null;
  /** Whether the completion channel woke it without a completion. */
  readonly isWoken: boolean;
  /** Result of a query after the event. */
  readonly after: string;
  /** Result of destroying and closing. */
  readonly farewell: readonly string[];
  /** Devices listed by then. */
  readonly listed: number;
  readonly pinnedBytes: number;
  /** Result of opening while it failed, and the duration of that. */
  readonly away: string;
  readonly tookMs: number;
  /** Work on the returned device; null if it never returned. */
  readonly workedAgain: Work | null;
  readonly usedFrames: number;
}

export interface Work {
  readonly done: number;
  readonly ended: string;
}

export async function survivor(program: ProgramContext): Promise<SurvivorResult[]> {
  const { lives = 1 } = (program.args ?? {}) as SurvivorArgs;
  const results: SurvivorResult[] = [];
  const address = program.memory.map(4096);
  const [device] = getDeviceList(program.verbs);
  for (let life = 0; life < lives; life++) results.push(await live(program, device!, address));
  return results;
}

async function live(
  { cpu, verbs, memory, args, host }: ProgramContext,
  device: IbvDevice,
  address: number,
): Promise<SurvivorResult> {
  const { rounds = 5, pauseUs = 50, patienceMs = 5000 } = (args ?? {}) as SurvivorArgs;
  const context = await openDevice(device);
  const pd = await allocPd(context);
  const channel = await createCompChannel(context);
  const cq = await createCq(context, 8, null, channel, 0);
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await createQp(pd, { sendCq: cq, recvCq: cq, cap, qpType: IBV_QPT_RC });
  const region = await regMr(pd, address, 4096, allAccess);
  const worked = await work(pd, address, rounds, () => cpu.sleep(pauseUs * microsecond));
  const event = await getAsyncEvent(context, patienceMs * millisecond);
  const isWoken = event === undefined ? false : (await getCqEvent(channel, microsecond)) !== undefined;
  const after = await codeOf(queryPort(context, 1));
  if (isWoken) ackCqEvents(cq, 1);
  const farewell = [];
  for (const end of [
    () => destroyQp(qp),
    () => destroyCq(cq),
    () => deregMr(region),
    () => closeDevice(context),
  ])
    farewell.push(await codeOf(end()));
  const listed = getDeviceList(verbs).length;
  const { pinnedBytes } = memory.process.space;
  const fromPs = cpu.localPs;
  const again = await reopen(() => openDevice(device), cpu, patienceMs);
  const tookMs = (cpu.localPs - fromPs) / millisecond;
  let workedAgain: Work | null = null;
  if (again.context !== undefined) {
    workedAgain = await work(await allocPd(again.context), address, rounds, async () => undefined);
    await closeDevice(again.context);
  }
  return {
    worked,
    event: event === undefined ? null : eventTypeStr(event.eventType).slice('IBV_EVENT_'.length),
    isWoken,
    after,
    farewell,
    listed,
    pinnedBytes,
    away: again.code,
    tookMs,
    workedAgain,
    usedFrames: host.mm.frames.usedCount,
  };
}

/** Repeatedly registers and deregisters a region. @returns the number of successes, and the final result */
async function work(pd: IbvPd, address: number, rounds: number, pause: () => Promise<void>): Promise<Work> {
  for (let done = 0; done < rounds; done++) {
    const ended = await codeOf(regMr(pd, address, 4096, allAccess).then(deregMr));
    if (ended !== 'ok') return { done, ended };
    await pause();
  }
  return { done: rounds, ended: 'ok' };
}

/** Tries every 10 ms. @returns the context, or the last code */
async function reopen(
  open: () => Promise<IbvContext>,
  cpu: ProgramContext['cpu'],
  patienceMs: number,
): Promise<{ readonly context?: IbvContext; readonly code: string }> {
  let code = 'ok';
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += 10) {
    try {
      return { context: await open(), code };
    } catch (error) {
      code = await codeOf(Promise.reject(error));
    }
    await cpu.sleep(10 * millisecond);
  }
  return { code };
}
