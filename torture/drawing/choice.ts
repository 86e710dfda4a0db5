/** Draws numbers of stories: choices with weights, ranges that prefer their ends, and tables of values. */
import type { ParameterValue } from '../../machine/profile/index.ts';
import type { Random } from '../../sim/index.ts';

/** @param weights one for each value; left out: all are as likely */
export function pick<T>(random: Random, values: readonly T[], weights?: readonly number[]): T {
  if (weights === undefined) return values[random.below(values.length)]!;
  let left = random.unit() * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [index, value] of values.entries()) {
    left -= weights[index]!;
    if (left < 0) return value;
  }
  return values.at(-1)!;
}

/** Picks one row of a table, by the rows' weights. */
export const pickRow = <Row extends { readonly weight: number }>(random: Random, rows: readonly Row[]): Row =>
  pick(
    random,
    rows,
    rows.map(({ weight }) => weight),
  );

/** Each of some values with this chance; at least one of them. */
export function some<T>(random: Random, values: readonly T[], chance: number): T[] {
  const kept = values.filter(() => random.chance(chance));
  return kept.length > 0 ? kept : [pick(random, values)];
}

/** A number whose logarithm is drawn evenly. */
export const logUniform = (random: Random, least: number, most: number): number =>
  Math.round(least * (most / least) ** random.unit());

/** 0, 1, the most and one less, or any between. */
export const edge = (random: Random, most: number): number =>
  pick(random, [0, 1, most - 1, most, random.below(most + 1)]);

/** Values of a knob: some, a range from and to, or one whose logarithm is drawn evenly. */
export type Values =
  | readonly ParameterValue[]
  | { readonly from: number; readonly to: number; readonly isLog?: true };

export const from = (least: number, most: number): Values => ({ from: least, to: most });
export const logFrom = (least: number, most: number): Values => ({ from: least, to: most, isLog: true });

export function drawn(random: Random, values: Values): ParameterValue {
  if (!('from' in values)) return pick(random, values);
  return values.isLog === true
    ? logUniform(random, values.from, values.to)
    : random.between(values.from, values.to);
}
