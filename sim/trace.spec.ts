import { describe, expect, it } from 'vitest';
import { type TraceHook, TraceRing } from './trace.ts';

class Watched {
  traced: TraceHook | undefined;

  happen(instantPs: number, what: number): void {
    this.traced?.(instantPs, what, instantPs * 2, -1);
  }
}

describe('trace ring', () => {
  it('sees nothing until it is hooked in, then everything in order', () => {
    const watched = new Watched();
    const ring = new TraceRing(8);
    const ticked = ring.numberOf('ticked');
    watched.happen(1, ticked);
    watched.traced = ring.hook;
    watched.happen(2, ticked);
    watched.happen(3, ring.numberOf('rang'));
    watched.traced = undefined;
    watched.happen(4, ticked);
    expect([...ring.entries()]).toEqual([
      { instantPs: 2, what: 'ticked', a: 4, b: -1 },
      { instantPs: 3, what: 'rang', a: 6, b: -1 },
    ]);
  });

  it('keeps the last entries and counts how many were lost', () => {
    const ring = new TraceRing(4);
    const what = ring.numberOf('x');
    for (let ps = 0; ps < 11; ps++) ring.hook(ps, what, 0, 0);
    expect([...ring.entries()].map(({ instantPs }) => instantPs)).toEqual([7, 8, 9, 10]);
    expect(ring.droppedCount).toBe(7);
  });

  it('gives one number to one name, and refuses entries under no name', () => {
    const ring = new TraceRing(4);
    expect(ring.numberOf('x')).toBe(ring.numberOf('x'));
    expect(ring.numberOf('y')).not.toBe(ring.numberOf('x'));
    ring.hook(0, 7, 0, 0);
    expect(() => [...ring.entries()]).toThrow('what of a trace entry');
  });

  it('refuses a capacity that is no power of two', () => {
    expect(() => new TraceRing(6)).toThrow('capacity of a trace ring');
  });
});
