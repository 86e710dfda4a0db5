/** The reading end of a channel at its destination process, and the receiver of its records. */
import type { Picoseconds } from '../base/index.ts';
import type { ChannelReader } from './channel.ts';

/**
 * Receives a record: `offset` is its position in the reader's data area; the receiver must release it eventually. A method of a
 * class, not a function: see build/README.md.
 */
export interface RecordReceiver {
  deliver(offset: number): void;
}

/** A receiver that is only a function. */
export type RecordHandler = RecordReceiver['deliver'];

class HandlerReceiver implements RecordReceiver {
  readonly #handle: RecordHandler;

  constructor(handle: RecordHandler) {
    this.#handle = handle;
  }

  deliver(offset: number): void {
    this.#handle(offset);
  }
}

/** The reading end of a channel, at its destination process. */
export class InboundPort {
  readonly reader: ChannelReader;
  readonly latencyPs: Picoseconds;
  readonly receiver: RecordReceiver;
  promisedPs = 0;

  constructor(reader: ChannelReader, latencyPs: Picoseconds, receiver: RecordReceiver | RecordHandler) {
    this.reader = reader;
    this.latencyPs = latencyPs;
    this.receiver = typeof receiver === 'function' ? new HandlerReceiver(receiver) : receiver;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.promisedPs -= ps;
    this.reader.rebase(ps);
  }
}
