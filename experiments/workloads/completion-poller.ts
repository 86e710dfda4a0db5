/** Polls completions as programs do; its error says which work request failed and how. */
import {
  ackCqEvents,
  getCqEvent,
  type IbvCompChannel,
  type IbvCq,
  IbvWc,
  pollSettled,
  reqNotifyCq,
  spinCq,
  WcStatus,
  wcStatusStr,
} from '../../userlib/index.ts';

/** A work request of a program failed. */
export class WorkFailedError extends Error {
  override readonly name = 'WorkFailedError';
}

/** @param error result of ibv_post_send or ibv_post_recv @throws WorkFailedError for a request that was refused */
export function checkPosted(error: number): void {
  if (error !== 0) throw new WorkFailedError(`a work request was refused with error ${error}`);
}

/** Polls completions of one CQ, a few at a time; with a channel, sleeps until an event. */
export class CompletionPoller {
  readonly #cq: IbvCq;
  readonly #channel: IbvCompChannel | undefined;
  #isArmed = false;
  /** The completions of the last poll, the first `count` of which are valid. */
  readonly taken: readonly IbvWc[];

  constructor(cq: IbvCq, channel?: IbvCompChannel, batch = 16) {
    this.#cq = cq;
    this.#channel = channel;
    this.taken = Array.from({ length: batch }, () => new IbvWc());
  }

  /**
   * Waits for at least one completion.
   * @returns how many;
   * @throws WorkFailedError for a failed one
   */
  async wait(): Promise<number> {
    return this.checked(await this.arrival());
  }

  /**
   * {@link wait} for a program that calls {@link checked} itself: if it polls, this is one wait without another around
   * it.
   * @param untilPs ends the wait at this instant of the program's own time, with 0 completions
   */
  arrival(untilPs?: number): Promise<number> {
    if (this.#channel !== undefined) return this.#sleepUntilArrival(this.#channel, untilPs);
    if (untilPs === undefined) return spinCq(this.#cq, this.taken.length, this.taken);
    return spinCq(this.#cq, this.taken.length, this.taken, Math.max(0, untilPs - this.#cq.cpu.localPs));
  }

  async #sleepUntilArrival(channel: IbvCompChannel, untilPs = Number.POSITIVE_INFINITY): Promise<number> {
    for (;;) {
      await this.#cq.cpu.settle();
      const count = pollSettled(this.#cq, this.taken.length, this.taken);
      if (count > 0) return count;
      if (this.#isArmed) {
        const leftPs = untilPs - this.#cq.cpu.localPs;
        if (leftPs <= 0) return 0;
        const cq = await getCqEvent(channel, leftPs === Number.POSITIVE_INFINITY ? undefined : leftPs);
        // The CQ stays armed for the next wait.
        if (cq === undefined) return 0;
        ackCqEvents(cq, 1);
        this.#isArmed = false;
      } else {
        // Armed before the last poll, so that no completion falls between poll and sleep.
        reqNotifyCq(this.#cq, 0);
        this.#isArmed = true;
      }
    }
  }

  /** Polls the available completions after a wait of the thread. */
  poll(): number {
    return this.checked(pollSettled(this.#cq, this.taken.length, this.taken));
  }

  /**
   * @returns `count`;
   * @throws WorkFailedError if one of these completions failed
   */
  checked(count: number): number {
    for (let index = 0; index < count; index++) {
      const { status, wrId, qpNum } = this.taken[index]!;
      if (status !== WcStatus.IBV_WC_SUCCESS)
        throw new WorkFailedError(`work request ${wrId} of QP ${qpNum}: ${wcStatusStr(status)}`);
    }
    return count;
  }
}
