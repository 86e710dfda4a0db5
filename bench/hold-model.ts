/**
 * The hold model: 30 events are pending; each step removes the earliest and schedules another at a random later time.
 * On a plain binary heap of numbers it is the calibration loop; all speeds of this project are stated relative to it so
 * that they can be compared between machines (the reference machine processes about 20 million of its events per
 * second).
 */
const PENDING_COUNT = 30;
const DELAY_MASK = 0xfffff;
const MULTIPLIER = 1664525;
const INCREMENT = 1013904223;

/** Runs `events` hold steps on a plain binary heap of times and numbers; returns nanoseconds per event. */
export function holdModelHeap(events: number): number {
  const times = new Float64Array(PENDING_COUNT + 2);
  const items = new Int32Array(PENDING_COUNT + 2);
  let size = 0;
  const push = (time: number, item: number): void => {
    let at = size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (times[parent]! <= time) break;
      times[at] = times[parent]!;
      items[at] = items[parent]!;
      at = parent;
    }
    times[at] = time;
    items[at] = item;
  };
  const pop = (): number => {
    const item = items[0]!;
    const time = times[--size]!;
    const moved = items[size]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && times[child + 1]! < times[child]!) child++;
      if (times[child]! >= time) break;
      times[at] = times[child]!;
      items[at] = items[child]!;
      at = child;
    }
    times[at] = time;
    items[at] = moved;
    return item;
  };
  let random = 1;
  for (let index = 0; index < PENDING_COUNT; index++) push(index * 1000, index);
  const start = performance.now();
  for (let count = 0; count < events; count++) {
    const nowPs = times[0]!;
    const item = pop();
    random = (Math.imul(random, MULTIPLIER) + INCREMENT) | 0;
    push(nowPs + 1 + ((random >>> 8) & DELAY_MASK), item);
  }
  return ((performance.now() - start) * 1e6) / events;
}
