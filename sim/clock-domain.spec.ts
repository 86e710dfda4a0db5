import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Clock } from './clock.ts';
import { ClockDomain } from './clock-domain.ts';
import { Fifo } from './fifo.ts';

describe('clock domain', () => {
  it('skips the edges at which no stage is due', () => {
    const domain = new ClockDomain(new Clock(250));
    const cycles: number[] = [];
    const stage = domain.addStage((cycle) => cycles.push(cycle));
    expect(domain.nextPs).toBe(Number.POSITIVE_INFINITY);
    domain.wake(stage, 1000);
    domain.wake(stage, 7);
    domain.wake(stage, 9);
    // Cycle 7 of 4000 ps.
    expect(domain.nextPs).toBe(28_000);
    domain.runEdge();
    expect(cycles).toEqual([7]);
    expect(domain.activeEdgeCount).toBe(1);
    // The earliest requested edge counts: the stage requests another if it has more work.
    expect(domain.nextPs).toBe(Number.POSITIVE_INFINITY);
  });

  it('wakes a stage at the first edge strictly after an instant', () => {
    const domain = new ClockDomain(new Clock(427));
    const stage = domain.addStage(() => undefined);
    // Edge 1 of 427 MHz lies at floor(2341.9) = 2341 ps; its effect is seen at edge 2, at 4683 ps.
    domain.wakeAfter(stage, 2341);
    expect(domain.nextPs).toBe(4683);
    domain.wakeAfter(stage, 2340);
    expect(domain.nextPs).toBe(2341);
  });

  it('runs the output side first, so that data are seen one cycle later', () => {
    const domain = new ClockDomain(new Clock(1000));
    const fifo = new Fifo({ name: 'test', capacity: 1, whenFull: 'the test fails' });
    const seen: string[] = [];
    const output = domain.addStage((cycle) => {
      if (fifo.headCycle <= cycle) seen.push(`${fifo.pop()} at ${cycle}`);
    });
    let produced = 0;
    const input = domain.addStage((cycle) => {
      // A slot freed by the output in this cycle is used again in this cycle.
      if (!fifo.isFull) fifo.push(++produced, cycle + 1);
      domain.wake(output, cycle + 1);
      if (produced < 3) domain.wake(input, cycle + 1);
    });
    domain.wake(input, 5);
    while (domain.nextPs !== Number.POSITIVE_INFINITY) domain.runEdge();
    expect(seen).toEqual(['1 at 6', '2 at 7', '3 at 8']);
  });

  it('runs a stage that a later one woke for the running edge at the next edge', () => {
    const domain = new ClockDomain(new Clock(1000));
    const cycles: number[] = [];
    const output = domain.addStage((cycle) => cycles.push(cycle));
    const input = domain.addStage((cycle) => domain.wake(output, cycle));
    domain.wake(input, 3);
    domain.runEdge();
    expect(domain.nextPs).toBe(4000);
    domain.runEdge();
    expect(cycles).toEqual([4]);
  });

  it('runs a stage that one downstream of it woke for the running edge in that edge', () => {
    const domain = new ClockDomain(new Clock(1000));
    const cycles: number[] = [];
    let input = -1;
    const output = domain.addStage((cycle) => domain.wake(input, cycle));
    input = domain.addStage((cycle) => cycles.push(cycle));
    domain.wake(output, 3);
    domain.runEdge();
    expect(cycles).toEqual([3]);
    expect(domain.nextPs).toBe(Number.POSITIVE_INFINITY);
  });

  it('runs every stage at the earliest cycle for which it was woken, near or far', () => {
    const wake = fc.tuple(
      fc.nat(3),
      fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 400 })),
    );
    fc.assert(
      fc.property(fc.array(fc.array(wake, { maxLength: 4 }), { minLength: 1, maxLength: 60 }), (plan) => {
        const domain = new ClockDomain(new Clock(1000));
        // A plain table of due stages, and the stages that each run wakes.
        const dueCycles = new Map<number, number>();
        let step = 0;
        const wakeNext = (cycle: number): void => {
          for (const [stage, ahead] of plan[step++] ?? []) {
            domain.wake(stage, cycle + ahead);
            dueCycles.set(stage, Math.min(dueCycles.get(stage) ?? Number.POSITIVE_INFINITY, cycle + ahead));
          }
        };
        for (let stage = 0; stage < 4; stage++) {
          domain.addStage((cycle) => {
            expect(cycle).toBe(dueCycles.get(stage));
            dueCycles.delete(stage);
            wakeNext(cycle);
          });
        }
        wakeNext(0);
        while (domain.nextPs !== Number.POSITIVE_INFINITY) {
          expect(domain.nextPs).toBe(1000 * Math.min(...dueCycles.values()));
          domain.runEdge();
        }
        expect(dueCycles.size).toBe(0);
      }),
    );
  });

  it('counts on past the greatest small integer', () => {
    const domain = new ClockDomain(new Clock(1000));
    const ran: string[] = [];
    const waits = [1, 2 ** 31 - 2, 2 ** 31 - 1, 2 ** 31, 2 ** 33, 2 ** 33 + 1];
    waits.toReversed().forEach((cycle) => {
      const stage = domain.addStage((now) => ran.push(`${cycle} at ${now}`));
      domain.wake(stage, cycle);
      domain.wake(stage, cycle + 1);
    });
    while (domain.nextPs !== Number.POSITIVE_INFINITY) {
      const { nextPs } = domain;
      domain.runEdge();
      expect(nextPs).toBe(domain.cycle * 1000);
      if (domain.cycle === 2 ** 33) domain.wake(0, 2 ** 33 + 1);
    }
    expect(ran).toEqual(waits.map((cycle) => `${cycle} at ${cycle}`));
  });

  it('holds 32 stages, and runs them in order', () => {
    const domain = new ClockDomain(new Clock(1));
    const ran: string[] = [];
    for (let stage = 0; stage < 32; stage++) {
      domain.addStage((cycle) => {
        ran.push(`${stage} at ${cycle}`);
        // The first stage wakes the last for the same edge; the last wakes the first, which has already run.
        if (cycle === 1) domain.wake(31 - stage, cycle);
      });
    }
    for (let stage = 15; stage >= 0; stage--) domain.wake(stage, 1);
    while (domain.nextPs !== Number.POSITIVE_INFINITY) domain.runEdge();
    const stages = Array.from({ length: 32 }, (_, stage) => stage);
    expect(ran).toEqual([
      ...stages.map((stage) => `${stage} at 1`),
      ...stages.slice(0, 16).map((stage) => `${stage} at 2`),
    ]);
    expect(() => domain.addStage(() => undefined)).toThrow('more than 32 stages');
  });
});
