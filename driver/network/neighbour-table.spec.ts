import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import type { Cpu } from '../platform.ts';
import { NeighbourTable } from './neighbour-table.ts';

const cpu = undefined as unknown as Cpu;
const peer = fromHex('00000000000000000000ffff0a000002');
const [mac, otherMac] = [fromHex('0002c9654321'), fromHex('0002c9777777')];
const reply = { isSolicited: true, overrides: false };
const second = 1e12;

/** A table whose time the spec lets pass; who is asked for, and when, in seconds. */
function bench() {
  const clock = { nowPs: 0 };
  const timers = new Set<{ readonly duePs: number; readonly run: (thread: Cpu) => void }>();
  const solicited: [number, string][] = [];
  const outcomes: [number, string | number][] = [];
  const table = new NeighbourTable({
    timers: {
      after: (delayPs, run) => {
        const timer = { duePs: clock.nowPs + delayPs, run };
        timers.add(timer);
        return { cancel: () => void timers.delete(timer) };
      },
    },
    newStopwatch: () => {
      const startPs = clock.nowPs;
      return {
        get elapsedPs() {
          return clock.nowPs - startPs;
        },
        get exactElapsedPs() {
          return clock.nowPs - startPs;
        },
      };
    },
    solicit: (_cpu, address) => void solicited.push([clock.nowPs / second, toHex(address.subarray(12))]),
  });
  return {
    table,
    solicited,
    outcomes,
    timers,
    ask: (timeoutMs: number, address = peer) =>
      table.resolve(cpu, address, timeoutMs, (outcome) =>
        outcomes.push([clock.nowPs / second, typeof outcome === 'number' ? outcome : toHex(outcome)]),
      ),
    elapse: (seconds: number) => {
      const endPs = clock.nowPs + seconds * second;
      for (;;) {
        const [first] = [...timers].toSorted((left, right) => left.duePs - right.duePs);
        if (first === undefined || first.duePs > endPs) break;
        timers.delete(first);
        clock.nowPs = first.duePs;
        first.run(cpu);
      }
      clock.nowPs = endPs;
    },
  };
}

/** ETIMEDOUT and ENODEV. */
const [timedOut, gone] = [110, 19];

describe('a table of neighbours', () => {
  it('asks three times, a second apart, and has given up after three', () => {
    const { table, solicited, outcomes, ask, elapse } = bench();
    ask(10_000);
    elapse(9);
    const at = (seconds: number): [number, string] => [seconds, '0a000002'];
    expect(solicited).toEqual([0, 1, 2].map(at));
    expect(table.inspect()).toEqual({ [toHex(peer)]: { state: 'failed', mac: '' } });
    expect(outcomes).toEqual([]);
    // It looks once more when its time is over, which begins anew.
    elapse(4);
    expect(outcomes).toEqual([[10, timedOut]]);
    expect(solicited.slice(3)).toEqual([10, 11, 12].map(at));
    expect(table.counts).toEqual({ resolved: 0, unresolved: 2 });
  });

  it('goes on asking when the one that asked waits no longer', () => {
    const { solicited, outcomes, ask, elapse, timers } = bench();
    ask(1000);
    elapse(5);
    expect(outcomes).toEqual([[1, timedOut]]);
    expect(solicited.map(([seconds]) => seconds)).toEqual([0, 1, 2]);
    expect(timers.size).toBe(0);
  });

  it('gives all that wait the MAC as it comes, and those that come later at once, without asking', () => {
    const { table, solicited, outcomes, ask, elapse, timers } = bench();
    ask(1000);
    ask(2000);
    elapse(0.5);
    expect(table.announced(peer, mac, reply)).toBe(true);
    elapse(100);
    ask(1000);
    expect(outcomes).toEqual([
      [0.5, '0002c9654321'],
      [0.5, '0002c9654321'],
      [100.5, '0002c9654321'],
    ]);
    expect([solicited.length, timers.size]).toEqual([1, 0]);
  });

  it('takes an answer that comes after the last try, of ARP', () => {
    const { table, outcomes, ask, elapse } = bench();
    ask(1000);
    elapse(3.5);
    expect(table.announced(peer, mac, reply)).toBe(true);
    ask(1000);
    expect(outcomes).toEqual([
      [1, timedOut],
      [3.5, '0002c9654321'],
    ]);
  });

  it('RFC 826: knows who has asked for one of its addresses', () => {
    const { table, solicited, outcomes, ask } = bench();
    table.asked(peer, mac);
    ask(1000);
    expect([outcomes, solicited]).toEqual([[[0, '0002c9654321']], []]);
    table.asked(peer, otherMac);
    expect(table.inspect()).toEqual({ [toHex(peer)]: { state: 'stale', mac: '0002c9777777' } });
  });

  it('a request of the neighbour that is asked for ends the wait', () => {
    const { table, outcomes, ask, timers } = bench();
    ask(1000);
    table.asked(peer, mac);
    expect([outcomes, timers.size]).toEqual([[[0, '0002c9654321']], 0]);
  });

  it('ignores who says unasked what nobody has asked for', () => {
    const { table } = bench();
    expect(table.announced(peer, mac, { isSolicited: false, overrides: true })).toBe(false);
    expect(table.advertised(peer, mac, { isSolicited: true, overrides: true })).toBe(false);
    expect(table.inspect()).toEqual({});
  });

  it('arp_process: of several answers the first stands for a second, but for what a neighbour says of itself', () => {
    const { table, ask, elapse } = bench();
    const known = (): string => table.inspect()[toHex(peer)]!.mac;
    ask(1000);
    table.announced(peer, mac, reply);
    expect(table.announced(peer, otherMac, reply)).toBe(false);
    elapse(1);
    expect(table.announced(peer, otherMac, reply)).toBe(false);
    elapse(1e-6);
    expect(table.announced(peer, otherMac, reply)).toBe(true);
    expect(known()).toBe('0002c9777777');
    expect(table.announced(peer, mac, { isSolicited: false, overrides: true })).toBe(true);
    expect(table.inspect()).toEqual({ [toHex(peer)]: { state: 'stale', mac: '0002c9654321' } });
  });

  it.each([
    // Whether it has a MAC, another, was asked for, overrides: taken, and what is then known.
    ['reachable', 'none', true, false, true, ['reachable', '0002c9654321']],
    ['reachable', 'same', false, true, true, ['reachable', '0002c9654321']],
    ['reachable', 'other', true, false, false, ['stale', '0002c9654321']],
    ['reachable', 'other', true, true, true, ['reachable', '0002c9777777']],
    ['reachable', 'other', false, true, true, ['stale', '0002c9777777']],
    ['stale', 'other', true, false, false, ['stale', '0002c9654321']],
    ['stale', 'same', true, false, true, ['reachable', '0002c9654321']],
    ['incomplete', 'none', true, true, false, ['incomplete', '']],
    ['incomplete', 'same', false, false, true, ['stale', '0002c9654321']],
  ] as const)(
    'RFC 4861, 7.2.5: a neighbour that is %s, an advertisement with a MAC that is %s, asked for %s, overriding %s',
    (before, its, isSolicited, overrides, isTaken, [state, known]) => {
      const { table, ask } = bench();
      ask(1000);
      if (before === 'reachable') table.advertised(peer, mac, { isSolicited: true, overrides: true });
      if (before === 'stale') table.asked(peer, mac);
      const given = { none: undefined, same: mac, other: otherMac }[its];
      expect(table.advertised(peer, given, { isSolicited, overrides })).toBe(isTaken);
      expect(table.inspect()).toEqual({ [toHex(peer)]: { state, mac: known } });
    },
  );

  it('RFC 4861, 7.2.5: an advertisement of one that was given up is of nobody', () => {
    const { table, ask, elapse } = bench();
    ask(1000);
    elapse(4);
    expect(table.advertised(peer, mac, { isSolicited: true, overrides: true })).toBe(false);
  });

  it('keeps 1024 neighbours, and of those the youngest', () => {
    const { table } = bench();
    const addressOf = (number: number): Uint8Array => fromHex(`fe80${number.toString(16).padStart(28, '0')}`);
    for (let number = 0; number < 1100; number++) table.asked(addressOf(number), mac);
    const known = Object.keys(table.inspect());
    expect([known.length, known[0]]).toEqual([1024, toHex(addressOf(76))]);
  });

  it('that goes leaves nobody waiting', () => {
    const { table, outcomes, ask, timers } = bench();
    ask(1000);
    table.close();
    expect([outcomes, timers.size]).toEqual([[[0, gone]], 0]);
  });
});
