/**
 * Pins: pages made present, exclusive to the process, and held for a device (pin_user_pages with FOLL_LONGTERM, as ib_umem_get
 * calls it).
 *
 *     limit (pinned_vm) ─► each page: present? else fault ─► own? else break sharing ─► reference and pin
 *                          any of it fails: pins so far are released, faulted-in pages stay
 *
 * For writing, copy on write is broken; for reading only if later writes of the process would go to another page. A shared
 * mapping of a regular file cannot be pinned for writing, since its file system must see writes (EFAULT, Linux 6.5). The limit
 * is checked first, and counts every pin of every page.
 */
import { InvariantError } from '../../base/index.ts';
import { type AccessMode, kernelAccess } from './access-mode.ts';
import type { AddressSpace } from './address-space.ts';
import { accessOwn, accessRead, accessWrite, faultDone, faultLater, faultNoMemory } from './faults.ts';
import { pageBytes, pageCountOf, pageOffsetOf } from './page.ts';
import { flagPresent, flagWritable } from './page-table.ts';
import { pageAnonymous, pageDirty, pageExclusive } from './pages.ts';

export type PinAccess = 'read' | 'write';

/** Pages held for the device; also the ticket by which they are released. */
export interface PinnedPages {
  readonly address: number;
  readonly lengthBytes: number;
  /** 4 KiB pages that the range touches. */
  readonly pageCount: number;
  /**
   * Physical address of each 4 KiB page, in order; for memory that repeats one stretch, those of the stretch: page k is
   * `pages[k % pages.length]`. A plain array: most have one page, for which a typed array needs four times the memory.
   */
  readonly pages: readonly number[];
  /** Whether the device may write to them: the process could when they were pinned (ib_umem.writable of Linux). */
  readonly isWritable: boolean;
}

export class PinTable {
  readonly #space: AddressSpace;
  readonly #limitBytes: number;
  readonly #pinned = new Map<PinnedPages, PinAccess>();
  pinnedBytes = 0;

  constructor(space: AddressSpace, limitBytes: number) {
    this.#space = space;
    this.#limitBytes = limitBytes;
  }

  get all(): readonly PinnedPages[] {
    return [...this.#pinned.keys()];
  }

  pin(address: number, lengthBytes: number, access: PinAccess): PinnedPages | 'EFAULT' | 'ENOMEM' {
    const count = pageCountOf(address, lengthBytes);
    if (count === 0) return 'EFAULT';
    if (this.pinnedBytes + count * pageBytes > this.#limitBytes) {
      return this.#space.isMapped(address, lengthBytes) ? 'ENOMEM' : 'EFAULT';
    }
    const { frames, counts } = this.#space.mm;
    const first = address - pageOffsetOf(address);
    const stretchPages = (this.#space.areas.find(address)?.stretchBytes ?? 0) / pageBytes;
    const isRepeated = stretchPages > 0 && stretchPages < count;
    if (!this.#space.isMapped(address, lengthBytes))
      return isRepeated ? 'EFAULT' : this.#upToHole(first, count, access);
    const distinct = isRepeated ? stretchPages : count;
    const pages = new Array<number>(distinct).fill(0);
    for (let page = 0; page < distinct; page++) {
      const frame = this.#own(first + page * pageBytes, access);
      if (typeof frame === 'string') {
        for (let back = 0; back < page; back++) this.#letGo(pages[back]! / pageBytes);
        return frame;
      }
      frames.pin(frame);
      pages[page] = frame * pageBytes;
    }
    counts.pinnedPages += count;
    this.pinnedBytes += count * pageBytes;
    const pinned = { address, lengthBytes, pageCount: count, pages, isWritable: access === 'write' };
    this.#pinned.set(pinned, access);
    return pinned;
  }

  /**
   * Makes the pages before the first that is not mapped present, as Linux does before it fails. @returns why it fails
   */
  #upToHole(first: number, count: number, access: PinAccess): 'EFAULT' | 'ENOMEM' {
    for (let page = 0; page < count; page++) {
      const frame = this.#own(first + page * pageBytes, access);
      if (typeof frame === 'string') return frame;
    }
    return 'EFAULT';
  }

  #own(page: number, access: PinAccess): number | 'EFAULT' | 'ENOMEM' {
    const frame = ownFrame(this.#space, page, access, kernelAccess);
    if (frame === 'later') throw new InvariantError('pin', frame, 'an answer in place');
    return frame;
  }

  unpin(pinned: PinnedPages): void {
    const access = this.#pinned.get(pinned);
    if (access === undefined) {
      throw new InvariantError(
        'unpin',
        pinned.address,
        'pages that are pinned: this pin was given back before',
      );
    }
    this.#pinned.delete(pinned);
    for (const physical of pinned.pages) {
      if (access === 'write') this.#space.mm.pages.set(physical / pageBytes, pageDirty);
      this.#letGo(physical / pageBytes);
    }
    this.#space.mm.counts.unpinnedPages += pinned.pageCount;
    this.pinnedBytes -= pinned.pageCount * pageBytes;
  }

  /** The pin may hold the last reference: the frame then leaves all lists. */
  #letGo(frame: number): void {
    const { mm } = this.#space;
    mm.frames.reference(frame);
    mm.frames.unpin(frame);
    mm.release(frame);
  }
}

/**
 * Makes one page present and exclusive, so that it remains the process's page until the process unmaps it.
 * @param isAgain the answer was `later`: the fault is not counted twice
 * @returns its frame, an errno, or `later`: ask again at the memory manager's `retryPs`, if the mode demands it
 */
export function ownFrame(
  space: AddressSpace,
  page: number,
  access: PinAccess,
  mode: AccessMode,
  isAgain = false,
): number | 'EFAULT' | 'ENOMEM' | 'later' {
  const { areas, table, mm } = space;
  const area = areas.find(page);
  if (area === undefined || area.kind === 'device') return 'EFAULT';
  const isRegularFile = area.isShared && area.file !== undefined && !area.file.isShared;
  if (access === 'write' && (isRegularFile || !area.isWritable)) return 'EFAULT';
  for (let again = isAgain; ; again = false) {
    const flags = table.flagsAt(page);
    let wanted = accessRead;
    if (access === 'write') wanted = accessWrite;
    else if ((flags & flagPresent) !== 0) wanted = accessOwn;
    if ((flags & flagPresent) !== 0) {
      const frame = table.translate(page) / pageBytes;
      if (access === 'write' ? (flags & flagWritable) !== 0 : !mustOwn(space, frame, area.isPrivate))
        return frame;
    }
    const outcome = mm.faults.handle(space, page, wanted, mode, again);
    if (outcome === faultLater) return 'later';
    if (outcome === faultNoMemory) return 'ENOMEM';
    if (outcome !== faultDone) return 'EFAULT';
  }
}

/** If pinned only for reading, the page would not receive later writes of the process (gup_must_unshare). */
function mustOwn({ mm }: AddressSpace, frame: number, isPrivate: boolean): boolean {
  const { pages, zeroFrame } = mm;
  if (frame === zeroFrame || !pages.has(frame, pageAnonymous)) return isPrivate;
  return !pages.has(frame, pageExclusive);
}
