/**
 * A CQ raises one event for a number of completions, or after a period (ibv_modify_cq): the event arrives with the last
 * of them, or a period after the first, and the report counts the completions that it represents.
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Played, Side, Stage } from './language/index.ts';
import { connect, present, psPerMs, psPerUs, scene, sumOf, times, WRITE } from './language/index.ts';

function draw(random: Draws) {
  const isUsualHardware = random.chance(0.5);
  const rounds = times(2 + random.below(5), () => {
    // 0 and 1 moderate nothing.
    const moderationCount = random.chance(0.2) ? random.below(2) : 2 + random.below(14);
    const around = Math.max(1, moderationCount + random.below(5) - 2);
    const periodUs = random.chance(0.1) ? 0 : 10_000 + random.below(50_000);
    return { moderationCount, periodUs, count: random.chance(0.7) ? around : 1 + random.below(20) };
  });
  return { args: { rounds, isUsualHardware }, hasDrawnHardware: !isUsualHardware } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Round = Args['rounds'][number];

const isModerated = ({ moderationCount, periodUs }: Round): boolean => moderationCount > 1 && periodUs > 0;
/** Number of completions that a round's event represents. */
const completionsOfEvent = (round: Round): number =>
  isModerated(round) ? Math.min(round.count, round.moderationCount) : 1;

function write(side: Side, count: number): void {
  for (let id = 0; id < count; id++) side.post(id, WRITE, { offset: 64 * id, lengthBytes: 64 });
}

async function asker(stage: Stage<Args>): Promise<void> {
  const { rounds } = stage.args;
  const side = await connect(stage, { areaBytes: 4096, hasChannel: true, cap: { maxSendWr: 64 } });
  const most = Math.max(...rounds.map(({ count }) => count));
  const beganPs = stage.nowPs;
  write(side, most);
  await side.completions(most);
  // Each event also takes an interrupt and the wake-up of a thread: some microseconds, or some hundreds on drawn
  // hardware.
  const slackPs = 4 * (stage.nowPs - beganPs) + 2 * psPerMs;
  for (const [at, round] of rounds.entries()) await playRound(side, `round ${at}`, round, slackPs);
  await stage.meet('over');
}

async function playRound(side: Side, what: string, round: Round, slackPs: number): Promise<void> {
  const { stage, cq } = side;
  const { moderationCount, periodUs, count } = round;
  const periodPs = periodUs * psPerUs;
  await ibv.modifyCq(cq, moderationCount, periodUs);
  ibv.reqNotifyCq(cq, 0);
  const beganPs = stage.nowPs;
  write(side, count);
  const event = await ibv.getCqEvent(cq.channel!, periodPs + 200 * psPerMs);
  const eventPs = stage.nowPs - beganPs;
  const ended = (await stage.poll(cq, 32)).length;
  ibv.ackCqEvents(cq, cq.eventsUnacked);
  if (ended < count) await side.completions(count - ended);
  const isWaiting = isModerated(round) && count < moderationCount;
  const latestPs = (isWaiting ? periodPs : 0) + slackPs;
  if (event === undefined) stage.accuse(`${what}: no event of ${count} completions`);
  else if (ended < completionsOfEvent(round)) stage.accuse(`${what}: an event of ${ended} completions`);
  else if (isWaiting && eventPs < periodPs)
    stage.accuse(`${what}: an event of too few completions after ${eventPs} of ${periodPs} ps`);
  else if (eventPs > latestPs)
    stage.accuse(`${what}: the event came after ${eventPs} ps, not within ${latestPs}`);
}

const answerer = present<Args>(() => ({ areaBytes: 4096 }));

function judge({ args: { rounds, isUsualHardware }, report }: Played<Args, unknown>): string[] {
  // Completions that waited for others with their event.
  const joined = sumOf(rounds.map((round) => completionsOfEvent(round) - 1));
  const moderated = sumOf(report.nodes[0]!.interrupts.map((row) => row.moderated));
  const isRight = moderated >= joined && !(isUsualHardware && moderated > joined);
  return isRight ? [] : [`${moderated} reasons to interrupt were joined to others, not ${joined}`];
}

export const moderatedEvents = scene({
  about: 'a CQ raises one event for so many completions, or after a period',
  draw,
  programs: [asker, answerer],
  judge,
});
