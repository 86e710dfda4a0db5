import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../../base/parameter.ts';
import { linkParameters } from './link-parameters.ts';
import { LinkSerializer, linkRateOf } from './link-rate.ts';

const defaults = defaultsOf(linkParameters);
const serializer = (alignmentBytes = 4) => new LinkSerializer(linkRateOf(defaults), alignmentBytes, 8);

describe('the rate of a link', () => {
  it.each([
    // Gigatransfers × lanes × encoding × the share left by SKP ordered sets: 4 of 1538 symbols, 1 of 370 blocks.
    [1, 1, 2.5 * 0.8 * (1534 / 1538)],
    [2, 8, 5 * 8 * 0.8 * (1534 / 1538)],
    [3, 8, 8 * 8 * (128 / 130) * (369 / 370)],
    [4, 16, 16 * 16 * (128 / 130) * (369 / 370)],
    [5, 4, 32 * 4 * (128 / 130) * (369 / 370)],
  ])('PCIe 4.2: of generation %i x%i is %f Gb/s', (generation, lanes, gigabits) => {
    expect(linkRateOf({ ...defaults, generation, lanes }).gigabitsPerSecond).toBeCloseTo(gigabits, 9);
  });

  it('is exact in every generation and width: a ratio of integers that arithmetic holds', () => {
    for (const generation of [1, 2, 3, 4, 5]) {
      for (const lanes of [1, 2, 4, 8, 16]) {
        const rate = linkRateOf({ ...defaults, generation, lanes });
        expect(Number.isSafeInteger(rate.numeratorPs) && Number.isSafeInteger(rate.denominatorBytes)).toBe(
          true,
        );
        expect(() => new LinkSerializer(rate, 4, 8)).not.toThrow();
      }
    }
  });
});

describe('the serialiser', () => {
  it('puts a million packets end to end without drift', () => {
    const lanes = serializer();
    let endPs = 0;
    for (let packet = 0; packet < 1_000_000; packet++) endPs = lanes.sendTlp(0, 100);
    // 10^8 bytes × 8 × 10^6 × 130 × 370 / (64,000 × 128 × 369) ps, rounded up.
    const exact = (100_000_000n * 8_000_000n * 130n * 370n) / (64_000n * 128n * 369n);
    expect(endPs).toBe(Number(exact) + 1);
  });

  it('rounds every duration up like integer arithmetic', () => {
    for (const generation of [1, 2, 3, 4, 5]) {
      for (const lanes of [1, 2, 4, 8, 16]) {
        const rate = linkRateOf({ ...defaults, generation, lanes });
        const numerator = BigInt(rate.numeratorPs);
        const denominator = BigInt(rate.denominatorBytes);
        const stream = new LinkSerializer(rate, 4, 8);
        let wrong = 0;
        // Far beyond the denominator, after which the count restarts: every remainder of whole dwords occurs.
        for (let bytes = 4n; bytes < 5n * denominator; bytes += 4n) {
          const exactPs = (bytes * numerator + denominator - 1n) / denominator;
          if (stream.sendTlp(0, 4) !== Number(exactPs)) wrong++;
        }
        expect(wrong).toBe(0);
      }
    }
  });

  it('starts an idle packet at once and a queued one when the lanes are free', () => {
    const lanes = serializer();
    // 84 bytes take 10,692.96 ps.
    expect(lanes.sendTlp(1_000, 84)).toBe(11_693);
    expect(lanes.sendTlp(2_000, 84)).toBe(1_000 + 21_386);
    expect(lanes.sendTlp(50_000, 84)).toBe(60_693);
  });

  it('starts a TLP of a stream at an aligned byte, and lets a DLLP use the gap', () => {
    const lanes = serializer(16);
    // 84 bytes leave a gap of 12: the DLLP fits, the next TLP starts at byte 96.
    lanes.sendTlp(0, 84);
    // 96 bytes: 12,220.5 ps.
    expect(lanes.sendDllp(5_000)).toBe(12_221);
    // 96 + 84 = 180 bytes: 22,913.5 ps.
    expect(lanes.sendTlp(5_000, 84)).toBe(22_914);
    expect(lanes.paddingBytes).toBe(4);
    // A second DLLP in one gap of 12 does not fit: 192 + 8 = 200 bytes.
    lanes.sendDllp(5_000);
    expect(lanes.sendDllp(5_000)).toBe(25_460);
  });

  it('gives a DLLP the same time whether or not its end is needed', () => {
    const [asked, passed] = [serializer(16), serializer(16)];
    for (const atPs of [0, 100, 12_221, 50_000]) {
      for (const lanes of [asked, passed]) lanes.sendTlp(atPs, 84);
      for (const dllp of [1, 2, 3]) {
        asked.sendDllp(atPs + dllp);
        passed.passDllp(atPs + dllp);
        expect(passed.freePs).toBe(asked.freePs);
      }
    }
    // The last TLP's 96 bytes with its gap, and 8 each for the two DLLPs that do not fit into the gap: 112 bytes, 14,257.3 ps.
    expect(passed.freePs).toBe(50_000 + 14_258);
  });

  it('forgets the gap when the lanes have been idle', () => {
    const lanes = serializer(16);
    lanes.sendTlp(0, 84);
    expect(lanes.sendTlp(12_221, 84)).toBe(12_221 + 10_693);
    expect(lanes.paddingBytes).toBe(0);
  });
});
