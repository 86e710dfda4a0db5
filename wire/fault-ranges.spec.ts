import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NEVER } from '../base/units.ts';
import { FaultRanges } from './fault-ranges.ts';

describe('ranges of faulty packets', () => {
  it('contain the same packets as a map of all of them, whenever they are added', () => {
    const range = fc.record({
      at: fc.integer({ min: 0, max: 40 }),
      first: fc.integer({ min: 1, max: 40 }),
      count: fc.integer({ min: 1, max: 10 }),
      value: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(range, { maxLength: 6 }), (ranges) => {
        const faults = new FaultRanges();
        const byPacket = new Map<number, number>();
        for (let packet = 1; packet <= 60; packet++) {
          for (const { at, first, count, value } of ranges) {
            if (at !== packet - 1) continue;
            faults.add(first, first + count - 1, value);
            for (let each = first; each < first + count; each++) byPacket.set(each, value);
          }
          // Like a port: a single comparison for packets without a fault.
          let met = 0;
          if (packet >= faults.next) {
            met = faults.valueOf(packet);
            faults.passed(packet);
          }
          expect(met).toBe(byPacket.get(packet) ?? 0);
        }
      }),
    );
  });

  it('have no end, or hold a billion packets, at the cost of one', () => {
    const faults = new FaultRanges();
    faults.add(3, 1e9, 1);
    faults.add(2e9, NEVER, 2);
    expect(faults.next).toBe(3);
    for (let packet = 3; packet < 100_000; packet++) {
      expect(faults.valueOf(packet)).toBe(1);
      faults.passed(packet);
      expect(faults.next).toBe(packet + 1);
    }
    faults.passed(1e9);
    expect(faults.next).toBe(2e9);
    faults.passed(3e9);
    expect(faults.next).toBe(3e9 + 1);
    expect(faults.valueOf(3e9 + 1)).toBe(2);
  });

  it('are rejected if no packet has such a number', () => {
    const faults = new FaultRanges();
    expect(() => faults.add(0, 4, 1)).toThrow('first packet of a fault');
    expect(() => faults.add(5, 4, 1)).toThrow('last packet of a fault');
  });
});
