import { describe, expect, it } from 'vitest';
import { wrapped } from './output.ts';

describe('sentences on a terminal', () => {
  it('break between words, and continue on an indented line', () => {
    const line = 'Simulated 4.622 ms in 2.73 s: partition per-device, 4 threads, Node v24.21.0.';
    expect(wrapped(line, 40)).toBe(
      'Simulated 4.622 ms in 2.73 s: partition\n  per-device, 4 threads, Node v24.21.0.',
    );
    for (let columns = 20; columns < 90; columns++) {
      const lines = wrapped(`  ${line}\n${line}`, columns).split('\n');
      expect(lines.filter(({ length }) => length > columns)).toEqual([]);
      expect(lines.join(' ').split(/\s+/).join(' ').trim()).toBe(`${line} ${line}`);
    }
  });

  it('are unchanged if the width is unknown, in tables, and if a word is wider', () => {
    const row = `│ ${'a b '.repeat(40)}│`;
    expect(wrapped('a b '.repeat(40), Number.POSITIVE_INFINITY)).toBe('a b '.repeat(40));
    expect(wrapped(row, 80)).toBe(row);
    expect(wrapped('x'.repeat(100), 80)).toBe('x'.repeat(100));
  });
});
