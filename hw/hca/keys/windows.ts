/**
 * Binding of memory windows (IBTA vol 1, 10.6.7). A window's entry takes over where the region's pages are, so that an access
 * through it needs no other entry; the region's entry counts the windows, and is not given back while there are any.
 *
 *   type 1: belongs to a PD, is bound anew or unbound by another binding     type 2: free, bound once to a QP, then invalidated
 */
import { indexFormOfKey, MptStatus, mttEntryBytes } from '../../../abi/index.ts';
import { addressDistance } from '../../../base/index.ts';
import type { KeyRequest, QueuePair } from '../objects/index.ts';
import { type KeyEntry, type KeyStores, readEntry, writeEntry } from './key-entry.ts';
import { demand, fence, type KeySteps } from './key-steps.ts';
import { RIGHTS_TO_WRITE, setRights } from './rights.ts';

/** In place of the key of a window's region: the window is not bound. */
const NO_REGION = 0;

/** Binds the window of the request's key, or takes the binding back if the length is 0. */
export function* bindWindow(stores: KeyStores, pair: QueuePair, request: KeyRequest): KeySteps<void> {
  const { key, regionKey } = request;
  const window = yield* readEntry(stores, key);
  checkWindow(window, pair, request);
  const isUnbinding = request.lengthBytes === 0;
  if (!isUnbinding) checkRegion(yield* readEntry(stores, regionKey), pair, request);
  const wasBound = window.get('lkey') !== NO_REGION;
  yield* releaseRegion(stores, window);
  if (!isUnbinding) {
    const region = yield* readEntry(stores, regionKey);
    region.set('boundWindows', region.get('boundWindows') + 1);
    yield* writeEntry(stores, region);
    place(window, region, request);
    if (request.isType2) window.set('boundQpn', pair.qpn);
  }
  window.set('keyIndexForm', indexFormOfKey(key));
  window.set('status', MptStatus.VALID);
  yield* writeEntry(stores, window);
  if (wasBound) yield* fence();
}

/** The window is no longer bound: its region counts one less, and its entry, which the caller writes, leads nowhere. */
export function* releaseRegion(stores: KeyStores, window: KeyEntry): KeySteps<void> {
  const regionKey = window.get('lkey');
  if (regionKey === NO_REGION) return;
  const region = yield* readEntry(stores, regionKey);
  region.set('boundWindows', region.get('boundWindows') - 1);
  yield* writeEntry(stores, region);
  window.set('lkey', NO_REGION);
  window.setRange(0, 0, 0);
  setRights(window, 0);
}

/** State, type and owner of the window (IBTA vol 1, 10.6.7.2.1 to 10.6.7.2.3). */
function checkWindow(window: KeyEntry, pair: QueuePair, request: KeyRequest): void {
  demand(window.get('isRegion') === 0 && window.key >>> 8 === request.key >>> 8);
  demand(window.get('pd') === pair.pd);
  demand((window.get('isBoundToQp') === 1) === request.isType2);
  demand(window.get('status') === (request.isType2 ? MptStatus.FREE : MptStatus.VALID));
  // Only a window of type 1 is unbound by a binding, and none of type 1 is zero-based.
  demand(request.isType2 ? request.lengthBytes > 0 : !request.isZeroBased);
}

/** The region must allow what the window is to give: binding at all, the range, and writing if a peer may write (C10-73 to C10-75). */
function checkRegion(region: KeyEntry, pair: QueuePair, request: KeyRequest): void {
  demand(region.get('isRegion') === 1 && region.key === request.regionKey);
  demand(region.get('status') === MptStatus.VALID && region.get('pd') === pair.pd);
  demand(region.get('bindEnabled') === 1);
  // What has no pages of its own, or none that stay, has nothing that a window could take over.
  demand(region.get('isPhysical') === 0 && region.get('isOnDemand') === 0);
  const mayWrite = region.get('localWriteEnabled') === 1;
  demand(mayWrite || (request.rights & RIGHTS_TO_WRITE) === 0);
  const offset = offsetIn(region, request);
  demand(offset >= 0 && offset + request.lengthBytes <= region.lengthBytes);
}

/** Bytes from the region's first one to the window's. */
const offsetIn = (region: KeyEntry, { address, addressTop }: KeyRequest): number =>
  addressDistance(region.start, region.startTop, address, addressTop);

/** The window's entry names the region's pages from the one on in which the window begins. */
function place(window: KeyEntry, region: KeyEntry, request: KeyRequest): void {
  const { address, addressTop, lengthBytes, isZeroBased } = request;
  const logPageBytes = region.get('logPageSize');
  const byte = offsetIn(region, request) + region.startInPage;
  const page = Math.floor(byte / 2 ** logPageBytes);
  window.set('mttAddress', region.get('mttAddress') + page * mttEntryBytes);
  window.set('logPageSize', logPageBytes);
  window.set('firstByteOffsetEnabled', isZeroBased || region.get('firstByteOffsetEnabled') === 1 ? 1 : 0);
  window.set('firstByteOffset', byte - page * 2 ** logPageBytes);
  window.setRange(isZeroBased ? 0 : address, isZeroBased ? 0 : addressTop, lengthBytes);
  window.set('lkey', request.regionKey);
  setRights(window, request.rights);
}
