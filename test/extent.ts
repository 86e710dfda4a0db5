/**
 * Selects long tests. `npm test` ends within a quarter of an hour; `npm run test:all` also runs the specs named
 * `*.long.spec.ts`, the tests made by {@link itOfAll}, and all rows of {@link rowsOf}. Tests that are left out do not appear at
 * all: a test reported as skipped is a defect of the run.
 */
import { it } from 'vitest';

export const isAll = process.env['HCA_TEST_ALL'] === '1';

/** Like `it`, if everything is run. */
export function itOfAll(name: string, test: () => Promise<void> | void, timeoutMs?: number): void {
  if (isAll) it(name, test, timeoutMs);
}

/** Rows of a table of similar tests: the first always, the others if everything is run. */
export const rowsOf = <Row>(always: readonly Row[], ofAll: readonly Row[]): readonly Row[] =>
  isAll ? [...always, ...ofAll] : always;
