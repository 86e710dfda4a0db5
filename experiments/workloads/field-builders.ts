/** Builders of the fields of a workload, for the tables of the kinds of tests; a letter is perftest's. */
import type { ChoiceField, FlagField, IntegerField } from './workload-fields.ts';

export const bytes = (
  letter: string | undefined,
  min: number,
  max: number,
  meaning: string,
): IntegerField => ({
  kind: 'integer',
  unit: 'bytes',
  min,
  max,
  meaning,
  ...(letter === undefined ? {} : { letter }),
});

export const count = (
  letter: string | undefined,
  min: number,
  max: number,
  meaning: string,
): IntegerField => ({
  ...bytes(letter, min, max, meaning),
  unit: 'n',
});

export const flag = (letter: string | undefined, meaning: string): FlagField => ({
  kind: 'flag',
  meaning,
  ...(letter === undefined ? {} : { letter }),
});

export const choice = <const Choice extends string | number>(
  letter: string | undefined,
  unit: string,
  choices: readonly Choice[],
  meaning: string,
): ChoiceField<Choice> => ({
  kind: 'choice',
  unit,
  choices,
  meaning,
  ...(letter === undefined ? {} : { letter }),
});
