/**
 * A program that waits for events with deadlines, and sleeps: each wait lasts as long as it was asked for unless what it waits
 * for comes, and nothing of a wait that is over ends a later one (ibv_get_cq_event with a deadline, as poll(2) gives it;
 * nanosleep(2)).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  createCq,
  destroyCq,
  getAsyncEvent,
  getCqEvent,
  IBV_WR_SEND,
  IbvWc,
  pollCq,
  postRecv,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, nowPs, post, requestOf } from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const kinds = ['completion', 'completion', 'async', 'sleep', 'sleep', 'command'] as const;

interface Args {
  readonly waits: readonly { readonly kind: (typeof kinds)[number]; readonly lengthNs: number }[];
  /** Between the messages of the other program. */
  readonly pausesNs: readonly number[];
}

function draw(random: Random): SceneDraft {
  // In half of the stories most waits are cut short, and the next ones last longer than they would have.
  const isBusy = random.chance(0.5);
  const lengthNs = (): number => Math.floor(2 ** (isBusy ? 18 + 4 * random.unit() : 22 * random.unit()));
  const pauseNs = (): number => Math.floor(2 ** (isBusy ? 13 + 6 * random.unit() : 22 * random.unit()));
  const args: Args = {
    waits: Array.from({ length: 4 + random.below(16) }, () => ({
      kind: kinds[random.below(kinds.length)]!,
      lengthNs: lengthNs(),
    })),
    pausesNs: Array.from({ length: 1 + random.below(isBusy ? 16 : 12) }, pauseNs),
  };
  return { args: args as never, hasDrawnHardware: random.chance(0.5) };
}

/** Waits, in all ways there are. */
export async function waiter(program: ProgramContext): Promise<JsonValue> {
  const { cpu } = program;
  const { waits, pausesNs } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 64, cap: { maxRecvWr: 16 }, hasChannel: true });
  const { endpoint, qps, cq } = side;
  const { channel } = cq;
  for (let at = 0; at < pausesNs.length; at++) postRecv(qps[0]!, { wrId: at, sgList: [], numSge: 0 });
  await reqNotifyCq(cq, 0);
  await barrier(program, 'waiting');
  const wrong: string[] = [];
  let taken = 0;
  const take = async (): Promise<void> => {
    const wcs = Array.from({ length: 16 }, () => new IbvWc());
    taken += await pollCq(cq, wcs.length, wcs);
  };
  for (const { kind, lengthNs } of waits) {
    const lengthPs = lengthNs * psPerNs;
    await cpu.settle();
    const fromPs = nowPs(program);
    let isOver = true;
    if (kind === 'sleep') await cpu.sleep(lengthPs);
    else if (kind === 'async') isOver = (await getAsyncEvent(endpoint.context, lengthPs)) === undefined;
    else if (kind === 'command') {
      const made = await createCq(endpoint.context, 1, null, channel);
      await destroyCq(made);
      isOver = false;
    } else isOver = (await getCqEvent(channel!, lengthPs)) === undefined;
    const lastedPs = nowPs(program) - fromPs;
    if (isOver && lastedPs < lengthPs)
      wrong.push(`a ${kind} of ${lengthPs} ps was over after ${lastedPs} ps`);
    // A quiet machine: nothing but the work of some events keeps a program from its core.
    if (kind !== 'command' && lastedPs > lengthPs + slackPs)
      wrong.push(`a ${kind} of ${lengthPs} ps lasted ${lastedPs} ps`);
    if (kind === 'async' && !isOver) wrong.push('an asynchronous event of unknown origin');
    if (kind !== 'completion' || isOver) continue;
    ackCqEvents(cq, 1);
    await reqNotifyCq(cq, 0);
    await take();
  }
  await barrier(program, 'over');
  await take();
  if (taken !== pausesNs.length) wrong.push(`${taken} completions of ${pausesNs.length} messages`);
  await leave(side);
  return { wrong };
}

/** Interrupts, their handlers and switches between threads: each some µs, on slow hardware some tens. */
const slackPs = 3_000 * psPerUs;

/** Sends, with pauses. */
export async function sender(program: ProgramContext): Promise<JsonValue> {
  const { pausesNs } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 64, cap: { maxRecvWr: 16 } });
  await barrier(program, 'waiting');
  const wrong: string[] = [];
  for (const [number, pauseNs] of pausesNs.entries()) {
    await program.cpu.sleep(pauseNs * psPerNs);
    post(side.qps[0]!, requestOf(side, number, IBV_WR_SEND, { offset: 0, lengthBytes: 0 }));
    wrong.push(...failuresOf(await completionsOf(side, 1)));
  }
  await barrier(program, 'over');
  await leave(side);
  return { wrong };
}

export const timedWaits: Scene = {
  name: 'timed-waits',
  about: 'waits with deadlines, sleeps and commands follow one another while messages come',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'waiter' },
    { node: 1, exportName: 'sender' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
