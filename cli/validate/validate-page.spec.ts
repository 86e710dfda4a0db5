import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { casesOf, groupsOf, parsedMeasurements } from '../../experiments/validate/index.ts';
import { judged } from '../../experiments/validate/validation.ts';
import { validatePage } from './validate-page.ts';

const file = new URL('../../reference/measurements.csv', import.meta.url);

it('has a line for each quantity that a source measured at one place, mean and median', () => {
  const cases = casesOf(parsedMeasurements(readFileSync(file, 'utf8'))).filter(
    ({ family }) => family.name === 'DMA read',
  );
  const results = cases.map((one) => judged(one, 500));
  const page = validatePage({ title: 't', command: 'c', version: '1' }, cases, results, groupsOf(results));
  for (const metric of ['average', 'median'])
    for (const of of ['simulated', 'measured']) expect(page).toContain(`DMA read, latency ${metric}, ${of}`);
  // measurements.csv I-008a and I-008b: 256 bytes, mean 630.6 ns, median 626 ns.
  expect(page.replaceAll(/<td [^>]*>/g, '<td>')).toMatch(
    /<th scope="row">256<\/th><td>500<\/td><td>630.6<\/td><td>500<\/td><td>626<\/td>/,
  );
});
