import { describe, expect, it } from 'vitest';
import { tableOf } from './table.ts';

const head = ['name', 'first', 'second', 'third'];
const rows = [
  ['a', 1, 22, 333],
  ['bcd', 'x'.repeat(10), '', 4],
];
const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));

describe('a table', () => {
  it('is a single one if it fits, and outside a terminal', () => {
    const whole = tableOf('title', head, rows);
    // Four columns of 4, 10, 6 and 5, each with a space on either side, and five borders.
    expect(widest(whole)).toBe(4 + 10 + 6 + 5 + 4 * 2 + 5);
    expect(whole.split('\n')).toHaveLength(1 + 1 + 1 + 1 + 2 + 1);
    expect(tableOf('title', head, rows, 38)).toBe(whole);
  });

  it('is split between columns if it is too wide, and each part repeats the first one', () => {
    const cut = tableOf('title', head, rows, 37);
    expect(widest(cut)).toBeLessThanOrEqual(37);
    expect(cut.match(/│ bcd /g)).toHaveLength(2);
    expect(cut).toMatch(/│ name │ +first │ second │\n/);
    expect(cut).toMatch(/│ name │ third │\n/);
  });

  it('wraps a column that is too wide by itself, without losing a word', () => {
    const text = 'one two three four five six seven eight nine ten';
    const wrapped = tableOf('title', ['name', 'what it is'], [['a', text]], 30);
    expect(widest(wrapped)).toBeLessThanOrEqual(30);
    for (const word of text.split(' ')) expect(wrapped).toContain(word);
  });
});
