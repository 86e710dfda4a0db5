/** Memory still used by this process after a full collection: it grows by a leak, not by noise. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Bytes of the heap and of array buffers, after a collection. */
export function memoryInUseBytes(): number {
  collect ??= collector();
  // What lies outside the heap is given back by the second.
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
