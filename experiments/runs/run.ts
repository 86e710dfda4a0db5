/** Runs a machine for a command; after a failure, the kernels' logs name the cause. */

import type { Machine } from '../../machine/index.ts';
import { RunError } from '../../sim/index.ts';

/** Errors after which every part of the machine can still be queried. */
const tellable: ReadonlySet<string> = new Set(['ProgramFailedError', 'DeadlockError']);

/**
 * @param run runs the machine, by default to its end
 * @throws RunError with the last lines of the kernels' logs after its message
 */
export async function runMachine(
  machine: Machine,
  run: () => Promise<unknown> = () => machine.run(),
): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof Error) || !tellable.has(error.name)) throw error;
    const lines = await kernelText(machine);
    if (lines === '') throw error;
    throw new RunError(`${error.message}${lines}`, { cause: error });
  }
}

/** The last lines of the kernels' logs, to follow an error; empty if there are none. */
export async function kernelText(machine: Machine): Promise<string> {
  const lines = (await machine.log()).filter(({ program }) => program === 'kernel');
  const lastLines = lines.slice(-4).map(({ node, text }) => `host${node}: ${text}`);
  return lines.length === 0 ? '' : ` (${lastLines.join('; ')})`;
}
