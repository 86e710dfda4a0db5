import { describe, expect, it } from 'vitest';
import { mpt } from '../../../abi/mpt.ts';
import { linesOf, placeOf, readGolden } from '../../../abi/testing/golden.ts';
import { fromHex } from '../../../base/bytes.ts';
import { mptFormat } from '../connectx3/mpt-entry.ts';
import { mttFormat } from '../connectx3/mtt-entry.ts';
import { KeyState } from './key-record.ts';
import {
  MptCache,
  MttCache,
  RIGHT_LOCAL_READ,
  RIGHT_LOCAL_WRITE,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
} from './translation-cache.ts';

const golden = readGolden();

const stateOf: Readonly<Record<number, number>> = {
  0: KeyState.VALID,
  3: KeyState.FREE,
  15: KeyState.SOFTWARE,
};

describe('MptCache', () => {
  it('sheet 5.4: takes from the MPT entries of a real driver what the access speaks of', () => {
    const lines = linesOf(golden, 'mpt').filter(({ source }) => source !== 'icm');
    expect(lines.length).toBeGreaterThan(10);
    for (const line of lines) {
      const cache = new MptCache(2, 1, 'lru', mptFormat);
      const bytes = fromHex(line.bytes, 64);
      cache.load(1, new DataView(bytes.buffer), 0);
      const name = placeOf(line);
      const fields = mpt.decode(bytes);
      // A window's entry is captured before it was bound with the key of the access.
      if (fields.isRegion === 1) expect(cache.key[1], name).toBe(Number(line.key));
      expect(cache.status[1], name).toBe(stateOf[fields.status]);
      expect(cache.pd[1], name).toBe(fields.pd);
      expect(cache.start[1], name).toBe(Number(fields.startAddress));
      expect(cache.length[1], name).toBe(Number(fields.lengthBytes));
      expect(cache.mttOffset[1], name).toBe(fields.mttAddress);
      expect(cache.pageBytes[1], name).toBe(2 ** fields.logPageSize);
      expect(cache.isRegion[1], name).toBe(fields.isRegion);
      expect(cache.isPhysical[1], name).toBe(fields.isPhysical);
    }
  });

  it('sheet 5.4: keeps each right apart', () => {
    const rights = [
      ['localReadEnabled', RIGHT_LOCAL_READ],
      ['localWriteEnabled', RIGHT_LOCAL_WRITE],
      ['remoteReadEnabled', RIGHT_REMOTE_READ],
      ['remoteWriteEnabled', RIGHT_REMOTE_WRITE],
      ['atomicEnabled', RIGHT_REMOTE_ATOMIC],
    ] as const;
    for (const [name, bit] of rights) {
      const cache = new MptCache(1, 1, 'lru', mptFormat);
      cache.load(0, new DataView(mpt.encode({ [name]: 1 }).buffer), 0);
      expect(cache.rights[0]).toBe(bit);
    }
  });
});

describe('MttCache', () => {
  it('sheet 5.6: takes eight page addresses of any size, and -1 for those that are not present', () => {
    const bytes = new Uint8Array(128);
    const view = new DataView(bytes.buffer);
    const pages = [0x1000n, 0xffff_f000n, 0x1_0000_0000n, 0xf_ffff_ffff_f000n, 0n];
    pages.forEach((page, index) => {
      view.setBigUint64(64 + index * 8, page | 1n);
    });
    view.setBigUint64(64 + 5 * 8, 0x2000n);
    const cache = new MttCache(4, 2, 'lru', mttFormat);
    cache.load(3, view, 64);
    expect([...cache.pages.subarray(24, 32)]).toEqual([...pages.map(Number), -1, -1, -1]);
  });
});
