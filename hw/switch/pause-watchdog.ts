/**
 * Watches the queues of one output for pauses without end: switches that pause each other in a circle never resume (a deadlock), and a
 * broken host may pause for good (a storm). A queue that waits in a pause for the configured time without sending is dropped, and so is
 * what joins it, until the pause ends.
 *
 * Source: SONiC PFC watchdog, action drop.
 */
import { NEVER, type Picoseconds, psPerMs } from '../../base/index.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';
import { PRIORITY_COUNT } from './shared-buffer.ts';

export class PauseWatchdog {
  readonly #limitPs: Picoseconds;
  /** Since when each queue waits in a pause; NEVER if it does not. */
  readonly #heldSincePs = new Float64Array(PRIORITY_COUNT).fill(NEVER);
  /** Priorities whose queue is dropped until their pause ends, as a mask. */
  #dropping = 0;
  /** When a queue will have waited too long; NEVER if none waits. */
  duePs = NEVER;
  dropCount = 0;

  constructor({ pauseWatchdogMs }: Pick<EthernetSwitchConfig, 'pauseWatchdogMs'>) {
    this.#limitPs = pauseWatchdogMs === 0 ? NEVER : pauseWatchdogMs * psPerMs;
  }

  /** Whether it has to be told of the output. */
  get isWatching(): boolean {
    return this.duePs !== NEVER || this.#dropping !== 0;
  }

  /** The queue of a priority waits in a pause. @returns whether it is to be dropped */
  waits(priority: number, nowPs: Picoseconds): boolean {
    if (this.#limitPs === NEVER) return false;
    if (((this.#dropping >>> priority) & 1) === 1) return true;
    if (this.#heldSincePs[priority] === NEVER) {
      this.#heldSincePs[priority] = nowPs;
      this.duePs = Math.min(this.duePs, nowPs + this.#limitPs);
    }
    if (nowPs - this.#heldSincePs[priority]! < this.#limitPs) return false;
    this.#dropping |= 1 << priority;
    this.goesOn(priority);
    return true;
  }

  /** The queue of a priority has sent, or is empty. */
  goesOn(priority: number): void {
    if (this.#heldSincePs[priority] === NEVER) return;
    this.#heldSincePs[priority] = NEVER;
    const oldestPs = Math.min(...this.#heldSincePs);
    this.duePs = oldestPs === NEVER ? NEVER : oldestPs + this.#limitPs;
  }

  /** The priority is not paused. */
  resumes(priority: number): void {
    this.#dropping &= ~(1 << priority);
    this.goesOn(priority);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (let priority = 0; priority < PRIORITY_COUNT; priority++) this.#heldSincePs[priority]! -= ps;
    this.duePs -= ps;
  }
}
