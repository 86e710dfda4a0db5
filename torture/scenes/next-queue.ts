/**
 * A CQ is destroyed while its event is in flight, and a new one gets its number: the new CQ raises an event for its own completions, and none for
 * those of the earlier one (ibv_destroy_cq; IBTA 11.2.8.3).
 *
 *     messages to CQs that stay (their handler has a core for long) ─► one to the CQ that goes ─► destroyed ─► a new CQ, armed
 */

import { connectRc } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Device, Draft, Draws, Stage } from './language/index.ts';
import { on, psPerUs, SEND, scene, series, times } from './language/index.ts';

function draw(random: Draws) {
  const vectorCount = 4;
  // CQs that stay.
  const stays = 1 + random.below(12);
  // Handlers that occupy their core for long: events that arrive meanwhile are handled afterwards.
  const eventDispatch = random.chance(0.1) ? 250 : 125_000 * (1 + random.below(4));
  const busyNs = (stays * eventDispatch) / 2.5;
  const args = {
    // The first one shares its core with the program that waits for the interrupts of commands.
    vector: random.chance(0.9) ? 1 + random.below(vectorCount - 1) : 0,
    stays,
    rounds: times(1 + random.below(4), () => ({
      // Delays: from the messages of the remaining CQs to that of the temporary one, and from its completion to its
      // destruction.
      pauseNs: 1000 + random.below(15_000 + Math.ceil(busyNs / 4)),
      delayNs: random.chance(0.5) ? 0 : random.below(5000),
      // The new CQ has a message as well, so an event of its own.
      isUsed: random.chance(0.5),
    })),
  };
  const set = {
    'host.cost.eventDispatch': eventDispatch,
    // Long enough that all events to be handled together have arrived.
    'host.interrupt.entryCycles': random.chance(0.2) ? 1500 : 25_000,
    'driver.completionVectorsMax': vectorCount,
  };
  return { args, set, hasDrawnHardware: random.chance(0.3) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Occupies the first core, which serves the interrupts, so that other programs run on others. */
const bystander = (stage: Stage<Args>): Promise<void> => stage.sleepUs(1);

const cap = { maxRecvWr: 16, maxSendWr: 16 };
const empty = { wrId: 0, sgList: [], numSge: 0 };

/** Creates a QP for each CQ, connected to those of the other program. */
async function connected(device: Device, label: string, cqs: readonly ibv.IbvCq[]): Promise<ibv.IbvQp[]> {
  const qps: ibv.IbvQp[] = [];
  for (const cq of cqs) qps.push(...(await device.rcQps(1, cq, cap)));
  await connectRc(device.endpoint, qps, label, null, () => {
    for (const qp of qps) ibv.postRecv(qp, empty);
  });
  return qps;
}

/** Makes and destroys CQs that share a channel with some that stay. */
async function owner(stage: Stage<Args>): Promise<void> {
  const { vector, stays, rounds } = stage.args;
  const device = await stage.open();
  const channel = await device.channel();
  const newCq = () => device.cq(63, channel, Math.min(vector, device.context.numCompVectors - 1));
  const staying = await series(stays, newCq);
  const qps = await connected(device, 'stays', staying);
  for (const [number, { delayNs, isUsed }] of rounds.entries()) {
    const goes = await newCq();
    const [going] = await connected(device, `goes ${number}`, [goes]);
    for (const cq of [...staying, goes]) ibv.reqNotifyCq(cq, 0);
    await stage.meet('armed');
    await stage.expectWell(goes, 1);
    await stage.sleepNs(delayNs);
    await device.destroyQp(going!);
    await device.destroyCq(goes);
    const next = await newCq();
    ibv.reqNotifyCq(next, 0);
    await expectEvents(stage, channel, staying, `round ${number}`);
    for (const cq of staying) await stage.expectWell(cq, 1);
    for (const qp of qps) ibv.postRecv(qp, empty);
    await stage.meet('gone');
    if (isUsed) {
      const [used] = await connected(device, `next ${number}`, [next]);
      await stage.meet('used');
      await expectEvents(stage, channel, [next], `round ${number}, next`);
      await stage.expectWell(next, 1);
      await device.destroyQp(used!);
    }
    await device.destroyCq(next);
  }
  await stage.meet('over');
}

/** Takes events until none arrives for long: one of each CQ that was armed and had a completion, and no other. */
async function expectEvents(
  stage: Stage<Args>,
  channel: ibv.IbvCompChannel,
  expected: readonly ibv.IbvCq[],
  what: string,
): Promise<void> {
  const seen: ibv.IbvCq[] = [];
  // Longer than interrupts follow one another.
  const next = () => ibv.getCqEvent(channel, 20_000 * psPerUs);
  for (let cq = await next(); cq !== undefined; cq = await next()) {
    seen.push(cq);
    ibv.ackCqEvents(cq, 1);
  }
  for (const [number, cq] of expected.entries()) {
    const count = seen.filter((one) => one === cq).length;
    if (count !== 1) stage.accuse(`${what}: ${count} events of CQ ${number} instead of 1`);
  }
  const strange = seen.filter((cq) => !expected.includes(cq)).length;
  if (strange > 0) stage.accuse(`${what}: ${strange} events of CQs without a completion`);
}

async function sender(stage: Stage<Args>): Promise<void> {
  const { rounds, stays } = stage.args;
  const device = await stage.open();
  const cq = await device.cq(63);
  const send = async (to: readonly ibv.IbvQp[]): Promise<void> => {
    for (const [wrId, qp] of to.entries())
      ibv.postSend(qp, { ...empty, wrId, opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED });
    await stage.expectWell(cq, to.length);
  };
  const staying = await connected(device, 'stays', Array<ibv.IbvCq>(stays).fill(cq));
  for (const [number, { pauseNs, isUsed }] of rounds.entries()) {
    const going = await connected(device, `goes ${number}`, [cq]);
    await stage.meet('armed');
    await send(staying);
    await stage.sleepNs(pauseNs);
    await send(going);
    await stage.meet('gone');
    if (!isUsed) continue;
    const next = await connected(device, `next ${number}`, [cq]);
    await stage.meet('used');
    await send(next);
  }
  await stage.meet('over');
}

export const nextQueue = scene({
  about: 'a CQ is destroyed while its event is on its way, and the next one has its number',
  draw,
  programs: [on(0, bystander), on(0, owner), on(1, sender)],
});
