import { describe, expect, it } from 'vitest';
import { QueuePair } from './queue-pair.ts';
import { ResponderResources } from './responder-resources.ts';

describe('the ring of QPs with something to answer', () => {
  const resources = new ResponderResources(Array.from({ length: 4 }, (_, slot) => new QueuePair(slot)));
  const { rows } = resources;
  const enter = (...slots: number[]): void => {
    for (const slot of slots) resources.enter(rows[slot]!);
  };
  const takeAll = (): number[] => {
    const slots: number[] = [];
    while (resources.waitingCount > 0) slots.push(resources.leave().pair.slot);
    return slots;
  };

  it('gives them back in the order in which they came', () => {
    enter(2, 0, 3);
    expect(rows.map(({ isInRing }) => isInRing)).toEqual([1, 0, 1, 1]);
    const first = resources.leave();
    expect([first.pair.slot, first.isInRing]).toEqual([2, 0]);
    resources.enter(first);
    enter(1);
    expect(takeAll()).toEqual([0, 3, 2, 1]);
  });

  it('begins anew when it has been empty, and when all has been dropped', () => {
    enter(1);
    expect(takeAll()).toEqual([1]);
    enter(3, 2);
    resources.reset();
    expect([resources.waitingCount, rows[3]!.isInRing]).toEqual([0, 0]);
    enter(0, 3);
    expect(takeAll()).toEqual([0, 3]);
  });
});
