import { describe, expect, it } from 'vitest';
import { touchedDwords } from '../pcie/tlp/tlp.ts';
import { firstTlpBytes } from './split.ts';

describe('splitting', () => {
  it('PCIe 2.2.2, 2.2.7: never crosses 4 KiB, never exceeds the limit in dwords, and cuts no earlier than it must', () => {
    for (const limitBytes of [128, 256, 512]) {
      for (let address = 4096 - 520; address <= 4096 + 8; address++) {
        for (const lengthBytes of [1, 2, 3, 4, 127, 128, 129, 255, 256, 257, 511, 512, 513, 4096]) {
          const bytes = firstTlpBytes(address, lengthBytes, limitBytes);
          expect(bytes).toBeGreaterThan(0);
          expect(touchedDwords(address, bytes) * 4).toBeLessThanOrEqual(limitBytes);
          expect((address + bytes - 1) >> 12).toBe(address >> 12);
          const couldBeLonger =
            bytes < lengthBytes &&
            touchedDwords(address, bytes + 1) * 4 <= limitBytes &&
            (address + bytes) >> 12 === address >> 12;
          expect(couldBeLonger).toBe(false);
        }
      }
    }
  });

  it('works above 4 GiB', () => {
    expect(firstTlpBytes(2 ** 40 + 4095, 100, 256)).toBe(1);
    expect(firstTlpBytes(2 ** 52 + 1, 1000, 256)).toBe(255);
  });
});
