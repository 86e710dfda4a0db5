import { expect, it } from 'vitest';
import { SlToVlTable } from './sl-to-vl-table.ts';

it('IBTA 14.2.5.8: has two service levels to a byte, the first in the upper half', () => {
  const table = new SlToVlTable();
  const block = new Uint8Array(64);
  block.set([0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0xf7]);
  table.setBlock(block);
  expect(Array.from({ length: 16 }, (_, sl) => table.laneOf(sl))).toEqual([
    0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 15, 7,
  ]);
  table.setLane(0, 7);
  table.setLane(15, 3);
  const read = new Uint8Array(64);
  table.getBlock(read);
  expect([...read.subarray(0, 9)]).toEqual([0x71, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0xf3, 0]);
});

it('shares the bytes that it is given', () => {
  const bytes = new Uint8Array(8);
  new SlToVlTable(bytes).setLane(1, 5);
  expect(bytes[0]).toBe(5);
});
