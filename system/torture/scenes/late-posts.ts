/**
 * QPs to which work is posted in the states in which it is not carried out: INIT, SQD and above all ERR, soon after the error or long
 * after it, with a second 2ERR in between or none, and in the next round after a reset. Each request that a QP has in the error state
 * completes as flushed, once and in the order of its queue (IBTA 10.3.1); Linux's ib_drain_qp waits for it without limit.
 */
import { psPerMs, psPerUs } from '../../../base/index.ts';
import type { Random } from '../../../sim/index.ts';
import {
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPS_RESET,
  IBV_QPS_SQD,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  modifyQp,
  postRecv,
} from '../../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { barrier, toInit } from '../../workloads/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  type Ended,
  leave,
  post,
  requestOf,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly rounds: readonly Round[];
}

/** The first round begins in RTS, each later one with a reset, in INIT. */
interface Round {
  /** Posted before the error: in the first round in SQD if `isDrained`, else not at all; later on receives in INIT. */
  readonly isDrained: boolean;
  readonly before: Posts;
  /** Posted in the error state, one after the other. */
  readonly late: readonly LatePosts[];
}

interface Posts {
  readonly receives: number;
  readonly sends: number;
}

interface LatePosts extends Posts {
  readonly waitPs: number;
  /** Another 2ERR before they are posted. */
  readonly isRepeated: boolean;
}

/** What became of the requests of one round, and how many there were. */
interface Told {
  readonly receives: number;
  readonly sends: number;
  readonly ended: readonly Ended[];
}

const queueLength = 8;
const slotBytes = 64;
/** What is flushed is flushed within a period of polling; a queue that is left alone for so long is forgotten. */
const patiencePs = 50 * psPerMs;
const isSend = (id: number): boolean => id % 2 === 1;

function draw(random: Random): SceneDraft {
  const posts = (): Posts => ({ receives: random.below(queueLength), sends: random.below(queueLength) });
  // From a microsecond to two seconds.
  const wait = (): number => Math.round(psPerUs * 10 ** (random.unit() * 6.3));
  const rounds = Array.from(
    { length: 1 + random.below(3) },
    (): Round => ({
      isDrained: random.chance(0.5),
      before: posts(),
      late: Array.from({ length: 1 + random.below(4) }, () => ({
        ...posts(),
        waitPs: wait(),
        isRepeated: random.chance(0.3),
      })),
    }),
  );
  const args: Args = { rounds };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.6), sleepsSeconds: 24 };
}

export const asker = (program: ProgramContext): Promise<JsonValue> => play(program);

export const answerer = (program: ProgramContext): Promise<JsonValue> => play(program);

async function play(program: ProgramContext): Promise<JsonValue> {
  const { rounds } = program.args as unknown as Args;
  const cap = { maxSendWr: queueLength, maxRecvWr: queueLength };
  const side = await connectWithPeer(program, { areaBytes: slotBytes, cap });
  const [qp] = side.qps;
  const told: Told[] = [];
  for (const [number, { isDrained, before, late }] of rounds.entries()) {
    const counts = { receives: 0, sends: 0 };
    const postAll = ({ receives, sends }: Posts): void => {
      const segment = { addr: side.area.address, length: 8, lkey: side.area.region.lkey };
      for (let count = 0; count < receives; count++)
        postRecv(qp!, { wrId: 2 * counts.receives++, sgList: [segment], numSge: 1 }, { wr: null, index: 0 });
      for (let count = 0; count < sends; count++) {
        const request = requestOf(side, 2 * counts.sends++ + 1, IBV_WR_RDMA_WRITE, {
          offset: 0,
          lengthBytes: 8,
        });
        post(qp!, request);
      }
    };
    if (number > 0) {
      await change(qp!, IBV_QPS_RESET);
      await toInit(qp!);
      postAll({ ...before, sends: 0 });
    } else if (isDrained) {
      await change(qp!, IBV_QPS_SQD);
      postAll(before);
    }
    await change(qp!, IBV_QPS_ERR);
    const ended = await completionsOf(side, counts.receives + counts.sends, patiencePs);
    for (const { waitPs, isRepeated, ...posts } of late) {
      await program.cpu.sleep(waitPs);
      if (isRepeated) await change(qp!, IBV_QPS_ERR);
      postAll(posts);
      ended.push(...(await completionsOf(side, posts.receives + posts.sends, patiencePs)));
    }
    told.push({ ...counts, ended });
  }
  const more = await completionsOf(side, 1, psPerMs);
  told.push({ receives: 0, sends: 0, ended: more });
  await barrier(program, 'over');
  await leave(side);
  return told as unknown as JsonValue;
}

const change = (
  qp: IbvQp,
  qpState: typeof IBV_QPS_ERR | typeof IBV_QPS_RESET | typeof IBV_QPS_SQD,
): Promise<void> => modifyQp(qp, { qpState }, IBV_QP_STATE);

function mistakesOf({ receives, sends, ended }: Told): string[] {
  const wrong = ended.filter(({ status }) => status !== IBV_WC_WR_FLUSH_ERR);
  const queues = [
    { name: 'receives', count: receives, ids: ended.filter(({ id }) => !isSend(id)).map(({ id }) => id / 2) },
    { name: 'sends', count: sends, ids: ended.filter(({ id }) => isSend(id)).map(({ id }) => (id - 1) / 2) },
  ];
  return [
    ...wrong.map(({ id, status }) => `request ${id} has status ${status}`),
    ...queues.flatMap(({ name, count, ids }) =>
      ids.length === count && ids.every((id, place) => id === place)
        ? []
        : [`${name} ${ids.join(', ')} are flushed of ${count}`],
    ),
  ];
}

export const latePosts: Scene = {
  name: 'late-posts',
  about: 'Requests are posted to QPs in INIT, SQD and ERR, up to two seconds after the error',
  module: import.meta.url,
  programs: askerAndAnswerer,
  // Above what seeds of reports and pages were drawn from.
  draw,
  judge: ({ results }) =>
    (results as unknown as readonly (readonly Told[])[]).flatMap((rounds, program) =>
      rounds.flatMap((told, round) =>
        mistakesOf(told).map((mistake) => `program ${program}, round ${round}: ${mistake}`),
      ),
    ),
};
