/**
 * Requests of one QP with an occasional completion, as HERD posts WRITEs and SENDs: a completion also covers the
 * earlier ones, and is polled when the queue has no more room.
 */
import { IBV_SEND_INLINE, type IbvQp, type IbvSendWr, postSend, SendFlag } from '../../userlib/index.ts';
import { type CompletionPoller, WorkFailedError } from './completion-poller.ts';

const signalled = SendFlag.IBV_SEND_SIGNALED;

export class SparselySignalled {
  readonly #qp: IbvQp;
  readonly #sends: CompletionPoller;
  readonly #depth: number;
  readonly #every: number;
  #posted = 0;
  #completed = 0;

  /**
   * @param depth of the send queue;
   * @param every one request in this many requests a completion
   */
  constructor(qp: IbvQp, sends: CompletionPoller, depth: number, every: number) {
    this.#qp = qp;
    this.#sends = sends;
    this.#depth = depth;
    this.#every = Math.min(every, depth);
  }

  get isFull(): boolean {
    return this.#posted - this.#completed >= this.#depth;
  }

  /** Waits until requests have completed. */
  async free(): Promise<void> {
    this.#completed += (await this.#sends.wait()) * this.#every;
  }

  /** Posts a request once there is room. */
  post(wr: IbvSendWr, isInline: boolean): void {
    this.#posted++;
    const asked = this.#posted % this.#every === 0 ? signalled : 0;
    wr.sendFlags = isInline ? asked | IBV_SEND_INLINE : asked;
    const error = postSend(this.#qp, wr);
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
  }
}
