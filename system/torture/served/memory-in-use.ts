/** Memory that this process still uses when all that is not has been collected: what a leak adds to, and noise does not. */
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
