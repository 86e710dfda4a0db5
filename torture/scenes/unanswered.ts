/**
 * Requests whose answers get lost again and again, some time after one that was answered: each attempt waits for the whole of the
 * ACK time-out, from its own sending on, and there are as many as the retry count says (IBTA 9.7.6.1.3, 9.9.2.1.1). An answer gives
 * all retries back, so that later requests that lose as many attempts end well, too.
 */
import { psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
} from '../../userlib/index.ts';
import { sleepUntil, watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  type Ended,
  leave,
  nowPs,
  post,
  requestOf,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  readonly rounds: readonly Round[];
}

/** Begins when everything before has ended; only the last round may end in an error. */
interface Round {
  readonly count: number;
  /** Attempts that are lost; null: all. */
  readonly lostCount: number | null;
  /** From the end of what was answered to the posting, as a part of the time-out. */
  readonly pause: number;
}

interface Told {
  readonly postedPs: number;
  readonly sentPs: number;
  readonly ended: Ended[];
}

/** 4.096 µs × 2^code (9.7.6.1.3). */
const timeOutPs = ({ timeoutCode }: Args): number => 4_096_000 * 2 ** timeoutCode;

function draw(random: Random): SceneDraft {
  const hasDrawnHardware = random.chance(0.4);
  const retryCount = random.below(8);
  const pause = (): number => (random.chance(0.3) ? 0 : random.unit() * 1.3);
  const before = random.chance(0.6) ? 0 : 1 + random.below(3);
  const count = random.chance(0.4) ? 1 : 2 + random.below(4);
  const isForever = count > 1 || random.chance(0.4);
  const rounds: Round[] = [
    ...Array.from({ length: before }, () => ({
      count: 1,
      lostCount: random.below(retryCount + 1),
      pause: pause(),
    })),
    { count, lostCount: isForever ? null : 1 + random.below(retryCount + 2), pause: pause() },
  ];
  const args: Args = {
    opcode: random.chance(0.5) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: 1 + random.below(256),
    // On drawn hardware an answer may take a millisecond by itself.
    timeoutCode: hasDrawnHardware ? 11 + random.below(3) : 3 + random.below(8),
    retryCount,
    rounds,
  };
  const packet = random.chance(0.5) ? 'lost' : 'corrupted';
  const node = random.below(2);
  // The first packet is that of the request that is answered, and the last of each round that ends well passes.
  let next = 2;
  const faults = rounds.flatMap(({ lostCount }): FaultEntry[] => {
    if (lostCount === null) return [{ packet, nth: `${next}-`, node }];
    const first = next;
    next += lostCount + 1;
    return lostCount === 0 ? [] : [{ packet, nth: `${first}-${next - 2}`, node }];
  });
  return { args: args as unknown as JsonValue, hasDrawnHardware, faults, climate: 'lossy' };
}

const countOf = ({ rounds }: Args): number => rounds.reduce((sum, { count }) => sum + count, 1);

/** Asks once, and in each round after a pause again. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { opcode, lengthBytes, retryCount, timeoutCode, rounds } = args;
  const side = await connectWithPeer(program, {
    areaBytes: countOf(args) * lengthBytes,
    attributes: { timeoutCode, retryCount },
  });
  const request = (id: number) => requestOf(side, id, opcode, { offset: id * lengthBytes, lengthBytes });
  post(side.qps[0]!, request(0));
  const told: Told[] = [];
  let posted = (await completionsOf(side, 1)).length;
  for (const { count, pause } of rounds) {
    await sleepUntil(program, nowPs(program) + Math.round(pause * timeOutPs(args)));
    const postedPs = nowPs(program);
    for (const last = posted + count; posted < last; posted++) post(side.qps[0]!, request(posted));
    const sentPs = nowPs(program);
    const ended = await watchCompletions(side, count, {
      napPs: Math.ceil(timeOutPs(args) / 40),
      patiencePs: 50 * timeOutPs(args),
    });
    told.push({ postedPs, sentPs, ended });
  }
  await barrier(program, 'over');
  await leave(side);
  return told as unknown as JsonValue;
}

/** Has what is asked for, and nothing else to do. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: countOf(args) * args.lengthBytes });
  await barrier(program, 'over');
  await leave(side);
  return {};
}

function judge({ args: given, results, report, set }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const { retryCount, rounds } = args;
  const told = results[0] as unknown as readonly Told[];
  const isDefault = Object.keys(set).every((path) => path === 'host.memory.sizeMib');
  const found: string[] = [];
  let firstId = 1;
  let timeOutsDue = 0;
  let repeatedDue = 0;
  let repeatedLeast = 0;
  for (const [number, { count, lostCount }] of rounds.entries()) {
    const isOver = lostCount === null || lostCount > retryCount;
    const timeOuts = isOver ? retryCount + 1 : lostCount;
    const attempts = isOver ? retryCount : lostCount;
    timeOutsDue += timeOuts;
    repeatedDue += count * attempts;
    repeatedLeast += attempts;
    const { postedPs, sentPs, ended } = told[number]!;
    const accuse = (what: string): unknown => found.push(`round ${number}: ${what}`);
    const expected = Array.from({ length: count }, (_, at) => {
      if (!isOver) return `${firstId + at} ${IBV_WC_SUCCESS}`;
      return `${firstId + at} ${at === 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR}`;
    });
    firstId += count;
    const seen = ended.map(({ id, status }) => `${id} ${status}`);
    if (`${seen}` !== `${expected}`)
      accuse(
        `requests ended in ${seen}, with ${lostCount ?? 'all'} attempts lost and ${retryCount} retries it is ${expected}`,
      );
    const end = ended[0];
    if (end === undefined) continue;
    const leastPs = timeOuts * timeOutPs(args);
    // No time-out is longer than four times what its code says (9.7.6.1.3); then the last answer arrives, and a program polls for it.
    const answerPs = (isDefault ? 20 : 4000) * psPerUs + timeOutPs(args) / 10;
    const mostPs = 4 * leastPs + answerPs;
    if (end.atPs - postedPs < leastPs)
      accuse(
        `ended ${end.atPs - postedPs} ps after it was posted, its ${timeOuts} time-outs take ${leastPs}`,
      );
    if (end.atPs - sentPs > mostPs)
      accuse(`ended ${end.atPs - sentPs} ps after it was posted, its ${timeOuts} time-outs take ${mostPs}`);
  }
  const counted = report.nodes[0]!.hca.transport['ackTimeout'] ?? 0;
  if (counted !== timeOutsDue)
    found.push(`the report says ${counted} time-outs, ${timeOutsDue} attempts were lost`);
  const repeated = Object.values(report.wire.find(({ from }) => from === 0)!.retransmitted).reduce(
    (sum, { packets }) => sum + packets,
    0,
  );
  // Other hardware may have had no room to send all of them before.
  const isRight = isDefault ? repeated === repeatedDue : repeated >= repeatedLeast && repeated <= repeatedDue;
  if (!isRight) found.push(`${repeated} requests were sent again, ${repeatedDue} had to be`);
  return found;
}

export const unanswered: Scene = {
  name: 'unanswered',
  about:
    'answers are lost until retries are used up or nearly, once and again after requests that were answered',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge,
};
