/** The IOTLB: device page to frame and rights, set-associative, least recently used in a set. */

import type { BlockState } from '../../sim/index.ts';

const none = -1;

export class Iotlb {
  hits = 0;
  misses = 0;
  readonly #ways: number;
  readonly #sets: number;
  readonly #pages: Float64Array;
  readonly #frames: Float64Array;
  readonly #rights: Uint8Array;
  readonly #usedAt: Float64Array;
  #clock = 0;

  constructor(entries: number, ways: number) {
    this.#ways = Math.min(ways, entries);
    this.#sets = entries / this.#ways;
    this.#pages = new Float64Array(entries).fill(none);
    this.#frames = new Float64Array(entries);
    this.#rights = new Uint8Array(entries);
    this.#usedAt = new Float64Array(entries);
  }

  /** Index of a page's entry, or -1. */
  find(page: number): number {
    const first = (page % this.#sets) * this.#ways;
    for (let at = first; at < first + this.#ways; at++) {
      if (this.#pages[at] !== page) continue;
      this.#usedAt[at] = ++this.#clock;
      return at;
    }
    return none;
  }

  /** Page, frame and rights of each entry, least recently used first. */
  inspect(): BlockState {
    const places = [...this.#pages.keys()]
      .filter((at) => this.#pages[at] !== none)
      .sort((one, other) => this.#usedAt[one]! - this.#usedAt[other]!);
    return { entries: places.map((at) => [at, this.#pages[at]!, this.#frames[at]!, this.#rights[at]!]) };
  }

  frameAt(place: number): number {
    return this.#frames[place]!;
  }

  rightsAt(place: number): number {
    return this.#rights[place]!;
  }

  /** Adds a translation, replacing the least recently used one of its set. @returns its index */
  fill(page: number, frame: number, rights: number): number {
    const first = (page % this.#sets) * this.#ways;
    let at = first;
    for (let way = first; way < first + this.#ways; way++)
      if (this.#usedAt[way]! < this.#usedAt[at]!) at = way;
    this.#pages[at] = page;
    this.#frames[at] = frame;
    this.#rights[at] = rights;
    this.#usedAt[at] = ++this.#clock;
    return at;
  }

  drop(page: number): void {
    const at = this.find(page);
    if (at < 0) return;
    this.#pages[at] = none;
    this.#usedAt[at] = 0;
  }

  /** Drops all translations, after power-on or a change of the page table. */
  reset(): void {
    this.#pages.fill(none);
    this.#usedAt.fill(0);
  }
}
