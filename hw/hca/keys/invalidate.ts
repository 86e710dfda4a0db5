/**
 * Invalidation of a key, by a work request of this side or by a SEND with Invalidate (IBTA vol 1, 10.6.5, 9.4.1.1.3). The object stays,
 * free: a region can be registered anew, a window of type 2 bound anew, each under another variant of the key.
 */
import { MptStatus } from '../../../abi/index.ts';
import type { QueuePair } from '../objects/index.ts';
import { type KeyEntry, type KeyStores, readEntry, writeEntry } from './key-entry.ts';
import { demand, fence, type KeySteps } from './key-steps.ts';
import { releaseRegion } from './windows.ts';

/**
 * Frees the object of `key`, as a QP may under a protection domain, and ends when nothing under way reaches its memory by it. A key that is free already stays so.
 * Refused: another variant of the key, an object that may not be invalidated, of another PD or QP, a region with bound windows,
 * a window of type 1.
 */
export function* invalidate(
  stores: KeyStores,
  pair: QueuePair,
  pd: number,
  key: number,
  isRemote: boolean,
): KeySteps<void> {
  const entry = yield* readEntry(stores, key);
  const status = entry.get('status');
  demand(entry.key === key && (status === MptStatus.VALID || status === MptStatus.FREE));
  demand(entry.get(isRemote ? 'remoteInvalidateEnabled' : 'localInvalidateEnabled') === 1);
  if (entry.get('isRegion') === 1) demand(entry.get('pd') === pd && entry.get('boundWindows') === 0);
  else demand(isWindowOf(entry, pair, pd, status));
  if (status === MptStatus.FREE) return;
  if (entry.get('isRegion') === 0) yield* releaseRegion(stores, entry);
  entry.set('status', MptStatus.FREE);
  yield* writeEntry(stores, entry);
  yield* fence();
}

/** A bound window of type 2 belongs to its QP, a free one to its protection domain; one of type 1 is never invalidated. */
function isWindowOf(entry: KeyEntry, pair: QueuePair, pd: number, status: number): boolean {
  if (entry.get('isBoundToQp') === 0) return false;
  return status === MptStatus.FREE ? entry.get('pd') === pd : entry.get('boundQpn') === pair.qpn;
}
