import { describe, expect, it } from 'vitest';
import { WalkSlots } from './walk-slots.ts';

describe('the slots of the page walker', () => {
  it('carry out two walks at a time: a third waits for the end of the first', () => {
    const slots = new WalkSlots(2, 100);
    expect([slots.take(0), slots.take(30)]).toEqual([100, 100]);
    // Free at 100 and at 130.
    expect([slots.take(40), slots.take(40)]).toEqual([60 + 100, 90 + 100]);
    // Free at 200 and at 230.
    expect(slots.take(205)).toBe(100);
    expect(slots.take(205)).toBe(25 + 100);
  });

  it('keep their instants in a new epoch, and none after a reset', () => {
    const slots = new WalkSlots(1, 100);
    slots.take(1000);
    slots.rebase(900);
    expect(slots.inspect()).toEqual({ slotsFreePs: [200] });
    expect(slots.take(150)).toBe(50 + 100);
    slots.reset();
    expect(slots.take(0)).toBe(100);
  });
});
