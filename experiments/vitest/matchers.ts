/**
 * Matchers for costs of operations:
 *
 *     expect(op).toCost({ mmioWrites: 1, dmaReads: 2, interrupts: 0, systemCalls: 0 });     exactly
 *     expect(op).toCostAtMost({ dmaReads: 4 });                                             no more than
 *     await expect(ops).toMatchBaseline('__budgets__/put.json');                            as the file has it; vitest -u writes it
 *
 * `op` is one operation or a list, each member of which is checked; an empty list fails, also with `not`.
 */
import { expect } from 'vitest';
import type { OperationCost } from '../../machine/costs/index.ts';
import { type Budget, type BudgetLine, baselineText, budgetLines, tableOf, tlpText } from './cost-text.ts';

interface MatcherAnswer {
  readonly pass: boolean;
  readonly message: () => string;
}

/** @throws TypeError for a value that is not an operation, and for an empty list */
function costsOf(received: unknown): OperationCost[] {
  const costs = (Array.isArray(received) ? received : [received]) as OperationCost[];
  if (costs.length === 0)
    throw new TypeError('no operation of this kind was marked: nothing was compared with the budget');
  for (const cost of costs)
    if (typeof cost?.name !== 'string' || typeof cost.peer !== 'object')
      throw new TypeError('expected an operation, or a list of them, as costs of a machine give them');
  return costs;
}

function compare(
  received: unknown,
  budget: Budget,
  word: string,
  holds: (line: BudgetLine) => boolean,
): MatcherAnswer {
  const costs = costsOf(received);
  const dearer = costs.find((cost) => !budgetLines(budget, cost).every(holds));
  if (dearer === undefined)
    return { pass: true, message: () => `operation ${costs[0]!.name} costs what it was not to cost` };
  const place = costs.length === 1 ? '' : ` (number ${costs.indexOf(dearer) + 1} of ${costs.length})`;
  const lines = budgetLines(budget, dearer).filter((line) => !holds(line));
  const message = `operation ${dearer.name}${place} costs otherwise:\n${tableOf(lines, word)}\n${tlpText(dearer)}`;
  return { pass: false, message: () => message };
}

export const costMatchers = {
  toCost: (received: unknown, budget: Budget): MatcherAnswer =>
    compare(received, budget, 'expected', (line) => line.counted === line.budget),
  toCostAtMost: (received: unknown, budget: Budget): MatcherAnswer =>
    compare(received, budget, 'at most', (line) => line.counted <= line.budget),
  async toMatchBaseline(
    received: unknown,
    file: string,
    { times = false }: BaselineOptions = {},
  ): Promise<MatcherAnswer> {
    await expect(baselineText(costsOf(received), times)).toMatchFileSnapshot(file);
    return { pass: true, message: () => `the operations cost what ${file} has` };
  },
};

export interface BaselineOptions {
  /** Whether to keep cycles of the processor and duration as well: they change with every change of the model's timing. Default false. */
  readonly times?: boolean;
}

declare module 'vitest' {
  // The type parameters are those of vitest's declaration: declarations of one interface must have the same.
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> {
    /** The operation, or each of a list, costs exactly this; figures that the budget omits are not checked. */
    toCost(budget: Budget): R;
    /** The operation, or each of a list, costs no more than this. */
    toCostAtMost(budget: Budget): R;
    /** All operations cost what the file has, next to the test's; `vitest -u` writes it. */
    toMatchBaseline(file: string, options?: BaselineOptions): T extends never ? never : Promise<void>;
  }
}
