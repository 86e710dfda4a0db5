/** Rules for every table of wires. */
import { expect, vi } from 'vitest';
import { type Block, listWires, type Wires } from './block.ts';

/**
 * Compares an assembly with its table: each block that has ports is in the table and is connected once, and every wire
 * leads to an existing block.
 * @param make builds the assembly and returns all its blocks by name
 * @param outside the objects that the blocks reach in addition to one another
 */
export function checkWires<B>(
  table: (blocks: B) => Wires<B>,
  make: () => object,
  outside: readonly string[],
): void {
  const portsOf = (blocks: object): [string, Required<Pick<Block, 'connect'>>][] =>
    Object.entries(blocks).filter(([, block]) => typeof block === 'object' && 'connect' in block);
  const kinds = new Set(portsOf(make()).map(([, block]) => Object.getPrototypeOf(block)));
  const spies = Array.from(kinds, (kind) => vi.spyOn(kind, 'connect'));
  const blocks = make();
  const connected = spies.flatMap(({ mock }) => mock.contexts);
  for (const spy of spies) spy.mockRestore();
  const counts = portsOf(blocks).map(([name, block]) => [
    name,
    connected.filter((one) => one === block).length,
  ]);
  const wires = listWires(table);
  const names = [...new Set(wires.map(({ block }) => block))];
  expect(Object.fromEntries(counts)).toEqual(Object.fromEntries(names.map((name) => [name, 1])));
  const places = new Set([...Object.keys(blocks), ...outside]);
  expect(wires.filter(({ to }) => !places.has(to.split('.')[0]!))).toEqual([]);
}
