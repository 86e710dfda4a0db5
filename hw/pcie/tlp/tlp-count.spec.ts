import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TrafficCount } from './tlp-count.ts';

describe('the statistics of TLPs', () => {
  it('keep each traffic class separate, for any order of its TLPs, one by one or several at once', () => {
    const tlp = fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 9 }), fc.nat(4096), fc.boolean());
    fc.assert(
      fc.property(fc.array(tlp, { maxLength: 40 }), (tlps) => {
        const statistics = new TrafficCount(5);
        const expected = [0, 1, 2, 3, 4].map(() => [0, 0, 0]);
        for (const [trafficClass, count, bytes, isAtOnce] of tlps) {
          const sums = expected[trafficClass]!;
          if (isAtOnce) statistics.addAll(trafficClass, count, count * (bytes + 20), count * bytes);
          else for (let one = 0; one < count; one++) statistics.add(trafficClass, bytes + 20, bytes);
          sums[0]! += count;
          sums[1]! += count * (bytes + 20);
          sums[2]! += count * bytes;
        }
        expect([...statistics.tlps]).toEqual(expected.map(([sum]) => sum));
        expect([...statistics.linkBytes]).toEqual(expected.map(([, sum]) => sum));
        expect([...statistics.payloadBytes]).toEqual(expected.map(([, , sum]) => sum));
      }),
    );
  });
});
