import { expect, it } from 'vitest';
import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import { rateText } from '../../explain/text/format.ts';
import { compareCells, compareHead } from './compare-table.ts';

it.each([
  [4.1e9, '4.10 GB/s'],
  [123e6, '123 MB/s'],
  [5.24e6, '5.2 MB/s'],
  [812_345, '812 kB/s'],
  [4096, '4.1 kB/s'],
  [16, '16 B/s'],
  [0, '0 B/s'],
])('%f bytes per second are %s: only a zero rate prints as zero', (rate, text) => {
  expect(rateText(rate)).toBe(text);
});

it('a host that works a little is distinguished from an idle one', () => {
  const spent = { interrupts: 0, systemCalls: 0, contextSwitches: 0, copies: 0, copiedBytes: 0, tlps: 0 };
  const hosts = [5_200, 0].map((cyclesTotal) => ({ ...spent, cyclesTotal, memory: { total: 0 } }));
  const row = { path: 'write', sizeBytes: 64, totalBytes: 1_000_000, latencyPs: 1, bytesPerSecond: 1, hosts };
  const cells = compareCells(row as unknown as CompareRow, false);
  expect(cells[compareHead(false).indexOf('cycles/byte')]).toBe('0.0052 / 0.00');
});
