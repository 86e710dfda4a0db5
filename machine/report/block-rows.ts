/** Rows common to the reports of every adapter. */
import type { HcaLedger } from './hca-ledger.ts';
import type { NodeReport } from './schema.ts';

/** Cycles of every block of an adapter. */
export function blocksOf({
  blocks,
  elapsedCycles,
}: Pick<HcaLedger, 'blocks' | 'elapsedCycles'>): NodeReport['hca']['blocks'] {
  const rows = Object.entries(blocks).map(([name, { busyCycles, idleCycles, stalledCycles }]) => [
    name,
    { elapsedCycles, busyCycles, idleCycles, stalledCycles },
  ]);
  return Object.fromEntries(rows) as NodeReport['hca']['blocks'];
}

export const nonZero = (counts: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
