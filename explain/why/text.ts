/** Causes as lines of text. */
import { visible } from '../../base/index.ts';
import type { Cause } from './cause.ts';

/** The sentence of each cause, its line, and its advice. */
export function causeLines(findings: readonly Cause[]): string[] {
  return findings.flatMap(
    ({ cause, weight, sentence, line, within, mendLine, mendWithin, advice, count }) => [
      `${weight === 'fault' ? 'Cause' : 'Note'}: ${sentence} [${cause}]`,
      ...(line === undefined
        ? []
        : [`  at ${placeText(line, within)}${count > 1 ? `, and ${count - 1} more with this cause` : ''}`]),
      ...(mendLine === undefined || (mendLine === line && String(mendWithin) === String(within))
        ? []
        : [`  see ${placeText(mendLine, mendWithin)}`]),
      `  ${advice}`,
    ],
  );
}

/** A line of the program, and the lines of its helpers within it. */
function placeText(line: string, within: readonly string[] = []): string {
  return within.length === 0
    ? visible(line)
    : `${visible(line)} (by way of ${within.map(visible).join(', ')})`;
}
