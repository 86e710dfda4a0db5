/**
 * The page-table entries that point at a frame: reclaim and migration must change them before they may use the frame.
 *
 * Nearly every frame has one entry, so the first is kept in tables and only further ones in a map. A 2 MiB page is recorded
 * under its first frame.
 */

import { FrameTable } from './frame-table.ts';

const none = -1;

export interface Mapping {
  /** Number of the address space. */
  readonly space: number;
  readonly address: number;
}

export class ReverseMap {
  readonly #spaces = new FrameTable(none);
  readonly #addresses = new FrameTable(0, Float64Array);
  readonly #further = new Map<number, Mapping[]>();

  add(frame: number, space: number, address: number): void {
    if (this.#spaces.of(frame) === none) {
      this.#spaces.set(frame, space);
      this.#addresses.set(frame, address);
      return;
    }
    const further = this.#further.get(frame);
    if (further === undefined) this.#further.set(frame, [{ space, address }]);
    else further.push({ space, address });
  }

  remove(frame: number, space: number, address: number): void {
    const further = this.#further.get(frame);
    const at = further?.findIndex((entry) => entry.space === space && entry.address === address) ?? -1;
    if (this.#spaces.of(frame) === space && this.#addresses.of(frame) === address) {
      const next = further?.pop();
      this.#spaces.set(frame, next?.space ?? none);
      this.#addresses.set(frame, next?.address ?? 0);
    } else if (at >= 0) {
      further!.splice(at, 1);
    }
    if (further?.length === 0) this.#further.delete(frame);
  }

  /** Entries that point at a frame (_mapcount + 1). */
  countOf(frame: number): number {
    return this.#spaces.of(frame) === none ? 0 : 1 + (this.#further.get(frame)?.length ?? 0);
  }

  /** All entries that point at a frame. */
  of(frame: number): Mapping[] {
    if (this.#spaces.of(frame) === none) return [];
    const first = { space: this.#spaces.of(frame), address: this.#addresses.of(frame) };
    return [first, ...(this.#further.get(frame) ?? [])];
  }
}
