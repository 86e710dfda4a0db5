import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fittedConnectx3 } from '../../machine/profile/fitted-connectx3.ts';
import { fittedParameters } from './fitted.ts';
import { parsedMeasurements } from './measurements.ts';
import { signatureRows } from './signatures.ts';

const text = readFileSync(new URL('../../reference/measurements.csv', import.meta.url), 'utf8');
const measured = new Map(parsedMeasurements(text).map(({ id, value }) => [id, value]));

/** More parameters would fit anything. */
const fittedMax = 25;

describe('the fitted parameters', () => {
  const fitted = fittedParameters();

  it('are few, and each names existing rows', () => {
    expect(fitted.length).toBeLessThanOrEqual(fittedMax);
    for (const { name, rows } of fitted)
      for (const [id] of rows.matchAll(/[A-J]-\d{3}/g))
        expect(
          [...measured.keys()].some((row) => row.startsWith(id)),
          `${name}: ${id}`,
        ).toBe(true);
  });

  it('have equal values in the profile if they share one', () => {
    const shared = fitted.map(({ name }) => name.split(', ')).filter(({ length }) => length > 1);
    expect(shared).toHaveLength(4);
    for (const paths of shared) expect(new Set(paths.map((path) => fittedConnectx3[path])).size).toBe(1);
  });

  it('include every value of the card profile except the size of the WQE cache, which is an estimate', () => {
    const names = fitted.flatMap(({ name }) => name.split(', '));
    const missing = Object.keys(fittedConnectx3).filter((path) => !names.includes(path));
    expect(missing).toEqual(['hca.blueFlameWqes']);
  });
});

it('signatures are arithmetic on the rows: 0.74 and 0.26 ns/B, 0.62 us of inline cliff', () => {
  const of = (id: string): number => measured.get(id)!;
  const rows = signatureRows(of, () => Number.NaN);
  expect(rows[0]!.slice(1)).toEqual(['0.742, 0.265', '–, –']);
  expect(rows[1]![1]).toBe('0.62, 0.08');
  for (const [shape, measuredText] of rows) expect(measuredText, shape).not.toContain('–');
});
