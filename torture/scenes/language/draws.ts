/** Random numbers of scenes, and lists. */
import { Random } from '../../../sim/index.ts';

/** A list of `count` values, each computed from its place. */
export const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

/** Makes objects one after another. */
export async function series<T>(count: number, make: (at: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let at = 0; at < count; at++) made.push(await make(at));
  return made;
}

export const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Random numbers of a scene. */
export class Draws extends Random {
  /** Returns one of the choices, each equally likely. */
  oneOf<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  /** Some parameters with the given probability, and none otherwise. */
  maybe<T extends object>(probability: number, make: () => T): Partial<T> {
    return this.chance(probability) ? make() : {};
  }

  /** The numbers from 0 up to but not including `count`, in any order. */
  order(count: number): number[] {
    return times(count, (number) => ({ number, place: this.unit() }))
      .toSorted((left, right) => left.place - right.place)
      .map(({ number }) => number);
  }
}
