/**
 * Attributes of QPs that work already: rights given and taken, at rest or in mid-traffic, and send queues that are drained,
 * changed and let go on. What was not named keeps its value (IBTA 11.2.5.2, table of modify QP; 10.3.1 for SQD).
 *
 *     each step:   the answerer changes its rights ─► the asker uses them;   the asker drains, changes, goes on ─► all arrives
 */
import { psPerUs } from '../../base/index.ts';
import { allAccess, barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  getAsyncEvent,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_EVENT_SQ_DRAINED,
  IBV_QP_ACCESS_FLAGS,
  IBV_QP_CUR_STATE,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_MAX_DEST_RD_ATOMIC,
  IBV_QP_MAX_QP_RD_ATOMIC,
  IBV_QP_MIN_RNR_TIMER,
  IBV_QP_RETRY_CNT,
  IBV_QP_RNR_RETRY,
  IBV_QP_STATE,
  IBV_QP_TIMEOUT,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_SEND_SIGNALED,
  IBV_WC_REM_INV_REQ_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  type IbvSendWr,
  modifyQp,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  lastBytesIn,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const opcodes = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD] as const;
const rightOf: Readonly<Record<number, number>> = {
  [IBV_WR_RDMA_WRITE]: IBV_ACCESS_REMOTE_WRITE,
  [IBV_WR_RDMA_READ]: IBV_ACCESS_REMOTE_READ,
  [IBV_WR_ATOMIC_FETCH_AND_ADD]: IBV_ACCESS_REMOTE_ATOMIC,
};

interface Step {
  /** Rights of the answerer's QP from now on; undefined leaves them. */
  readonly rights: number | undefined;
  /** How the answerer changes them. */
  readonly by: 'rts' | 'sqd' | 'sqdWithResources';
  /** Requests of the asker, by opcode. */
  readonly requests: readonly number[];
  /** The asker drains its queue in the middle of the requests, changes it, and goes on. */
  readonly isDrained: boolean;
  readonly wantsEvent: boolean;
  readonly changesDrained: boolean;
}

interface Args {
  readonly lengthBytes: number;
  readonly steps: readonly Step[];
  /** At the end: a request for which the last rights are not enough, if there is one. */
  readonly endsRefused: boolean;
}

function draw(random: Random): SceneDraft {
  let rights = allAccess;
  const steps = Array.from({ length: 1 + random.below(4) }, (): Step => {
    const isChanged = random.chance(0.7);
    if (isChanged)
      rights = opcodes.reduce(
        (sum, opcode) => sum | (random.chance(0.6) ? rightOf[opcode]! : 0),
        IBV_ACCESS_LOCAL_WRITE as number,
      );
    const allowed = opcodes.filter((opcode) => (rights & rightOf[opcode]!) !== 0);
    const count = allowed.length === 0 ? 0 : random.below(8);
    return {
      rights: isChanged ? rights : undefined,
      by: (['rts', 'rts', 'sqd', 'sqdWithResources'] as const)[random.below(4)]!,
      requests: Array.from({ length: count }, () => allowed[random.below(allowed.length)]!),
      isDrained: random.chance(0.4),
      wantsEvent: random.chance(0.6),
      changesDrained: random.chance(0.5),
    };
  });
  const endsRefused = random.chance(0.5);
  return {
    args: { lengthBytes: 8 * (1 + random.below(1500)), steps, endsRefused } as never,
    hasDrawnHardware: random.chance(0.5),
    climate: endsRefused ? 'flawed' : 'calm',
  };
}

const rightsAfter = ({ steps }: Args): number =>
  steps.reduce((rights, step) => step.rights ?? rights, allAccess);

function requestAt(side: Side, { lengthBytes }: Args, id: number, opcode: number): IbvSendWr {
  const { area, peer } = side;
  if (opcode !== IBV_WR_ATOMIC_FETCH_AND_ADD)
    return requestOf(side, id, opcode, { offset: 8, lengthBytes: lengthBytes - 8 });
  return {
    wrId: id,
    sgList: [{ addr: area.address, length: 8, lkey: area.region.lkey }],
    numSge: 1,
    opcode,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { atomic: { remoteAddr: peer.address, rkey: peer.rkey, compareAdd: 1n, swap: 0n } },
  };
}

/** Drains, changes some attributes of a queue at rest, and has it go on. @returns what was wrong */
async function drained(
  side: Side,
  { wantsEvent, changesDrained }: Step,
  whileDrained: () => Promise<string[]>,
): Promise<string[]> {
  const { endpoint } = side;
  const qp = side.qps[0]!;
  const event = wantsEvent ? { enSqdAsyncNotify: 1 as const } : {};
  await modifyQp(
    qp,
    { qpState: IBV_QPS_SQD, ...event },
    IBV_QP_STATE | (wantsEvent ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0),
  );
  const wrong: string[] = [];
  if (wantsEvent) {
    const seen = await getAsyncEvent(endpoint.context, patiencePs);
    if (seen?.eventType !== IBV_EVENT_SQ_DRAINED || seen.qp !== qp)
      wrong.push(`event ${seen?.eventType} instead of that the send queue is drained`);
  }
  if (changesDrained)
    await modifyQp(
      qp,
      { timeout: 17, retryCnt: 6, rnrRetry: 6, maxRdAtomic: 4 },
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
    );
  wrong.push(...(await whileDrained()));
  await modifyQp(qp, { qpState: IBV_QPS_RTS }, IBV_QP_STATE);
  return wrong;
}

/** Longer than any request of the scene takes. */
const patiencePs = 20_000_000 * psPerUs;

/** Posts requests, and drains its queue at times. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { steps, lengthBytes, endsRefused } = args;
  const side = await connectWithPeer(program, { areaBytes: lengthBytes });
  const qp = side.qps[0]!;
  const wrong: string[] = [];
  let additions = 0;
  for (const [number, step] of steps.entries()) {
    await barrier(program, 'changed');
    const { requests, isDrained, wantsEvent } = step;
    additions += requests.filter((opcode) => opcode === IBV_WR_ATOMIC_FETCH_AND_ADD).length;
    const half = isDrained ? Math.floor(requests.length / 2) : requests.length;
    const postAll = (from: number, to: number): void => {
      for (let at = from; at < to; at++) {
        const errno = post(qp, requestAt(side, args, at, requests[at]!));
        if (errno !== 0) wrong.push(`step ${number}: request ${at} refused with ${errno}`);
      }
    };
    postAll(0, half);
    let left = requests.length;
    if (isDrained)
      wrong.push(
        ...(await drained(side, step, async () => {
          postAll(half, requests.length);
          if (!wantsEvent) return [];
          // Everything that had begun has ended, and nothing goes out while the queue is drained.
          const begun = await completionsOf(side, half, 20 * psPerUs);
          left -= begun.length;
          const late = await completionsOf(side, left, 300 * psPerUs);
          left -= late.length;
          return [
            ...statusesWrong(number, begun, begun.length, IBV_WC_SUCCESS),
            ...late.map(({ id }) => `step ${number}: request ${id} ended while the queue was drained`),
          ];
        })),
      );
    wrong.push(...statusesWrong(number, await completionsOf(side, left), left, IBV_WC_SUCCESS));
    const unasked = await getAsyncEvent(side.endpoint.context, 0);
    if (unasked !== undefined)
      wrong.push(`step ${number}: event ${unasked.eventType} that was not requested`);
    await barrier(program, 'used');
  }
  const refused = opcodes.find((opcode) => (rightsAfter(args) & rightOf[opcode]!) === 0);
  // A function that the responder's QP does not support (IBTA 9.9.3, table 60).
  if (endsRefused && refused !== undefined) {
    post(qp, requestAt(side, args, 0, refused));
    wrong.push(...statusesWrong(steps.length, await completionsOf(side, 1), 1, IBV_WC_REM_INV_REQ_ERR));
  }
  await barrier(program, 'over');
  await leave(side);
  return { wrong, additions };
}

function statusesWrong(
  step: number,
  ended: readonly { readonly id: number; readonly status: number }[],
  count: number,
  status: number,
): string[] {
  const wrong = ended
    .filter((one) => one.status !== status)
    .map((one) => `step ${step}: request ${one.id} ended in status ${one.status} instead of ${status}`);
  if (ended.length !== count) wrong.push(`step ${step}: ${ended.length} requests ended instead of ${count}`);
  return wrong;
}

/** Answers, and changes what it allows. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { steps, lengthBytes } = args;
  const side = await connectWithPeer(program, { areaBytes: lengthBytes });
  const { area } = side;
  program.memory.write(area.address, new Uint8Array(lengthBytes));
  for (const step of steps) {
    if (step.rights !== undefined) await changeRights(side.qps[0]!, step.rights, step.by);
    await barrier(program, 'changed');
    await barrier(program, 'used');
  }
  await barrier(program, 'over');
  await lastBytesIn(program);
  const counted = program.memory.readUint64(area.address);
  await leave(side);
  return { wrong: [], counted: Number(counted) };
}

async function changeRights(qp: IbvQp, qpAccessFlags: number, by: Step['by']): Promise<void> {
  if (by === 'rts') {
    await modifyQp(qp, { qpAccessFlags, minRnrTimer: 1 }, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER);
    return;
  }
  await modifyQp(qp, { qpState: IBV_QPS_SQD }, IBV_QP_STATE);
  const isWithResources = by === 'sqdWithResources';
  await modifyQp(
    qp,
    { qpAccessFlags, ...(isWithResources ? { maxDestRdAtomic: 16 } : {}) },
    IBV_QP_ACCESS_FLAGS | (isWithResources ? IBV_QP_MAX_DEST_RD_ATOMIC : 0),
  );
  await modifyQp(qp, { qpState: IBV_QPS_RTS, curQpState: IBV_QPS_SQD }, IBV_QP_STATE | IBV_QP_CUR_STATE);
}

export const attributesChanged: Scene = {
  name: 'attributes-changed',
  about: 'rights and other attributes of QPs that work are changed, with send queues drained or not',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ results }) {
    const [asked, answered] = results as unknown as [{ additions: number }, { counted: number }];
    return asked.additions === answered.counted
      ? wrongOf(results)
      : [...wrongOf(results), `${asked.additions} additions came to ${answered.counted}`];
  },
};
