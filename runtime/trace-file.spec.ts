import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../base/assert.ts';
import { TraceFile } from './trace-file.ts';

describe('a trace file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hca-trace-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('keeps the beginning and the end, and never exceeds its size', () => {
    const file = join(folder, 'trace.log');
    const sink = new TraceFile(file, 4000);
    for (let line = 0; line < 1000; line++) sink.write(`${String(line).padStart(19)}\n`);
    sink.close();
    const parts = readdirSync(folder).sort();
    expect(parts.length).toBeLessThanOrEqual(4);
    expect(parts[0]).toBe('trace.log');
    const bytes = parts.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    expect(bytes).toBeLessThanOrEqual(4000);
    const numbers = parts
      .toSorted((left, right) => Number(left.split('.')[2] ?? 0) - Number(right.split('.')[2] ?? 0))
      .flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').map(Number));
    expect(numbers[0]).toBe(0);
    expect(numbers.at(-1)).toBe(999);
    expect(numbers).toEqual(numbers.toSorted((left, right) => left - right));
  });

  it('removes the parts of an older trace of its name', () => {
    const file = join(folder, 'trace.log');
    new TraceFile(file, 4000).close();
    expect(readdirSync(folder)).toEqual(['trace.log']);
  });

  it('is rejected if it cannot be written', () => {
    expect(() => new TraceFile(join(folder, 'none', 'trace.log'), 4000)).toThrow(ConfigurationError);
  });
});
