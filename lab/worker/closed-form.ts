/** "What if", the closed form: the latency of one message and its parts, immediately; and the parameters that it depends on. */

import { Path, readLatency, sendLatency, totalPs, writeLatency } from '../../experiments/model/index.ts';
import { configurationOf, hasCard, profileListing } from '../../machine/profile/index.ts';
import type { Estimate, LabMachine, LabMessage, LabParameter, LabTerm } from '../protocol.ts';

/** Sizes of a curve, from 1 byte to 64 KiB. */
const curveSizes = [1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] as const;

/**
 * The closed form's answer.
 * @throws ConfigurationError naming the error in the machine
 */
export function estimate(machine: LabMachine, message: LabMessage): Estimate {
  const path = new Path(configurationOf(choiceOf(machine)), message.mtuBytes);
  const terms = termsOf(path, message);
  const curve = curveSizes.map((sizeBytes) => ({
    sizeBytes,
    ps: totalPs(termsOf(path, { ...message, sizeBytes })),
  }));
  return { totalPs: totalPs(terms), terms, curve };
}

function termsOf(path: Path, { verb, sizeBytes, inlineBytes }: LabMessage): readonly LabTerm[] {
  if (verb === 'read') return readLatency(path, sizeBytes);
  const post = {
    verb,
    lengthBytes: sizeBytes,
    isInline: sizeBytes <= inlineBytes,
    qpInlineBytes: inlineBytes,
  } as const;
  return verb === 'send' ? sendLatency(path, post) : writeLatency(path, post);
}

const choiceOf = ({ profile, set }: LabMachine) => ({ profile, set });

/** Text that the page shows beside a slider. */
export function parameters(profile: string, paths: readonly string[]): LabParameter[] {
  const listing = profileListing();
  const values = listing.profiles.find(({ name }) => name === profile)?.values ?? {};
  return paths.map((path) => {
    const row = listing.parameters.find((each) => each.path === path);
    if (row === undefined) throw new Error(`no parameter ${path}`);
    const { unit, doc, source } = row;
    return { path, unit, doc, source, default: values[path] ?? row.default };
  });
}

export const profiles = (): { name: string; doc: string }[] =>
  profileListing()
    .profiles.filter(hasCard)
    .map(({ name, doc }) => ({ name, doc }));
