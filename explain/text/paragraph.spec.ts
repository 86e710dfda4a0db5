import { expect, it } from 'vitest';
import { paragraph } from './paragraph.ts';

const word = 'x'.repeat(59);

it('breaks lines after at most 120 characters', () => {
  expect(paragraph(`${word} ${word}`)).toBe(`${word} ${word}`);
  expect(paragraph(`${word} ${word} y`).split('\n')).toEqual([`${word} ${word}`, 'y']);
  expect(paragraph('a\nb  c')).toBe('a b c');
});

it('indents an item of a list', () => {
  expect(paragraph(`${word} ${word}`, '- ').split('\n')).toEqual([`- ${word}`, `  ${word}`]);
});

it('keeps inline code and links whole', () => {
  expect(paragraph(`${word}${word} \`a b\``).split('\n')).toEqual([`${word}${word}`, '`a b`']);
  expect(paragraph(`${word}${word} [a b](c.md), d`).split('\n')).toEqual([
    `${word}${word}`,
    '[a b](c.md), d',
  ]);
});
