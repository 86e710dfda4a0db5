/**
 * An XRC target shared by all its openers: its creator, and every context, also of another process, that has opened it by its
 * number in the same domain. Each opener has its own handle. All openers receive the target's events, one at a time changes its
 * attributes, and the target exists until the last one closes it.
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
  /** Serialises changes of the target by all processes. */
  readonly lock: Mutex;
  /** Receives the device's events of the target. */
  readonly sink: EventSink = {
    asyncEvent: (type: AsyncEventType): void => {
      for (const opener of this.#openers) opener.asyncEvent(type);
    },
  };
  readonly #openers = new Set<EventSink>();

  constructor(newSignal: () => Signal) {
    this.lock = new Mutex(newSignal);
  }

  /** Adds an opener, which receives its events. */
  open(opener: EventSink): void {
    this.#openers.add(opener);
  }

  /** Removes an opener. Returns true if it was the last one. */
  letGo(opener: EventSink): boolean {
    this.#openers.delete(opener);
    return this.#openers.size === 0;
  }
}

/** An existing target, by which other contexts find it. */
export interface TargetEntry {
  readonly qp: QueuePair;
  readonly shared: SharedTarget;
}
