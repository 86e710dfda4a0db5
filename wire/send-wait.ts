/** The reason for which a port's sender waits after a refusal, and the duration: counted as time without credits or for a busy serializer. */
import type { Picoseconds } from '../base/index.ts';
import type { TransmitCounters } from './packet-counters.ts';

export const NOT_WAITING = 0;
export const WAITING_FOR_CREDITS = 1;
export const WAITING_FOR_SERIALIZER = 2;
/** Names of the constants above. */
export const waitNames = ['nothing', 'credits', 'serializer'] as const;

export class SendWait {
  /** The reason of the wait: one of the constants above. */
  reason = NOT_WAITING;
  #sincePs = 0;
  readonly #counters: TransmitCounters;

  /** @param counters whose wait times are kept */
  constructor(counters: TransmitCounters) {
    this.#counters = counters;
  }

  /** Notes that from `nowPs` on a packet waits for `reason`; ends a wait for another reason. */
  begin(reason: number, nowPs: Picoseconds): void {
    if (this.reason === reason) return;
    this.end(nowPs);
    this.reason = reason;
    this.#sincePs = nowPs;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#sincePs -= ps;
  }

  /** Ends the wait, if any. */
  end(nowPs: Picoseconds): void {
    const waitedPs = nowPs - this.#sincePs;
    if (this.reason === WAITING_FOR_CREDITS) this.#counters.creditWaitPs += waitedPs;
    else if (this.reason === WAITING_FOR_SERIALIZER) this.#counters.serializerWaitPs += waitedPs;
    this.reason = NOT_WAITING;
  }
}
