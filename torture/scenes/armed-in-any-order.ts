/**
 * A CQ is armed for the next completion and for solicited ones in any order, once and again, between messages of both kinds, polls and
 * a failure (IBTA 11.4.2.2): a request that is pending is not weakened by a later one, it ends with its event, and an event comes once.
 * A completion that was neither polled nor reported by an event when the CQ was armed may raise its event at once: cards differ in that.
 */
import { psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  getCqEvent,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_WR_SEND,
  postRecv,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { askerAndAnswerer, completionsOf, connectWithPeer, leave, post, requestOf } from './pair.ts';
import { type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const actions = ['arm next', 'arm solicited', 'plain', 'solicited', 'poll'] as const;
type Action = (typeof actions)[number] | 'too long';

interface Args {
  readonly steps: readonly Action[];
  /** Between two steps; an event comes in less. */
  readonly restUs: number;
}

const receiveBytes = 64;

function draw(random: Random): SceneDraft {
  const hasDrawnHardware = random.chance(0.3);
  const steps = Array.from(
    { length: 6 + random.below(40) },
    (): Action => actions[random.below(actions.length)]!,
  );
  const args: Args = {
    steps: random.chance(0.3) ? [...steps, 'arm solicited', 'too long'] : steps,
    restUs: hasDrawnHardware ? 2000 : 100,
  };
  return { args: args as unknown as JsonValue, hasDrawnHardware, climate: 'flawed' };
}

/** Sends the messages. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { steps } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 4096 });
  for (const [id, step] of steps.entries()) {
    const isMessage = step === 'plain' || step === 'solicited' || step === 'too long';
    if (isMessage) {
      const lengthBytes = step === 'too long' ? receiveBytes + 1 : receiveBytes;
      post(side.qps[0]!, {
        ...requestOf(side, id, IBV_WR_SEND, { offset: 0, lengthBytes }),
        sendFlags: IBV_SEND_SIGNALED | (step === 'solicited' ? IBV_SEND_SOLICITED : 0),
      });
      await completionsOf(side, 1);
    }
    await barrier(program, 'step');
    await barrier(program, 'seen');
  }
  await leave(side);
  return { wrong: [] };
}

/** Arms, polls, and takes the events. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { steps, restUs } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: 4096,
    hasChannel: true,
    cap: { maxRecvWr: 64 },
    beforeReady: ({ qps: [qp], area }) => {
      for (const wrId of steps.keys())
        postRecv(qp!, {
          wrId,
          sgList: [{ addr: area.address, length: receiveBytes, lkey: area.region.lkey }],
          numSge: 1,
        });
    },
  });
  const { cq } = side;
  const wrong: string[] = [];
  const pending = new PendingRequest();
  for (const [at, step] of steps.entries()) {
    if (step === 'arm next' || step === 'arm solicited') reqNotifyCq(cq, step === 'arm next' ? 0 : 1);
    if (step === 'poll') await completionsOf(side, 64, psPerUs);
    await barrier(program, 'step');
    const rule = pending.after(step);
    const seen = (await getCqEvent(cq.channel!, restUs * psPerUs)) === undefined ? 'none' : 'one';
    if (rule !== 'either' && rule !== seen)
      wrong.push(`step ${at}: ${seen} event after ${steps.slice(0, at + 1).join(', ')}`);
    if (seen === 'one') pending.raised();
    if ((await getCqEvent(cq.channel!, psPerUs)) !== undefined) wrong.push(`step ${at}: two events at once`);
    ackCqEvents(cq, cq.eventsUnacked);
    await barrier(program, 'seen');
  }
  await leave(side);
  return { wrong };
}

/** The standard's rule for a request for an event. */
class PendingRequest {
  #for: 'none' | 'solicited' | 'next' = 'none';
  /** Completions since the last poll and the last event, and whether one of them was solicited or failed. */
  #unpolled: 'none' | 'plain' | 'solicited' = 'none';

  after(step: Action): 'none' | 'one' | 'either' {
    if (step === 'poll') this.#unpolled = 'none';
    if (step === 'poll') return 'none';
    if (step === 'arm next' || step === 'arm solicited') {
      if (step === 'arm next' || this.#for === 'none') this.#for = step === 'arm next' ? 'next' : 'solicited';
      const isSeen = this.#for === 'next' ? this.#unpolled !== 'none' : this.#unpolled === 'solicited';
      return isSeen ? 'either' : 'none';
    }
    const isStrong = step !== 'plain';
    if (isStrong || this.#unpolled === 'none') this.#unpolled = isStrong ? 'solicited' : 'plain';
    return this.#for === 'next' || (this.#for === 'solicited' && isStrong) ? 'one' : 'none';
  }

  raised(): void {
    this.#for = 'none';
    this.#unpolled = 'none';
  }
}

export const armedInAnyOrder: Scene = {
  name: 'armed-in-any-order',
  about: 'a CQ is armed for the next and for solicited completions in any order, between messages and polls',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
