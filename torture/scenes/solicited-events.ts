/**
 * CQs are armed for any completion or for solicited ones, up to three times in a row, and messages of all kinds arrive, perhaps one that is too
 * long. A CQ armed for solicited completions reports those and every failure; a later request for solicited ones does not weaken a pending one
 * for any completion (IBTA 11.4.2.2).
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { connect, psPerMs, SEND, scene, statusesOf, times } from './language/index.ts';

type Message = 'plain' | 'solicited' | 'too long';

/** Wait for an event that must not arrive; a due one takes microseconds. */
const patienceMs = 50;
const receiveBytes = 64;

function draw(random: Draws) {
  const rounds = times(3 + random.below(6), () => {
    const plain = times(random.below(4), (): Message => (random.chance(0.3) ? 'solicited' : 'plain'));
    const isFlawed = plain.length === 0 || random.chance(0.4);
    const messages: Message[] = isFlawed ? [...plain, 'too long'] : plain;
    const kinds = () =>
      times(random.chance(0.5) ? 1 : 2 + random.below(2), () => (random.chance(0.7) ? 1 : 0));
    return {
      // Requests of each side's CQ, in their order: 0 any completion, 1 solicited ones.
      solicitedOnly: [kinds(), kinds()],
      messages,
      // Time from the first arming to the first post.
      delayNs: random.below(4000),
      // Whether the CQs are armed after the messages, when the completions have arrived.
      isArmedLate: random.chance(0.2),
    };
  });
  return {
    args: { rounds },
    hasDrawnHardware: random.chance(0.6),
    climate: 'flawed',
  } satisfies Draft<unknown>;
}

/** The first sends, the second receives. Each round has a QP of its own, since failures end it. */
async function player(stage: Stage<ArgsOf<typeof draw>>): Promise<void> {
  const { node } = stage;
  const { rounds } = stage.args;
  const side = await connect(stage, {
    ...{ areaBytes: 4096, qpCount: rounds.length, hasChannel: true, cap: { maxSendWr: 16, maxRecvWr: 16 } },
    beforeReady: (early) => {
      for (const [qp, { messages }] of node === 0 ? [] : rounds.entries())
        for (const id of messages.keys()) early.receive(id, { lengthBytes: receiveBytes, qp });
    },
  });
  const { cq } = side;
  for (const [qp, { solicitedOnly, messages, delayNs, isArmedLate }] of rounds.entries()) {
    const kinds = solicitedOnly[node]!;
    const arm = (): void => {
      for (const kind of kinds) ibv.reqNotifyCq(cq, kind);
    };
    if (!isArmedLate) arm();
    await stage.sleepNs(delayNs);
    await stage.meet('armed');
    for (const [id, message] of node === 0 ? messages.entries() : []) {
      const lengthBytes = receiveBytes + (message === 'too long' ? 1 + qp : 0);
      side.post(id, SEND, { qp, lengthBytes, flags: message === 'solicited' ? ibv.IBV_SEND_SOLICITED : 0 });
    }
    if (isArmedLate) {
      await stage.sleepMs(patienceMs);
      arm();
    }
    const hasEvent = (await ibv.getCqEvent(cq.channel!, patienceMs * psPerMs)) !== undefined;
    // Late completions still belong to this round.
    await stage.sleepMs(patienceMs);
    const ended = await stage.poll(cq, 16);
    ibv.ackCqEvents(cq, cq.eventsUnacked);
    const what = `of messages ${messages}, armed for ${kinds}, round ${qp}`;
    const isDue =
      kinds.includes(0) || messages.includes('too long') || (node === 1 && messages.includes('solicited'));
    if (hasEvent !== isDue) stage.accuse(`${hasEvent ? 'an' : 'no'} event ${what}`);
    const isWell = ended.map(({ status }) => status === 'SUCCESS');
    if (`${isWell}` !== `${messages.map((message) => message !== 'too long')}`)
      stage.accuse(`statuses ${statusesOf(ended)} ${what}`);
    await stage.meet('round');
  }
}

export const solicitedEvents = scene({
  about: 'CQs armed for any or for solicited completions get plain, solicited and failing ones',
  draw,
  programs: [player, player],
});
