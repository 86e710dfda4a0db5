/**
 * Finds the MPT entry of a key and checks an access against it.
 *
 *   key >> 8 ─> MPT cache ─hit─> entry valid ─> whole key ─> protection domain, QP of a window ─> bounds ─> rights
 *                    └─miss─> line fill
 *
 * The first check that fails decides the answer (interface sheet 5.4; IBTA vol 1, 10.6).
 */
import { addressDistance, type VirtualAddress, type Wide } from '../../../base/index.ts';
import type { SetAssociativeDirectory } from '../objects/index.ts';
import type { ContextMemory } from './context-memory.ts';
import { KeyState } from './key-record.ts';
import { type EntryReads, FILL_MPT, FILL_PENDING } from './line-fill.ts';
import { BAD_KEY, BAD_PD, MISSING_RIGHT, OUT_OF_BOUNDS, PENDING, TRANSLATED } from './translation.ts';
import { type MptCache, NO_QPN, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE } from './translation-cache.ts';
import { forgetLookups, type TranslationPort } from './translation-port.ts';

const NO_LINE = -1;
const NO_TAG = -1;
const LOCAL_RIGHTS = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;

/** Results of a check by an entry on chip. */
export type KeyAnswer =
  | typeof TRANSLATED
  | typeof BAD_KEY
  | typeof BAD_PD
  | typeof OUT_OF_BOUNDS
  | typeof MISSING_RIGHT;

export interface KeyCheckSetup {
  readonly mptCache: MptCache;
  readonly contextMemory: ContextMemory;
  readonly fill: EntryReads;
  /** Forgets the translations that they remember, and counts their misses. */
  readonly ports: readonly Pick<TranslationPort, 'mptMisses' | 'forget'>[];
}

/**
 * Checks an access under the reserved key: a QP that is allowed the key has all local rights.
 * @param isAllowed 1 for such a QP
 */
export function checkReservedKey(isAllowed: number, rights: number): KeyAnswer {
  if (isAllowed === 0) return BAD_KEY;
  return (rights & ~LOCAL_RIGHTS) === 0 ? TRANSLATED : MISSING_RIGHT;
}

export class KeyCheck {
  /** Bytes from the start of the region or window to the access that was checked last. */
  offset: Wide = 0;
  readonly #cache: MptCache;
  readonly #directory: SetAssociativeDirectory;
  readonly #memory: ContextMemory;
  readonly #fill: EntryReads;
  readonly #ports: KeyCheckSetup['ports'];
  /** Entry that the current access missed, by port. An access counts as one miss, however often it is retried. */
  readonly #missed: Float64Array;

  constructor({ mptCache, contextMemory, fill, ports }: KeyCheckSetup) {
    this.#cache = mptCache;
    this.#directory = mptCache.directory;
    this.#memory = contextMemory;
    this.#fill = fill;
    this.#ports = ports;
    this.#missed = new Float64Array(ports.length).fill(NO_TAG);
  }

  /** Line of the entry with this tag (key >> 8), or -1 when it is not on chip: see {@link miss}. */
  find(port: number, tag: number): number {
    let line = this.#directory.find(tag);
    if (line === NO_LINE) {
      if (!this.#fill.holds(port, FILL_MPT, tag)) return NO_LINE;
      forgetLookups(this.#ports);
      line = this.#fill.take(port, FILL_MPT, tag, this.#cache);
    }
    this.#directory.touch(line);
    return line;
  }

  /**
   * Requests the entry that {@link find} did not find.
   */
  miss(port: number, tag: number): typeof PENDING | typeof BAD_KEY {
    if (this.#missed[port] !== tag) {
      this.#missed[port] = tag;
      this.#ports[port]!.mptMisses++;
    }
    const address = this.#memory.keyAddress(tag);
    const answer = this.#fill.request(port, FILL_MPT, tag, address, this.#cache.entryBytes);
    return answer === FILL_PENDING ? PENDING : BAD_KEY;
  }

  /** Ends the port's access by the entry with this tag: the next access that misses it counts again. */
  ended(port: number, tag: number): void {
    if (this.#missed[port] === tag) this.#missed[port] = NO_TAG;
  }

  /** Checks an access by the entry in `line`, and computes {@link offset}. */
  check(
    line: number,
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    qpn: number,
  ): KeyAnswer {
    const cache = this.#cache;
    if (cache.status[line] !== KeyState.VALID || cache.key[line] !== key) return BAD_KEY;
    // A window grants access to a peer, never to a work request of this side.
    if (cache.isRegion[line] === 0 && (rights & LOCAL_RIGHTS) !== 0) return BAD_KEY;
    if (cache.pd[line] !== pd) return BAD_PD;
    const boundQpn = cache.boundQpn[line]!;
    if (boundQpn !== NO_QPN && boundQpn !== qpn) return BAD_PD;
    const offset = addressDistance(cache.start[line]!, cache.startTop[line]!, address, addressTop);
    if (offset < 0 || offset + lengthBytes > cache.length[line]!) return OUT_OF_BOUNDS;
    if ((cache.rights[line]! & rights) !== rights) return MISSING_RIGHT;
    this.offset = offset;
    return TRANSLATED;
  }

  /** Forgets the entry of an index. Entries are cached by all of key >> 8, of which the index is the low part. */
  forget(index: number): void {
    const { tags } = this.#directory;
    const isOfEntry = this.#tagsOf(index);
    for (let line = 0; line < tags.length; line++) if (isOfEntry(tags[line]!)) this.#directory.clear(line);
  }

  /** Forgets all cached entries. */
  forgetAll(): void {
    this.#directory.clearAll();
  }

  /** A copy of the entry with this tag (key >> 8) if it is on chip. */
  cached(tag: number): Uint8Array | undefined {
    const line = this.#directory.find(tag);
    if (line === NO_LINE) return undefined;
    this.#directory.touch(line);
    const { bytes, entryBytes } = this.#cache;
    return bytes.slice(line * entryBytes, (line + 1) * entryBytes);
  }

  /** Replaces cached copies of an entry that the device has changed in ICM, and drops reads of it. */
  replace(index: number, entry: DataView): void {
    const { tags } = this.#directory;
    const isOfEntry = this.#tagsOf(index);
    for (let line = 0; line < tags.length; line++)
      if (isOfEntry(tags[line]!)) this.#cache.load(line, entry, 0);
    this.#fill.drop(FILL_MPT, isOfEntry);
  }

  reset(): void {
    this.#missed.fill(NO_TAG);
  }

  /** Tag of the entry that the port's access under way missed, or -1. */
  missedTag(port: number): number {
    return this.#missed[port]!;
  }

  /** Tells whether a tag names the entry of an index. */
  #tagsOf(index: number): (tag: number) => boolean {
    const count = Math.max(1, this.#memory.keyCount);
    return (tag) => tag !== NO_TAG && tag % count === index;
  }
}
