/** Runs a machine for a command; after a failure, the kernels' logs and the faults that fired name the cause. */

import type { Machine, Report } from '../../machine/index.ts';
import { RunError } from '../../sim/index.ts';

/** Errors after which every part of the machine can still be queried. */
const tellable: ReadonlySet<string> = new Set(['ProgramFailedError', 'DeadlockError']);

/**
 * @param run runs the machine, by default to its end
 * @throws RunError: its message ends with the last lines of the kernels' logs and, after a DeadlockError, the faults
 * that fired
 */
export async function runMachine(
  machine: Machine,
  run: () => Promise<unknown> = () => machine.run(),
): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof Error) || !tellable.has(error.name)) throw error;
    const text = `${await kernelText(machine)}${error.name === 'DeadlockError' ? await firedText(machine) : ''}`;
    if (text === '') throw error;
    throw new RunError(`${error.message}${text}`, { cause: error });
  }
}

/** The faults that fired, to follow an error of programs that wait without end; empty if none did. */
async function firedText(machine: Machine): Promise<string> {
  const fired = firedIn(await machine.report());
  const isOfPacket = fired.some((sentence) => sentence.startsWith('The fault packet='));
  return fired.map((sentence) => `. ${sentence}`).join('') + (isOfPacket ? unreliable : '');
}

const unreliable = '. Of UC and UD, nothing lost is sent again: their programs wait for it';

/** A sentence for each fault that fired. */
export const firedIn = ({ faults = [] }: Report): string[] =>
  faults
    .filter(({ fired }) => fired > 0)
    .map(({ fault, fired }) => `The fault ${fault} fired ${fired === 1 ? 'once' : `${fired} times`}`);

/** The last lines of the kernels' logs, to follow an error; empty if there are none. */
export async function kernelText(machine: Machine): Promise<string> {
  const lines = (await machine.log()).filter(({ program }) => program === 'kernel');
  const lastLines = lines.slice(-4).map(({ node, text }) => `host${node}: ${text}`);
  return lines.length === 0 ? '' : ` (${lastLines.join('; ')})`;
}
