/**
 * An XRC target as all who have it open share it: its maker, and whoever has opened it by its number in the same domain, also another
 * process. Each has a handle of its own. Events of the target go to all of them, attributes are changed by one at a time, and the target is
 * there until the last one lets go.
 *
 *     context a: handle ──┐                       context b: handle ──┐
 *                         ├──► shared target ──► queue pair           │
 *     context b: handle ──┘          └─ events ──► a, b ◄─────────────┘
 *
 * Source: Linux 6.1, drivers/infiniband/core/verbs.c (ib_open_qp, __ib_destroy_shared_qp, __ib_shared_qp_event_handler).
 */
import type { EventSink } from './event-router.ts';
import { Mutex } from './mutex.ts';
import type { Signal } from './platform.ts';
import type { QueuePair } from './qp.ts';
import type { AsyncEventType } from './uapi.ts';

export class SharedTarget {
  /** Changes of the target, of whatever process: one at a time. */
  readonly lock: Mutex;
  /** Where the device's events of the target go. */
  readonly sink: EventSink = {
    asyncEvent: (type: AsyncEventType): void => {
      for (const opener of this.#openers) opener.asyncEvent(type);
    },
  };
  readonly #openers = new Set<EventSink>();

  constructor(newSignal: () => Signal) {
    this.lock = new Mutex(newSignal);
  }

  /** One more has it open, and gets its events. */
  open(opener: EventSink): void {
    this.#openers.add(opener);
  }

  /** True when that was the last one. */
  letGo(opener: EventSink): boolean {
    this.#openers.delete(opener);
    return this.#openers.size === 0;
  }
}

/** A target that is there, by which others find it. */
export interface TargetEntry {
  readonly qp: QueuePair;
  readonly shared: SharedTarget;
}
