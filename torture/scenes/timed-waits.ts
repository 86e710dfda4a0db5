/**
 * A program waits for events with deadlines, and sleeps: each wait has the requested length unless its event arrives, and an earlier wait does not
 * end a later one (ibv_get_cq_event with a deadline, as of poll(2); nanosleep(2)).
 */

import * as ibv from '../../userlib/index.ts';
import type { Draft, Draws, Stage } from './language/index.ts';
import { connect, psPerNs, psPerUs, SEND, scene, times } from './language/index.ts';

const kinds = ['completion', 'completion', 'async', 'sleep', 'sleep', 'command'] as const;

export interface Waits {
  readonly waits: readonly { readonly kind: (typeof kinds)[number]; readonly lengthNs: number }[];
  /** Pauses between the messages of the other program. */
  readonly pausesNs: readonly number[];
}

function draw(random: Draws): Draft<Waits> {
  // In half of the stories most waits are cut short, and the following ones last longer.
  const isBusy = random.chance(0.5);
  const lengthNs = (): number => Math.floor(2 ** (isBusy ? 18 + 4 * random.unit() : 22 * random.unit()));
  const pauseNs = (): number => Math.floor(2 ** (isBusy ? 13 + 6 * random.unit() : 22 * random.unit()));
  const args = {
    waits: times(4 + random.below(16), () => ({ kind: random.oneOf(kinds), lengthNs: lengthNs() })),
    pausesNs: times(1 + random.below(isBusy ? 16 : 12), pauseNs),
  };
  return { args, hasDrawnHardware: random.chance(0.5) };
}

/** Interrupts, their handlers and switches between threads: each some µs, on slow hardware some tens. */
const slackPs = 3_000 * psPerUs;

/** Waits, in all ways there are. */
export async function waiter(stage: Stage<Waits>): Promise<void> {
  const { waits, pausesNs } = stage.args;
  const side = await connect(stage, { areaBytes: 64, cap: { maxRecvWr: 16 }, hasChannel: true });
  const { cq, device } = side;
  const empty = { sgList: [], numSge: 0 };
  for (const wrId of pausesNs.keys()) ibv.postRecv(side.qp, { wrId, ...empty });
  ibv.reqNotifyCq(cq, 0);
  await stage.meet('waiting');
  let taken = 0;
  /**
   * Waits in one way. @returns whether the wait lasted as long as requested
   */
  const wait = async (kind: (typeof kinds)[number], lengthPs: number): Promise<boolean> => {
    if (kind === 'sleep') await stage.cpu.sleep(lengthPs);
    if (kind === 'async') return (await ibv.getAsyncEvent(device.context, lengthPs)) === undefined;
    if (kind === 'command') await device.destroyCq(await device.cq(1, cq.channel));
    if (kind === 'completion') return (await ibv.getCqEvent(cq.channel!, lengthPs)) === undefined;
    return kind === 'sleep';
  };
  for (const { kind, lengthNs } of waits) {
    const lengthPs = lengthNs * psPerNs;
    await stage.cpu.settle();
    const fromPs = stage.nowPs;
    const isOver = await wait(kind, lengthPs);
    const lastedPs = stage.nowPs - fromPs;
    const isLate = kind !== 'command' && lastedPs > lengthPs + slackPs;
    // A quiet machine: nothing but the work of some events keeps a program from its core.
    if ((isOver && lastedPs < lengthPs) || isLate)
      stage.accuse(`a ${kind} of ${lengthPs} ps was over after ${lastedPs} ps`);
    if (kind === 'async' && !isOver) stage.accuse('an asynchronous event of unknown origin');
    if (kind !== 'completion' || isOver) continue;
    ibv.ackCqEvents(cq, 1);
    ibv.reqNotifyCq(cq, 0);
    taken += (await stage.poll(cq, 16)).length;
  }
  await stage.meet('over');
  taken += (await stage.poll(cq, 16)).length;
  if (taken !== pausesNs.length) stage.accuse(`${taken} completions of ${pausesNs.length} messages`);
}

/** Sends, with pauses. */
export async function sender(stage: Stage<Waits>): Promise<void> {
  const side = await connect(stage, { areaBytes: 64, cap: { maxRecvWr: 16 } });
  await stage.meet('waiting');
  for (const [number, pauseNs] of stage.args.pausesNs.entries()) {
    await stage.sleepNs(pauseNs);
    side.post(number, SEND, { lengthBytes: 0 });
    await side.expectWell(1);
  }
  await stage.meet('over');
}

export const timedWaits = scene({
  about: 'waits with deadlines, sleeps and commands follow one another while messages come',
  draw,
  programs: [waiter, sender],
});
