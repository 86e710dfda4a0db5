/**
 * Where the fields of an event are: one event is one cache line, 16 words: four floats, then words.
 * `ORDER` puts the events of an instant in the order of their phases, and those of a phase in schedule order.
 */
export const LINE_SHIFT = 6;

/** A row's first float, and first word, by its number. */
export const FLOATS_SHIFT = 3;
export const WORDS_SHIFT = 4;

export const TIME = 0;
export const ORDER = 1;
export const A = 2;
export const B = 3;

export const HANDLER = 8;
export const NEXT = 9;
export const PREVIOUS = 10;
/** Slot index while in the wheel, IN_HEAP while in the heap, FREE while free. */
export const PLACE = 11;
export const GENERATION = 12;
export const HEAP_POSITION = 13;

export const FREE = -1;
export const IN_HEAP = -2;

/** Whether one event of an array of rows comes before another. */
export function isBefore(floats: Float64Array, index: number, other: number): boolean {
  const mine = index << FLOATS_SHIFT;
  const its = other << FLOATS_SHIFT;
  const difference = floats[mine + TIME]! - floats[its + TIME]!;
  return difference < 0 || (difference === 0 && floats[mine + ORDER]! < floats[its + ORDER]!);
}
