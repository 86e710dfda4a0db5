/**
 * Fast registration (IBTA vol 1, 10.6.4.2): a work request gives a free region, allocated with room for that many
 * translations, its pages, range, rights and a variant of its key. The pages are read from the list in host memory and
 * written into the MTT; then the entry becomes valid.
 */

import { CqeSyndrome, logPageBytesMax, pageListEntriesMax } from '../../../abi/index.ts';
import { ADDRESS_TOP_MAX, ADDRESS_TOP_UNIT, pageBytes } from '../../../base/index.ts';
import { type KeyRecord, KeyState, TRANSLATION_ENTRY_BYTES } from '../memory/index.ts';
import type { KeyRequest, QueuePair } from '../objects/index.ts';
import { type KeyStores, readEntry, writeEntry } from './key-entry.ts';
import { demand, type KeySteps, read, write } from './key-steps.ts';
import { REMOTE_RIGHTS } from './rights.ts';

/** Pages of host memory and of context memory have this size at least. */
const LOG_PAGE_BYTES_MIN = 12;

export function* fastRegister(stores: KeyStores, pair: QueuePair, request: KeyRequest): KeySteps<void> {
  demand(pair.allowsFastRegister === 1, CqeSyndrome.LOCAL_QP_OP_ERR);
  const entry = yield* readEntry(stores, request.key);
  const { record } = entry;
  checkEntry(record, pair, request);
  const pageCount = pageCountOf(request);
  demand(pageCount <= Math.min(pageListEntriesMax, record.translationCount));
  const list = yield* read(request.listAddress, pageCount * TRANSLATION_ENTRY_BYTES);
  demand(list !== undefined, CqeSyndrome.LOCAL_PROT_ERR);
  yield* writeTranslations(stores, record.translationOffset, list);
  record.start = request.address;
  record.startTop = request.addressTop;
  record.lengthBytes = request.lengthBytes;
  record.logPageBytes = request.logPageBytes;
  record.hasFirstByteOffset = request.firstByteOffset !== 0;
  record.firstByteOffset = request.firstByteOffset;
  record.key = request.key;
  record.rights = request.rights;
  record.state = KeyState.VALID;
  yield* writeEntry(stores, entry);
}

/** Demands a free region for fast registration in the QP's PD, and remote rights only if it was allocated for them. */
function checkEntry(entry: KeyRecord, pair: QueuePair, request: KeyRequest): void {
  demand(entry.isRegion && entry.key >>> 8 === request.key >>> 8);
  demand(entry.allowsFastRegister && entry.state === KeyState.FREE);
  demand(entry.pd === pair.pd);
  demand(entry.allowsRemoteFastRegister || (request.rights & REMOTE_RIGHTS) === 0);
  demand(request.lengthBytes > 0);
  // No address exceeds 2^64 - 1.
  demand(request.addressTop < ADDRESS_TOP_MAX || request.address + request.lengthBytes <= ADDRESS_TOP_UNIT);
  const { logPageBytes } = request;
  demand(logPageBytes >= LOG_PAGE_BYTES_MIN && logPageBytes <= logPageBytesMax);
}

/** Pages from the first byte's to the last one's. */
function pageCountOf({ address, lengthBytes, logPageBytes, firstByteOffset }: KeyRequest): number {
  const pageBytes = 2 ** logPageBytes;
  const first = firstByteOffset === 0 ? address % pageBytes : firstByteOffset;
  return Math.ceil((first + lengthBytes) / pageBytes);
}

/** The list has the form of the card's translation entries. Pages of context memory need not be contiguous. */
function* writeTranslations(stores: KeyStores, mttOffset: number, list: Uint8Array): KeySteps<void> {
  for (let at = 0; at < list.length; ) {
    const address = stores.contextMemory.translationAddress(mttOffset + at);
    demand(address >= 0, CqeSyndrome.LOCAL_PROT_ERR);
    const bytes = Math.min(list.length - at, pageBytes - (address % pageBytes));
    yield* write(address, list.subarray(at, at + bytes));
    at += bytes;
  }
  stores.translator.forgetMttRange(mttOffset, list.length);
}
