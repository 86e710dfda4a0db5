/**
 * Requests whose answers get lost again and again, behind one that was answered some time before: each attempt waits for the
 * whole of the ACK time-out, from its own sending on, and there are as many as the retry count says (IBTA 9.7.6.1.3, 9.9.2.1.1).
 */
import { psPerUs } from '../../../base/index.ts';
import type { Random } from '../../../sim/index.ts';
import {
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
} from '../../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { barrier } from '../../workloads/index.ts';
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
  readonly count: number;
  readonly lengthBytes: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  /** Attempts that are lost; null: all. */
  readonly lostCount: number | null;
  /** From the end of the request that was answered to the posting of the others, as a part of the time-out. */
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
  const count = random.chance(0.4) ? 1 : 2 + random.below(4);
  const retryCount = random.below(8);
  const args: Args = {
    opcode: random.chance(0.5) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    count,
    lengthBytes: 1 + random.below(256),
    // On drawn hardware an answer may take a millisecond by itself.
    timeoutCode: hasDrawnHardware ? 11 + random.below(3) : 3 + random.below(8),
    retryCount,
    lostCount: count > 1 || random.chance(0.4) ? null : 1 + random.below(retryCount + 2),
    pause: random.chance(0.3) ? 0 : random.unit() * 1.3,
  };
  const nth = args.lostCount === null ? '2-' : `2-${1 + args.lostCount}`;
  const packet = random.chance(0.5) ? 'lost' : 'corrupted';
  return {
    args: { ...args },
    hasDrawnHardware,
    faults: [{ packet, nth, node: random.below(2) }],
    climate: 'lossy',
  };
}

/** Asks once, pauses, and asks again. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { opcode, count, lengthBytes, retryCount, timeoutCode, pause } = args;
  const side = await connectWithPeer(program, {
    areaBytes: (count + 1) * lengthBytes,
    attributes: { timeoutCode, retryCount },
  });
  const request = (id: number) => requestOf(side, id, opcode, { offset: id * lengthBytes, lengthBytes });
  post(side.qps[0]!, request(0));
  const first = await completionsOf(side, 1);
  await sleepUntil(program, nowPs(program) + Math.round(pause * timeOutPs(args)));
  const postedPs = nowPs(program);
  for (let id = 1; id <= count; id++) post(side.qps[0]!, request(id));
  const sentPs = nowPs(program);
  const others = await watchCompletions(side, count, {
    napPs: Math.ceil(timeOutPs(args) / 40),
    patiencePs: 50 * timeOutPs(args),
  });
  await barrier(program, 'over');
  await leave(side);
  return { postedPs, sentPs, ended: [...first, ...others] } as unknown as JsonValue;
}

/** Has what is asked for, and nothing else to do. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { count, lengthBytes } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: (count + 1) * lengthBytes });
  await barrier(program, 'over');
  await leave(side);
  return {};
}

function judge({ args: given, results, report, set }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const { count, retryCount, lostCount } = args;
  const { postedPs, sentPs, ended } = results[0] as unknown as Told;
  const isOver = lostCount === null || lostCount > retryCount;
  const timeOuts = isOver ? retryCount + 1 : lostCount;
  const found: string[] = [];
  const expected = Array.from({ length: count + 1 }, (_, id) => {
    if (id === 0 || !isOver) return IBV_WC_SUCCESS;
    return id === 1 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR;
  });
  const seen = ended.map(({ status }) => status);
  if (`${seen}` !== `${expected}`)
    found.push(`requests ended in ${seen}, with ${lostCount ?? 'all'} attempts lost it is ${expected}`);
  const end = ended[1];
  if (end === undefined) return found;
  const leastPs = timeOuts * timeOutPs(args);
  // No time-out is longer than four times what its code says (9.7.6.1.3); then the last answer arrives, and a program polls for it.
  const isDefault = Object.keys(set).every((path) => path === 'host.memory.sizeMib');
  const answerPs = (isDefault ? 20 : 4000) * psPerUs + timeOutPs(args) / 10;
  const mostPs = 4 * leastPs + answerPs;
  if (end.atPs - postedPs < leastPs)
    found.push(
      `ended ${end.atPs - postedPs} ps after it was posted, its ${timeOuts} time-outs take ${leastPs}`,
    );
  if (end.atPs - sentPs > mostPs)
    found.push(`ended ${end.atPs - sentPs} ps after it was posted, its ${timeOuts} time-outs take ${mostPs}`);
  const { hca } = report.nodes[0]!;
  if ((hca.transport['ackTimeout'] ?? 0) !== timeOuts)
    found.push(
      `the report says ${hca.transport['ackTimeout'] ?? 0} time-outs, ${timeOuts} attempts were lost`,
    );
  const repeated = Object.values(report.wire.find(({ from }) => from === 0)!.retransmitted).reduce(
    (sum, { packets }) => sum + packets,
    0,
  );
  const attempts = isOver ? retryCount : lostCount;
  const due = count * attempts;
  // Other hardware may have had no room to send all of them before.
  const isRight = isDefault ? repeated === due : repeated >= attempts && repeated <= due;
  if (!isRight) found.push(`${repeated} requests were sent again, ${due} had to be`);
  return found;
}

export const unanswered: Scene = {
  name: 'unanswered',
  about: 'answers are lost until retries are used up or nearly, some time after a request that was answered',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge,
};
