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

  it('gives its users room for as many slots as it has, when they are connected and when it has grown', () => {
    const table = new ContextTable<'QP', 'requester' | 'responses'>(64, 100);
    const told: string[] = [];
    table.connect({
      requester: { slotsGrown: (slotCount) => told.push(`requester ${slotCount}`) },
      responses: { slotsGrown: (slotCount) => told.push(`responses ${slotCount}`) },
    });
    for (let number = 0; number < 64; number++) table.allocate(number);
    expect(told).toEqual(['requester 64', 'responses 64']);
    const slot = table.allocate(64);
    expect(told.slice(2)).toEqual(['requester 100', 'responses 100']);
    expect([slot, table.slotCount, table.slotOf(3), table.slotOf(64)]).toEqual([64, 100, 3, 64]);
  });

  it('keeps what it has when it grows, by no more than a quarter once it is large', () => {
    const table = new ContextTable<'QP', 'requester'>(4, 1 << 17);
    const rooms: number[] = [];
    table.connect({ requester: { slotsGrown: (slotCount) => rooms.push(slotCount) } });
    for (let number = 0; number < 100_000; number++) {
      const slot = table.allocate(number);
      table.view.setInt32(slot * 4, ~number);
    }
    expect(rooms.slice(0, 7)).toEqual([64, 128, 256, 512, 1024, 1280, 1600]);
    expect(table.slotCount).toBeLessThanOrEqual(125_000);
    for (let number = 0; number < 100_000; number += 97)
      expect(table.view.getInt32(table.slotOf(number) * 4)).toBe(~number);
  });
});
