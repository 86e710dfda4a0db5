/**
 * Whether the story ended as it must: no throw of the model, no program left waiting, nothing held at the end, and books
 * that balance.
 */
import type { Played } from '../run-story.ts';

export function judgeEnding({ story, seen, report, leftovers, error }: Played): string[] {
  const found: string[] = [];
  if (error !== undefined) found.push(`the run ended with ${error.name}: ${error.message}`);
  for (const [program, observations] of seen.entries()) {
    if (observations === null) {
      if (error === undefined) found.push(`program ${program} did not end`);
      continue;
    }
    if (story.climate === 'broken') continue;
    // Whether what is unfinished may be so is for the judge of completions.
    if (observations.unfinished.length === 0)
      for (const what of observations.impatience.slice(0, 1))
        found.push(`program ${program} waited too long for ${what}`);
    if (observations.failure !== null)
      found.push(`program ${program} could not begin: ${observations.failure}`);
    for (const refusal of observations.refusals)
      if (!isExplained(refusal, story.climate)) found.push(`program ${program}: ${refusal}`);
  }
  for (const [node, held] of leftovers.entries())
    for (const [name, count] of Object.entries(held ?? {}))
      if (count !== 0 && story.climate !== 'broken') found.push(`host ${node} still holds ${count} ${name}`);
  for (const [node, { unownedAccesses }] of report.nodes.entries())
    for (const { atPs, access, address, lengthBytes, frame } of unownedAccesses?.first ?? [])
      found.push(
        `the device of node ${node}: ${access} of ${lengthBytes} bytes at 0x${address.toString(16)}, a ${frame} frame, at ${atPs} ps`,
      );
  const { balanced, ...checks } = report.checks;
  for (const [name, { failures }] of Object.entries(checks))
    for (const failure of failures) found.push(`${name}: ${failure}`);
  if (!balanced && found.length === 0) found.push('the books do not balance, and nothing says why');
  return found;
}

/** A QP that broke refuses what only a working one takes. */
const isExplained = (refusal: string, climate: string): boolean =>
  climate !== 'calm' && /^(modify|post|quiesce): /.test(refusal);
