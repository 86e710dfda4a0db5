/** Cycles of a program's core between two of its own instants, by cause. */
import { cpuCauses } from '../../host/index.ts';
import type { ProgramContext } from '../../machine/index.ts';

/**
 * Starts counting.
 * @returns a function that stops: the cycles since, without zeros and idle ones
 */
export function countCycles({ cpu }: ProgramContext): () => Record<string, number> {
  const before = cpu.core.account.cycles.slice();
  return () => {
    const spent = cpuCauses.map(
      (cause, index) => [cause, cpu.core.account.cycles[index]! - before[index]!] as const,
    );
    return Object.fromEntries(spent.filter(([cause, cycles]) => cause !== 'idle' && cycles > 0));
  };
}
