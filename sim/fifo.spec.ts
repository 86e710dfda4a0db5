import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from './fifo.ts';

describe('fifo', () => {
  it('returns entries in the order in which they were pushed, like an array', () => {
    const operation = fc.oneof(fc.record({ push: fc.double({ noNaN: true }) }), fc.constant('pop' as const));
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(operation, { maxLength: 100 }),
        (capacity, operations) => {
          const fifo = new Fifo({ name: 'test', capacity: capacity, whenFull: 'the test fails' });
          const reference: number[] = [];
          const cycles: number[] = [];
          for (const [cycle, act] of operations.entries()) {
            if (act === 'pop') {
              if (reference.length === 0) continue;
              expect(fifo.pop()).toBe(reference.shift());
              cycles.shift();
            } else if (reference.length < capacity) {
              fifo.push(act.push, cycle);
              reference.push(act.push);
              cycles.push(cycle);
            }
            expect(fifo.count).toBe(reference.length);
            expect(fifo.isEmpty).toBe(reference.length === 0);
            expect(fifo.isFull).toBe(reference.length === capacity);
            expect(fifo.headCycle).toBe(cycles[0] ?? Number.POSITIVE_INFINITY);
            if (reference.length > 0) expect(fifo.head).toBe(reference[0]);
          }
        },
      ),
    );
  });

  it('keeps the order while its ring grows, for any start of the ring, up to the capacity and beyond it when enlarged', () => {
    const fifo = new Fifo({ name: 'test', capacity: 300, whenFull: 'the test fails' });
    let pushed = 0;
    let popped = 0;
    const push = (): void => fifo.push(pushed, 10 * pushed++);
    // 40 entries pass through, so that the ring begins at its 40th slot; then it grows twice.
    for (; pushed < 2; ) push();
    for (let turn = 0; turn < 40; turn++) {
      push();
      expect(fifo.pop()).toBe(popped++);
    }
    while (!fifo.isFull) push();
    expect(() => push()).toThrow('push into a full fifo: test has 300 places');
    pushed--;
    fifo.enlarge(301);
    push();
    expect(fifo.values).toEqual(Array.from({ length: 301 }, (_, index) => popped + index));
    while (!fifo.isEmpty) {
      expect(fifo.headCycle).toBe(10 * popped);
      expect(fifo.pop()).toBe(popped++);
    }
  });

  it('reports the cycle from which its head can be seen', () => {
    const fifo = new Fifo({ name: 'test', capacity: 2, whenFull: 'the test fails' });
    expect(fifo.headCycle).toBe(Number.POSITIVE_INFINITY);
    fifo.push(7, 12);
    fifo.push(8, 15);
    expect(fifo.headCycle).toBe(12);
    fifo.pop();
    expect(fifo.headCycle).toBe(15);
  });

  it('rejects a push when full, and accepts one after a pop or a clear', () => {
    const fifo = new Fifo({ name: 'test', capacity: 1, whenFull: 'the test fails' });
    fifo.push(1, 0);
    expect(() => fifo.push(2, 0)).toThrow('push into a full fifo: test has 1 place');
    fifo.pop();
    fifo.push(3, 0);
    fifo.clear();
    expect(fifo.isEmpty).toBe(true);
    fifo.push(4, 0);
    expect(fifo.head).toBe(4);
  });
});
