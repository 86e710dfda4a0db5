/**
 * A CQ goes while its event is on its way, and another one takes its number: the new one raises an event when a completion
 * comes to it, and not for those of the one before (ibv_destroy_cq; IBTA 11.2.8.3).
 *
 *     a message to the CQ that stays (its interrupt keeps a core busy) ─► one to the CQ that goes ─► destroyed ─► a new CQ, armed
 */
import { psPerNs, psPerUs } from '../../../base/units.ts';
import type { Random } from '../../../sim/index.ts';
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
} from '../../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../../program.ts';
import {
  barrier,
  connectRc,
  createRcQps,
  openEndpoint,
  type RcEndpoint,
} from '../../programs/rc-endpoint.ts';
import { completionsOf, failuresOf, post } from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Round {
  /** Messages to the CQ that stays, and the time from the last one to that for the other. */
  readonly before: number;
  readonly pauseNs: number;
  /** From its completion to its end. */
  readonly delayNs: number;
  /** The new CQ has a message as well, so an event of its own. */
  readonly isUsed: boolean;
}

interface Args {
  readonly vector: number;
  readonly rounds: readonly Round[];
}

function draw(random: Random): SceneDraft {
  const vectorCount = 4;
  // Handlers that hold their core for long: what comes meanwhile is handled afterwards.
  const exitCycles = [750, 50_000, 400_000, 1_000_000][random.below(4)]!;
  const exitNs = Math.ceil(exitCycles / 2.5);
  const args: Args = {
    vector: random.below(vectorCount),
    rounds: Array.from({ length: 1 + random.below(4) }, () => ({
      before: 1 + random.below(3),
      pauseNs: random.below(2000 + Math.ceil(exitNs / 2)),
      delayNs: random.chance(0.5) ? 0 : random.below(5000),
      isUsed: random.chance(0.5),
    })),
  };
  return {
    args: args as never,
    set: { 'host.interrupt.exitCycles': exitCycles, 'driver.completionVectorsMax': vectorCount },
    hasDrawnHardware: random.chance(0.3),
  };
}

/** Has a core of its own from the beginning, as a service would: others run beside its interrupts. */
export async function bystander({ cpu }: ProgramContext): Promise<JsonValue> {
  await cpu.sleep(psPerUs);
  return { wrong: [] };
}

interface Queue {
  readonly cq: IbvCq;
  readonly qp: IbvQp;
}

async function newQueue(endpoint: RcEndpoint, label: string, cq: IbvCq): Promise<Queue> {
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, { maxRecvWr: 16, maxSendWr: 16 });
  await connectRc(endpoint, [qp!], label, null, () => {
    for (let at = 0; at < 8; at++) postRecv(qp!, { wrId: at, sgList: [], numSge: 0 });
  });
  return { cq, qp: qp! };
}

/** Makes and destroys CQs that share a channel with one that stays. */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const { vector, rounds } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const { context } = endpoint;
  const channel = await createCompChannel(context);
  const newCq = (): Promise<IbvCq> =>
    createCq(context, 63, null, channel, Math.min(vector, context.numCompVectors - 1));
  const stays = await newQueue(endpoint, 'stays', await newCq());
  const wrong: string[] = [];
  for (const [number, { before, delayNs, isUsed }] of rounds.entries()) {
    for (let at = 0; at < before; at++) postRecv(stays.qp, { wrId: at, sgList: [], numSge: 0 });
    const goes = await newQueue(endpoint, `goes ${number}`, await newCq());
    for (const cq of [stays.cq, goes.cq]) await reqNotifyCq(cq, 0);
    await barrier(program, 'armed');
    wrong.push(...failuresOf(await completionsOf({ endpoint, cq: goes.cq }, 1)));
    await program.cpu.sleep(delayNs * psPerNs);
    await destroyQp(goes.qp);
    await destroyCq(goes.cq);
    const next = await newCq();
    await reqNotifyCq(next, 0);
    wrong.push(...(await eventsOf(channel, [[stays.cq, 'the CQ that stays', 1]], number)));
    wrong.push(...failuresOf(await completionsOf({ endpoint, cq: stays.cq }, before)));
    await barrier(program, 'gone');
    if (isUsed) {
      const { qp } = await newQueue(endpoint, `next ${number}`, next);
      await barrier(program, 'used');
      wrong.push(...(await eventsOf(channel, [[next, 'the new CQ', 1]], number)));
      wrong.push(...failuresOf(await completionsOf({ endpoint, cq: next }, 1)));
      await destroyQp(qp);
    }
    await destroyCq(next);
  }
  await barrier(program, 'over');
  await destroyQp(stays.qp);
  await destroyCq(stays.cq);
  await destroyCompChannel(channel);
  await deallocPd(endpoint.pd);
  await closeDevice(context);
  return { wrong };
}

/** Takes events until none comes for long, and compares how many with what has to come. */
async function eventsOf(
  channel: IbvCompChannel,
  expected: readonly (readonly [IbvCq, string, number])[],
  round: number,
): Promise<string[]> {
  const seen = new Map<IbvCq, number>();
  for (
    let cq = await getCqEvent(channel, quietPs);
    cq !== undefined;
    cq = await getCqEvent(channel, quietPs)
  ) {
    seen.set(cq, (seen.get(cq) ?? 0) + 1);
    ackCqEvents(cq, 1);
  }
  const wrong = expected.flatMap(([cq, name, count]) =>
    (seen.get(cq) ?? 0) === count
      ? []
      : [`round ${round}: ${seen.get(cq) ?? 0} events of ${name} instead of ${count}`],
  );
  const strange = [...seen.keys()].filter((cq) => !expected.some(([known]) => known === cq)).length;
  return strange === 0 ? wrong : [...wrong, `round ${round}: events of ${strange} CQs without a completion`];
}

/** Longer than interrupts stay behind one another. */
const quietPs = 20_000 * psPerUs;

/** Sends. */
export async function sender(program: ProgramContext): Promise<JsonValue> {
  const { rounds } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 63);
  const stays = await newQueue(endpoint, 'stays', cq);
  const qps = [stays.qp];
  const wrong: string[] = [];
  const send = async (qp: IbvQp, count: number): Promise<void> => {
    for (let at = 0; at < count; at++)
      post(qp, { wrId: at, sgList: [], numSge: 0, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
    wrong.push(...failuresOf(await completionsOf({ endpoint, cq }, count)));
  };
  for (const [number, { before, pauseNs, isUsed }] of rounds.entries()) {
    const goes = await newQueue(endpoint, `goes ${number}`, cq);
    qps.push(goes.qp);
    await barrier(program, 'armed');
    await send(stays.qp, before);
    await program.cpu.sleep(pauseNs * psPerNs);
    await send(goes.qp, 1);
    await barrier(program, 'gone');
    if (!isUsed) continue;
    const next = await newQueue(endpoint, `next ${number}`, cq);
    qps.push(next.qp);
    await barrier(program, 'used');
    await send(next.qp, 1);
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
