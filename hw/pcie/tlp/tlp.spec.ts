import { describe, expect, it } from 'vitest';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  dataCreditsOf,
  dataDwordsOf,
  firstByteEnables,
  headerBytesOf,
  lastByteEnables,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  tlpBytesOf,
  touchedDwords,
} from './tlp.ts';

/** Numbers of the dwords that contain the bytes of a request, counted byte by byte. */
function dwordsByCounting(address: number, length: number): Set<number> {
  const touched = new Set<number>();
  for (let byte = 0; byte < length; byte++) touched.add(Math.floor((address + byte) / 4));
  return touched;
}

describe('the size of a TLP', () => {
  it('PCIe 2.2.5: counts every dword that the bytes touch, at every offset and length up to 4096', () => {
    for (let offset = 0; offset < 4; offset++) {
      for (let length = 1; length <= 4096; length++) {
        const expected = Math.floor((offset + length - 1) / 4) + 1;
        expect(touchedDwords(0x1000 + offset, length)).toBe(expected);
      }
    }
    for (const length of [1, 5, 63, 64, 255, 4096]) {
      expect(touchedDwords(0x7_0000_0ffd, length)).toBe(dwordsByCounting(0x7_0000_0ffd, length).size);
    }
  });

  it('PCIe 2.2.5: enables exactly the requested bytes in the first and last dword', () => {
    for (let offset = 0; offset < 4; offset++) {
      for (let length = 1; length <= 40; length++) {
        const address = 0x2000 + offset;
        const enabled: number[] = [];
        const dwords = touchedDwords(address, length);
        for (let dword = 0; dword < dwords; dword++) {
          const isLast = dword === dwords - 1;
          const mask =
            dword === 0 ? firstByteEnables(address, length) : isLast ? lastByteEnables(address, length) : 0xf;
          for (let byte = 0; byte < 4; byte++)
            if ((mask & (1 << byte)) !== 0) enabled.push(0x2000 + dword * 4 + byte);
        }
        expect(enabled).toEqual(Array.from({ length }, (_, at) => address + at));
        if (dwords === 1) expect(lastByteEnables(address, length)).toBe(0);
      }
    }
  });

  it('PCIe 2.2.5: includes one dword and no byte for a zero-length read', () => {
    expect(touchedDwords(0x1000, 0)).toBe(1);
    expect(firstByteEnables(0x1000, 0)).toBe(0);
    expect(lastByteEnables(0x1000, 0)).toBe(0);
  });

  it('PCIe 2.2: has a 3 DW header below 4 GiB and a 4 DW header above', () => {
    expect(headerBytesOf(MEMORY_WRITE, 0xffff_fffc)).toBe(12);
    expect(headerBytesOf(MEMORY_WRITE, 0x1_0000_0000)).toBe(16);
    expect(headerBytesOf(MEMORY_READ, 0x1_0000_0000)).toBe(16);
    expect(headerBytesOf(COMPLETION_DATA, 0x7f)).toBe(12);
    expect(headerBytesOf(CONFIG_WRITE, 0xffc)).toBe(12);
    expect(headerBytesOf(MESSAGE, 0)).toBe(16);
  });

  it.each([
    // A doorbell: one dword at a 32-bit address.
    [MEMORY_WRITE, 0xf000_0018, 4, 12 + 4],
    // A BlueFlame store above 4 GiB.
    [MEMORY_WRITE, 0x10_0000_0000, 64, 16 + 64],
    // 64 bytes from an odd address touch 17 dwords.
    [MEMORY_WRITE, 0x1001, 64, 12 + 68],
    [MEMORY_READ, 0x1000, 512, 12],
    [COMPLETION_DATA, 0x40, 256, 12 + 256],
    [COMPLETION, 0, 0, 12],
    [CONFIG_READ, 0x10, 4, 12],
    [CONFIG_WRITE, 0x10, 4, 12 + 4],
    [MESSAGE, 0, 0, 16],
  ])('of kind %i at %i with %i bytes is %i bytes', (kind, address, length, bytes) => {
    expect(tlpBytesOf(kind, address, length)).toBe(bytes);
  });

  it('PCIe 2.6.1: uses one data credit per 16 bytes begun, and none without payload', () => {
    expect(dataCreditsOf(dataDwordsOf(MEMORY_WRITE, 0x1000, 256))).toBe(16);
    expect(dataCreditsOf(dataDwordsOf(MEMORY_WRITE, 0x1001, 256))).toBe(17);
    expect(dataCreditsOf(dataDwordsOf(CONFIG_WRITE, 0x10, 4))).toBe(1);
    expect(dataCreditsOf(dataDwordsOf(MEMORY_READ, 0x1000, 4096))).toBe(0);
    expect(dataCreditsOf(dataDwordsOf(COMPLETION, 0, 0))).toBe(0);
  });
});
