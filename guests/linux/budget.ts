/**
 * Costs of a guest's commands at its devices, and budgets that limit them.
 *
 *     {
 *       "schema": "hca-guest-budget/1",
 *       "tolerance": 0.05,                          a figure may exceed its budget by this share; left out: 0
 *       "runs": [{
 *         "run": "ib_write_bw …",                   as --run has it
 *         "hcas": [{ "mmioWrites": 5011, "interrupts": 4, "toHost.wqeRead": 626 }]
 *       }]
 *     }
 *
 * A figure that the budget leaves out is not checked. The figures of a command are the counts of its devices from its beginning
 * to its end, regardless of the process in the guest that caused it; the guest's pace is the computer's, so figures of programs
 * that sleep differ from run to run.
 */
import { readFileSync } from 'node:fs';
import { ConfigurationError } from '../../base/index.ts';
import { tableOf } from '../../explain/text/table.ts';
import { trafficClassNames } from '../../hw/dma/index.ts';
import type { ServedNodeReport } from '../serve/index.ts';

const budgetSchema = 'hca-guest-budget/1';
/** Version of a written budget. */
const usualTolerance = 0.05;

/**
 * Figures by name: `mmioWrites` and `mmioReads` (stores and loads of the guest in the device's BARs), `interrupts`
 * (messages, and assertions of the pin), `commands`, `tlpsToDevice`, `tlpsToHost`, and TLPs by class as in the report,
 * `toDevice.doorbell`, `toHost.wqeRead`.
 */
export type GuestFigures = Readonly<Record<string, number>>;

/** Every valid name: a misspelt one would count as 0, and hold indefinitely. */
const figureNames: ReadonlySet<string> = new Set([
  ...['mmioWrites', 'mmioReads', 'interrupts', 'commands', 'tlpsToDevice', 'tlpsToHost'],
  ...['toDevice', 'toHost'].flatMap((direction) => trafficClassNames.map((name) => `${direction}.${name}`)),
]);

/** Cost of one command. */
export interface RunCost {
  /** The command as given to `--run`. */
  readonly run: string;
  /** Figures by HCA. */
  readonly hcas: readonly GuestFigures[];
}

/** A file of budgets. */
export interface GuestBudget {
  readonly schema: typeof budgetSchema;
  /** Share by which a figure may exceed its budget. */
  readonly tolerance?: number;
  readonly runs: readonly RunCost[];
}

/** A figure next to its budget. */
export interface BudgetRow {
  readonly run: string;
  readonly hca: number;
  readonly figure: string;
  readonly budget: number;
  readonly counted: number;
  readonly holds: boolean;
}

/** A device's counts so far. */
export function figuresOf({ accesses, interrupts, intx, pcie, hca }: ServedNodeReport): GuestFigures {
  const bars = [...Object.values(accesses.registers), ...Object.values(accesses.doorbells)];
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const classes = (['toDevice', 'toHost'] as const).flatMap((direction) =>
    Object.entries(pcie[direction].classes).map(
      ([name, { tlps }]) => [`${direction}.${name}`, tlps] as const,
    ),
  );
  return {
    mmioWrites: sum(bars.map(({ writes }) => writes)),
    mmioReads: sum(bars.map(({ reads }) => reads)),
    interrupts: sum(interrupts.map(({ delivered }) => delivered)) + intx.asserted,
    commands: sum(Object.values(hca.commands).map(({ count }) => count)),
    tlpsToDevice: pcie.toDevice.total.tlps,
    tlpsToHost: pcie.toHost.total.tlps,
    ...Object.fromEntries(classes),
  };
}

/** Counts between two readings of one device; zeros are omitted. */
export function figuresBetween(before: GuestFigures, after: GuestFigures): GuestFigures {
  const differences = Object.entries(after).map(
    ([name, value]) => [name, value - (before[name] ?? 0)] as const,
  );
  return Object.fromEntries(differences.filter(([, value]) => value !== 0));
}

/** Linux checks the device's error buffer every few seconds; a short command without such a check is a matter of luck. */
const byTime: readonly string[] = ['mmioReads', 'toDevice.register', 'toHost.register'];
const heldAtZero = Object.fromEntries(
  [...figureNames].filter((name) => !byTime.includes(name)).map((name) => [name, 0]),
);

/** Counts in the form of a budget, ready to be written: uncounted figures have the limit 0, e.g. interrupts of a polling program. */
export const budgetOf = (runs: readonly RunCost[]): GuestBudget => ({
  schema: budgetSchema,
  tolerance: usualTolerance,
  runs: runs.map(({ run, hcas }) => ({
    run,
    hcas: hcas.map((figures) => ({ ...heldAtZero, ...figures })),
  })),
});

/**
 * @param commands that will run: they must be the budget's own, in order, so that each has a budget
 * @param hcaCount number of HCAs: a nonexistent HCA would count 0, which always holds
 * @throws ConfigurationError for a file that cannot be read or is not a budget, with the position of the error, and for other
 *   commands
 */
export function readBudget(file: string, commands: readonly string[], hcaCount: number): GuestBudget {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ConfigurationError('--budget', file, `a JSON file (${(error as Error).message})`);
  }
  const refuse = (place: string, value: unknown, range: string): never => {
    throw new ConfigurationError(`${file}: ${place}`, JSON.stringify(value), range);
  };
  if (!isRecord(content)) return refuse('it', content, 'an object');
  const { schema, tolerance = 0, runs } = content;
  if (schema !== budgetSchema) return refuse('schema', schema, `"${budgetSchema}"`);
  if (typeof tolerance !== 'number' || !(tolerance >= 0))
    return refuse('tolerance', tolerance, 'a number from 0');
  if (!Array.isArray(runs) || runs.length === 0) return refuse('runs', runs, 'a list that is not empty');
  for (const [index, entry] of (runs as unknown[]).entries()) {
    const place = `runs[${index}]`;
    if (!isRecord(entry) || typeof entry['run'] !== 'string')
      return refuse(place, entry, 'an object with the text of --run');
    const { hcas } = entry;
    if (!Array.isArray(hcas) || hcas.length > hcaCount)
      return refuse(`${place}.hcas`, hcas, `a list of figures of at most ${hcaCount}, as there are HCAs`);
    for (const [hca, figures] of (hcas as unknown[]).entries()) {
      if (!isRecord(figures)) return refuse(`${place}.hcas[${hca}]`, figures, 'an object of figures');
      for (const [name, value] of Object.entries(figures)) {
        if (!figureNames.has(name))
          return refuse(`${place}.hcas[${hca}]`, name, `figures of: ${[...figureNames].join(', ')}`);
        if (!Number.isSafeInteger(value) || (value as number) < 0)
          return refuse(`${place}.hcas[${hca}].${name}`, value, 'a whole number from 0');
      }
    }
  }
  const budget = content as unknown as GuestBudget;
  const held = JSON.stringify(budget.runs.map(({ run }) => run));
  if (held !== JSON.stringify(commands))
    throw new ConfigurationError(
      '--run',
      JSON.stringify(commands),
      `the commands of ${file} in their order: ${held}`,
    );
  return budget;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Each figure of a budget next to its count, for the commands that have run. */
export function heldToBudget({ runs, tolerance = 0 }: GuestBudget, costs: readonly RunCost[]): BudgetRow[] {
  return costs.flatMap((cost, at) =>
    runs[at]!.hcas.flatMap((figures, hca) =>
      Object.entries(figures).map(([figure, most]) => {
        const counted = cost.hcas[hca]?.[figure] ?? 0;
        return {
          run: cost.run,
          hca,
          figure,
          budget: most,
          counted,
          holds: counted <= most * (1 + tolerance),
        };
      }),
    ),
  );
}

/** Rows that exceed their budget, one line each. */
export const budgetFaultsOf = (rows: readonly BudgetRow[]): string[] =>
  rows
    .filter(({ holds }) => !holds)
    .map(
      ({ run, hca, figure, budget, counted }) =>
        `over budget: ${figure} of HCA ${hca}: ${counted}, budget ${budget}: ${run}`,
    );

/** Formats the budget for a terminal, without the many rows whose limit and count are 0. */
export const budgetTable = (rows: readonly BudgetRow[]): string =>
  tableOf(
    'Budget: what each command cost at most, and what it cost',
    ['command', 'hca', 'figure', 'budget', 'counted', ''],
    rows
      .filter(({ budget, counted }) => budget > 0 || counted > 0)
      .map(({ run, hca, figure, budget, counted, holds }) => [
        run.length > commandCharacters ? `${run.slice(0, commandCharacters - 1)}…` : run,
        hca,
        figure,
        budget,
        counted,
        holds ? '' : 'OVER',
      ]),
  );

const commandCharacters = 32;
