/** Completion queue contexts: configured fields decoded once per command, counters and arm state live. */

import { cqc } from '../../../abi/index.ts';
import { CompletionQueue } from './completion-queue.ts';
import { ContextTable } from './context-table.ts';
import type { CqSlot } from './numbers.ts';

const CQC_BYTES = 64;

const f = cqc.fields;

export class CqTable extends ContextTable<'CQ', 'notifier'> {
  /** By slot; grows with the table. */
  readonly rows: CompletionQueue[] = [];

  constructor(capacity: number) {
    super(CQC_BYTES, capacity);
    this.enlarge(this.slotCount);
  }

  /** Takes up a context just created by SW2HW_CQ: empty, not armed. */
  create(slot: CqSlot): void {
    this.rows[slot]!.begin();
    this.load(slot);
  }

  /** Decodes what a command configured. */
  load(slot: CqSlot): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    const queue = this.rows[slot]!;
    queue.logEntries = f.logEntries.get(view, at);
    queue.mttOffset = f.mttAddress.get(view, at);
    queue.pageBytes = 2 ** (12 + f.logPageSize4k.get(view, at));
    queue.firstByte = f.pageOffset32.get(view, at) * 32;
    queue.eqn = f.eqn.get(view, at);
    queue.uarPage = f.uarPage.get(view, at);
    queue.doorbellRecord = f.doorbellRecordAddress.getNumber(view, at);
    queue.hasTimestamps = f.timestamps.get(view, at);
    queue.ignoreOverrun = f.ignoreOverrun.get(view, at);
    queue.moderationCount = f.moderationCount.get(view, at);
    queue.moderationPeriodPs = f.moderationPeriodUs.get(view, at) * 1_000_000;
  }

  /** Writes the live fields into the context bytes. */
  override sync(slot: CqSlot): void {
    const view = this.view;
    const at = this.offsetOf(slot);
    const queue = this.rows[slot]!;
    f.status.set(view, at, queue.status);
    f.producerCounter.set(view, at, queue.producer);
    f.consumerCounter.set(view, at, queue.consumer);
    f.solicitedProducerCounter.set(view, at, queue.solicitedProducer);
    f.lastNotifiedCounter.set(view, at, queue.lastNotified);
  }

  protected override enlarge(slotCount: number): void {
    while (this.rows.length < slotCount) this.rows.push(new CompletionQueue());
  }
}
