/**
 * Judges whether the story ended as required: no exception of the model, no waiting program, nothing held at the end,
 * and statistics that balance.
 */
import { IBV_WC_SUCCESS } from '../../userlib/index.ts';
import type { Observations } from '../observations.ts';
import type { Played } from '../run-story.ts';
import type { Climate, Story } from '../story.ts';
import { traitsOf } from './scene-traits.ts';

export function judgeEnding({ story, seen, report, leftovers, error }: Played): string[] {
  const found: string[] = [];
  if (error !== undefined && !isLawfulBoot(story, error))
    found.push(`the run ended with ${error.name}: ${error.message}`);
  const isAnythingBroken = seen.some((observations) => hasFailed(observations));
  for (const [program, observations] of seen.entries()) {
    if (observations === null) {
      if (error === undefined) found.push(`program ${program} did not end`);
      continue;
    }
    if (story.climate === 'broken') continue;
    // The judge of completions decides whether unfinished requests are allowed; a peer whose end failed may answer no
    // more.
    if (observations.unfinished.length === 0 && !isAnythingBroken && !mayWaitForNextRequest(story))
      for (const what of observations.impatience.slice(0, 1))
        found.push(`program ${program} waited too long for ${what}`);
    if (observations.failure !== null)
      found.push(`program ${program} could not begin: ${observations.failure}`);
    for (const refusal of observations.refusals)
      if (!isExplained(refusal, story.climate, observations)) found.push(`program ${program}: ${refusal}`);
  }
  for (const [node, held] of leftovers.entries())
    for (const [name, count] of Object.entries(held ?? {}))
      if (count !== 0 && story.climate !== 'broken') found.push(`host ${node} still holds ${count} ${name}`);
  for (const [node, { unownedAccesses }] of report.nodes.entries())
    for (const { atPs, access, address, lengthBytes, frame } of unownedAccesses?.first ?? [])
      if (access !== 'read' || traitsOf(story).hasLateReads !== true)
        found.push(
          `the device of node ${node}: ${access} of ${lengthBytes} bytes at 0x${address.toString(16)}, a ${frame} frame, at ${atPs} ps`,
        );
  const { balanced, ...checks } = report.checks;
  for (const [name, { failures }] of Object.entries(checks))
    for (const failure of failures) found.push(`${name}: ${failure}`);
  if (!balanced && found.length === 0) found.push('the ledgers do not balance, and no check says why');
  return found;
}

/**
 * Without an ACK timeout (code 0), a loss is noticed when the next request is answered, and a program may not have
 * posted one yet.
 */
const mayWaitForNextRequest = ({ climate, programs }: Story): boolean =>
  climate === 'lossy' &&
  programs.some(({ qps }) => qps.some(({ transport, timeout }) => transport === 'RC' && timeout === 0));

/**
 * A QP in the error state refuses operations that need a working one. Without faults, retries for late receives may run
 * out; the judge of completions handles that request.
 */
const isExplained = (refusal: string, climate: Climate, observations: Observations): boolean =>
  (climate !== 'calm' || hasFailed(observations)) && /^(modify|post|quiesce): /.test(refusal);

const hasFailed = (observations: Observations | null): boolean =>
  observations?.completions.some(({ status }) => status !== IBV_WC_SUCCESS) === true;

/** True if the driver may give up: a read of the device is answered wrongly while it probes (docs/how-to/faults.md). */
const isLawfulBoot = ({ climate, faults }: Story, { message }: Error): boolean =>
  climate === 'broken' &&
  message.startsWith('program boot failed') &&
  faults.some((fault) => 'read' in fault);
