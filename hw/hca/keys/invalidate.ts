/**
 * Invalidation of a key, by a work request of this side or by a SEND with Invalidate (IBTA vol 1, 10.6.5, 9.4.1.1.3). The object stays,
 * free: a region can be registered again, a window of type 2 bound again, each under another variant of the key.
 */
import { type KeyRecord, KeyState } from '../memory/index.ts';
import type { QueuePair } from '../objects/index.ts';
import { type KeyStores, readEntry, writeEntry } from './key-entry.ts';
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
  const { record } = entry;
  demand(record.key === key && record.state !== KeyState.SOFTWARE);
  demand(isRemote ? record.allowsRemoteInvalidate : record.allowsLocalInvalidate);
  if (record.isRegion) demand(record.pd === pd && record.boundWindows === 0);
  else demand(isWindowOf(record, pair, pd));
  if (record.state === KeyState.FREE) return;
  if (!record.isRegion) yield* releaseRegion(stores, entry);
  record.state = KeyState.FREE;
  yield* writeEntry(stores, entry);
  yield* fence();
}

/** A bound window of type 2 belongs to its QP, a free one to its protection domain; one of type 1 is never invalidated. */
function isWindowOf({ isOfQp, state, pd: own, boundQpn }: KeyRecord, pair: QueuePair, pd: number): boolean {
  if (!isOfQp) return false;
  return state === KeyState.FREE ? own === pd : boundQpn === pair.qpn;
}
