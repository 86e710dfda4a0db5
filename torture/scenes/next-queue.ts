/**
 * A CQ is destroyed while its event is in flight, and another one gets its number: the new one raises an event when a completion
 * comes to it, and not for those of the one before (ibv_destroy_cq; IBTA 11.2.8.3).
 *
 *     messages to CQs that stay (their handler has a core for long) ─► one to the CQ that goes ─► destroyed ─► a new CQ, armed
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import {
  barrier,
  connectRc,
  createRcQps,
  openEndpoint,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  closeDevice,
  createCompChannel,
  createCq,
  deallocPd,
  destroyCompChannel,
  destroyCq,
  destroyQp,
  getCqEvent,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND,
  type IbvCompChannel,
  type IbvCq,
  type IbvQp,
  postRecv,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { completionsOf, failuresOf, post } from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Round {
  /** From the messages to the CQs that stay to that for the one that goes. */
  readonly pauseNs: number;
  /** From its completion to its end. */
  readonly delayNs: number;
  /** The new CQ has a message as well, so an event of its own. */
  readonly isUsed: boolean;
}

interface Args {
  readonly vector: number;
  /** CQs that stay. */
  readonly stays: number;
  readonly rounds: readonly Round[];
}

function draw(random: Random): SceneDraft {
  const vectorCount = 4;
  const stays = 1 + random.below(12);
  // Handlers that have their core for long: what comes meanwhile is handled afterwards.
  const eventDispatch = random.chance(0.1) ? 250 : 125_000 * (1 + random.below(4));
  const busyNs = (stays * eventDispatch) / 2.5;
  const args: Args = {
    // The first one shares its core with the program that waits for the interrupts of commands.
    vector: random.chance(0.9) ? 1 + random.below(vectorCount - 1) : 0,
    stays,
    rounds: Array.from({ length: 1 + random.below(4) }, () => ({
      pauseNs: 1000 + random.below(15_000 + Math.ceil(busyNs / 4)),
      delayNs: random.chance(0.5) ? 0 : random.below(5000),
      isUsed: random.chance(0.5),
    })),
  };
  return {
    args: args as never,
    set: {
      'host.cost.eventDispatch': eventDispatch,
      // Long enough that all events that are to be handled at once have come.
      'host.interrupt.entryCycles': random.chance(0.2) ? 1500 : 25_000,
      'driver.completionVectorsMax': vectorCount,
    },
    hasDrawnHardware: random.chance(0.3),
  };
}

/** Has a core of its own from the beginning, as a service would: others run beside its interrupts. */
export async function bystander({ cpu }: ProgramContext): Promise<JsonValue> {
  await cpu.sleep(psPerUs);
  return { wrong: [] };
}

const withReceives = { maxRecvWr: 16, maxSendWr: 16 };
const postOne = (qp: IbvQp): number => postRecv(qp, { wrId: 0, sgList: [], numSge: 0 });

/** A QP of its own for each CQ, connected to those of the other program. */
async function connected(endpoint: RcEndpoint, label: string, cqs: readonly IbvCq[]): Promise<IbvQp[]> {
  const qps: IbvQp[] = [];
  for (const cq of cqs)
    qps.push(...(await createRcQps(endpoint, 1, { send: cq, receive: cq }, withReceives)));
  await connectRc(endpoint, qps, label, null, () => {
    for (const qp of qps) postOne(qp);
  });
  return qps;
}

/** Makes and destroys CQs that share a channel with some that stay. */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const { vector, stays, rounds } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const { context } = endpoint;
  const channel = await createCompChannel(context);
  const newCq = (): Promise<IbvCq> =>
    createCq(context, 63, null, channel, Math.min(vector, context.numCompVectors - 1));
  const staying: IbvCq[] = [];
  for (let at = 0; at < stays; at++) staying.push(await newCq());
  const qps = await connected(endpoint, 'stays', staying);
  const wrong: string[] = [];
  for (const [number, { delayNs, isUsed }] of rounds.entries()) {
    const goes = await newCq();
    const [going] = await connected(endpoint, `goes ${number}`, [goes]);
    for (const cq of [...staying, goes]) await reqNotifyCq(cq, 0);
    await barrier(program, 'armed');
    wrong.push(...failuresOf(await completionsOf({ endpoint, cq: goes }, 1)));
    await program.cpu.sleep(delayNs * psPerNs);
    await destroyQp(going!);
    await destroyCq(goes);
    const next = await newCq();
    await reqNotifyCq(next, 0);
    wrong.push(...(await eventsOf(channel, staying, number)));
    for (const cq of staying) wrong.push(...failuresOf(await completionsOf({ endpoint, cq }, 1)));
    for (const qp of qps) postOne(qp);
    await barrier(program, 'gone');
    if (isUsed) {
      const used = await connected(endpoint, `next ${number}`, [next]);
      await barrier(program, 'used');
      wrong.push(...(await eventsOf(channel, [next], number)));
      wrong.push(...failuresOf(await completionsOf({ endpoint, cq: next }, 1)));
      await destroyQp(used[0]!);
    }
    await destroyCq(next);
  }
  await barrier(program, 'over');
  for (const qp of qps) await destroyQp(qp);
  for (const cq of staying) await destroyCq(cq);
  await destroyCompChannel(channel);
  await deallocPd(endpoint.pd);
  await closeDevice(context);
  return { wrong };
}

/** Takes events until none comes for long: one of each CQ that was armed and had a completion, and no other. */
async function eventsOf(
  channel: IbvCompChannel,
  expected: readonly IbvCq[],
  round: number,
): Promise<string[]> {
  const seen: IbvCq[] = [];
  for (
    let cq = await getCqEvent(channel, quiescentUntilPs);
    cq !== undefined;
    cq = await getCqEvent(channel, quiescentUntilPs)
  ) {
    seen.push(cq);
    ackCqEvents(cq, 1);
  }
  const wrong = expected.flatMap((cq, number) => {
    const count = seen.filter((one) => one === cq).length;
    return count === 1 ? [] : [`round ${round}: ${count} events of CQ ${number} instead of 1`];
  });
  const strange = seen.filter((cq) => !expected.includes(cq)).length;
  return strange === 0 ? wrong : [...wrong, `round ${round}: ${strange} events of CQs without a completion`];
}

/** Longer than interrupts stay behind one another. */
const quiescentUntilPs = 20_000 * psPerUs;

/** Sends. */
export async function sender(program: ProgramContext): Promise<JsonValue> {
  const { rounds, stays } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 63);
  const staying = await connected(endpoint, 'stays', Array<IbvCq>(stays).fill(cq));
  const qps = [...staying];
  const wrong: string[] = [];
  const send = async (to: readonly IbvQp[]): Promise<void> => {
    for (const [wrId, qp] of to.entries())
      post(qp, { wrId, sgList: [], numSge: 0, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
    wrong.push(...failuresOf(await completionsOf({ endpoint, cq }, to.length)));
  };
  for (const [number, { pauseNs, isUsed }] of rounds.entries()) {
    const going = await connected(endpoint, `goes ${number}`, [cq]);
    qps.push(...going);
    await barrier(program, 'armed');
    await send(staying);
    await program.cpu.sleep(pauseNs * psPerNs);
    await send(going);
    await barrier(program, 'gone');
    if (!isUsed) continue;
    const next = await connected(endpoint, `next ${number}`, [cq]);
    qps.push(...next);
    await barrier(program, 'used');
    await send(next);
  }
  await barrier(program, 'over');
  for (const qp of qps) await destroyQp(qp);
  await destroyCq(cq);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
  return { wrong };
}

export const nextQueue: Scene = {
  name: 'next-queue',
  about: 'a CQ is destroyed while its event is on its way, and the next one has its number',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'bystander' },
    { node: 0, exportName: 'owner' },
    { node: 1, exportName: 'sender' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
