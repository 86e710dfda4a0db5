/**
 * Messages whose receives are posted late, one at a time: each RNR NAK keeps the sender still for the time that it names,
 * progress gives all retries back, a count of seven is unlimited, and the time waited is reported as RNR delay (IBTA 9.7.5.2.8,
 * 9.7.6.1, 11.6.2; the times of the codes as Linux's rnrnak_usec has them).
 */
import { psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SUCCESS, IBV_WR_SEND, postRecv } from '../../userlib/index.ts';
import { firstDifference, patternOf, sleepUntil, watchCompletions } from './observing.ts';
import { connectWithPeer, type Ended, leave, nowPs, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  /** Of each message: when its receive is posted, in RNR delays from when it may be sent. */
  readonly waits: readonly number[];
  readonly lengthBytes: number;
  readonly timerCode: number;
  readonly retryCount: number;
}

interface Told {
  readonly posted: readonly number[];
  readonly ended: readonly Ended[];
}

/** Delays in microseconds by code, of those that are played here. */
const delaysUs: Readonly<Record<number, number>> = {
  1: 10,
  2: 20,
  3: 30,
  4: 40,
  5: 60,
  6: 80,
  7: 120,
  8: 160,
};
const delayPsOf = ({ timerCode }: Args): number => delaysUs[timerCode]! * psPerUs;

/** From one message to the next: all that the longest wait takes, and room for what hardware and programs take beside. */
const marginPs = (args: Args): number => 2 * delayPsOf(args) + 20 * psPerUs;
const periodPs = (args: Args, index: number): number => waitPsOf(args, index) + 2 * marginPs(args);
const retryForever = 7;

/** From when a message may be sent to its receive: where it is to be refused for good, longer than all attempts last with their answers. */
function waitPsOf(args: Args, index: number): number {
  const { retryCount } = args;
  const wait = args.waits[index]!;
  const delayPs = delayPsOf(args);
  if (retryCount === retryForever || wait <= retryCount) return Math.round(wait * delayPs);
  return Math.max(wait * delayPs, retryCount * delayPs + (retryCount + 1) * (answerPs / 2.5));
}

function draw(random: Random): SceneDraft {
  const retryCount = random.chance(0.4) ? retryForever : 1 + random.below(6);
  const isEnding = retryCount < retryForever && random.chance(0.2);
  const most = retryCount === retryForever ? 14 : retryCount - 0.6;
  const count = 1 + random.below(6);
  const args: Args = {
    waits: Array.from({ length: count }, (_, index) =>
      isEnding && index === count - 1 ? retryCount + 3 : random.chance(0.2) ? 0 : random.unit() * most,
    ),
    lengthBytes: 1 + random.below(random.chance(0.5) ? 64 : 9000),
    timerCode: 1 + random.below(8),
    retryCount,
  };
  // A copy of an RNR NAK begins the wait anew.
  const faults: FaultEntry[] =
    retryCount === retryForever && random.chance(0.5)
      ? [
          {
            packet: 'duplicated',
            nth: `1-${1 + random.below(20)}`,
            delay: `${1000 + random.below(delaysUs[args.timerCode]! * 900)}ns`,
            node: 1,
          },
        ]
      : [];
  return {
    args: { ...args },
    hasDrawnHardware: false,
    faults,
    climate: faults.length > 0 ? 'lossy' : 'calm',
  };
}

/** Sends each message at its time. */
export async function sender(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { waits, lengthBytes, timerCode, retryCount } = args;
  const side = await connectWithPeer(program, {
    areaBytes: waits.length * lengthBytes,
    attributes: { rnrRetryCount: retryCount, rnrTimerCode: timerCode },
  });
  for (const index of waits.keys())
    program.memory.write(side.area.address + index * lengthBytes, patternOf(index, lengthBytes));
  let atPs = nowPs(program) + marginPs(args);
  await program.exchange.put('begin', atPs);
  const posted: number[] = [];
  const ended: Ended[] = [];
  for (const [index] of waits.entries()) {
    await sleepUntil(program, atPs);
    posted.push(nowPs(program));
    post(side.qps[0]!, requestOf(side, index, IBV_WR_SEND, { offset: index * lengthBytes, lengthBytes }));
    const patiencePs = 2 * periodPs(args, index);
    const one = await watchCompletions(side, 1, { napPs: psPerUs, patiencePs });
    ended.push(...one);
    if (one[0]?.status !== IBV_WC_SUCCESS) break;
    atPs += periodPs(args, index);
  }
  await barrier(program, 'over');
  await leave(side);
  return { posted, ended } as unknown as JsonValue;
}

/** Posts each receive when its wait is over. */
export async function receiver(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { waits, lengthBytes, timerCode, retryCount } = args;
  const side = await connectWithPeer(program, {
    areaBytes: waits.length * lengthBytes,
    cap: { maxRecvWr: waits.length },
    attributes: { rnrRetryCount: retryCount, rnrTimerCode: timerCode },
  });
  let atPs = (await program.exchange.take('begin')) as number;
  const posted: number[] = [];
  for (const index of waits.keys()) {
    await sleepUntil(program, atPs + waitPsOf(args, index));
    const addr = side.area.address + index * lengthBytes;
    const sgList = [{ addr, length: lengthBytes, lkey: side.area.region.lkey }];
    postRecv(side.qps[0]!, { wrId: index, sgList, numSge: 1 }, { wr: null, index: 0 });
    posted.push(nowPs(program));
    atPs += periodPs(args, index);
  }
  await barrier(program, 'over');
  const differences = waits.map((_, index) =>
    firstDifference(
      program.memory.read(side.area.address + index * lengthBytes, lengthBytes),
      patternOf(index, lengthBytes),
    ),
  );
  await leave(side);
  return { posted, differences };
}

function judge({ args: given, results, report, faults }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const { waits, retryCount } = args;
  const sent = results[0] as unknown as Told;
  const { posted, differences } = results[1] as unknown as { posted: number[]; differences: number[] };
  const found: string[] = [];
  const delayPs = delayPsOf(args);
  const isOver = (index: number): boolean => retryCount < retryForever && waits[index]! > retryCount;
  const expected = waits.map((_, index) => (isOver(index) ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS));
  const seen = sent.ended.map(({ status }) => status);
  if (`${seen}` !== `${expected}`)
    found.push(`messages ended in ${seen}, with ${retryCount} retries each it is ${expected}`);
  let [least, most, leastAccountedPs] = [0, 0, 0];
  for (const [index, { status, atPs }] of sent.ended.entries()) {
    if (status === IBV_WC_SUCCESS && differences[index] !== -1)
      found.push(`message ${index} came with other bytes`);
    // Each attempt before the receive was there is refused; each refusal holds for the whole of its time, and some of that is over.
    const waitedPs = (isOver(index) ? atPs : posted[index]!) - sent.posted[index]!;
    const attempts = waitedPs < 0 ? 0 : 1 + Math.floor(waitedPs / delayPs);
    most += isOver(index) ? retryCount + 1 : attempts;
    if (isOver(index)) least += retryCount + 1;
    else if (waitedPs > answerPs)
      least += faults.length > 0 ? 1 : Math.ceil((waitedPs - answerPs) / (delayPs + answerPs));
    const tookPs = atPs - sent.posted[index]!;
    const dueAtPs = Math.max(0, waitedPs) + delayPs + 2 * answerPs;
    if (!isOver(index) && faults.length === 0 && tookPs > dueAtPs)
      found.push(`message ${index} took ${tookPs} ps, its receive and one more delay ${dueAtPs}`);
  }
  // A copy looks like a refusal to the sender: each starts the delay again, and leaves fewer attempts.
  const refusals = report.nodes[1]!.hca.transport['rnrNakSent'] ?? 0;
  if (refusals < least || refusals > most)
    found.push(`${refusals} RNR NAKs, the delays of ${delayPs} ps leave from ${least} to ${most}`);
  const isWell = sent.ended.every(({ status }) => status === IBV_WC_SUCCESS);
  leastAccountedPs = refusals * delayPs;
  const accountedPs = report.operations['SEND']?.milestonesPs['rnrDelay'] ?? 0;
  if (isWell && accountedPs < leastAccountedPs)
    found.push(`${accountedPs} ps are counted as RNR delay, ${refusals} RNR NAKs take ${leastAccountedPs}`);
  return found;
}

/** From posting a message to its answer on the default machine, with what programs take to look: five times what it is. */
const answerPs = 20 * psPerUs;

export const lateReceives: Scene = {
  name: 'late-receives',
  about: 'receives are posted some RNR delays after their messages were sent',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'sender' },
    { node: 1, exportName: 'receiver' },
  ],
  // By a slow cable of Ethernet a message may take longer than the delays.
  cable: 'infiniband',
  draw,
  judge,
};
