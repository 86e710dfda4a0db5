/** Finds places where compaction may make room: aligned windows in which every frame is free or can be moved. */
import type { MemoryManager } from './memory-manager.ts';

/** First frames of the windows of `count` frames that could be emptied, in order of address. */
export function* ascendingWindows(
  mm: MemoryManager,
  count: number,
  alignment: number,
): Generator<number, void, undefined> {
  const { frames, reclaim } = mm;
  const canEmpty = (frame: number): boolean => frames.referencesOf(frame) === 0 || reclaim.isMovable(frame);
  let first = Math.ceil(frames.reservedCount / alignment) * alignment;
  while (first + count <= frames.frameCount) {
    let last = first + count - 1;
    while (last >= first && canEmpty(last)) last--;
    if (last < first) {
      yield first;
      first += alignment;
    } else {
      first = Math.ceil((last + 1) / alignment) * alignment;
    }
  }
}
