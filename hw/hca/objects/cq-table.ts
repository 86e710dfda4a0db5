/** Completion queue contexts: configured fields are loaded once per command, counters and arm state are live. */

import type { CompletionQueueFormat } from '../host-interface/index.ts';
import { CompletionQueue } from './completion-queue.ts';
import { ContextTable } from './context-table.ts';
import type { CqSlot } from './numbers.ts';

export class CqTable extends ContextTable<'CQ', 'notifier'> {
  /** CQs by slot; grows with the table. */
  readonly rows: CompletionQueue[] = [];

  readonly #format: CompletionQueueFormat;

  /** @param format of the contexts of the card */
  constructor(capacity: number, format: CompletionQueueFormat) {
    super(format.contextBytes, capacity);
    this.#format = format;
    this.enlarge(this.slotCount);
  }

  /** Initialises the row of a context that a command has just created: empty, not armed. */
  create(slot: CqSlot): void {
    this.rows[slot]!.begin();
    this.load(slot);
  }

  /** Loads the fields that a command configured. */
  load(slot: CqSlot): void {
    this.#format.load(this.view, this.offsetOf(slot), this.rows[slot]!);
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: CqSlot): void {
    this.#format.sync(this.view, this.offsetOf(slot), this.rows[slot]!);
  }

  protected override enlarge(slotCount: number): void {
    while (this.rows.length < slotCount) this.rows.push(new CompletionQueue());
  }
}
