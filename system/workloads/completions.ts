/** Taking completions as programs do, with an error that says which work request failed and how. */
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

/** A work request of a program ended badly. */
export class WorkFailedError extends Error {
  override readonly name = 'WorkFailedError';
}

/** Takes completions of one CQ, a few at a time: by polling, or asleep until an event when there is a channel. */
export class CompletionPoller {
  readonly #cq: IbvCq;
  readonly #channel: IbvCompChannel | undefined;
  #isArmed = false;
  /** The completions that the last take found, of which the first `count` are valid. */
  readonly taken: readonly IbvWc[];

  constructor(cq: IbvCq, channel?: IbvCompChannel, batch = 16) {
    this.#cq = cq;
    this.#channel = channel;
    this.taken = Array.from({ length: batch }, () => new IbvWc());
  }

  /** Waits until there is at least one completion. @returns how many; @throws WorkFailedError for a failed one */
  async wait(): Promise<number> {
    return this.checked(await this.arrival());
  }

  /** {@link wait} for a program that calls {@link checked} itself: where it polls, this is one wait without another around it. */
  arrival(): Promise<number> {
    return this.#channel === undefined
      ? spinCq(this.#cq, this.taken.length, this.taken)
      : this.#sleepUntilArrival(this.#channel);
  }

  async #sleepUntilArrival(channel: IbvCompChannel): Promise<number> {
    for (;;) {
      await this.#cq.cpu.settle();
      const count = pollSettled(this.#cq, this.taken.length, this.taken);
      if (count > 0) return count;
      if (this.#isArmed) {
        const cq = await getCqEvent(channel);
        if (cq !== undefined) ackCqEvents(cq, 1);
        this.#isArmed = false;
      } else {
        // Armed before the last poll, so that no completion falls between poll and sleep.
        reqNotifyCq(this.#cq, 0);
        this.#isArmed = true;
      }
    }
  }

  /** Takes what is there, after a wait of the thread. */
  poll(): number {
    return this.checked(pollSettled(this.#cq, this.taken.length, this.taken));
  }

  /** @returns `count`; @throws WorkFailedError when one of so many completions taken failed */
  checked(count: number): number {
    for (let index = 0; index < count; index++) {
      const { status, wrId, qpNum } = this.taken[index]!;
      if (status !== WcStatus.IBV_WC_SUCCESS)
        throw new WorkFailedError(`work request ${wrId} of QP ${qpNum}: ${wcStatusStr(status)}`);
    }
    return count;
  }
}
