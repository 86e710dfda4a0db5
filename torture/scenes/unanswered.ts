/**
 * Answers of requests are lost again and again, some time after an answered one: each attempt waits for the whole ACK time-out from its own sending
 * on, and the retry count limits the attempts (IBTA 9.7.6.1.3, 9.9.2.1.1). An answer restores all retries, so that later requests with as many
 * losses succeed, too.
 */
import type { ArgsOf, Draft, Draws, Ended, FaultEntry, Played, Stage } from './language/index.ts';
import {
  connect,
  present,
  psPerUs,
  READ,
  scene,
  sumOf,
  timeOutPsOf,
  times,
  WRITE,
} from './language/index.ts';

function draw(random: Draws) {
  const hasDrawnHardware = random.chance(0.4);
  const retryCount = random.below(8);
  const pause = (): number => (random.chance(0.3) ? 0 : random.unit() * 1.3);
  const before = random.chance(0.6) ? 0 : 1 + random.below(3);
  const count = random.chance(0.4) ? 1 : 2 + random.below(4);
  const isForever = count > 1 || random.chance(0.4);
  // Each begins when everything before has ended, after a part of the time-out; only the last one may end in an error.
  const rounds = [
    ...times(before, () => ({
      count: 1,
      lostCount: random.below(retryCount + 1) as number | null,
      pause: pause(),
    })),
    // Attempts that are lost; null: all.
    { count, lostCount: isForever ? null : 1 + random.below(retryCount + 2), pause: pause() },
  ];
  const args = {
    opcode: random.chance(0.5) ? WRITE : READ,
    lengthBytes: 1 + random.below(256),
    // On drawn hardware a response may take a millisecond by itself.
    timeoutCode: hasDrawnHardware ? 11 + random.below(3) : 3 + random.below(8),
    retryCount,
    rounds,
  };
  const packet = random.chance(0.5) ? 'lost' : 'corrupted';
  const node = random.below(2);
  // The first packet is that of the request that is answered, and the last of each round that ends well passes.
  let next = 2;
  const faults = rounds.flatMap(({ lostCount }): FaultEntry[] => {
    const first = next;
    next += (lostCount ?? 0) + 1;
    if (lostCount === null) return [{ packet, nth: `${first}-`, node }];
    return lostCount === 0 ? [] : [{ packet, nth: `${first}-${next - 2}`, node }];
  });
  return { args, hasDrawnHardware, faults, climate: 'lossy' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Observations of one round. */
interface Told {
  readonly postedPs: number;
  readonly sentPs: number;
  readonly ended: readonly Ended[];
}

const areaBytesOf = ({ rounds, lengthBytes }: Args): number =>
  (1 + sumOf(rounds.map(({ count }) => count))) * lengthBytes;

/** Sends one request, and another in each round after a pause. */
async function asker(stage: Stage<Args>): Promise<Told[]> {
  const { opcode, lengthBytes, retryCount, timeoutCode, rounds } = stage.args;
  const timeOutPs = timeOutPsOf(timeoutCode);
  const attributes = { timeoutCode, retryCount };
  const side = await connect(stage, { areaBytes: areaBytesOf(stage.args), attributes });
  const ask = (id: number): unknown => side.post(id, opcode, { offset: id * lengthBytes, lengthBytes });
  ask(0);
  let posted = (await side.completions(1)).length;
  const told: Told[] = [];
  for (const { count, pause } of rounds) {
    await stage.sleepUntil(stage.nowPs + Math.round(pause * timeOutPs));
    const postedPs = stage.nowPs;
    for (const last = posted + count; posted < last; posted++) ask(posted);
    const sentPs = stage.nowPs;
    const patience = { napPs: Math.ceil(timeOutPs / 40), patiencePs: 50 * timeOutPs };
    told.push({ postedPs, sentPs, ended: await side.watch(count, patience) });
  }
  await stage.meet('over');
  return told;
}

const answerer = present<Args>((args) => ({ areaBytes: areaBytesOf(args) }));

function judge({ args, told, report, set }: Played<Args, readonly [readonly Told[], unknown]>): string[] {
  const { retryCount, rounds } = args;
  const timeOutPs = timeOutPsOf(args.timeoutCode);
  const isDefault = Object.keys(set).every((path) => path === 'host.memory.sizeMib');
  const found: string[] = [];
  let firstId = 1;
  /** Time-outs, and requests sent again at most and at least. */
  let [timeOutsDue, repeatedDue, repeatedLeast] = [0, 0, 0];
  for (const [number, { count, lostCount }] of rounds.entries()) {
    const isOver = lostCount === null || lostCount > retryCount;
    const timeOuts = isOver ? retryCount + 1 : lostCount;
    const attempts = isOver ? retryCount : lostCount;
    timeOutsDue += timeOuts;
    repeatedDue += count * attempts;
    repeatedLeast += attempts;
    const { postedPs, sentPs, ended } = told[0][number]!;
    const status = (at: number): string =>
      isOver ? (at === 0 ? 'RETRY_EXC_ERR' : 'WR_FLUSH_ERR') : 'SUCCESS';
    const due = times(count, (at) => `${firstId + at} ${status(at)}`);
    firstId += count;
    const seen = ended.map((one) => `${one.id} ${one.status}`);
    const lost = `with ${lostCount ?? 'all'} attempts lost and ${retryCount} retries`;
    if (`${seen}` !== `${due}`)
      found.push(`round ${number}: requests ended in ${seen}, ${lost} it is ${due}`);
    const [end] = ended;
    if (end === undefined) continue;
    // No timeout is longer than four times the value of its code (9.7.6.1.3); then the last response arrives, and a
    // program polls for it.
    const answerPs = (isDefault ? 20 : 4000) * psPerUs + timeOutPs / 10;
    const [leastPs, mostPs] = [timeOuts * timeOutPs, 4 * timeOuts * timeOutPs + answerPs];
    if (end.atPs - postedPs < leastPs || end.atPs - sentPs > mostPs)
      found.push(
        `round ${number}: ended ${end.atPs - postedPs} ps after it was posted, its time-outs take ${leastPs} to ${mostPs}`,
      );
  }
  const counted = report.nodes[0]!.hca.transport['ackTimeout'] ?? 0;
  if (counted !== timeOutsDue)
    found.push(`the report says ${counted} time-outs, ${timeOutsDue} attempts were lost`);
  const { retransmitted } = report.wire.find(({ from }) => from === 0)!;
  const repeated = sumOf(Object.values(retransmitted).map(({ packets }) => packets));
  // Other hardware may not have had room to send all of them before.
  const isRight = repeated <= repeatedDue && repeated >= (isDefault ? repeatedDue : repeatedLeast);
  return isRight ? found : [...found, `${repeated} requests were sent again, ${repeatedDue} had to be`];
}

export const unanswered = scene({
  about:
    'answers are lost until retries are used up or nearly, once and again after requests that were answered',
  cable: 'infiniband',
  draw,
  programs: [asker, answerer],
  judge,
});
