/**
 * The completion queue that the channels of a thread share, so that a wait for one advances all of them.
 *
 *     CQ ─► completion ─► link of its QP ─► arrivals, moved payloads ─► channel
 */
import { createCompChannel, createCq, destroyCompChannel, destroyCq } from '../cq.ts';
import { ackCqEvents, getCqEvent } from '../events.ts';
import { type IbvCompChannel, type IbvContext, type IbvCq, IbvWc } from '../objects.ts';
import { pollSettled, reqNotifyCq, spinCq } from '../poll-cq.ts';
import type { MessageError } from './message-error.ts';

/** Manner in which the thread waits for completions: by polling the CQ's memory, or asleep until an event. */
export type Waiting = 'poll' | 'event';

const batch = 16;

/** A channel, as its completions see it. */
export interface CompletionUser {
  readonly qpNum: number;
  take(completion: IbvWc): void;
  /** Handles collected events. @returns whether there were any */
  handle(): Promise<boolean>;
}

export class MessageCompletions {
  readonly cq: IbvCq;
  /** The first failure of a channel's connection: it ends the waits of all, since the others may wait for its program. */
  failure: MessageError | undefined;
  readonly #events: IbvCompChannel | null;
  readonly #users = new Map<number, CompletionUser>();
  readonly #completions = Array.from({ length: batch }, () => new IbvWc());
  #isArmed = false;

  private constructor(cq: IbvCq, events: IbvCompChannel | null) {
    this.cq = cq;
    this.#events = events;
  }

  /** @param entries completions of all channels together. @throws VerbsError as the verbs do, with everything released */
  static async create(context: IbvContext, entries: number, waiting: Waiting): Promise<MessageCompletions> {
    const events = waiting === 'event' ? await createCompChannel(context) : null;
    try {
      return new MessageCompletions(await createCq(context, entries, null, events), events);
    } catch (error) {
      if (events !== null) await destroyCompChannel(events);
      throw error;
    }
  }

  add(user: CompletionUser): void {
    this.#users.set(user.qpNum, user);
  }

  remove(user: CompletionUser): void {
    this.#users.delete(user.qpNum);
  }

  /** Whether no channel is left. */
  get isUnused(): boolean {
    return this.#users.size === 0;
  }

  async destroy(): Promise<void> {
    await destroyCq(this.cq);
    if (this.#events !== null) await destroyCompChannel(this.#events);
  }

  /** Waits for at least one completion, of any channel. */
  async wait(): Promise<void> {
    const count =
      this.#events === null
        ? await spinCq(this.cq, batch, this.#completions)
        : await this.#sleep(this.#events);
    for (let index = 0; index < count; index++) {
      const completion = this.#completions[index]!;
      this.#users.get(completion.qpNum)?.take(completion);
    }
  }

  /** Has every channel handle its events. @returns whether there were any */
  async handleAll(): Promise<boolean> {
    let didWork = false;
    for (const user of this.#users.values()) if (await user.handle()) didWork = true;
    return didWork;
  }

  /** Arms before the last poll, so that no completion falls between poll and sleep. */
  async #sleep(events: IbvCompChannel): Promise<number> {
    for (;;) {
      await this.cq.cpu.settle();
      const count = pollSettled(this.cq, batch, this.#completions);
      if (count > 0) return count;
      if (this.#isArmed) {
        const cq = await getCqEvent(events);
        if (cq !== undefined) ackCqEvents(cq, 1);
      } else {
        reqNotifyCq(this.cq, 0);
      }
      this.#isArmed = !this.#isArmed;
    }
  }
}
