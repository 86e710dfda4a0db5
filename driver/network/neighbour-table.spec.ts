import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import type { Cpu } from '../platform.ts';
import { NeighbourTable } from './neighbour-table.ts';

const cpu = undefined as unknown as Cpu;
const peer = fromHex('00000000000000000000ffff0a000002');
const [mac, otherMac] = [fromHex('0002c9654321'), fromHex('0002c9777777')];
const reply = { isSolicited: true, overrides: false };
const second = 1e12;

/** A table whose time the spec advances; which neighbours are asked, and when, in seconds. */
function bench() {
  const clock = { nowPs: 0 };
  const timers = new Set<{ readonly duePs: number; readonly run: (thread: Cpu) => void }>();
  const solicited: [number, string][] = [];
  const probed: [number, string, string][] = [];
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
        // A number holds two and a half hours of picoseconds.
        get elapsedPs() {
          const elapsedPs = clock.nowPs - startPs;
          if (!Number.isSafeInteger(elapsedPs)) throw new Error('too long');
          return elapsedPs;
        },
        get exactElapsedPs() {
          return clock.nowPs - startPs;
        },
      };
    },
    solicit: (_cpu, address) => void solicited.push([clock.nowPs / second, toHex(address.subarray(12))]),
    probe: (_cpu, address, its) =>
      void probed.push([clock.nowPs / second, toHex(address.subarray(12)), toHex(its)]),
  });
  return {
    table,
    solicited,
    probed,
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

/** ETIMEDOUT, ENODEV and ENOBUFS. */
const [timedOut, gone, noRoom] = [110, 19, 105];

describe('a table of neighbours', () => {
  it('sends three requests, a second apart, and gives up after three seconds', () => {
    const { table, solicited, outcomes, ask, elapse } = bench();
    ask(10_000);
    elapse(9);
    const at = (seconds: number): [number, string] => [seconds, '0a000002'];
    expect(solicited).toEqual([0, 1, 2].map(at));
    expect(table.inspect()).toEqual({ [toHex(peer)]: { state: 'failed', mac: '' } });
    expect(outcomes).toEqual([]);
    // It checks once more when its time is over; the time then restarts.
    elapse(4);
    expect(outcomes).toEqual([[10, timedOut]]);
    expect(solicited.slice(3)).toEqual([10, 11, 12].map(at));
    expect(table.counts).toEqual({ resolved: 0, unresolved: 2 });
  });

  it('continues its requests when the caller no longer waits', () => {
    const { solicited, outcomes, ask, elapse, timers } = bench();
    ask(1000);
    elapse(5);
    expect(outcomes).toEqual([[1, timedOut]]);
    expect(solicited.map(([seconds]) => seconds)).toEqual([0, 1, 2]);
    expect(timers.size).toBe(0);
  });

  it('returns the MAC to all waiting callers when it arrives, and to later ones at once, without a request', () => {
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

  it('accepts an ARP answer that arrives after the last try', () => {
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

  it('RFC 826: learns the neighbour that requests one of its addresses', () => {
    const { table, solicited, outcomes, ask } = bench();
    table.asked(peer, mac);
    ask(1000);
    expect([outcomes, solicited]).toEqual([[[0, '0002c9654321']], []]);
    table.asked(peer, otherMac);
    expect(table.inspect()).toEqual({ [toHex(peer)]: { state: 'stale', mac: '0002c9777777' } });
  });

  it('a request of the awaited neighbour ends the wait', () => {
    const { table, outcomes, ask, timers } = bench();
    ask(1000);
    table.asked(peer, mac);
    expect([outcomes, timers.size]).toEqual([[[0, '0002c9654321']], 0]);
  });

  it('ignores unsolicited announcements that were never requested', () => {
    const { table } = bench();
    expect(table.announced(peer, mac, { isSolicited: false, overrides: true })).toBe(false);
    expect(table.advertised(peer, mac, { isSolicited: true, overrides: true })).toBe(false);
    expect(table.inspect()).toEqual({});
  });

  it('arp_process: keeps the first of several answers for a second, except for a neighbour’s own announcement', () => {
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
    // Whether it has a MAC, another MAC, was requested, overrides: whether the answer is accepted, and the MAC known then.
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

  it('RFC 4861, 7.2.5: ignores an advertisement of a neighbour that was given up', () => {
    const { table, ask, elapse } = bench();
    ask(1000);
    elapse(4);
    expect(table.advertised(peer, mac, { isSolicited: true, overrides: true })).toBe(false);
  });

  it('keeps the 1024 youngest neighbours', () => {
    const { table } = bench();
    const addressOf = (number: number) => fromHex(`fe80${number.toString(16).padStart(28, '0')}`);
    for (let number = 0; number < 1100; number++) table.asked(addressOf(number), mac);
    const known = Object.keys(table.inspect());
    expect([known.length, known[0]]).toEqual([1024, toHex(addressOf(76))]);
  });

  it('accepts no further neighbour while all are being resolved', () => {
    const { table, outcomes, ask, elapse } = bench();
    const addressOf = (number: number) => fromHex(`fe80${number.toString(16).padStart(28, '0')}`);
    for (let number = 0; number < 1025; number++) ask(1000, addressOf(number));
    expect(outcomes).toEqual([[0, noRoom]]);
    table.asked(addressOf(2000), mac);
    expect(Object.keys(table.inspect())).toHaveLength(1024);
    elapse(4);
    table.asked(addressOf(2000), mac);
    expect(table.macOf(addressOf(2000))).toEqual(mac);
  });

  it('hours later accepts another MAC as well', () => {
    const { table, ask, elapse } = bench();
    ask(1000);
    table.announced(peer, mac, reply);
    elapse(20_000);
    expect(table.announced(peer, otherMac, reply)).toBe(true);
    expect(table.macOf(peer)).toEqual(otherMac);
  });

  it('that is removed leaves no caller waiting', () => {
    const { table, outcomes, ask, timers } = bench();
    ask(1000);
    table.close();
    expect([outcomes, timers.size]).toEqual([[[0, gone]], 0]);
  });
});

describe('a neighbour that receives packets', () => {
  const at = (seconds: number): [number, string, string] => [seconds, '0a000002', '0002c9654321'];
  function known() {
    const made = bench();
    made.ask(1000);
    made.table.announced(peer, mac, reply);
    const state = (): string => made.table.inspect()[toHex(peer)]!.state;
    return { ...made, neighbour: made.table.find(peer)!, state };
  }

  it('RFC 4861, 7.3.3 and 10: is reachable for 30 s, then stale; the next packet is sent, and after 5 s it is probed', () => {
    const { table, neighbour, state, elapse, probed, timers } = known();
    elapse(29.9);
    expect([table.used(neighbour), state(), timers.size]).toEqual([mac, 'reachable', 0]);
    elapse(0.1);
    expect([table.used(neighbour), state()]).toEqual([mac, 'delay']);
    elapse(4.9);
    expect([table.used(neighbour), state(), probed]).toEqual([mac, 'delay', []]);
    elapse(0.1);
    expect([table.used(neighbour), state(), probed]).toEqual([mac, 'probe', [at(35)]]);
    elapse(1);
    expect(table.advertised(peer, undefined, { isSolicited: true, overrides: false })).toBe(true);
    expect([state(), probed, timers.size]).toEqual(['reachable', [at(35), at(36)], 0]);
    elapse(29.9);
    table.used(neighbour);
    expect(state()).toBe('reachable');
  });

  it('is removed after three probes, a second apart', () => {
    const { table, neighbour, state, elapse, probed, solicited, timers, ask } = known();
    elapse(30);
    table.used(neighbour);
    elapse(8);
    expect(probed).toEqual([35, 36, 37].map(at));
    expect([table.used(neighbour), state(), timers.size]).toEqual([undefined, 'failed', 0]);
    ask(1000);
    expect([solicited.length, table.find(peer)]).toEqual([2, neighbour]);
  });

  it.each([
    ['an acknowledgement', 33, 'reachable'],
    ['an acknowledgement', 35.5, 'reachable'],
    ['an answer of ARP', 33, 'reachable'],
    ['an answer of ARP', 35.5, 'reachable'],
    ['a request of its own', 33, 'delay'],
  ] as const)('is, by %s at %d s, %s', (what, seconds, expected) => {
    const { table, neighbour, state, elapse } = known();
    elapse(30);
    table.used(neighbour);
    elapse(seconds - 30);
    if (what === 'an acknowledgement') table.confirmed(neighbour);
    else if (what === 'an answer of ARP') table.announced(peer, mac, reply);
    else table.asked(peer, mac);
    expect(state()).toBe(expected);
    elapse(20);
    if (expected === 'reachable') expect(table.used(neighbour)).toEqual(mac);
  });

  it('is confirmed again and again while it acknowledges', () => {
    const { table, neighbour, state, elapse, probed } = known();
    for (let step = 0; step < 100; step++) {
      elapse(1);
      expect(table.used(neighbour)).toEqual(mac);
      table.confirmed(neighbour);
    }
    expect([state(), probed]).toEqual(['reachable', []]);
  });

  it('was replaced by a younger one: its last MAC is not used', () => {
    const { table, neighbour } = known();
    const addressOf = (number: number) => fromHex(`fe80${number.toString(16).padStart(28, '0')}`);
    for (let number = 0; number < 1024; number++) table.asked(addressOf(number), mac);
    expect([table.find(peer), table.used(neighbour)]).toEqual([undefined, undefined]);
    table.confirmed(neighbour);
    expect(table.macOf(peer)).toBeUndefined();
  });

  it('of the configuration never changes, for any announcements and any number of neighbours', () => {
    const { table, elapse, probed } = bench();
    table.addPermanent(peer, mac);
    const neighbour = table.find(peer)!;
    const addressOf = (number: number) => fromHex(`fe80${number.toString(16).padStart(28, '0')}`);
    for (let number = 0; number < 1100; number++) table.asked(addressOf(number), mac);
    table.asked(peer, otherMac);
    expect(table.announced(peer, otherMac, { isSolicited: true, overrides: true })).toBe(false);
    expect(table.advertised(peer, otherMac, { isSolicited: true, overrides: true })).toBe(false);
    elapse(100);
    expect(table.used(neighbour)).toEqual(mac);
    elapse(100);
    expect([probed, table.inspect()[toHex(peer)]]).toEqual([[], { state: 'permanent', mac: '0002c9654321' }]);
    expect(Object.keys(table.inspect())).toHaveLength(1025);
  });
});
