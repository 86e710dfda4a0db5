/**
 * A CQ is set to raise one event for so many completions, or after a period (ibv_modify_cq): the event comes with the last of
 * them, or when the period is over since the first, and the report says how many completions it stood for.
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  getCqEvent,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  modifyCq,
  pollCq,
  reqNotifyCq,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  leave,
  nowPs,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly rounds: readonly Round[];
  readonly isUsualHardware: boolean;
}

interface Round {
  /** 0 and 1 moderate nothing. */
  readonly moderationCount: number;
  readonly periodUs: number;
  /** Requests of the round. */
  readonly count: number;
}

/** Of a round, by the program's own clock. */
interface Seen {
  /** From the first post to the event; negative when it did not come. */
  readonly eventPs: number;
  /** Completions that were there when the event was. */
  readonly ended: number;
}

interface Result {
  /** From the first post to the last of as many completions as any round has, without events. */
  readonly usualPs: number;
  readonly seen: readonly Seen[];
}

function draw(random: Random): SceneDraft {
  const isUsualHardware = random.chance(0.5);
  const rounds = Array.from({ length: 2 + random.below(5) }, (): Round => {
    const moderationCount = random.chance(0.2) ? random.below(2) : 2 + random.below(14);
    const around = Math.max(1, moderationCount + random.below(5) - 2);
    return {
      moderationCount,
      periodUs: random.chance(0.1) ? 0 : 10_000 + random.below(50_000),
      count: random.chance(0.7) ? around : 1 + random.below(20),
    };
  });
  const args: Args = { rounds, isUsualHardware };
  return { args: args as unknown as JsonValue, hasDrawnHardware: !isUsualHardware };
}

/** Writes, and is notified by events. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { rounds } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: 4096,
    hasChannel: true,
    cap: { maxSendWr: 64 },
  });
  const beganPs = nowPs(program);
  write(side, Math.max(...rounds.map(({ count }) => count)));
  await completionsOf(side, Math.max(...rounds.map(({ count }) => count)));
  const usualPs = nowPs(program) - beganPs;
  const seen: Seen[] = [];
  for (const round of rounds) seen.push(await playRound(program, side, round));
  await barrier(program, 'over');
  await leave(side);
  const result: Result = { usualPs, seen };
  return result as unknown as JsonValue;
}

async function playRound(
  program: ProgramContext,
  side: Side,
  { moderationCount, periodUs, count }: Round,
): Promise<Seen> {
  const { cq } = side;
  await modifyCq(cq, moderationCount, periodUs);
  reqNotifyCq(cq, 0);
  const beganPs = nowPs(program);
  write(side, count);
  const event = await getCqEvent(cq.channel!, periodUs * psPerUs + 200 * psPerMs);
  const eventPs = event === undefined ? -1 : nowPs(program) - beganPs;
  const wcs = Array.from({ length: 32 }, () => new IbvWc());
  const ended = await pollCq(cq, 32, wcs);
  ackCqEvents(cq, cq.eventsUnacked);
  if (ended < count) await completionsOf(side, count - ended);
  return { eventPs, ended };
}

function write(side: Side, count: number): void {
  for (let id = 0; id < count; id++)
    post(side.qps[0]!, requestOf(side, id, IBV_WR_RDMA_WRITE, { offset: 64 * id, lengthBytes: 64 }));
}

/** Is written to. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const side = await connectWithPeer(program, { areaBytes: 4096 });
  await barrier(program, 'over');
  await leave(side);
  return {};
}

export const moderatedEvents: Scene = {
  name: 'moderated-events',
  about: 'a CQ raises one event for so many completions, or after a period',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results, report }) {
    const { rounds, isUsualHardware } = args as unknown as Args;
    const { usualPs, seen } = results[0] as unknown as Result;
    // Each event goes by an interrupt and a waking thread as well: some microseconds, or some hundreds on drawn hardware.
    const slackPs = 4 * usualPs + 2 * psPerMs;
    const found = rounds.flatMap((round, at) =>
      wrongOf(round, seen[at]!, slackPs).map((what) => `round ${at}: ${what}`),
    );
    // Completions that waited for others with their event.
    const joined = rounds.reduce((sum, round) => sum + completionsOfEvent(round) - 1, 0);
    const moderated = report.nodes[0]!.interrupts.reduce((sum, row) => sum + row.moderated, 0);
    if (moderated < joined || (isUsualHardware && moderated > joined))
      found.push(`${moderated} reasons to interrupt were joined to others, not ${joined}`);
    return found;
  },
};

const isModerated = ({ moderationCount, periodUs }: Round): boolean => moderationCount > 1 && periodUs > 0;

/** Completions for which a round's event stands. */
const completionsOfEvent = (round: Round): number =>
  isModerated(round) ? Math.min(round.count, round.moderationCount) : 1;

function wrongOf(round: Round, { eventPs, ended }: Seen, slackPs: number): string[] {
  const { count, periodUs } = round;
  const periodPs = periodUs * psPerUs;
  if (eventPs < 0) return [`no event of ${count} completions`];
  if (ended < completionsOfEvent(round)) return [`an event of ${ended} completions`];
  const isWaiting = isModerated(round) && count < round.moderationCount;
  if (isWaiting && eventPs < periodPs)
    return [`an event of too few completions after ${eventPs} of ${periodPs} ps`];
  const latestPs = (isWaiting ? periodPs : 0) + slackPs;
  return eventPs > latestPs ? [`the event came after ${eventPs} ps, not within ${latestPs}`] : [];
}
