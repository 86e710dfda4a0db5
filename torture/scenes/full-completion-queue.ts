/**
 * A CQ is filled to its last entry, lap after lap, and at the end beyond it. It loses no entry up to its size; an overrun leaves earlier entries
 * alone, and the CQ and its QPs fail (IBTA 11.6.3.2, 10.10.2.3).
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Ended, Played, Stage } from './language/index.ts';
import { connect, failuresOf, SEND, scene, sumOf, times, topic } from './language/index.ts';

function draw(random: Draws) {
  const entries = random.oneOf([1, 2, 3, 6, 7, 12, 15, 31, 63, 127]);
  const args = {
    // Whose CQ is small: 0 sends, 1 receives.
    holder: random.below(2),
    entries,
    qpCount: 1 + random.below(3),
    // Completions of each lap but the last: `entries` and fewer.
    laps: times(1 + random.below(5), () => (random.chance(0.6) ? entries : 1 + random.below(entries))),
    // Requests of the last lap: more, or fewer, than the CQ claims to hold.
    beyond: random.chance(0.3) ? -random.below(2) : 1 + random.below(5),
    pollMax: random.chance(0.5) ? entries : 1 + random.below(entries),
    lengthBytes: random.oneOf([0, 1, 64, 300, 5000]),
  };
  return { args, hasDrawnHardware: random.chance(0.6), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

interface Told {
  /** Capacity of the small CQ, as the library reports it. */
  readonly cqe: number;
  readonly laps: readonly (readonly Ended[])[];
  readonly events: readonly number[];
  readonly states: readonly (number | undefined)[];
}

/** After this time everything posted has ended, whatever the hardware. */
const lapMs = 200;
const cqeTopic = topic<number>('cqe');

async function player(stage: Stage<Args>): Promise<Told> {
  const { entries, holder, qpCount, laps: counts, beyond, pollMax, lengthBytes } = stage.args;
  const [isSender, isHolder] = [stage.node === 0, stage.node === holder];
  const side = await connect(stage, {
    ...{ areaBytes: 8192, qpCount, cqEntries: isHolder ? entries : 255 },
    cap: { maxSendWr: 160, maxRecvWr: 160 },
    attributes: { timeoutCode: 10, retryCount: 1 },
  });
  // The other side must know how many will fit.
  const there = await stage.swap(cqeTopic, side.cq.cqe);
  const cqe = isHolder ? side.cq.cqe : there;
  const laps: Ended[][] = [];
  let id = 0;
  for (const count of [...counts, cqe + beyond]) {
    if (isSender) await stage.meet('receives are posted');
    for (const end = id + count; id < end; id++)
      if (isSender) side.post(id, SEND, { lengthBytes, qp: id % qpCount });
      else side.receive(id, { lengthBytes, qp: id % qpCount });
    if (!isSender) await stage.meet('receives are posted');
    await stage.sleepMs(lapMs);
    laps.push(await stage.drain(side.cq, isHolder ? pollMax : 16));
    await stage.meet('lap');
  }
  const events = (await stage.asyncEvents(side.device.context)).map(({ eventType }) => eventType);
  const states: (number | undefined)[] = [];
  for (const qp of side.qps) states.push((await ibv.queryQp(qp)).qpState);
  await stage.meet('over');
  return { cqe: side.cq.cqe, laps, events, states };
}

function judge({ args, told }: Played<Args, readonly Told[]>): string[] {
  const { holder, laps, qpCount, beyond } = args;
  const { cqe, events, states, laps: held } = told[holder]!;
  const firsts = laps.map((_, lap) => sumOf(laps.slice(0, lap)));
  const found = told.flatMap(({ laps: seen }, program) =>
    laps.flatMap((count, lap) => {
      const due = times(count, (at) => firsts[lap]! + at);
      return wrongIn(seen[lap]!, due, qpCount, `lap ${lap} of program ${program}`);
    }),
  );
  if (found.length > 0) return found;
  const last = held.at(-1)!;
  const count = cqe + beyond;
  const isOverrun = last.length < count;
  // The device may hold one more than it promises: the library requests a power of two.
  if (last.length < Math.min(count, cqe) || last.length > cqe + 1)
    found.push(`a CQ of ${cqe} entries gave ${last.length} of ${count} completions`);
  const due = last.map(({ id }) => id).toSorted((left, right) => left - right);
  found.push(...wrongIn(last, due, qpCount, 'the last lap'));
  if (qpCount === 1 && due.some((id, at) => id !== sumOf(laps) + at))
    found.push(`the last lap gave ${due}, not those from ${sumOf(laps)} on`);
  const errors = events.filter((type) => type === ibv.IBV_EVENT_CQ_ERR).length;
  if (errors !== (isOverrun ? 1 : 0))
    found.push(`${errors} errors of a CQ that ${isOverrun ? 'was' : 'was not'} overrun`);
  const state = isOverrun ? ibv.IBV_QPS_ERR : ibv.IBV_QPS_RTS;
  if (states.some((one) => one !== state)) found.push(`QPs are in states ${states}, not ${state}`);
  return found;
}

/** Judges that all completions are successes, each occurs once, and those of one QP are in the order of posting. */
function wrongIn(seen: readonly Ended[], due: readonly number[], qpCount: number, where: string): string[] {
  const failures = failuresOf(seen);
  if (failures.length > 0) return [`${where}: ${failures[0]}`];
  const ids = seen.map(({ id }) => id);
  if (`${ids.toSorted((left, right) => left - right)}` !== `${due}`)
    return [`${where}: requests ${ids}, not ${due}`];
  const isDisordered = ids.some((id, at) =>
    ids.slice(0, at).some((before) => before > id && before % qpCount === id % qpCount),
  );
  return isDisordered ? [`${where}: requests ${ids}, out of the order of their QPs`] : [];
}

export const fullCompletionQueue = scene({
  about: 'a CQ is filled to its last entry, again and again, and then beyond',
  draw,
  programs: [player, player],
  judge,
});
