/** Costs of operations as text: the lines of a baseline, and the message of a failed budget. */
import { trafficClassNames } from '../../hw/dma/index.ts';
import type { DeviceCost, OperationCost } from '../../machine/costs/index.ts';

/** Counts of the operation's own side that a budget may name. */
const ownFields = [
  'workRequests',
  'mmioWrites',
  'mmioReads',
  'systemCalls',
  'interrupts',
  'dmaReads',
  'dmaWrites',
  'cpuCycles',
] as const;
const peerFields = ['dmaReads', 'dmaWrites', 'interrupts'] as const;

/** Budget of an operation: omitted figures are not checked. */
export type Budget = Partial<Record<(typeof ownFields)[number], number>> & {
  /** TLPs by accounting class; exactly the named classes are allowed. */
  readonly readTlps?: Readonly<Record<string, number>>;
  readonly writeTlps?: Readonly<Record<string, number>>;
  /** Costs at the devices that received its messages. */
  readonly peer?: Partial<Record<(typeof peerFields)[number], number>> & {
    readonly readTlps?: Readonly<Record<string, number>>;
    readonly writeTlps?: Readonly<Record<string, number>>;
  };
};

/** One figure of a budget and the counted value. */
export interface BudgetLine {
  readonly field: string;
  readonly budget: number;
  readonly counted: number;
}

/**
 * The figures of a budget with the operation's costs.
 * @throws TypeError for a field or class that no cost has
 */
export function budgetLines(budget: Budget, cost: OperationCost): BudgetLine[] {
  const { peer = {}, ...own } = budget;
  return [...linesOf(own, cost, '', ownFields), ...linesOf(peer, cost.peer, 'peer.', peerFields)];
}

function linesOf(
  budget: object,
  cost: DeviceCost | OperationCost,
  prefix: string,
  fields: readonly string[],
): BudgetLine[] {
  const counts = cost as unknown as Readonly<Record<string, number>>;
  return Object.entries(budget).flatMap(([field, value]): BudgetLine[] => {
    if (field === 'readTlps' || field === 'writeTlps')
      return Object.entries(value as Record<string, unknown>).map(([name, limit]) => ({
        field: `${prefix}${field}.${name}`,
        budget: checkedLimit(`${prefix}${field}.${name}`, name, limit),
        counted: cost[field][name] ?? 0,
      }));
    if (!fields.includes(field) || typeof value !== 'number')
      throw new TypeError(
        `${prefix}${field}: a budget has numbers for ${fields.join(', ')}, readTlps, writeTlps`,
      );
    return [{ field: `${prefix}${field}`, budget: value, counted: counts[field]! }];
  });
}

/** A misspelt class would count as 0 and always hold. */
function checkedLimit(place: string, name: string, limit: unknown): number {
  const classes: readonly string[] = trafficClassNames;
  if (classes.includes(name) && typeof limit === 'number') return limit;
  throw new TypeError(`${place}: a budget of TLPs has numbers for ${classes.join(', ')}`);
}

/** A table of the figures: expected and counted. */
export function tableOf(lines: readonly BudgetLine[], word: string): string {
  const width = Math.max(...lines.map(({ field }) => field.length));
  return lines
    .map(({ field, budget, counted }) => `  ${field.padEnd(width)}  ${word} ${budget}, counted ${counted}`)
    .join('\n');
}

const listed = (tlps: Readonly<Record<string, number>>): string =>
  Object.entries(tlps)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ') || 'none';

/** A device's transfers for an operation, by class: the origin of a count. */
export const tlpText = ({ readTlps, writeTlps, peer }: OperationCost): string =>
  `  reads: ${listed(readTlps)}; writes: ${listed(writeTlps)}\n` +
  `  at the peer, reads: ${listed(peer.readTlps)}; writes: ${listed(peer.writeTlps)}`;

/** The parts of a cost that a baseline keeps: counts, and times if requested. */
function kept(cost: OperationCost, hasTimes: boolean): object {
  const { workRequests, mmioWrites, mmioReads, systemCalls, interrupts, readTlps, writeTlps, peer } = cost;
  const times = {
    cpuCycles: cost.cpuCycles,
    durationPs: cost.endedPs === undefined ? null : Number(BigInt(cost.endedPs) - BigInt(cost.beganPs)),
  };
  return {
    ...{ workRequests, mmioWrites, mmioReads, systemCalls, interrupts, readTlps, writeTlps },
    peer: { readTlps: peer.readTlps, writeTlps: peer.writeTlps, interrupts: peer.interrupts },
    ...(hasTimes ? times : {}),
  };
}

/**
 * A baseline of operations: JSON by name, one figure per line. Operations of the same name and cost are merged, with
 * their number.
 */
export function baselineText(costs: readonly OperationCost[], hasTimes: boolean): string {
  const names = [...new Set(costs.map(({ name }) => name))];
  const rows = names.map((name) => {
    const texts = costs
      .filter((cost) => cost.name === name)
      .map((cost) => JSON.stringify(kept(cost, hasTimes)));
    const distinct = [...new Set(texts)].map((text) => ({
      operations: texts.filter((other) => other === text).length,
      ...(JSON.parse(text) as object),
    }));
    return [name, distinct] as const;
  });
  return `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`;
}
