import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BlockAccount, stallReasons } from './block-account.ts';

const REASONS = stallReasons('credits', 'tags');

const total = (account: BlockAccount): number =>
  account.busyCycles + account.idleCycles + account.stalledCycles.reduce((sum, cycles) => sum + cycles, 0);

it('numbers stall reasons in the order of their names, and reports them by name', () => {
  expect(REASONS).toEqual({ credits: 0, tags: 1 });
  const account = new BlockAccount('engine', REASONS);
  account.stall(0, REASONS.tags);
  account.close(7);
  expect(account.stallReasons).toEqual(['credits', 'tags']);
  expect([...account.stalledCycles]).toEqual([0, 7]);
});

describe('block account', () => {
  it('can be read in mid-run, also during work, without an effect', () => {
    const notified = new BlockAccount('block', stallReasons('space'));
    const untold = new BlockAccount('block', stallReasons('space'));
    for (const account of [notified, untold]) {
      account.serve(10, 100);
      if (account === notified)
        expect(notified.closedAt(30)).toMatchObject({ busyCycles: 20, idleCycles: 10 });
      account.stall(120, 0);
      if (account === notified) expect([...notified.closedAt(150).stalledCycles]).toEqual([30]);
      account.serve(160, 5);
      account.close(200);
    }
    expect([
      notified.busyCycles,
      notified.idleCycles,
      ...notified.stalledCycles,
      notified.overlapCount,
    ]).toEqual([105, 55, 40, 0]);
    expect([untold.busyCycles, untold.idleCycles, ...untold.stalledCycles]).toEqual([105, 55, 40]);
  });

  it('counts busy, stalled by reason and idle cycles separately', () => {
    const account = new BlockAccount('engine', REASONS);
    account.serve(10, 4); // idle 0–10, busy 10–14
    account.stall(16, 1); // idle 14–16
    account.stall(20, 0); // tags 16–20
    account.rest(25); // credits 20–25
    account.serve(30, 2); // idle 25–30, busy 30–32
    account.close(40); // idle 32–40
    expect(account.busyCycles).toBe(4 + 2);
    expect(account.idleCycles).toBe(10 + 2 + 5 + 8);
    expect([...account.stalledCycles]).toEqual([5, 4]);
    expect(total(account)).toBe(40);
  });

  it('starts a stall that is noticed during work when that work ends', () => {
    const account = new BlockAccount('engine', REASONS);
    account.serve(0, 10);
    account.stall(3, 0);
    expect(account.freeCycle).toBe(10);
    account.serve(12, 1);
    expect(account.stalledCycles[0]).toBe(2);
    expect(account.overlapCount).toBe(0);
  });

  it('cuts work that outlasts the run', () => {
    const account = new BlockAccount('engine', REASONS);
    account.serve(5, 100);
    account.close(50);
    expect([account.idleCycles, account.busyCycles]).toEqual([5, 45]);
  });

  it('continues after a close as if there had been none', () => {
    const account = new BlockAccount('engine', REASONS);
    account.stall(5, 0);
    account.close(8);
    account.serve(20, 1);
    expect([account.idleCycles, account.stalledCycles[0]]).toEqual([5, 15]);
  });

  it('counts work started before the previous one had ended: the sum alone would not show it', () => {
    const account = new BlockAccount('engine', REASONS);
    account.serve(0, 10);
    account.serve(4, 10);
    account.close(20);
    // 10 + 10 busy, 6 idle after cycle 14, and the 6 cycles counted twice taken from idleness.
    expect([account.busyCycles, account.idleCycles, total(account)]).toEqual([20, 0, 20]);
    expect(account.overlapCount).toBe(1);
  });

  it('tiles the elapsed cycles, for any events in any order', () => {
    const happening = fc.record({
      afterCycles: fc.nat(20),
      kind: fc.constantFrom('serve', 'stall', 'rest'),
      number: fc.nat(10),
    });
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 60 }), fc.nat(50), (happenings, tail) => {
        const account = new BlockAccount('engine', REASONS);
        let cycle = 0;
        for (const { afterCycles, kind, number } of happenings) {
          cycle += afterCycles;
          if (kind === 'serve') {
            cycle = Math.max(cycle, account.freeCycle);
            account.serve(cycle, number);
          } else if (kind === 'stall') account.stall(cycle, number & 1);
          else account.rest(cycle);
        }
        account.close(cycle + tail);
        expect(total(account)).toBe(cycle + tail);
        expect(account.overlapCount).toBe(0);
        expect(account.idleCycles).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
