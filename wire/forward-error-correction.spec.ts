/**
 * Expected times are computed by hand from the words of the codes: 5280 bits of rs-528, 5440 of rs-544, 2720 of rs-272,
 * 2112 of fire-code.
 */
import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../base/index.ts';
import { ethernetParameters } from './ethernet-parameters.ts';
import { ethernetLatencyPs } from './ethernet-sizing.ts';
import { type FecCode, fecLatencyPs } from './forward-error-correction.ts';
import { wireLatencyPs } from './link-rate.ts';
import { wireParameters } from './parameters.ts';

const ethernet = defaultsOf(ethernetParameters);
const wire = defaultsOf(wireParameters);

describe('forward error correction', () => {
  it.each<[FecCode, number, number]>([
    // 15 steps of 7 symbols, 31 of 15, and 6 to code and decode, of 1 ns.
    ['rs-528', 100, 51_200 + 15_000 + 6000],
    ['rs-528', 25, 204_800 + 15_000 + 6000],
    ['rs-544', 100, 51_200 + 31_000 + 6000],
    ['rs-272', 100, 25_600 + 15_000 + 6000],
    // 2112 bits at 25.78125 Gb/s.
    ['fire-code', 25, 81_920],
    ['none', 100, 0],
  ])(
    'IEEE 802.3 91: %s delays each frame at %i Gb/s by a word and its decoding',
    (fec, gigabitsPerSecond, delayPs) => {
      const latencyPs = (code: FecCode): number =>
        ethernetLatencyPs({ ...ethernet, gigabitsPerSecond, fec: code });
      expect(latencyPs(fec) - latencyPs('none')).toBe(delayPs);
    },
  );

  it.each([
    ['2', 51_200 + 37_000],
    ['4', 25_600 + 37_000],
  ] as const)('IBTA vol 2: rs-544 delays each packet of a %sX HDR link', (lanes, delayPs) => {
    const latencyPs = (fec: FecCode): number => wireLatencyPs({ ...wire, speed: 'HDR', lanes, fec });
    expect(latencyPs('rs-544') - latencyPs('none')).toBe(delayPs);
  });

  it('takes longer on a slower link', () => {
    expect(fecLatencyPs('rs-528', 10_312_500)).toBe(512_000 + 21_000);
  });
});
