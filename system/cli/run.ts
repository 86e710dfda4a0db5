/** Runs a machine for a command: when it fails, the kernels' logs name the cause. */
import { RunError } from '../../sim/index.ts';
import type { Machine } from '../machine/index.ts';

/** Errors after which every part of the machine can still be asked. */
const tellable: ReadonlySet<string> = new Set(['ProgramFailedError', 'DeadlockError']);

/** @throws RunError with the last line of each kernel behind its message */
export async function runMachine(machine: Machine): Promise<void> {
  try {
    await machine.run();
  } catch (error) {
    if (!(error instanceof Error) || !tellable.has(error.name)) throw error;
    const lines = (await machine.log()).filter(({ program }) => program === 'kernel');
    if (lines.length === 0) throw error;
    const lastLines = lines.slice(-4).map(({ node, text }) => `host${node}: ${text}`);
    throw new RunError(`${error.message} (${lastLines.join('; ')})`, { cause: error });
  }
}
