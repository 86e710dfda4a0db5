import { expect, it } from 'vitest';
import { csvRecords } from './csv.ts';

const cellsOf = (text: string): (readonly string[])[] => csvRecords(text, 'f.csv').map(({ cells }) => cells);

it('RFC 4180: reads quoted commas, doubled marks and line breaks, and any end of line', () => {
  expect(cellsOf('a,"b,c",d\r\n"e ""f""",,"g\nh"\n')).toEqual([
    ['a', 'b,c', 'd'],
    ['e "f"', '', 'g\nh'],
  ]);
  expect(cellsOf('a,b\rc,d')).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

it('keeps empty cells, the first and the last as well, and leaves out empty lines', () => {
  expect(cellsOf(',a,\n\n , b ,""\n')).toEqual([
    ['', 'a', ''],
    ['', 'b', ''],
  ]);
  expect(cellsOf('')).toEqual([]);
  expect(csvRecords('a\n\n"b\nc"\nd', 'f.csv').map(({ line }) => line)).toEqual([1, 3, 5]);
});

it.each(['"a"b,c', 'a"b', 'a,"b'])('refuses %s with its line', (text) => {
  expect(() => csvRecords(`x,y\n${text}`, 'f.csv')).toThrow(/f\.csv line 2/);
});
