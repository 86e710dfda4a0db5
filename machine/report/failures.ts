/** Comparisons for the checks of a report; each returns failed conditions in words. */
import type { ExactPs } from '../../sim/index.ts';
import type { HcaLedger } from './hca-ledger.ts';
import type { CheckReport } from './schema.ts';

export const checkOf = (failures: readonly string[]): CheckReport => ({
  holds: failures.length === 0,
  failures,
});

export const sumOf = (values: Iterable<number>): number => {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
};

/** Words for two figures that should be equal and are not. */
export function unequal(what: string, left: ExactPs, right: ExactPs): string[] {
  return left === right ? [] : [`${what}: ${left} is not ${right}`];
}

/** The far figure must equal the near one when the machine is quiescent, and never exceed it. */
export function behind(what: string, far: number, near: number, isQuiet: boolean): string[] {
  if (isQuiet ? far === near : far <= near) return [];
  return [`${what}: ${far} at the far end, ${near} at the near end`];
}

/** Remaining interrupts of a vector wait for its moderation period or for space, or in its pending bit; at most one each. */
export function vectorFailures(node: string, row: HcaLedger['vectors'][number]): string[] {
  const planned = row.requested - row.moderated - row.messages;
  const pending = row.messages - row.delivered - row.coalesced - row.dropped;
  const what = `${node} vector ${row.vector}`;
  return [
    ...(planned === 0 || planned === 1 ? [] : [`${what}: ${planned} requests disappeared`]),
    ...(pending === 0 || pending === 1 ? [] : [`${what}: ${pending} messages disappeared`]),
  ];
}
