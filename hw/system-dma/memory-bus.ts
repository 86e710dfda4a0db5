/**
 * The bus between cores and memory, as far as somebody takes it from the cores: one master at a time has it, and while it
 * does, no core reaches memory.
 *
 *     DMA controller ── take ──► held ──► listeners: cores stand still
 *                    ── give ──► free ──► listeners: cores go on
 *
 * For a core there are two ways to be held, both exact: to be told ({@link onTaken}, {@link onGiven}), or to ask at the
 * two ends of a stretch of work how long the bus was away ({@link heldPsAt}) and to be later by as much. Either way those
 * cycles are of a cause of their own, {@link BUS_WAIT_CAUSE}. With nobody taking the bus this costs nothing.
 */

import { InvariantError } from '../../base/assert.ts';
import type { Picoseconds } from '../../base/units.ts';
import type { BlockState } from '../../sim/index.ts';

const FREE = -1;

export class MemoryBus {
  /** Times the bus was taken. */
  takenCount = 0;
  #master = FREE;
  #sincePs = 0;
  #heldPs = 0;
  #takenListener: (nowPs: Picoseconds) => void = () => {};
  #givenListener: (nowPs: Picoseconds) => void = () => {};

  get isHeld(): boolean {
    return this.#master !== FREE;
  }

  /** Number of the master that has the bus, or -1. */
  get master(): number {
    return this.#master;
  }

  inspect(): BlockState {
    return { master: this.#master };
  }

  /** Picoseconds the bus has been held from the beginning up to `nowPs`, the present instant. */
  heldPsAt(nowPs: Picoseconds): number {
    return this.isHeld ? this.#heldPs + nowPs - this.#sincePs : this.#heldPs;
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#sincePs -= ps;
  }

  /** `listener` is called, in the hardware half of an instant, when the bus is taken. */
  onTaken(listener: (nowPs: Picoseconds) => void): void {
    this.#takenListener = listener;
  }

  onGiven(listener: (nowPs: Picoseconds) => void): void {
    this.#givenListener = listener;
  }

  /** @throws InvariantError when somebody has it */
  take(master: number, nowPs: Picoseconds): void {
    if (this.isHeld) throw new InvariantError('master of the memory bus', this.#master, 'none');
    this.#master = master;
    this.#sincePs = nowPs;
    this.takenCount++;
    this.#takenListener(nowPs);
  }

  give(nowPs: Picoseconds): void {
    this.#heldPs = this.heldPsAt(nowPs);
    this.#master = FREE;
    this.#givenListener(nowPs);
  }
}
