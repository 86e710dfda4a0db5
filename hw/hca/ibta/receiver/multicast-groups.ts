/**
 * The multicast table of the device: entries by index as WRITE_MCG wrote them, and the look-up for a received packet.
 * Software chains entries by hash; the device searches the entries of all chains, which finds the same one. An entry to
 * which no chain leads is ignored: mlx4 leaves an unlinked entry unchanged (mlx4_qp_detach_common). Source: interface
 * sheet 3.18, 5.6.
 */
import { mcgHead, mcgMember } from '../../../../abi/index.ts';
import { viewOf } from '../../../../base/index.ts';
import { isGrhForGid } from '../packets/index.ts';

const GID_PLACE = mcgHead.fields.mgid.field.offset;

export class MulticastGroups {
  readonly #entries = new Map<number, Uint8Array>();
  /** Entries of the chains; undefined once the table has been written since. */
  #reachable: readonly Uint8Array[] | undefined;
  /** Entries from 0 on that begin chains. */
  #headCount = Number.POSITIVE_INFINITY;
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
    this.#forget();
  }

  clear(): void {
    this.#entries.clear();
    this.#forget();
  }

  /** INIT_HCA: entries before this one begin chains, the others continue them. Before, all begin one. */
  setHeadCount(count: number): void {
    this.#headCount = count;
    this.#forget();
  }

  #forget(): void {
    this.#reachable = undefined;
    this.#found = undefined;
  }

  /** Follows all chains; one that leads in a circle ends there. */
  #chained(): readonly Uint8Array[] {
    const seen = new Set<number>();
    for (const head of this.#entries.keys()) {
      if (head >= this.#headCount) continue;
      for (let index = head; !seen.has(index); ) {
        const entry = this.#entries.get(index);
        if (entry === undefined) break;
        seen.add(index);
        const next = mcgHead.fields.nextIndex.get(viewOf(entry), 0);
        if (next === 0) break;
        index = next;
      }
    }
    return [...seen].map((index) => this.#entries.get(index)!);
  }

  /** Finds the entry of the group that the GRH at `grh` names, and returns how many members it has: 0 without one. */
  find(bytes: Uint8Array, grh: number): number {
    this.#reachable ??= this.#chained();
    for (const entry of this.#reachable) {
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

  /** True if a member receives none of its own datagrams. */
  blocksLoopback(index: number): boolean {
    if (this.#found === undefined) return true;
    const place = mcgHead.sizeBytes + index * mcgMember.sizeBytes;
    return mcgMember.fields.blockLoopback.get(this.#found, place) === 1;
  }
}
