/** Causes as lines of text. */
import { visible } from '../../base/index.ts';
import type { Cause } from './cause.ts';

/** The sentence, its line, and what to do, of each. */
export function causeLines(findings: readonly Cause[]): string[] {
  return findings.flatMap(({ cause, weight, sentence, line, mendLine, advice, count }) => [
    `${weight === 'fault' ? 'Cause' : 'Note'}: ${sentence} [${cause}]`,
    ...(line === undefined
      ? []
      : [`  at ${visible(line)}${count > 1 ? `, and ${count - 1} more with this cause` : ''}`]),
    ...(mendLine === undefined || mendLine === line ? [] : [`  see ${visible(mendLine)}`]),
    `  ${advice}`,
  ]);
}
