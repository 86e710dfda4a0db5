/** One event of an event queue: while free it waits in the pool for its next use. */
import { NEVER, type Wide } from '../base/index.ts';

/** What the events of one handler do, and where their phase begins in the order of an instant. */
export interface EventEffect {
  readonly run: (a: number, b: number) => void;
  readonly phaseOrder: number;
}

/** Places of an event besides the slots of the wheel, which count from 0. */
export const FREE = -1;
/** The queue itself holds it, as its earliest. */
export const HELD = -2;
export const IN_HEAP = -3;

const NO_EFFECT: EventEffect = { run: () => undefined, phaseOrder: NEVER };

export class QueuedEvent {
  timePs = NEVER;
  /** Puts the events of an instant in the order of their phases, and those of a phase in schedule order. */
  order = NEVER;
  effect = NO_EFFECT;
  a = 0;
  b = 0;
  /** What the world calls this use of it: place in the pool, and how often it was used. */
  ref: Wide = 0;
  /** Slot of the wheel, {@link HELD}, {@link IN_HEAP} or {@link FREE}. */
  place = FREE;
  heapPosition = 0;
  /** Neighbours in the ring of its slot; while free, the next one free. */
  next: QueuedEvent = this;
  previous: QueuedEvent = this;

  constructor(ref: number) {
    this.ref = ref;
  }
}

/** Whether one event comes before another. */
export function isBefore(one: QueuedEvent, other: QueuedEvent): boolean {
  const difference = one.timePs - other.timePs;
  return difference < 0 || (difference === 0 && one.order < other.order);
}
