import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { laterText } from './later-rows.ts';
import { parsedMeasurements } from './measurements.ts';
import { casesOf, judged } from './validation.ts';

const file = new URL('../../reference/measurements-third.csv', import.meta.url);
const cases = casesOf(parsedMeasurements(readFileSync(file, 'utf8')));

/** The lines of the text of these rows if each is simulated with an error. */
const linesOf = (ids: readonly string[], error: number): string[] => {
  const chosen = cases.filter(({ row }) => ids.includes(row.id));
  return laterText(
    chosen,
    chosen.map((one) => judged(one, one.row.value * (1 + error))),
  ).split('\n');
};

it('the rows found later are told by source and by family, with those that did not run', () => {
  const { row } = cases.find(({ row }) => row.nic.includes('ConnectX-4'))!;
  const lines = linesOf(['T-001', 'T-002', row.id], 0.5);
  const source = cases.find(({ row }) => row.id === 'T-001')!.row.source;
  expect(lines.find((line) => line.startsWith(`| ${source} | 2 |`))).toMatch(
    /\| 2 \| 0 \| 0 of 2, 0\.0 % \| 50 % \|/,
  );
  expect(lines.find((line) => line.startsWith(`| ${row.source} |`))).toContain('| 1 | 1 | – | – | – |');
  expect(lines).toContain(`| ${source} | write bandwidth | 0 of 1 | +50 % |`);
  expect(lines.filter((line) => line.includes('perftest on a ConnectX-4'))).toEqual([]);
});

it('are none among rows that were known before', () => {
  expect(linesOf([], 0)).toEqual(['None.']);
});
