/** Writes the capture of a machine where `--pcap` says. */
import { writeFileSync } from 'node:fs';
import type { AnalysisOptions } from '../machine/analysis/index.ts';
import type { Machine } from '../machine/machine.ts';

export async function writeCapture(machine: Machine, analysis: AnalysisOptions | undefined): Promise<void> {
  const file = analysis?.capture?.file;
  if (file !== undefined) writeFileSync(file, await machine.capture());
}
