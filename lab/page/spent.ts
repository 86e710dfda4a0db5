/** A ledger of cycles as it grows over time. */
import type { CoreWork } from '../protocol.ts';

/** Cycles of work until an instant, by cause; work in progress counts for the elapsed part. */
export function spentUntil(work: readonly CoreWork[], atPs: number): { name: string; amount: number }[] {
  const sums = new Map<string, number>();
  for (const { fromPs, toPs, cause, cycles } of work) {
    if (fromPs >= atPs) continue;
    const part = toPs <= atPs ? 1 : (atPs - fromPs) / (toPs - fromPs);
    sums.set(cause, (sums.get(cause) ?? 0) + part * cycles);
  }
  return [...sums]
    .map(([name, amount]) => ({ name, amount }))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
}
