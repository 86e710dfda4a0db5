/**
 * Messages whose receives are posted late, one at a time: each RNR NAK delays the sender for the time that it names, progress restores all
 * retries, a count of seven is unlimited, and the report counts the wait as RNR delay (IBTA 9.7.5.2.8, 9.7.6.1, 11.6.2; the times of the
 * codes as Linux's rnrnak_usec has them).
 */
import type { Draft, Draws, Ended, FaultEntry, Played, Stage } from './language/index.ts';
import {
  connect,
  differencesOf,
  isWell,
  patternOf,
  psPerUs,
  SEND,
  scene,
  statusesOf,
  times,
  topic,
} from './language/index.ts';

interface Args {
  /** Time of each message's receive, in RNR delays after the message may be sent. */
  readonly waits: readonly number[];
  readonly lengthBytes: number;
  readonly timerCode: number;
  readonly retryCount: number;
}

/** Delays in microseconds of the codes that are played here. */
const delaysUs = [0, 10, 20, 30, 40, 60, 80, 120, 160] as const;
const delayPsOf = ({ timerCode }: Args): number => delaysUs[timerCode]! * psPerUs;
const retryForever = 7;
/**
 * Time from posting a message to its response on the default machine, with the programs' polling: five times the real
 * value.
 */
const answerPs = 20 * psPerUs;

/** Period of the messages: the longest wait, and room for hardware and programs. */
const marginPs = (args: Args): number => 2 * delayPsOf(args) + 20 * psPerUs;
const periodPs = (args: Args, id: number): number => waitPsOf(args, id) + 2 * marginPs(args);

/**
 * Time from when a message may be sent to its receive; for a final refusal, longer than all attempts last with their
 * responses.
 */
function waitPsOf(args: Args, id: number): number {
  const { retryCount } = args;
  const wait = args.waits[id]!;
  const delayPs = delayPsOf(args);
  if (!isOver(args, id)) return Math.round(wait * delayPs);
  return Math.max(wait * delayPs, retryCount * delayPs + (retryCount + 1) * (answerPs / 2.5));
}

/** Whether a message is finally refused. */
const isOver = ({ retryCount, waits }: Args, id: number): boolean =>
  retryCount < retryForever && waits[id]! > retryCount;

function draw(random: Draws): Draft<Args> {
  const retryCount = random.chance(0.4) ? retryForever : 1 + random.below(6);
  const isEnding = retryCount < retryForever && random.chance(0.2);
  const most = retryCount === retryForever ? 14 : retryCount - 0.6;
  const count = 1 + random.below(6);
  const args = {
    waits: times(count, (at) =>
      isEnding && at === count - 1 ? retryCount + 3 : random.chance(0.2) ? 0 : random.unit() * most,
    ),
    lengthBytes: 1 + random.below(random.chance(0.5) ? 64 : 9000),
    timerCode: 1 + random.below(8),
    retryCount,
  };
  if (retryCount !== retryForever || !random.chance(0.5)) return { args };
  // A copy of an RNR NAK restarts the wait.
  const nth = `1-${1 + random.below(20)}`;
  const delay = `${1000 + random.below(delaysUs[args.timerCode]! * 900)}ns`;
  const copies: FaultEntry = { packet: 'duplicated', nth, delay, node: 1 };
  return { args, faults: [copies], climate: 'lossy' };
}

const begin = topic<number>('begin');
const attributesOf = ({ retryCount, timerCode }: Args) => ({
  rnrRetryCount: retryCount,
  rnrTimerCode: timerCode,
});

interface Sent {
  readonly posted: readonly number[];
  readonly ended: readonly Ended[];
}

/** Sends each message at its time. */
async function sender(stage: Stage<Args>): Promise<Sent> {
  const { args } = stage;
  const { waits, lengthBytes } = args;
  const side = await connect(stage, {
    areaBytes: waits.length * lengthBytes,
    attributes: attributesOf(args),
  });
  for (const id of waits.keys()) side.fill(patternOf(id, lengthBytes), id * lengthBytes);
  let atPs = stage.nowPs + marginPs(args);
  await stage.put(begin, atPs);
  const posted: number[] = [];
  const ended: Ended[] = [];
  for (const id of waits.keys()) {
    await stage.sleepUntil(atPs);
    posted.push(stage.nowPs);
    side.post(id, SEND, { offset: id * lengthBytes, lengthBytes });
    ended.push(...(await side.watch(1, { napPs: psPerUs, patiencePs: 2 * periodPs(args, id) })));
    if (ended[id]?.status !== 'SUCCESS') break;
    atPs += periodPs(args, id);
  }
  await stage.meet('over');
  return { posted, ended };
}

interface Received {
  readonly posted: readonly number[];
  /** Differences by message. */
  readonly differences: readonly (readonly string[])[];
}

/** Posts each receive when its wait is over. */
async function receiver(stage: Stage<Args>): Promise<Received> {
  const { args } = stage;
  const { waits, lengthBytes } = args;
  const sizes = { areaBytes: waits.length * lengthBytes, cap: { maxRecvWr: waits.length } };
  const side = await connect(stage, { ...sizes, attributes: attributesOf(args) });
  let atPs = await stage.take(begin);
  const posted: number[] = [];
  for (const id of waits.keys()) {
    await stage.sleepUntil(atPs + waitPsOf(args, id));
    side.receive(id, { offset: id * lengthBytes, lengthBytes });
    posted.push(stage.nowPs);
    atPs += periodPs(args, id);
  }
  await stage.meet('over');
  const differences = waits.map((_, id) =>
    differencesOf(`message ${id}`, side.bytes(id * lengthBytes, lengthBytes), patternOf(id, lengthBytes)),
  );
  return { posted, differences };
}

function judge({ args, told, report, faults }: Played<Args, readonly [Sent, Received]>): string[] {
  const [sent, received] = told;
  const { waits, retryCount } = args;
  const found: string[] = [];
  const delayPs = delayPsOf(args);
  const due = waits.map((_, id) => (isOver(args, id) ? 'RNR_RETRY_EXC_ERR' : 'SUCCESS'));
  if (`${statusesOf(sent.ended)}` !== `${due}`)
    found.push(`messages ended in ${statusesOf(sent.ended)}, with ${retryCount} retries each it is ${due}`);
  let [least, most] = [0, 0];
  for (const [id, end] of sent.ended.entries()) {
    if (isWell(end)) found.push(...received.differences[id]!);
    // Each attempt before the receive was posted is refused; each refusal lasts for its whole time, of which a part is
    // over.
    const waitedPs = (isOver(args, id) ? end.atPs : received.posted[id]!) - sent.posted[id]!;
    if (isOver(args, id)) {
      least += retryCount + 1;
      most += retryCount + 1;
      continue;
    }
    most += waitedPs < 0 ? 0 : 1 + Math.floor(waitedPs / delayPs);
    if (waitedPs > answerPs)
      least += faults.length > 0 ? 1 : Math.ceil((waitedPs - answerPs) / (delayPs + answerPs));
    const tookPs = end.atPs - sent.posted[id]!;
    const dueAtPs = Math.max(0, waitedPs) + delayPs + 2 * answerPs;
    if (faults.length === 0 && tookPs > dueAtPs)
      found.push(`message ${id} took ${tookPs} ps, its receive and one more delay ${dueAtPs}`);
  }
  // A copy looks like a refusal to the sender: each starts the delay again, and leaves fewer attempts.
  const refusals = report.nodes[1]!.hca.transport['rnrNakSent'] ?? 0;
  if (refusals < least || refusals > most)
    found.push(`${refusals} RNR NAKs, the delays of ${delayPs} ps leave from ${least} to ${most}`);
  const accountedPs = report.operations['SEND']?.milestonesPs['rnrDelay'] ?? 0;
  if (sent.ended.every(isWell) && accountedPs < refusals * delayPs)
    found.push(`${accountedPs} ps are counted as RNR delay, ${refusals} RNR NAKs take ${refusals * delayPs}`);
  return found;
}

export const lateReceives = scene({
  about: 'receives are posted some RNR delays after their messages were sent',
  // On a slow Ethernet cable a message may take longer than the delays.
  cable: 'infiniband',
  draw,
  programs: [sender, receiver],
  judge,
});
