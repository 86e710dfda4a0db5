/**
 * A lock for critical sections without waits, used by threads of several cores. The time of one core may be ahead of another's
 * whose code runs later. A thread that finds the lock held spins until its own time reaches the release. Until the release, the
 * holder's core serves no interrupts and no other thread: one of these could take the lock earlier in simulated time and miss
 * the holder's changes.
 *
 *     core 0   ──────────── acquire ═══ release ─ interrupt        (its code runs first)
 *     core 1   ── acquire ~~~~ spins ~~~~~~~~~ ═══ release
 */
import type { Cpu, Stopwatch } from './platform.ts';

export class SpinLock {
  /** The core that released it last, and a watch of that core since then. */
  #last: { readonly cpu: Cpu; readonly watch: Stopwatch } | undefined;

  /** Spends the time of the core until the lock is free. The caller must call {@link release} without waiting in between. */
  acquire(cpu: Cpu): void {
    if (this.#last === undefined) return;
    const { cpu: other, watch } = this.#last;
    const untilPs = other.ownPs - Number(watch.exactElapsedPs);
    if (cpu.ownPs < untilPs) spin(cpu, untilPs);
  }

  /** Releases the lock at the core's own time, and serves interrupts from then on. */
  release(cpu: Cpu): void {
    cpu.keepCore();
    this.#last = { cpu, watch: cpu.stopwatch() };
  }
}

/** Rounds up to the first cycle at or after an instant. */
function spin(cpu: Cpu, untilPs: number): void {
  const fromPs = cpu.ownPs;
  cpu.charge('driver', 1);
  // Instants are whole picoseconds; cycles may not be.
  const cyclePsMax = cpu.ownPs - fromPs + 1;
  while (cpu.ownPs < untilPs)
    cpu.charge('driver', Math.max(1, Math.floor((untilPs - cpu.ownPs) / cyclePsMax)));
}
