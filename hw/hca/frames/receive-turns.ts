/**
 * Arbitrates between the two receivers of an Ethernet port with RoCE, that of packets and that of frames: they form one
 * pipeline, which works on one packet or frame at a time. They therefore share an account, and the active receiver
 * accounts for every wait.
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockState, Wakeable } from '../../../sim/index.ts';

export class ReceiveTurns {
  #holder: Wakeable | undefined;
  #waiting: Wakeable | undefined;

  /**
   * True while the other receiver is active. A receiver that has something ready calls {@link awaitNext}.
   */
  isOthers(receiver: Wakeable): boolean {
    return this.#holder !== undefined && this.#holder !== receiver;
  }

  /** The receiver has something ready: it becomes active next. */
  awaitNext(receiver: Wakeable): void {
    this.#waiting = receiver;
  }

  /** The receiver begins, or continues. */
  take(receiver: Wakeable): void {
    this.#holder = receiver;
  }

  /** The active receiver finishes its work at `cycle`. */
  pass(cycle: Cycles): void {
    this.#holder = this.#waiting;
    this.#waiting = undefined;
    this.#holder?.wake(cycle);
  }

  inspect(): BlockState {
    return { isTaken: this.#holder !== undefined, isAwaited: this.#waiting !== undefined };
  }

  reset(): void {
    this.#holder = undefined;
    this.#waiting = undefined;
  }
}
