/** One event of an event queue: while free it waits in the pool for its next use. */
import { NEVER, type Wide } from '../base/index.ts';

/** Effect of one handler's events, and the start of their phase in the order of an instant. */
export interface EventEffect {
  readonly run: (a: number, b: number) => void;
  readonly phaseOrder: number;
}

/** Slot numbers of an event outside the wheel, whose slots count from 0. */
export const FREE = -1;
/** The queue itself holds it, as the earliest event. */
export const HELD = -2;
export const IN_HEAP = -3;

const NO_EFFECT: EventEffect = { run: () => undefined, phaseOrder: NEVER };

export class QueuedEvent {
  timePs = NEVER;
  /** Orders the events of an instant by phase, and those of a phase by scheduling. */
  order = NEVER;
  effect = NO_EFFECT;
  a = 0;
  b = 0;
  /** Reference of this use: index in the pool, and use count. */
  ref: Wide = 0;
  /** Slot of the wheel, {@link HELD}, {@link IN_HEAP} or {@link FREE}. */
  place = FREE;
  heapPosition = 0;
  /** Neighbours in the ring of its slot; if free, the next free event. */
  next: QueuedEvent = this;
  previous: QueuedEvent = this;

  constructor(ref: number) {
    this.ref = ref;
  }
}

/** Whether one event is earlier than another. */
export function isBefore(one: QueuedEvent, other: QueuedEvent): boolean {
  const difference = one.timePs - other.timePs;
  return difference < 0 || (difference === 0 && one.order < other.order);
}
