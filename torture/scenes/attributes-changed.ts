/**
 * Attributes of working QPs change: rights at rest and in mid-traffic, and send queues that are drained, changed and restarted. Attributes that
 * were not named keep their values (IBTA 11.2.5.2, table of modify QP; 10.3.1 for SQD).
 *
 *     each step:   the answerer changes its rights ─► the asker uses them;   the asker drains, changes, continues ─► all arrives
 */

import { allAccess } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Ended, Played, Side, Stage } from './language/index.ts';
import { ADD, connect, psPerUs, READ, scene, times, WRITE } from './language/index.ts';

const rights = [
  [WRITE, ibv.IBV_ACCESS_REMOTE_WRITE],
  [READ, ibv.IBV_ACCESS_REMOTE_READ],
  [ADD, ibv.IBV_ACCESS_REMOTE_ATOMIC],
] as const;
const ways = ['rts', 'rts', 'sqd', 'sqdWithResources'] as const;

function draw(random: Draws) {
  let access = allAccess;
  const steps = times(1 + random.below(4), () => {
    const isChanged = random.chance(0.7);
    if (isChanged)
      access = rights.reduce<number>(
        (sum, [, right]) => sum | (random.chance(0.6) ? right : 0),
        ibv.IBV_ACCESS_LOCAL_WRITE,
      );
    const allowed = rights.filter(([, right]) => (access & right) !== 0).map(([opcode]) => opcode);
    const count = allowed.length === 0 ? 0 : random.below(8);
    return {
      // Rights of the answerer's QP from now on; undefined leaves them. And how the answerer changes them.
      rights: isChanged ? access : undefined,
      by: random.oneOf(ways),
      // Requests of the requester.
      requests: times(count, (): number => random.oneOf(allowed)),
      // The asker drains its queue in the middle of the requests, changes it, and continues.
      isDrained: random.chance(0.4),
      wantsEvent: random.chance(0.6),
      changesDrained: random.chance(0.5),
    };
  });
  // The last request exceeds the last rights, if possible.
  const endsRefused = random.chance(0.5);
  const args = { lengthBytes: 8 * (1 + random.below(1500)), steps, endsRefused };
  return {
    args,
    hasDrawnHardware: random.chance(0.5),
    climate: endsRefused ? 'flawed' : 'calm',
  } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Step = Args['steps'][number];

const post = (side: Side, { lengthBytes }: Args, id: number, opcode: number): number =>
  side.post(id, opcode, opcode === ADD ? { lengthBytes: 8 } : { offset: 8, lengthBytes: lengthBytes - 8 });

/** Drains, changes some attributes of a queue at rest, and has it continue. */
async function drain(
  side: Side,
  { wantsEvent, changesDrained }: Step,
  whileDrained: () => Promise<void>,
): Promise<void> {
  const { stage, device, qp } = side;
  const [event, mask] = wantsEvent
    ? [{ enSqdAsyncNotify: 1 as const }, ibv.IBV_QP_EN_SQD_ASYNC_NOTIFY]
    : [{}, 0];
  await ibv.modifyQp(qp, { qpState: ibv.IBV_QPS_SQD, ...event }, ibv.IBV_QP_STATE | mask);
  if (wantsEvent) {
    // Longer than any request of the scene takes.
    const seen = await ibv.getAsyncEvent(device.context, 20_000_000 * psPerUs);
    if (seen?.eventType !== ibv.IBV_EVENT_SQ_DRAINED || seen.qp !== qp)
      stage.accuse(`event ${seen?.eventType} instead of that the send queue is drained`);
  }
  const changes = { timeout: 17, retryCnt: 6, rnrRetry: 6, maxRdAtomic: 4 };
  const changed =
    ibv.IBV_QP_TIMEOUT | ibv.IBV_QP_RETRY_CNT | ibv.IBV_QP_RNR_RETRY | ibv.IBV_QP_MAX_QP_RD_ATOMIC;
  if (changesDrained) await ibv.modifyQp(qp, changes, changed);
  await whileDrained();
  await ibv.modifyQp(qp, { qpState: ibv.IBV_QPS_RTS }, ibv.IBV_QP_STATE);
}

/** Posts requests, and drains its queue at times. @returns how many of them add */
async function asker(stage: Stage<Args>): Promise<number> {
  const { steps, lengthBytes, endsRefused } = stage.args;
  const side = await connect(stage, { areaBytes: lengthBytes });
  const expect = (step: number, ended: readonly Ended[], count: number, status = 'SUCCESS'): void => {
    for (const one of ended)
      if (one.status !== status)
        stage.accuse(`step ${step}: request ${one.id} ended in ${one.status}, not ${status}`);
    if (ended.length !== count)
      stage.accuse(`step ${step}: ${ended.length} requests ended instead of ${count}`);
  };
  for (const [number, step] of steps.entries()) {
    await stage.meet('changed');
    const { requests, isDrained, wantsEvent } = step;
    const half = isDrained ? Math.floor(requests.length / 2) : requests.length;
    const postAll = (from: number, to: number): void => {
      for (let at = from; at < to; at++) {
        const errno = post(side, stage.args, at, requests[at]!);
        if (errno !== 0) stage.accuse(`step ${number}: request ${at} refused with ${errno}`);
      }
    };
    postAll(0, half);
    let left = requests.length;
    if (isDrained)
      await drain(side, step, async () => {
        postAll(half, requests.length);
        if (!wantsEvent) return;
        // All requests that had begun have ended, and the drained queue sends none.
        const begun = await side.completions(half, 20 * psPerUs);
        const late = await side.completions(left - begun.length, 300 * psPerUs);
        left -= begun.length + late.length;
        expect(number, begun, begun.length);
        for (const { id } of late)
          stage.accuse(`step ${number}: request ${id} ended while the queue was drained`);
      });
    expect(number, await side.completions(left), left);
    const unasked = await ibv.getAsyncEvent(side.device.context, 0);
    if (unasked !== undefined)
      stage.accuse(`step ${number}: event ${unasked.eventType} that was not requested`);
    await stage.meet('used');
  }
  const last = steps.reduce((access, step) => step.rights ?? access, allAccess);
  const refused = rights.find(([, right]) => (last & right) === 0);
  // A function that the responder's QP does not support (IBTA 9.9.3, table 60).
  if (endsRefused && refused !== undefined) {
    post(side, stage.args, 0, refused[0]);
    expect(steps.length, await side.completions(1), 1, 'REM_INV_REQ_ERR');
  }
  await stage.meet('over');
  return steps.flatMap(({ requests }) => requests).filter((opcode) => opcode === ADD).length;
}

/**
 * Responds, and changes its access rights. @returns the final value of the counted word
 */
async function answerer(stage: Stage<Args>): Promise<number> {
  const { steps, lengthBytes } = stage.args;
  const side = await connect(stage, { areaBytes: lengthBytes });
  side.fill(new Uint8Array(lengthBytes));
  for (const step of steps) {
    if (step.rights !== undefined) await changeRights(side.qp, step.rights, step.by);
    await stage.meet('changed');
    await stage.meet('used');
  }
  await stage.meet('over');
  await stage.lastBytesIn();
  return Number(stage.memory.readUint64(side.area.address));
}

async function changeRights(qp: ibv.IbvQp, qpAccessFlags: number, by: Step['by']): Promise<void> {
  const access = ibv.IBV_QP_ACCESS_FLAGS;
  if (by === 'rts')
    return ibv.modifyQp(qp, { qpAccessFlags, minRnrTimer: 1 }, access | ibv.IBV_QP_MIN_RNR_TIMER);
  const { IBV_QPS_SQD, IBV_QPS_RTS, IBV_QP_STATE, IBV_QP_CUR_STATE, IBV_QP_MAX_DEST_RD_ATOMIC } = ibv;
  await ibv.modifyQp(qp, { qpState: IBV_QPS_SQD }, IBV_QP_STATE);
  const [more, mask] = by === 'sqd' ? [{}, 0] : [{ maxDestRdAtomic: 16 }, IBV_QP_MAX_DEST_RD_ATOMIC];
  await ibv.modifyQp(qp, { qpAccessFlags, ...more }, access | mask);
  await ibv.modifyQp(qp, { qpState: IBV_QPS_RTS, curQpState: IBV_QPS_SQD }, IBV_QP_STATE | IBV_QP_CUR_STATE);
}

const judge = ({ told: [asked, counted] }: Played<Args, readonly [number, number]>): string[] =>
  asked === counted ? [] : [`${asked} additions came to ${counted}`];

export const attributesChanged = scene({
  about: 'rights and other attributes of QPs that work are changed, with send queues drained or not',
  draw,
  programs: [asker, answerer],
  judge,
});
