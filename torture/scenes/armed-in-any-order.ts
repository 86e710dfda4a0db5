/**
 * A CQ is armed for the next completion and for solicited ones in any order, between messages of both kinds, polls and a failure (IBTA
 * 11.4.2.2): a later request does not weaken a pending one, which ends with exactly one event. A completion that was neither polled nor
 * reported when the CQ was armed may raise its event at once: cards differ.
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { connect, psPerUs, SEND, scene, times } from './language/index.ts';

const actions = ['arm next', 'arm solicited', 'plain', 'solicited', 'poll'] as const;
type Action = (typeof actions)[number] | 'too long';

const receiveBytes = 64;

function draw(random: Draws) {
  const hasDrawnHardware = random.chance(0.3);
  const some = times(6 + random.below(40), (): Action => random.oneOf(actions));
  const steps: Action[] = random.chance(0.3) ? [...some, 'arm solicited', 'too long'] : some;
  // An event arrives within this time.
  const restUs = hasDrawnHardware ? 2000 : 100;
  return { args: { steps, restUs }, hasDrawnHardware, climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Sends the messages. */
async function asker(stage: Stage<Args>): Promise<void> {
  const side = await connect(stage, { areaBytes: 4096 });
  for (const [id, step] of stage.args.steps.entries()) {
    if (['plain', 'solicited', 'too long'].includes(step)) {
      const lengthBytes = receiveBytes + (step === 'too long' ? 1 : 0);
      side.post(id, SEND, { lengthBytes, flags: step === 'solicited' ? ibv.IBV_SEND_SOLICITED : 0 });
      await side.completions(1);
    }
    await stage.meet('step');
    await stage.meet('seen');
  }
}

/** Arms, polls, and takes the events. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const { steps, restUs } = stage.args;
  const side = await connect(stage, {
    ...{ areaBytes: 4096, hasChannel: true, cap: { maxRecvWr: 64 } },
    beforeReady: (early) => {
      for (const id of steps.keys()) early.receive(id, { lengthBytes: receiveBytes });
    },
  });
  const { cq } = side;
  const pending = new PendingRequest();
  for (const [at, step] of steps.entries()) {
    if (step === 'arm next' || step === 'arm solicited') ibv.reqNotifyCq(cq, step === 'arm next' ? 0 : 1);
    if (step === 'poll') await side.completions(64, psPerUs);
    await stage.meet('step');
    const rule = pending.after(step);
    const seen = (await ibv.getCqEvent(cq.channel!, restUs * psPerUs)) === undefined ? 'none' : 'one';
    if (rule !== 'either' && rule !== seen)
      stage.accuse(`step ${at}: ${seen} event after ${steps.slice(0, at + 1).join(', ')}`);
    if (seen === 'one') pending.raised();
    if ((await ibv.getCqEvent(cq.channel!, psPerUs)) !== undefined)
      stage.accuse(`step ${at}: two events at once`);
    ibv.ackCqEvents(cq, cq.eventsUnacked);
    await stage.meet('seen');
  }
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

export const armedInAnyOrder = scene({
  about: 'a CQ is armed for the next and for solicited completions in any order, between messages and polls',
  draw,
  programs: [asker, answerer],
});
