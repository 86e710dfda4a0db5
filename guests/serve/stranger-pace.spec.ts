import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/index.ts';
import { servingParameters } from './parameters.ts';
import { StrangerPace } from './stranger-pace.ts';

const serving = { ...defaultsOf(servingParameters), strangerWaitingBytes: 1000, strangerHoldMs: 50 };

describe('the pace of a third-party endpoint', () => {
  it('lets time stand still while more than the bound waits, and reports for how long', () => {
    const pace = new StrangerPace(serving);
    expect(pace.holdMs(1000, 10)).toBe(0);
    expect(pace.holdMs(1001, 20)).toBe(50);
    expect(pace.holdMs(1500, 30)).toBe(40);
    expect(pace.holdMs(1000, 45)).toBe(0);
    expect(pace.counters).toEqual({ holds: 1, expiredHolds: 0, heldMs: 25 });
    expect(pace.holdMs(1001, 100)).toBe(50);
    expect(pace.counters).toEqual({ holds: 2, expiredHolds: 0, heldMs: 25 });
  });

  it('lets it pass after a limit, until at most the bound waits', () => {
    const pace = new StrangerPace(serving);
    expect(pace.holdMs(2000, 0)).toBe(50);
    expect(pace.holdMs(1900, 49)).toBe(1);
    expect(pace.holdMs(1800, 50)).toBe(0);
    expect(pace.holdMs(9000, 1000)).toBe(0);
    expect(pace.counters).toEqual({ holds: 1, expiredHolds: 1, heldMs: 50 });
    expect(pace.holdMs(900, 2000)).toBe(0);
    expect(pace.holdMs(2000, 3000)).toBe(50);
    expect(pace.counters).toEqual({ holds: 2, expiredHolds: 1, heldMs: 50 });
  });
});
