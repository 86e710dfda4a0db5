import { expect, it } from 'vitest';
import { rateText } from './compare-table.ts';

it.each([
  [4.1e9, '4.10 GB/s'],
  [123e6, '123 MB/s'],
  [5.24e6, '5.2 MB/s'],
  [812_345, '812 kB/s'],
  [4096, '4.1 kB/s'],
  [16, '16 B/s'],
  [0, '0 B/s'],
])('%f bytes a second are %s: no rate is nothing but nothing', (rate, text) => {
  expect(rateText(rate)).toBe(text);
});
