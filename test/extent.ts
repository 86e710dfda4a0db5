/**
 * How much of what takes long is run. `npm test` ends within a quarter of an hour; `npm run test:all` has besides it the specs that are
 * called `*.long.spec.ts`, the tests made by {@link itOfAll}, and all rows of {@link rowsOf}. What is left out is not there at all: a test
 * that is reported as skipped is a defect of the run.
 */
import { it } from 'vitest';

export const isAll = process.env['HCA_TEST_ALL'] === '1';

/** As `it`, where everything is run. */
export function itOfAll(name: string, test: () => Promise<void> | void, timeoutMs?: number): void {
  if (isAll) it(name, test, timeoutMs);
}

/** Rows of a table of like tests: the first always, the others where everything is run. */
export const rowsOf = <Row>(always: readonly Row[], ofAll: readonly Row[]): readonly Row[] =>
  isAll ? [...always, ...ofAll] : always;
