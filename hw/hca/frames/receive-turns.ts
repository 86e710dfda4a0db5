/**
 * Turns of the two receivers of a port of Ethernet with RoCE, that of packets and that of frames: they are one pipeline, which works on
 * one packet or frame at a time. So they share an account, and whatever a receiver waits for is waited for by the one whose turn it is.
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockState, Wakeable } from '../../../sim/index.ts';

export class ReceiveTurns {
  #holder: Wakeable | undefined;
  #waiting: Wakeable | undefined;

  /** True while it is the other's turn. One that has something ready says so by {@link awaitNext}. */
  isOthers(receiver: Wakeable): boolean {
    return this.#holder !== undefined && this.#holder !== receiver;
  }

  /** The receiver has something ready: the next turn is its. */
  awaitNext(receiver: Wakeable): void {
    this.#waiting = receiver;
  }

  /** The receiver begins, or goes on. */
  take(receiver: Wakeable): void {
    this.#holder = receiver;
  }

  /** The one whose turn it is has done its work by `cycle`. */
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
