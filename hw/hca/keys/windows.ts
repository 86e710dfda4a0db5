/**
 * Binding of memory windows (IBTA vol 1, 10.6.7). A window's entry takes over where the region's pages are, so that an access
 * through it needs no other entry; the region's entry counts the windows, and is not given back while there are any.
 *
 *   type 1: belongs to a PD, is bound again or unbound by another binding     type 2: free, bound once to a QP, then invalidated
 */
import { addressDistance } from '../../../base/index.ts';
import {
  type KeyRecord,
  KeyState,
  NO_REGION,
  RIGHT_LOCAL_WRITE,
  TRANSLATION_ENTRY_BYTES,
} from '../memory/index.ts';
import type { KeyRequest, QueuePair } from '../objects/index.ts';
import { type KeyEntry, type KeyStores, readEntry, writeEntry } from './key-entry.ts';
import { demand, fence, type KeySteps } from './key-steps.ts';
import { RIGHTS_TO_WRITE } from './rights.ts';

/** Binds the window of the request's key, or unbinds it if the length is 0. */
export function* bindWindow(stores: KeyStores, pair: QueuePair, request: KeyRequest): KeySteps<void> {
  const { key, regionKey } = request;
  const entry = yield* readEntry(stores, key);
  const window = entry.record;
  checkWindow(window, pair, request);
  const isUnbinding = request.lengthBytes === 0;
  if (!isUnbinding) checkRegion((yield* readEntry(stores, regionKey)).record, pair, request);
  const wasBound = window.regionKey !== NO_REGION;
  yield* releaseRegion(stores, entry);
  if (!isUnbinding) {
    const region = yield* readEntry(stores, regionKey);
    region.record.boundWindows++;
    yield* writeEntry(stores, region);
    place(window, region.record, request);
    if (request.isType2) window.boundQpn = pair.qpn;
  }
  window.key = key;
  window.state = KeyState.VALID;
  yield* writeEntry(stores, entry);
  if (wasBound) yield* fence();
}

/** The window is no longer bound: its region counts one less, and its entry, which the caller writes, leads nowhere. */
export function* releaseRegion(stores: KeyStores, { record: window }: KeyEntry): KeySteps<void> {
  const { regionKey } = window;
  if (regionKey === NO_REGION) return;
  const region = yield* readEntry(stores, regionKey);
  region.record.boundWindows--;
  yield* writeEntry(stores, region);
  window.regionKey = NO_REGION;
  window.start = 0;
  window.startTop = 0;
  window.lengthBytes = 0;
  window.rights = 0;
}

/** State, type and owner of the window (IBTA vol 1, 10.6.7.2.1 to 10.6.7.2.3). */
function checkWindow(window: KeyRecord, pair: QueuePair, request: KeyRequest): void {
  demand(!window.isRegion && window.key >>> 8 === request.key >>> 8);
  demand(window.pd === pair.pd);
  demand(window.isOfQp === request.isType2);
  demand(window.state === (request.isType2 ? KeyState.FREE : KeyState.VALID));
  // Only a window of type 1 can be unbound by a binding, and none of type 1 is zero-based.
  demand(request.isType2 ? request.lengthBytes > 0 : !request.isZeroBased);
}

/**
 * The region must allow everything that the window grants: binding at all, the range, and writing if a peer may write
 * (C10-73 to C10-75).
 */
function checkRegion(region: KeyRecord, pair: QueuePair, request: KeyRequest): void {
  demand(region.isRegion && region.key === request.regionKey);
  demand(region.state === KeyState.VALID && region.pd === pair.pd);
  demand(region.allowsBinding);
  // A window needs a region with its own, permanent pages.
  demand(!region.isPhysical && !region.isOnDemand);
  const mayWrite = (region.rights & RIGHT_LOCAL_WRITE) !== 0;
  demand(mayWrite || (request.rights & RIGHTS_TO_WRITE) === 0);
  const offset = offsetIn(region, request);
  demand(offset >= 0 && offset + request.lengthBytes <= region.lengthBytes);
}

/** Bytes from the region's first one to the window's. */
const offsetIn = (region: KeyRecord, { address, addressTop }: KeyRequest): number =>
  addressDistance(region.start, region.startTop, address, addressTop);

/** The window's entry names the region's pages, starting with the page in which the window begins. */
function place(window: KeyRecord, region: KeyRecord, request: KeyRequest): void {
  const { address, addressTop, lengthBytes, isZeroBased } = request;
  const pageBytes = 2 ** region.logPageBytes;
  const byte = offsetIn(region, request) + region.startInPage;
  const page = Math.floor(byte / pageBytes);
  window.translationOffset = region.translationOffset + page * TRANSLATION_ENTRY_BYTES;
  window.logPageBytes = region.logPageBytes;
  window.hasFirstByteOffset = isZeroBased || region.hasFirstByteOffset;
  window.firstByteOffset = byte - page * pageBytes;
  window.start = isZeroBased ? 0 : address;
  window.startTop = isZeroBased ? 0 : addressTop;
  window.lengthBytes = lengthBytes;
  window.regionKey = request.regionKey;
  window.rights = request.rights;
}
