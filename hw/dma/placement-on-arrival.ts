/** Moves the bytes of completions to their read's destination: from the completion's record, when it is taken. */

import { BlockCopier, type Cycles } from '../../base/index.ts';
import { PAYLOAD_OFFSET } from '../pcie/index.ts';
import type { ReadRequest } from './read-queue.ts';
import type { ReadTag } from './tag-pool.ts';

/** The seam of the read engine at which bytes may also be placed early (early-placement.ts). */
export interface ReadPlacement {
  /** A memory read of `bytes` of the request has been sent under this tag. */
  begin(tag: ReadTag, request: ReadRequest, bytes: number): void;
  /** The completion at `offset` was taken: its bytes, the next of the read, must be stored. */
  place(tag: ReadTag, offset: number, bytes: number): void;
  /** The read of this tag is abandoned, though its completions may still arrive. */
  giveUp(tag: ReadTag): void;
  /**
   * Processes the completion at `offset`, which has just arrived while no other waits, and later ones, if it can do so at once.
   * @param isTagAwaited whether the engine waits for a free tag
   * @returns whether it has processed any
   */
  takeAtOnce(offset: number, isTagAwaited: boolean): boolean;
  /** Whether a completion was processed in place of edge `cycle`. */
  hasTakenAt(cycle: Cycles): boolean;
  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void;
}

export class PlacementOnArrival implements ReadPlacement {
  readonly #memory: Uint8Array;
  readonly #records: Uint8Array;
  readonly #copier = new BlockCopier();

  /** @param records bytes of the channel on which completions arrive */
  constructor(memory: Uint8Array, records: Uint8Array) {
    this.#memory = memory;
    this.#records = records;
  }

  begin(): void {}

  place(tag: ReadTag, offset: number, bytes: number): void {
    this.#copier.copy(this.#memory, tag.sramOffset, this.#records, offset + PAYLOAD_OFFSET, bytes);
  }

  giveUp(): void {}

  takeAtOnce(): boolean {
    return false;
  }

  hasTakenAt(): boolean {
    return false;
  }

  rebase(): void {}
}
