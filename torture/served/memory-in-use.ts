/** Memory still used by this process after a full collection: it grows by a leak, not by noise. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Bytes of the heap and of array buffers, after a collection. */
export function memoryInUseBytes(): number {
  collect ??= collector();
  // The second collection frees memory outside the heap.
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
