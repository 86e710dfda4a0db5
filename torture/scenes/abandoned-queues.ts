/**
 * QPs are destroyed with unanswered requests, again and again, on hardware that can keep few requests at a time, and the next
 * ones take their numbers and places at once: the QP beside them continues undisturbed (IBTA 10.2.4.4, 11.2.4.4: outstanding work
 * of a destroyed QP is gone, and its resources are free again).
 *
 *     round:  new QPs, connected ─► requests on all of them ─► destroyed, at either side first ─► the QP that stays: WRITEs, READs
 */
import { psPerMs, psPerNs } from '../../base/index.ts';
import { barrier, connectRc, createRcQps } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  destroyQp,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvQp,
  postRecv,
} from '../../userlib/index.ts';
import { firstDifference, patternOf } from './observing.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  failuresOf,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Round {
  readonly qpCount: number;
  /** On each QP. */
  readonly requestCount: number;
  readonly opcode: number;
  readonly lengthBytes: number;
  /**
   * From the last post to the end of the QPs, by side; the other side's requests stay unanswered from then on.
   */
  readonly delaysNs: readonly [asker: number, answerer: number];
  /** The answerer's QPs are destroyed before anything is requested. */
  readonly isUnanswered: boolean;
}

interface Args {
  readonly rounds: readonly Round[];
  /** Of each WRITE and READ on the QP that stays. */
  readonly lengthBytes: number;
  readonly stayingCount: number;
}

const slotBytes = 8192;
/** Requests of one round at most, all QPs together. */
const slots = 16;

function drawRound(random: Random): Round {
  const qpCount = 1 + random.below(4);
  const isUnanswered = random.chance(0.5);
  const reach = random.chance(0.65) ? 3000 : 30_000;
  return {
    qpCount,
    requestCount: 1 + random.below(slots / qpCount),
    opcode: [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND][random.below(3)]!,
    lengthBytes: 1 + random.below(random.chance(0.4) ? 300 : slotBytes),
    delaysNs: [random.below(reach), random.below(reach)],
    isUnanswered,
  };
}

function draw(random: Random): SceneDraft {
  const args: Args = {
    rounds: Array.from({ length: 2 + random.below(6) }, () => drawRound(random)),
    lengthBytes: 1 + random.below(8000),
    stayingCount: 1 + random.below(4),
  };
  return {
    args: args as unknown as JsonValue,
    set: {
      'hca.outstandingWqes': 4 + random.below(random.chance(0.7) ? 4 : 40),
      ...(random.chance(0.4) ? { 'wire.speed': 'SDR', 'wire.lanes': '1' } : {}),
      ...(random.chance(0.3) ? { 'dma.tagCount': 1 + random.below(2) } : {}),
      ...(random.chance(0.65)
        ? { 'pcie.rootComplex.readLatencyPs': 4_000_000 + random.below(8_000_000) }
        : {}),
      ...(random.chance(0.25) ? { 'hca.qpcCacheEntries': 1, 'hca.qpcCacheWays': 1 } : {}),
      ...(random.chance(0.3) ? { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 } : {}),
    },
    hasDrawnHardware: random.chance(0.3),
  };
}

interface Met {
  readonly side: Side;
  readonly place: (part: number, slot: number) => number;
}

/** Four parts: what the QPs that go write and read, and the same of the one that stays; each at the side that it comes to. */
async function connectSides(program: ProgramContext): Promise<Met> {
  const place = (part: number, slot: number): number => (part * slots + slot) * slotBytes;
  const side = await connectWithPeer(program, { areaBytes: place(4, 0), cap: { maxSendWr: 16 } });
  return { side, place };
}

/** QPs of this round, connected to those of the other program, with a receive for whatever is sent. */
async function goingQps(
  { side, place }: Met,
  { qpCount, requestCount, opcode }: Round,
  number: number,
): Promise<IbvQp[]> {
  const { endpoint, cq, area } = side;
  const cap = { maxSendWr: slots, maxRecvWr: slots };
  const qps = await createRcQps(endpoint, qpCount, { send: cq, receive: cq }, cap);
  await connectRc(endpoint, qps, `round ${number}`, null, () => {
    if (opcode !== IBV_WR_SEND) return;
    for (const [index, qp] of qps.entries())
      for (let request = 0; request < requestCount; request++) {
        const addr = area.address + place(0, index * requestCount + request);
        postRecv(qp, { wrId: 0, sgList: [{ addr, length: slotBytes, lkey: area.region.lkey }], numSge: 1 });
      }
  });
  return qps;
}

/** Posts requests, and destroys its QPs; their completions on its CQ go with them. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { rounds, lengthBytes, stayingCount } = program.args as unknown as Args;
  const met = await connectSides(program);
  const { side, place } = met;
  const { memory } = program;
  const wrong: string[] = [];
  for (const [number, round] of rounds.entries()) {
    const qps = await goingQps(met, round, number);
    await barrier(program, `ready ${number}`);
    for (let request = 0; request < round.requestCount; request++)
      for (const [index, qp] of qps.entries()) {
        const offset = place(1, index * round.requestCount + request);
        const remoteOffset = place(0, index * round.requestCount + request);
        post(qp, requestOf(side, 0, round.opcode, { offset, lengthBytes: round.lengthBytes, remoteOffset }));
      }
    await program.cpu.sleep(round.delaysNs[0] * psPerNs);
    for (const qp of qps) await destroyQp(qp);
    for (let slot = 0; slot < stayingCount; slot++) {
      const bytes = patternOf(number * stayingCount + slot, lengthBytes);
      memory.write(side.area.address + place(2, slot), bytes);
      memory.write(side.area.address + place(3, slot), new Uint8Array(lengthBytes));
      const there = { offset: place(2, slot), lengthBytes, remoteOffset: place(2, slot) };
      post(side.qps[0]!, requestOf(side, 2 * slot, IBV_WR_RDMA_WRITE, there));
      const back = { offset: place(3, slot), lengthBytes, remoteOffset: place(2, slot) };
      post(side.qps[0]!, requestOf(side, 2 * slot + 1, IBV_WR_RDMA_READ, back));
    }
    const ended = await completionsOf(side, 2 * stayingCount, 500 * psPerMs);
    wrong.push(...failuresOf(ended).map((what) => `round ${number}: ${what}`));
    if (ended.length < 2 * stayingCount)
      wrong.push(
        `round ${number}: ${ended.length} of ${2 * stayingCount} requests of the QP that stays ended`,
      );
    for (let slot = 0; slot < stayingCount && wrong.length === 0; slot++) {
      const came = memory.read(side.area.address + place(3, slot), lengthBytes);
      const at = firstDifference(came, patternOf(number * stayingCount + slot, lengthBytes));
      if (at !== -1) wrong.push(`round ${number}: byte ${at} of what came back is ${came[at]}`);
    }
    await barrier(program, `gone ${number}`);
  }
  await leave(side);
  return { wrong };
}

/** Answers while its QPs exist; posts no requests itself. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { rounds } = program.args as unknown as Args;
  const met = await connectSides(program);
  for (const [number, round] of rounds.entries()) {
    const qps = await goingQps(met, round, number);
    if (round.isUnanswered) for (const qp of qps) await destroyQp(qp);
    await barrier(program, `ready ${number}`);
    await program.cpu.sleep(round.delaysNs[1] * psPerNs);
    if (!round.isUnanswered) for (const qp of qps) await destroyQp(qp);
    await barrier(program, `gone ${number}`);
  }
  await leave(met.side);
  return { wrong: [] };
}

export const abandonedQueues: Scene = {
  name: 'abandoned-queues',
  about: 'QPs are destroyed with requests under way, again and again, beside one that stays',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results),
};
