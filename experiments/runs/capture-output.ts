/** Writes a machine's capture to the file of `--pcap`, also after a failed run, and reports what the capture lacks. */
import { codeOf, visible } from '../../base/index.ts';
import type { AnalysisOptions } from '../../machine/analysis/index.ts';
import type { DroppedRecords } from '../../machine/timeline/index.ts';
import { writeFileAtomically } from '../../runtime/output-files.ts';
import { WorkerLostError } from '../../sim/index.ts';

/** The part of a machine that captures need. */
interface CapturedMachine {
  capture(): Promise<Uint8Array<ArrayBuffer>>;
  captureDrops(): Promise<readonly DroppedRecords[]>;
}

export async function writeCapture(
  machine: CapturedMachine,
  analysis: AnalysisOptions | undefined,
): Promise<void> {
  const file = analysis?.capture?.file;
  if (file === undefined) return;
  writeFileAtomically(file, await machine.capture());
  await reportFullCapture(machine, analysis);
}

/**
 * Runs a machine. If the run fails, the packets so far are written and their file is named on standard error: failed
 * runs need captures the most.
 * @throws the error of `run`
 */
export async function keepingCapture<Result>(
  machine: CapturedMachine,
  analysis: AnalysisOptions | undefined,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    await saveCapture(machine, analysis, error);
    throw error;
  }
}

async function saveCapture(
  machine: CapturedMachine,
  analysis: AnalysisOptions | undefined,
  failure: unknown,
): Promise<void> {
  const file = analysis?.capture?.file;
  if (file === undefined) return;
  try {
    // A lost thread does not answer.
    if (failure instanceof WorkerLostError) throw new Error('a thread of the machine was lost');
    await writeCapture(machine, analysis);
    process.stderr.write(`hca: ${visible(file)} has the packets up to the failure: npx hca wire reads it\n`);
  } catch (error) {
    process.stderr.write(
      `hca: ${visible(file)} was not written: the packets are lost (${visible(codeOf(error))})\n`,
    );
  }
}

/** Reports, for each end whose part of the capture was full, the number of missing packets. */
export async function reportFullCapture(
  machine: Pick<CapturedMachine, 'captureDrops'>,
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
