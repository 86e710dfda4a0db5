/** What binds, in lines that fit a terminal. */
import type { Bottleneck } from './bottleneck.ts';
import type { Resource, Turn } from './measured.ts';
import type { StageShare } from './stages.ts';

const percent = (share: number): string => `${Math.min(100, Math.round(share * 100))} %`;

const wordsOf = ({ name, kind, share }: Resource): string =>
  `${name}, ${percent(share)} ${kind === 'server' ? 'busy' : 'full'}`;

/** What binds, in short. */
export const bottleneckShort = ({ binds }: Bottleneck): string => wordsOf(binds);

const lineChars = 78;

/** What binds, what would bind next, and which parameter to change. */
export function bottleneckLines({ binds, next }: Bottleneck): string[] {
  const [second] = next;
  const lines = [`What binds: ${wordsOf(binds)}.`];
  if (second !== undefined) lines.push(`  Next in line: ${wordsOf(second)}.`);
  return [...lines, ...turnLines(binds.turn)];
}

/** Where a message's time goes, and which parameter to change for the longest part. */
export function stageLines(stages: readonly StageShare[]): string[] {
  const [first] = stages;
  if (first === undefined) return [];
  const shares = stages.slice(0, 4).map(({ name, share }) => `${name} ${percent(share)}`);
  return [
    'Where the time goes from posting to completion:',
    ...wrapped(`${shares.join(', ')}.`),
    ...turnLines(first.turn),
  ];
}

/** No line where nothing can be turned: an ACK time-out comes from a packet that was lost. */
function turnLines(turn: readonly Turn[]): string[] {
  const parts = (['more', 'less'] as const).flatMap((towards) => {
    const names = turn.filter((each) => each.towards === towards).map(({ what }) => what);
    return names.length === 0 ? [] : [`${towards} ${names.join(', ')}`];
  });
  return parts.length === 0 ? [] : wrapped(`To turn: ${parts.join('; ')}.`);
}

/** Breaks between words; each line is indented. */
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
