/** The bottleneck, in lines that fit a terminal. */
import type { Bottleneck } from './bottleneck.ts';
import { less, type Resource, type Turn } from './measured.ts';
import type { StageShare } from './stages.ts';

const percent = (share: number): string => `${Math.min(100, Math.round(share * 100))} %`;

const wordsOf = ({ name, kind, share }: Resource): string =>
  `${name}, ${percent(share)} ${kind === 'server' ? 'busy' : 'full'}`;

/** The bottleneck, abbreviated. */
export const bottleneckShort = ({ binds }: Bottleneck): string => wordsOf(binds);

const lineChars = 78;

/** The bottleneck, the next candidates, and the parameter to change. */
export function bottleneckLines({ binds, next, caveat }: Bottleneck): string[] {
  const [second] = next;
  const lines = [`What binds: ${wordsOf(binds)}.`];
  if (second !== undefined) lines.push(`  Next in line: ${wordsOf(second)}.`);
  return [...lines, ...turnLines(binds.turn), ...(caveat === undefined ? [] : wrapped(caveat))];
}

/** Mean times of a message whose programs sleep until an event: in total, and from posting to completion. */
export interface EventTimes {
  readonly averagePs: number;
  readonly lifePs: number;
  readonly isModerated: boolean;
}

/** The parts of a message's time, and the parameter that shortens the longest part. */
export function stageLines(stages: readonly StageShare[], events?: EventTimes): string[] {
  const [first] = stages;
  if (first === undefined) return [];
  const shares = stages.slice(0, 4).map(({ name, share }) => `${name} ${percent(share)}`);
  const lines = ['Where the time goes from posting to completion:', ...wrapped(`${shares.join(', ')}.`)];
  if (events === undefined || events.lifePs > events.averagePs / 2)
    return [...lines, ...turnLines(first.turn)];
  const { averagePs, lifePs, isModerated } = events;
  // Shortening this stage would change little.
  const most = `That is ${usText(lifePs)} of ${usText(averagePs)}: for most of the time a program sleeps until an event has come and woken it.`;
  return [...lines, ...wrapped(most), ...turnLines(less(...(isModerated ? ['--moderation'] : ['--events'])))];
}

const usText = (ps: number): string => `${(ps / 1e6).toFixed(2)} µs`;

/** No advice without a parameter: an ACK timeout results from a lost packet. */
function turnLines(turn: readonly Turn[]): string[] {
  const parts = (['more', 'less'] as const).flatMap((towards) => {
    const names = turn.filter((each) => each.towards === towards).map(withAlong);
    return names.length === 0 ? [] : [`${towards} ${names.join(', ')}`];
  });
  const reasons = turn.flatMap(({ along = [], because }) => [
    ...(because === undefined ? [] : [because]),
    ...along.map((other) => other.because),
  ]);
  return parts.length === 0
    ? []
    : [`To turn: ${parts.join('; ')}.`, ...new Set(reasons)].flatMap((text) => wrapped(text));
}

function withAlong({ what, along = [] }: Turn): string {
  if (along.length === 0) return what;
  return `${what} (with ${along.map((other) => `${other.towards} ${other.what}`).join(' and ')})`;
}

/** Wraps between words; each line is indented. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= lineChars)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${lines.length === 0 ? '' : '  '}${word}`);
  }
  return lines;
}
