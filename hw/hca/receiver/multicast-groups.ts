/**
 * The multicast table of the device: entries as WRITE_MCG wrote them, by index, and the look-up that a received packet needs.
 * Software chains entries by hash; the device searches all of them, which finds the same one. Source: interface sheet 3.18, 5.6.
 */
import { mcgHead, mcgMember } from '../../../abi/index.ts';
import { viewOf } from '../../../base/index.ts';
import { isGrhForGid } from '../packets/index.ts';

const GID_PLACE = mcgHead.fields.mgid.field.offset;

export class MulticastGroups {
  readonly #entries = new Map<number, Uint8Array>();
  /** The entry last found. */
  #found: DataView | undefined;

  get count(): number {
    return this.#entries.size;
  }

  get(index: number): Uint8Array | undefined {
    return this.#entries.get(index);
  }

  set(index: number, entry: Uint8Array): void {
    this.#entries.set(index, entry);
    this.#found = undefined;
  }

  clear(): void {
    this.#entries.clear();
    this.#found = undefined;
  }

  /** Finds the entry of the group that the GRH at `grh` names, and returns how many members it has: 0 without one. */
  find(bytes: Uint8Array, grh: number): number {
    for (const entry of this.#entries.values()) {
      const view = viewOf(entry);
      const count = mcgHead.fields.memberCount.get(view, 0);
      if (count === 0 || !isGrhForGid(entry, GID_PLACE, bytes, grh)) continue;
      this.#found = view;
      return count;
    }
    return 0;
  }

  /** QPN of a member of the entry last found, or -1 once the table has been written since. */
  memberQpn(index: number): number {
    if (this.#found === undefined) return -1;
    return mcgMember.fields.qpn.get(this.#found, mcgHead.sizeBytes + index * mcgMember.sizeBytes);
  }

  /** True when a member wants nothing that it has sent itself. */
  blocksLoopback(index: number): boolean {
    if (this.#found === undefined) return true;
    const place = mcgHead.sizeBytes + index * mcgMember.sizeBytes;
    return mcgMember.fields.blockLoopback.get(this.#found, place) === 1;
  }
}
