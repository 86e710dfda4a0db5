/** Taking completions as programs do, with an error that says which work request failed and how. */
import { type IbvCq, IbvWc, pollSettled, spinCq, WcStatus, wcStatusStr } from '../../userlib/index.ts';

/** A work request of a program ended badly. */
export class WorkFailedError extends Error {
  override readonly name = 'WorkFailedError';
}

/** Takes completions of one CQ, a few at a time. */
export class CompletionTaker {
  readonly #cq: IbvCq;
  /** The completions that the last take found, of which the first `count` are valid. */
  readonly taken: readonly IbvWc[];

  constructor(cq: IbvCq, batch = 16) {
    this.#cq = cq;
    this.taken = Array.from({ length: batch }, () => new IbvWc());
  }

  /** Polls until there is at least one completion. @returns how many; @throws WorkFailedError for a failed one */
  async spin(): Promise<number> {
    return this.#checked(await spinCq(this.#cq, this.taken.length, this.taken));
  }

  /** Takes what is there, after a wait of the thread. */
  poll(): number {
    return this.#checked(pollSettled(this.#cq, this.taken.length, this.taken));
  }

  #checked(count: number): number {
    for (let index = 0; index < count; index++) {
      const { status, wrId, qpNum } = this.taken[index]!;
      if (status !== WcStatus.IBV_WC_SUCCESS)
        throw new WorkFailedError(`work request ${wrId} of QP ${qpNum}: ${wcStatusStr(status)}`);
    }
    return count;
  }
}
