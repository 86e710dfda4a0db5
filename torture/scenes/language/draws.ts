/** Draws that many scenes make. */
import type { Random } from '../../../sim/index.ts';

/** A list of `count` values, each made from its place. */
export const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

/** Makes objects one after another. */
export async function series<T>(count: number, make: (at: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let at = 0; at < count; at++) made.push(await make(at));
  return made;
}

/** One of some choices, each equally likely. */
export const oneOf = <T>(random: Random, choices: readonly T[]): T => choices[random.below(choices.length)]!;

/** Some parameters with the given probability, and none otherwise. */
export const maybe = <T extends object>(random: Random, probability: number, make: () => T): Partial<T> =>
  random.chance(probability) ? make() : {};

/** The numbers from 0 up to but not including `count`, in any order. */
export const someOrder = (random: Random, count: number): number[] =>
  times(count, (number) => ({ number, place: random.unit() }))
    .toSorted((left, right) => left.place - right.place)
    .map(({ number }) => number);

export const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);
