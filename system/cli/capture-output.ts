/** Writes the capture of a machine where `--pcap` says. */
import type { AnalysisOptions } from '../machine/analysis/index.ts';
import type { Machine } from '../machine/index.ts';
import { writeFileAtomically } from './output.ts';

export async function writeCapture(machine: Machine, analysis: AnalysisOptions | undefined): Promise<void> {
  const file = analysis?.capture?.file;
  if (file !== undefined) writeFileAtomically(file, await machine.capture());
}
