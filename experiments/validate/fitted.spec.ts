import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fittedConnectx3 } from '../../machine/profile/fitted-connectx3.ts';
import { fittedParameters } from './fitted.ts';
import { isGiven, parsedMeasurements } from './measurements.ts';
import { signatureRows } from './signatures.ts';

const files = ['measurements.csv', 'measurements-second.csv', 'measurements-third.csv'];
const rows = files.flatMap((name) =>
  parsedMeasurements(readFileSync(new URL(`../../reference/${name}`, import.meta.url), 'utf8')),
);
const measured = new Map(rows.map(({ id, value }) => [id, value]));

/** More parameters would fit anything: of a card, and of each further card, host or device. */
const cardMax = 25;
const otherMax = 8;

describe('the fitted parameters', () => {
  const fitted = fittedParameters();

  it('are few, and each names existing rows, none of them kept back', () => {
    for (const [of, own] of Map.groupBy(fitted, (parameter) => parameter.of))
      expect(own.length, of).toBeLessThanOrEqual(of === 'ConnectX-3' ? cardMax : otherMax);
    for (const { name, rows: from } of fitted)
      for (const [id] of from.matchAll(/[A-JT]-\d{3}/g))
        expect(rows.filter((row) => row.id.startsWith(id)).map(isGiven), `${name}: ${id}`).toContain(true);
  });

  it('have equal values in the profile if they share one', () => {
    const card = fitted.filter(({ of }) => of === 'ConnectX-3');
    const shared = card.map(({ name }) => name.split(', ')).filter(({ length }) => length > 1);
    expect(shared).toHaveLength(7);
    for (const paths of shared) expect(new Set(paths.map((path) => fittedConnectx3[path])).size).toBe(1);
  });

  it('include every value of the card profile', () => {
    const names = fitted.flatMap(({ name }) => name.split(', '));
    const missing = Object.keys(fittedConnectx3).filter((path) => !names.includes(path));
    expect(missing).toEqual([]);
  });
});

it('signatures are arithmetic on the rows: 0.74 and 0.26 ns/B, 0.62 us of inline cliff', () => {
  const of = (id: string): number => measured.get(id)!;
  const rows = signatureRows(of, () => Number.NaN);
  expect(rows[0]!.slice(1)).toEqual(['0.742, 0.265', '–, –']);
  expect(rows[1]![1]).toBe('0.62, 0.08');
  for (const [shape, measuredText] of rows) expect(measuredText, shape).not.toContain('–');
});
