/**
 * How programs of scenes look at what arrives: closely, where a judge compares times with closed forms; and bytes that name their
 * message.
 */

import type { ProgramContext } from '../../machine/index.ts';
import { IbvWc, pollCq } from '../../userlib/index.ts';
import { type Ended, nowPs, type Side } from './pair.ts';

/** Polls with rests of `napPs`, until so many completions have come or nothing has for `patiencePs`. */
export async function watchCompletions(
  { endpoint, cq }: Pick<Side, 'endpoint' | 'cq'>,
  count: number,
  { napPs, patiencePs }: { napPs: number; patiencePs: number },
): Promise<Ended[]> {
  const { program } = endpoint;
  const wcs = Array.from({ length: 16 }, () => new IbvWc());
  const ended: Ended[] = [];
  let movedPs = nowPs(program);
  while (ended.length < count && nowPs(program) - movedPs <= patiencePs) {
    const taken = await pollCq(cq, Math.min(wcs.length, count - ended.length), wcs);
    const atPs = nowPs(program);
    for (const { wrId, status, byteLen } of wcs.slice(0, taken))
      ended.push({ id: wrId, status, byteLen, atPs });
    if (taken > 0) movedPs = atPs;
    else await program.cpu.sleep(napPs);
  }
  return ended;
}

/** Sleeps until the core's own time has come to `atPs`. */
export async function sleepUntil(program: ProgramContext, atPs: number): Promise<void> {
  const leftPs = atPs - nowPs(program);
  if (leftPs > 0) await program.cpu.sleep(leftPs);
}

/** Bytes that name their message and their place in it. */
export function patternOf(message: number, lengthBytes: number): Uint8Array {
  return Uint8Array.from(
    { length: lengthBytes },
    (_, at) => (message * 89 + at * 13 + (at >>> 8) * 7 + 1) & 0xff,
  );
}

/** Place of the first byte that differs, or -1. */
export function firstDifference(left: Uint8Array, right: Uint8Array): number {
  return left.findIndex((byte, at) => byte !== right[at]);
}
