/**
 * CQs are armed for any completion, or for solicited ones alone, up to three times in a row, and messages of all kinds arrive, the
 * last of them perhaps too long. A CQ armed for solicited completions reports those that request it and every failure; a later
 * request for solicited ones does not weaken a pending one for any completion (IBTA 11.4.2.2).
 */
import { psPerMs, psPerNs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  getCqEvent,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  IbvWc,
  pollCq,
  postRecv,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { askerAndAnswerer, connectWithPeer, leave, post, requestOf, type Side } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly rounds: readonly Round[];
}

/** Each round has a QP of its own, since failures end it. */
interface Round {
  /** Requests of each side's CQ, in their order: 0 any completion, 1 solicited ones. */
  readonly solicitedOnly: readonly [readonly number[], readonly number[]];
  readonly messages: readonly Message[];
  /** From the first arming to the first post. */
  readonly delayNs: number;
  /** Whether the CQs are armed behind the messages, when the completions are there. */
  readonly isArmedLate: boolean;
}

type Message = 'plain' | 'solicited' | 'too long';

interface Seen {
  readonly hasEvent: boolean;
  readonly statuses: readonly number[];
}

/** What is waited for an event that ought not to come; one that ought to takes microseconds. */
const patiencePs = 50 * psPerMs;
const receiveBytes = 64;

function draw(random: Random): SceneDraft {
  const rounds = Array.from({ length: 3 + random.below(6) }, (): Round => {
    const plain = Array.from(
      { length: random.below(4) },
      (): Message => (random.chance(0.3) ? 'solicited' : 'plain'),
    );
    const isFlawed = plain.length === 0 || random.chance(0.4);
    const kinds = (): number[] =>
      Array.from({ length: random.chance(0.5) ? 1 : 2 + random.below(2) }, () =>
        random.chance(0.7) ? 1 : 0,
      );
    return {
      solicitedOnly: [kinds(), kinds()],
      messages: isFlawed ? [...plain, 'too long'] : plain,
      delayNs: random.below(4000),
      isArmedLate: random.chance(0.2),
    };
  });
  const args: Args = { rounds };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.6), climate: 'flawed' };
}

/** Sends. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  return play(program, 0, (side, { messages }, number) => {
    for (const [id, message] of messages.entries())
      post(side.qps[number]!, {
        ...requestOf(side, id, IBV_WR_SEND, {
          offset: 0,
          lengthBytes: message === 'too long' ? receiveBytes + 1 + number : receiveBytes,
        }),
        sendFlags: IBV_SEND_SIGNALED | (message === 'solicited' ? IBV_SEND_SOLICITED : 0),
      });
  });
}

/** Receives. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  return play(program, 1, () => {});
}

async function play(
  program: ProgramContext,
  number: 0 | 1,
  send: (side: Side, round: Round, number: number) => void,
): Promise<JsonValue> {
  const { rounds } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: 4096,
    qpCount: rounds.length,
    hasChannel: true,
    cap: { maxSendWr: 16, maxRecvWr: 16 },
    beforeReady: ({ qps, area }) => {
      if (number === 0) return;
      for (const [at, { messages }] of rounds.entries())
        for (const id of messages.keys())
          postRecv(qps[at]!, {
            wrId: id,
            sgList: [{ addr: area.address, length: receiveBytes, lkey: area.region.lkey }],
            numSge: 1,
          });
    },
  });
  const seen: Seen[] = [];
  for (const [at, round] of rounds.entries()) {
    const arm = (): void => {
      for (const solicitedOnly of round.solicitedOnly[number]) reqNotifyCq(side.cq, solicitedOnly);
    };
    if (!round.isArmedLate) arm();
    await program.cpu.sleep(round.delayNs * psPerNs);
    await barrier(program, 'armed');
    send(side, round, at);
    if (round.isArmedLate) {
      await program.cpu.sleep(patiencePs);
      arm();
    }
    const event = await getCqEvent(side.cq.channel!, patiencePs);
    // Whatever comes late belongs to this round all the same.
    await program.cpu.sleep(patiencePs);
    seen.push({ hasEvent: event !== undefined, statuses: await statusesOf(side) });
    ackCqEvents(side.cq, side.cq.eventsUnacked);
    await barrier(program, 'round');
  }
  await leave(side);
  return seen as unknown as JsonValue;
}

async function statusesOf({ cq }: Side): Promise<number[]> {
  const wcs = Array.from({ length: 16 }, () => new IbvWc());
  const taken = await pollCq(cq, 16, wcs);
  return wcs.slice(0, taken).map(({ status }) => status);
}

export const solicitedEvents: Scene = {
  name: 'solicited-events',
  about: 'CQs armed for any or for solicited completions get plain, solicited and failing ones',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }) {
    const { rounds } = args as unknown as Args;
    return (results as unknown as readonly (readonly Seen[])[]).flatMap((sides, number) =>
      rounds.flatMap(({ solicitedOnly, messages }, at) => {
        const { hasEvent, statuses } = sides[at]!;
        const where = `round ${at}, program ${number}`;
        const isFlawed = messages.includes('too long');
        const isSolicited = number === 1 && messages.includes('solicited');
        if (statuses.length !== messages.length)
          return [`${where}: ${statuses.length} completions of ${messages.length}`];
        if (statuses.some((status, id) => (status === IBV_WC_SUCCESS) !== (messages[id] !== 'too long')))
          return [`${where}: statuses ${statuses} of messages ${messages}`];
        const isDue = solicitedOnly[number]!.includes(0) || isFlawed || isSolicited;
        return hasEvent === isDue
          ? []
          : [
              `${where}: ${hasEvent ? 'an' : 'no'} event of messages ${messages}, armed ${solicitedOnly[number]}`,
            ];
      }),
    );
  },
};
