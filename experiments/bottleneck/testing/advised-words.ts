/** Advised changes as one line each, for comparison. */
import type { Turn } from '../measured.ts';

export const turnLines = (turn: readonly Turn[]): string[] =>
  turn.map(({ what, towards, along = [] }) =>
    [`${towards} ${what}`, ...along.map((other) => `with ${other.towards} ${other.what}`)].join(' '),
  );
