/**
 * A lock for what is done at once, without waiting, by threads of several cores: the time of one core may be ahead of another's, whose code
 * runs later. Who finds it held then spins until its own time is that at which it was released. Until then its core serves no interrupts
 * and no other thread, or one of these would use the lock before it, in simulated time, and find what it has not yet done.
 *
 *     core 0   ──────────── acquire ═══ release ─ interrupt        (its code runs first)
 *     core 1   ── acquire ~~~~ spins ~~~~~~~~~ ═══ release
 */
import type { Cpu, Stopwatch } from './platform.ts';

export class SpinLock {
  /** Who released it last, and a watch of that core since then. */
  #last: { readonly cpu: Cpu; readonly watch: Stopwatch } | undefined;

  /** Spends the time of the core until the lock is free. {@link release} must follow in the same turn. */
  acquire(cpu: Cpu): void {
    if (this.#last === undefined) return;
    const { cpu: other, watch } = this.#last;
    const untilPs = other.ownPs - Number(watch.exactElapsedPs);
    if (cpu.ownPs < untilPs) spin(cpu, untilPs);
  }

  /** Gives it up at the core's own time, and serves interrupts from then on. */
  release(cpu: Cpu): void {
    cpu.keepCore();
    this.#last = { cpu, watch: cpu.stopwatch() };
  }
}

/** To the first cycle at or behind an instant. */
function spin(cpu: Cpu, untilPs: number): void {
  const fromPs = cpu.ownPs;
  cpu.charge('driver', 1);
  // Instants are whole picoseconds, cycles perhaps not.
  const cyclePsMax = cpu.ownPs - fromPs + 1;
  while (cpu.ownPs < untilPs)
    cpu.charge('driver', Math.max(1, Math.floor((untilPs - cpu.ownPs) / cyclePsMax)));
}
