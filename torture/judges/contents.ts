/** Bytes that requests carry, by the story: their sources as the program had filled them when it posted. */
import type { Observations } from '../observations.ts';
import { patternInto, type SgePlan } from '../story.ts';

/** The bytes that a program's request gathers; only the program itself writes to the areas it gathers from. */
export function gatheredOf(
  seen: Observations,
  program: number,
  sges: readonly SgePlan[],
  atPs: number,
): Uint8Array {
  const bytes = new Uint8Array(sges.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const { area, offset, length } of sges) {
    const fill = seen.fills.findLast((found) => found.area === area && found.atPs <= atPs)?.fill ?? 0;
    patternInto(bytes.subarray(at, at + length), program, area, fill, offset);
    at += length;
  }
  return bytes;
}

/** Returns the offset of the first byte that differs from the expected one; -1 if none. */
export function firstDifference(found: Uint8Array, due: Uint8Array): number {
  for (let at = 0; at < due.length; at++) if (found[at] !== due[at]) return at;
  return -1;
}

/**
 * Whether the program returned a page under these buffers between two instants: data received meanwhile may be lost.
 */
export const isGivenBack = (
  { givenBack }: Observations,
  sges: readonly SgePlan[],
  fromPs: number,
  toPs: number,
): boolean =>
  givenBack.some(
    (given) =>
      given.atPs >= fromPs &&
      given.atPs <= toPs &&
      sges.some(
        ({ area, offset, length }) =>
          area === given.area && offset < given.offset + given.length && offset + length > given.offset,
      ),
  );

/** Whether the program had deregistered one of these buffers, and overwritten it, by an instant. */
export const isTakenAway = (
  { deregistrations }: Observations,
  sges: readonly SgePlan[],
  atPs: number,
): boolean =>
  deregistrations.some((gone) => gone.toPs <= atPs && sges.some(({ area }) => area === gone.area));
