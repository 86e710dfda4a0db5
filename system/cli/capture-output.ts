/** Writes the capture of a machine where `--pcap` says, and says of it and of a served one what it has not. */
import { visible } from '../../base/index.ts';
import type { AnalysisOptions } from '../machine/analysis/index.ts';
import type { Machine } from '../machine/index.ts';
import type { DroppedRecords } from '../machine/timeline/index.ts';
import { writeFileAtomically } from './output.ts';

export async function writeCapture(machine: Machine, analysis: AnalysisOptions | undefined): Promise<void> {
  const file = analysis?.capture?.file;
  if (file === undefined) return;
  writeFileAtomically(file, await machine.capture());
  await reportFullCapture(machine, analysis);
}

/** Says of each end whose part of the capture was full how many packets the file has not. */
export async function reportFullCapture(
  machine: { captureDrops(): Promise<readonly DroppedRecords[]> },
  analysis: AnalysisOptions | undefined,
): Promise<void> {
  const file = analysis?.capture?.file;
  if (file === undefined) return;
  for (const { process: end, kept, dropped } of await machine.captureDrops())
    if (dropped > 0)
      process.stderr.write(
        `hca: ${visible(file)} has the first ${kept} packets at ${end}; ${dropped} later ones were not kept: --pcap-size\n`,
      );
}
