import { describe, expect, it } from 'vitest';
import { byteTimeOf } from './link-rate.ts';

/** Gigabits of data per second of a lane, from the InfiniBand Trade Association's roadmap and IBTA vol 2, 5.3 and 5.6. */
const lanes = [
  ['SDR', 2],
  ['DDR', 4],
  ['QDR', 8],
  ['FDR10', 10],
  ['FDR', 13.636_363],
  ['EDR', 25],
  ['HDR', 50],
  ['NDR', 100],
] as const;

describe.each(lanes)('a lane of %s', (speed, gigabits) => {
  it.each(['1', '4', '8', '12'] as const)('IBTA vol 2, 5.3: carries its data rate, %s times', (width) => {
    const { numeratorPs, denominator } = byteTimeOf({ speed, lanes: width });
    expect((8000 * denominator) / numeratorPs).toBeCloseTo(gigabits * Number(width), 4);
    // Serializer holds bytes of a packet × numerator in 31 bits.
    expect(8192 * numeratorPs).toBeLessThan(2 ** 31);
  });
});
