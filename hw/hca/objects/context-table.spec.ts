import { describe, expect, it } from 'vitest';
import { ContextTable } from './context-table.ts';

describe('ContextTable', () => {
  it('finds the slot of a number, whatever came and went since it was last asked for', () => {
    const table = new ContextTable(64, 2);
    const large = 1 << 20;
    expect([table.slotOf(7), table.slotOf(7), table.slotOf(large)]).toEqual([-1, -1, -1]);
    const slot = table.allocate(7);
    expect([table.slotOf(7), table.slotOf(7)]).toEqual([slot, slot]);
    const other = table.allocate(large);
    expect([table.slotOf(large), table.slotOf(7)]).toEqual([other, slot]);
    table.free(slot);
    expect([table.slotOf(7), table.slotOf(large)]).toEqual([-1, other]);
    expect(table.allocate(9)).toBe(slot);
    expect([table.slotOf(9), table.allocate(10)]).toEqual([slot, -1]);
  });
});
