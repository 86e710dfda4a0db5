import { describe, expect, it } from 'vitest';
import { bar0 } from '../../abi/bar-map.ts';
import { AccessCounters } from './access-counters.ts';

const uarAreaBytes = 8 << 20;

describe('accesses of a guest', () => {
  it('to offsets without a register are listed by offset, others are not', () => {
    const counters = new AccessCounters(uarAreaBytes);
    counters.countRegister(bar0.registers.hcr.offset, true);
    counters.countRegister(0xf_0044, true);
    counters.countRegister(0xf_0044, false);
    counters.countRegister(0xf_0044, false);
    counters.countDoorbell(5 * 4096 + 0x14, true);
    counters.countDoorbell(5 * 4096 + 0xffc, true);
    counters.countDoorbell(7 * 4096 + 0xffc, false);
    expect(counters.unknown()).toEqual({
      'BAR0 0xf0044': { reads: 2, writes: 1 },
      'BAR2 UAR page offset 0xffc': { reads: 1, writes: 1 },
    });
  });

  it('to more such offsets than are listed are counted together', () => {
    const counters = new AccessCounters(uarAreaBytes);
    for (let at = 0; at < 70; at++) counters.countRegister(0x2_0000 + 4 * at, true);
    const unknown = counters.unknown();
    expect(Object.keys(unknown)).toHaveLength(65);
    expect(unknown['other places']).toEqual({ reads: 0, writes: 6 });
  });
});
