import { describe, expect, it } from 'vitest';
import type { Cpu } from './platform.ts';
import { SpinLock } from './spin-lock.ts';

const PS_PER_US = 1_000_000;

/** A core of 3 GHz, whose cycles are no whole picoseconds, at its own time. */
class TestCore {
  originPs: number;
  cycles = 0;
  /** Own time, in cycles, at which it serves interrupts again. */
  keptCycles = 0;

  constructor(startPs: number) {
    this.originPs = startPs;
  }

  get ownPs(): number {
    return this.originPs + Math.floor((this.cycles * 1000) / 3);
  }

  charge(_cause: string, cycles: number): void {
    this.cycles += cycles;
  }

  keepCore(): void {
    this.keptCycles = this.cycles;
  }

  stopwatch() {
    const start = this.cycles;
    const core = this;
    return {
      get exactElapsedPs() {
        return BigInt(Math.floor(((core.cycles - start) * 1000) / 3));
      },
    };
  }

  get cpu(): Cpu {
    return this as unknown as Cpu;
  }
}

/** Core 0, ahead by 12 µs, works for 100 ns under the lock; then it does something else. */
function used(lock: SpinLock): TestCore {
  const core = new TestCore(12 * PS_PER_US);
  lock.acquire(core.cpu);
  core.charge('driver', 300);
  lock.release(core.cpu);
  core.charge('driver', 30_000);
  return core;
}

describe('a spin lock', () => {
  it('keeps a core whose time lags waiting until the time of its release, and no longer', () => {
    const lock = new SpinLock();
    expect(used(lock).cycles).toBe(30_300);
    const behind = new TestCore(400_000);
    lock.acquire(behind.cpu);
    // 12 µs and 100 ns minus 400 ns
    expect([behind.cycles, behind.ownPs]).toEqual([35_100, 12_100_000]);
  });

  it('blocks interrupts until the time of its release', () => {
    const lock = new SpinLock();
    expect(used(lock).keptCycles).toBe(300);
    const behind = new TestCore(400_000);
    lock.acquire(behind.cpu);
    behind.charge('driver', 50);
    lock.release(behind.cpu);
    expect(behind.keptCycles).toBe(35_150);
  });

  it('costs nothing once that time has passed', () => {
    const lock = new SpinLock();
    used(lock);
    const later = new TestCore(12_100_000);
    lock.acquire(later.cpu);
    expect(later.cycles).toBe(0);
  });

  it('continues to count when an epoch begins', () => {
    const lock = new SpinLock();
    const first = used(lock);
    first.originPs -= 10 * PS_PER_US;
    const behind = new TestCore(400_000 - 10 * PS_PER_US);
    lock.acquire(behind.cpu);
    expect(behind.cycles).toBe(35_100);
  });
});
