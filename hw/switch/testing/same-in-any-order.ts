import { expect } from 'vitest';
import { Random } from '../../../sim/index.ts';

/** Expects what `seen` returns to be the same in five orders of what happens at one instant, and returns it. */
export async function sameInAnyOrder(seen: (shuffle?: () => number) => Promise<unknown>): Promise<unknown> {
  const plain = await seen();
  for (let seed = 1; seed <= 5; seed++) expect(await seen(new Random(seed).unit)).toEqual(plain);
  return plain;
}
