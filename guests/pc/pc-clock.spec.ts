import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/index.ts';
import { pcParameters } from './parameters.ts';
import { PcClock } from './pc-clock.ts';

const config = { ...defaultsOf(pcParameters), coreMhz: 2000, cyclesPerInstruction: 1.5 };

describe('the clock of a PC', () => {
  it('counts instructions by their cost, and across the wrap of the 32-bit counter', () => {
    const clock = new PcClock(config);
    clock.count(4_294_967_290);
    clock.count(4);
    expect(clock.instructionCount).toBe(4_294_967_300);
    // 500 ps a cycle, 1.5 cycles an instruction.
    expect(clock.nowPs).toBe(4_294_967_300 * 750);
  });

  it('adds stores, interrupts and waking in cycles, and waits up to an instant', () => {
    const clock = new PcClock(config);
    clock.count(1000);
    clock.stored();
    clock.interrupted();
    clock.woke();
    clock.loadedAt(3_000_000);
    clock.sleptUntil(10_000_000);
    const cycles = { store: 10, interrupt: 500, wake: 2000 };
    expect(clock.account).toEqual({
      executingPs: 750_000,
      storesPs: cycles.store * 500,
      interruptsPs: cycles.interrupt * 500,
      wakingPs: cycles.wake * 500,
      loadsPs: 3_000_000 - 750_000 - 2510 * 500,
      chancePs: 0,
      idlePs: 7_000_000,
    });
    expect(clock.nowPs).toBe(10_000_000);
  });

  it('never goes back', () => {
    const clock = new PcClock(config);
    clock.sleptUntil(5000);
    clock.sleptUntil(4000);
    clock.loadedAt(1);
    expect(clock.nowPs).toBe(5000);
  });

  it('continues the account of another', () => {
    const first = new PcClock(config);
    first.count(77);
    first.sleptUntil(900_000);
    const next = new PcClock(config);
    next.continueFrom(first.instructionCount, first.account, 12);
    next.count(15);
    expect(next.instructionCount).toBe(80);
    expect(next.nowPs).toBe(first.nowPs + 3 * 750);
  });
});
