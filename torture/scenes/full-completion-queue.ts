/**
 * A CQ is filled to its last entry, lap after lap, and at the end beyond it. It takes what it was made for without a loss; what
 * comes beyond leaves the entries before alone, and the CQ and its QPs fail (IBTA 11.6.3.2, 10.10.2.3: CQ overrun is an error
 * of the CQ, and of all QPs whose work queues it serves).
 */
import { psPerMs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  getAsyncEvent,
  IBV_EVENT_CQ_ERR,
  IBV_QPS_ERR,
  IBV_QPS_RTS,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  IbvWc,
  pollCq,
  postRecv,
  queryQp,
} from '../../userlib/index.ts';
import { askerAndAnswerer, connectWithPeer, leave, post, requestOf, type Side } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  /** Whose CQ is small: 0 sends, 1 receives. */
  readonly holder: number;
  /** As asked for. */
  readonly entries: number;
  readonly qpCount: number;
  /** Completions of each lap but the last: `entries` and fewer. */
  readonly laps: readonly number[];
  /** Of the last lap: beyond what the CQ then says that it holds, or below. */
  readonly beyond: number;
  readonly pollMax: number;
  /** Whether entries are taken by many polls or by the fewest. */
  readonly lengthBytes: number;
}

interface Result {
  /** What the small CQ says that it holds. */
  readonly cqe: number;
  /** Of each lap, requests by number and their statuses, in the order of the CQ. */
  readonly laps: readonly (readonly { readonly id: number; readonly status: number }[])[];
  readonly events: readonly number[];
  readonly states: readonly number[];
}

/** After so long everything that was posted has ended, whatever the hardware. */
const lapPs = 200 * psPerMs;

function draw(random: Random): SceneDraft {
  const entries = [1, 2, 3, 6, 7, 12, 15, 31, 63, 127][random.below(10)]!;
  const args: Args = {
    holder: random.below(2),
    entries,
    qpCount: 1 + random.below(3),
    laps: Array.from({ length: 1 + random.below(5) }, () =>
      random.chance(0.6) ? entries : 1 + random.below(entries),
    ),
    beyond: random.chance(0.3) ? -random.below(2) : 1 + random.below(5),
    pollMax: random.chance(0.5) ? entries : 1 + random.below(entries),
    lengthBytes: [0, 1, 64, 300, 5000][random.below(5)]!,
  };
  return {
    args: { ...args },
    hasDrawnHardware: random.chance(0.6),
    climate: 'flawed',
  };
}

/** Sends. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await begin(program, args, 0);
  return play(program, args, side, 0, (id) => {
    const { qps } = side;
    const { lengthBytes } = args;
    return post(qps[id % qps.length]!, requestOf(side, id, IBV_WR_SEND, { offset: 0, lengthBytes }));
  });
}

/** Receives. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await begin(program, args, 1);
  const { qps, area } = side;
  return play(program, args, side, 1, (id) =>
    postRecv(qps[id % qps.length]!, {
      wrId: id,
      sgList: [{ addr: area.address, length: args.lengthBytes, lkey: area.region.lkey }],
      numSge: 1,
    }),
  );
}

function begin(program: ProgramContext, args: Args, number: number): Promise<Side> {
  const { entries, holder, qpCount } = args;
  return connectWithPeer(program, {
    areaBytes: 8192,
    qpCount,
    cqEntries: holder === number ? entries : 255,
    cap: { maxSendWr: 160, maxRecvWr: 160 },
    attributes: { timeoutCode: 10, retryCount: 1 },
  });
}

async function play(
  program: ProgramContext,
  args: Args,
  side: Side,
  number: number,
  request: (id: number) => number,
): Promise<JsonValue> {
  const { endpoint, qps, cq } = side;
  const isHolder = args.holder === number;
  // The other side needs to know how many will fit.
  await program.exchange.put('cqe', cq.cqe);
  const there = (await program.exchange.take('cqe')) as number;
  const cqe = isHolder ? cq.cqe : there;
  const laps: { id: number; status: number }[][] = [];
  let id = 0;
  for (const count of [...args.laps, cqe + args.beyond]) {
    if (number === 0) await barrier(program, 'receives are posted');
    for (const end = id + count; id < end; id++) request(id);
    if (number === 1) await barrier(program, 'receives are posted');
    await program.cpu.sleep(lapPs);
    laps.push(await taken(side, isHolder ? args.pollMax : 16));
    await barrier(program, 'lap');
  }
  const events: number[] = [];
  for (;;) {
    const event = await getAsyncEvent(endpoint.context, psPerMs);
    if (event === undefined) break;
    events.push(event.eventType);
  }
  const states: number[] = [];
  for (const qp of qps) states.push((await queryQp(qp)).qpState!);
  await barrier(program, 'over');
  await leave(side);
  const result: Result = { cqe: cq.cqe, laps, events, states };
  return result as unknown as JsonValue;
}

/** Everything that is in the CQ now. */
async function taken({ cq }: Side, pollMax: number): Promise<{ id: number; status: number }[]> {
  const wcs = Array.from({ length: pollMax }, () => new IbvWc());
  const all: { id: number; status: number }[] = [];
  for (;;) {
    const count = await pollCq(cq, pollMax, wcs);
    if (count === 0) return all;
    all.push(...wcs.slice(0, count).map(({ wrId, status }) => ({ id: wrId, status })));
  }
}

export const fullCompletionQueue: Scene = {
  name: 'full-completion-queue',
  about: 'a CQ is filled to its last entry, again and again, and then beyond',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }) {
    const { holder, laps, qpCount, beyond } = args as unknown as Args;
    const sides = results as unknown as readonly Result[];
    const { cqe, events, states } = sides[holder]!;
    const found = sides.flatMap(({ laps: seen }, program) => {
      let first = 0;
      return laps.flatMap((count, lap) => {
        const expected = Array.from({ length: count }, (_, at) => first + at);
        first += count;
        return wrongOf(seen[lap]!, expected, qpCount, `lap ${lap} of program ${program}`);
      });
    });
    if (found.length > 0) return found;
    const first = laps.reduce((sum, count) => sum + count, 0);
    const last = sides[holder]!.laps.at(-1)!;
    const count = cqe + beyond;
    const isOverrun = last.length < count;
    // The device may hold one more than it promises: the library asks for a power of two.
    if (last.length < Math.min(count, cqe) || last.length > cqe + 1)
      found.push(`a CQ of ${cqe} entries gave ${last.length} of ${count} completions`);
    const expected = last.map(({ id }) => id).toSorted((left, right) => left - right);
    found.push(...wrongOf(last, expected, qpCount, 'the last lap'));
    if (qpCount === 1 && expected.some((id, at) => id !== first + at))
      found.push(`the last lap gave ${expected}, not those from ${first} on`);
    const errors = events.filter((type) => type === IBV_EVENT_CQ_ERR).length;
    if (errors !== (isOverrun ? 1 : 0))
      found.push(`${errors} errors of a CQ that ${isOverrun ? 'was' : 'was not'} overrun`);
    const state = isOverrun ? IBV_QPS_ERR : IBV_QPS_RTS;
    if (states.some((one) => one !== state)) found.push(`QPs are in states ${states}, not ${state}`);
    return found;
  },
};

/** All of them successes, each once, and those of one QP in the order of posting. */
function wrongOf(
  seen: readonly { readonly id: number; readonly status: number }[],
  expected: readonly number[],
  qpCount: number,
  where: string,
): string[] {
  const failed = seen.filter(({ status }) => status !== IBV_WC_SUCCESS);
  if (failed.length > 0) return [`${where}: request ${failed[0]!.id} ended in status ${failed[0]!.status}`];
  const ids = seen.map(({ id }) => id);
  const sorted = ids.toSorted((left, right) => left - right);
  if (sorted.join() !== expected.join()) return [`${where}: requests ${ids}, not ${expected}`];
  const isDisordered = ids.some((id, at) =>
    ids.slice(0, at).some((before) => before > id && before % qpCount === id % qpCount),
  );
  return isDisordered ? [`${where}: requests ${ids}, out of the order of their QPs`] : [];
}
