import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue, PHASE_HARDWARE, PHASE_SOFTWARE } from './event-queue.ts';

const HORIZON_PS = 4096 * 1024;

/** The plainest event queue there is: a sorted array. */
class Reference {
  readonly pending: { atPs: number; phase: number; sequence: number; a: number }[] = [];
  #sequence = 0;

  schedule(atPs: number, phase: number, a: number): number {
    this.pending.push({ atPs, phase, sequence: ++this.#sequence, a });
    this.pending.sort((x, y) => x.atPs - y.atPs || x.phase - y.phase || x.sequence - y.sequence);
    return this.#sequence;
  }

  cancel(sequence: number): boolean {
    const place = this.pending.findIndex((event) => event.sequence === sequence);
    if (place >= 0) this.pending.splice(place, 1);
    return place >= 0;
  }
}

/** Delays that collide, fall into one slot, straddle the horizon of the wheel, or lie far after it. */
const delay = fc.oneof(
  fc.nat(3),
  fc.nat(2000),
  fc.nat(1_000_000),
  fc.integer({ min: HORIZON_PS - 3000, max: HORIZON_PS + 3000 }),
  fc.integer({ min: 0, max: 20 }).map((horizons) => horizons * HORIZON_PS),
  fc.integer({ min: 0, max: 1e12 }),
);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('schedule' as const), delay, phase: fc.nat(1) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('run' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(1000) }) },
);

describe('event queue', () => {
  it('runs and cancels like a sorted array', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const queue = new EventQueue(4);
        const reference = new Reference();
        const ran: number[] = [];
        const handlers = [PHASE_HARDWARE, PHASE_SOFTWARE].map((phase) =>
          queue.addHandler((a) => ran.push(a), phase),
        );
        const refs: { ref: number; sequence: number }[] = [];
        let nowPs = 0;
        for (const [index, action] of steps.entries()) {
          if (action.kind === 'schedule') {
            const ref = queue.schedule(nowPs + action.delay, handlers[action.phase]!, index);
            refs.push({ ref, sequence: reference.schedule(nowPs + action.delay, action.phase, index) });
          } else if (action.kind === 'cancel' && refs.length > 0) {
            // Refs of events that ran or were cancelled long ago are used again.
            const { ref, sequence } = refs[action.which % refs.length]!;
            expect(queue.cancel(ref)).toBe(reference.cancel(sequence));
          } else if (action.kind === 'run' && reference.pending.length > 0) {
            const expected = reference.pending.shift()!;
            nowPs = expected.atPs;
            expect(queue.nextPhase).toBe(expected.phase);
            queue.runNext();
            expect(ran.at(-1)).toBe(expected.a);
          }
          expect(queue.nextPs).toBe(reference.pending[0]?.atPs ?? Number.POSITIVE_INFINITY);
          expect(queue.pendingCount).toBe(reference.pending.length);
        }
        expect(queue.firedCount).toBe(ran.length);
      }),
      { numRuns: 400 },
    );
  });

  it('passes both arguments to the handler', () => {
    const queue = new EventQueue();
    const seen: number[][] = [];
    queue.schedule(
      5,
      queue.addHandler((a, b) => seen.push([a, b])),
      2 ** 40,
      -0.5,
    );
    queue.runNext();
    expect(seen).toEqual([[2 ** 40, -0.5]]);
  });

  it('cancels one event only, even if another has taken its place in memory', () => {
    const queue = new EventQueue(4);
    const ran: number[] = [];
    const handler = queue.addHandler((a) => ran.push(a));
    const first = queue.schedule(10, handler, 1);
    expect(queue.cancel(first)).toBe(true);
    const second = queue.schedule(10, handler, 2);
    expect(second).not.toBe(first);
    expect(queue.cancel(first)).toBe(false);
    expect(queue.cancel(0)).toBe(false);
    queue.runNext();
    expect(ran).toEqual([2]);
    expect(queue.cancel(second)).toBe(false);
  });

  it('runs events that a handler schedules for its own instant, in schedule order', () => {
    const queue = new EventQueue();
    const ran: number[] = [];
    const leaf = queue.addHandler((a) => ran.push(a));
    const root = queue.addHandler((a) => {
      ran.push(a);
      queue.schedule(7, leaf, a + 10);
    });
    queue.schedule(7, root, 1);
    queue.schedule(7, root, 2);
    while (queue.pendingCount > 0) queue.runNext();
    expect(ran).toEqual([1, 2, 11, 12]);
  });

  it('reorders one instant under a shuffle, but neither instants nor phases', () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 20; seed++) {
      let state = seed;
      const shuffle = (): number => {
        state = (state * 48271) % 0x7fff_ffff;
        return state / 0x7fff_ffff;
      };
      const queue = new EventQueue(16, shuffle);
      const ran: string[] = [];
      const hardware = queue.addHandler((a) => ran.push(`h${a}`));
      const software = queue.addHandler((a) => ran.push(`s${a}`), PHASE_SOFTWARE);
      for (let a = 0; a < 3; a++) queue.schedule(9, software, a);
      for (let a = 0; a < 3; a++) queue.schedule(9, hardware, a);
      queue.schedule(8, software, 9);
      while (queue.pendingCount > 0) queue.runNext();
      expect(ran[0]).toBe('s9');
      expect(ran.slice(1, 4).toSorted()).toEqual(['h0', 'h1', 'h2']);
      orders.add(ran.join());
    }
    expect(orders.size).toBeGreaterThan(5);
  });

  it('keeps the order of phases above software under any shuffle: cores run by number', () => {
    for (let seed = 1; seed <= 20; seed++) {
      let state = seed;
      const queue = new EventQueue(16, () => {
        state = (state * 48271) % 0x7fff_ffff;
        return state / 0x7fff_ffff;
      });
      const ran: number[] = [];
      const cores = [0, 1, 2, 63].map((core) =>
        queue.addHandler(() => ran.push(core), PHASE_SOFTWARE + core),
      );
      for (const core of cores.toReversed()) queue.schedule(9, core);
      while (queue.pendingCount > 0) queue.runNext();
      expect(ran).toEqual([0, 1, 2, 63]);
    }
  });

  it('rejects times that are past or invalid', () => {
    const queue = new EventQueue();
    const handler = queue.addHandler(() => undefined);
    queue.schedule(1_000_000, handler);
    queue.runNext();
    for (const atPs of [0, 1_000_500.5, Number.NaN, -1, 1e9 + 0.25, Number.POSITIVE_INFINITY]) {
      expect(() => queue.schedule(atPs, handler)).toThrow(/time of an event in ps/);
    }
  });
});
