/** What binds, in lines that fit a terminal. */
import type { Bottleneck } from './bottleneck.ts';
import type { Resource, Turn } from './measured.ts';

const percent = (share: number): string => `${Math.min(100, Math.round(share * 100))} %`;

const wordsOf = ({ name, kind, share }: Resource): string =>
  `${name}, ${percent(share)} ${kind === 'server' ? 'busy' : 'full'}`;

/** What binds, in short. */
export const bottleneckShort = ({ binds }: Bottleneck): string => wordsOf(binds);

const lineChars = 78;

/** What binds, what would bind next, and what to turn. */
export function bottleneckLines({ binds, next }: Bottleneck): string[] {
  const [second] = next;
  const lines = [`What binds: ${wordsOf(binds)}.`];
  if (second !== undefined) lines.push(`  Next in line: ${wordsOf(second)}.`);
  const namesOf = (towards: Turn['towards']): string =>
    binds.turn
      .filter((turn) => turn.towards === towards)
      .map(({ what }) => what)
      .join(', ');
  const turns = (['more', 'less'] as const).flatMap((towards) => {
    const names = namesOf(towards);
    return names === '' ? [] : [`${towards} ${names}`];
  });
  return [...lines, ...wrapped(`To turn: ${turns.join('; ')}.`)];
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
