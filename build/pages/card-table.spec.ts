import { describe, expect, it, vi } from 'vitest';
import {
  atomicLine,
  bandwidthRow,
  bandwidthSizes,
  cardPart,
  cardRows,
  latencyRow,
  latencySizes,
} from './card-table.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Some rows of each table; `npm run docs` writes all. */
describe('docs/reference/timing.md compared with the card (else: npm run docs)', () => {
  const lines = cardPart().split('\n');

  it.each([2, 256, 4096])('has the latencies that perf measures with %i bytes', async (size) => {
    expect(lines).toContain(await latencyRow(size));
  });

  it('has the rates that perf measures with 2048 bytes, and those of atomics', async () => {
    expect(lines).toContain(await bandwidthRow(2048));
    expect(lines).toContain(await atomicLine());
  });

  it('has a row for each size, with the figures of the card from their source', () => {
    const sizes = lines.flatMap((line) => /^\| (\d+) \|/.exec(line)?.slice(1) ?? []).map(Number);
    expect(sizes).toEqual([...latencySizes, ...bandwidthSizes]);
    // measurements.csv.
    const of = (workload: string, sizeBytes: number, metric: string) =>
      cardRows().find(
        (row) => row.workload === workload && row.sizeBytes === sizeBytes && row.metric.startsWith(metric),
      )?.value;
    expect(of('ib_write_lat', 2, 'latency t_typical')).toBe(0.98);
    expect(of('ib_write_bw', 2, 'message rate')).toBe(5.467546);
    expect(of('ib_write_bw', 512, 'bandwidth')).toBe(2607.23);
  });
});
