/**
 * Early placement: if root complex and device share a thread, the root complex stores the bytes of a completion at the read's
 * destination when it samples memory. The completion's record has FLAG_PLACED_EARLY and carries no bytes.
 *
 *     root complex ── placeOf(descriptor, byteCount) ──▶ memory          bytes, early
 *                  ── CplD without bytes ──▶ DmaReadEngine ── place ──▶  nothing left to do
 *
 * Promises:
 * - Times, counts and credits are unchanged, and so are the bytes for a requester that reads none before its request is
 *   reported: only requesters that promise this have bytes placed early (`placesEarly`).
 * - A destination belongs to its request until all its reads have ended. If a read ends early (a time-out, a reset,
 *   DmaReadEngine.withdrawPlaces), the bytes placed so far are copied, and none are placed early under that tag any more.
 */
import type { Cycles } from '../../base/index.ts';
import type { BlockAccount, ClockDomain, LogicalProcess } from '../../sim/index.ts';
import { type EarlyPlaces, FLAG_PLACED_EARLY, tagOf, WORD_FLAGS } from '../pcie/index.ts';
import { CompletionRun } from './completion-run.ts';
import type { DmaDataPath } from './dma-data-path.ts';
import type { DmaReadLink } from './link.ts';
import { PlacementOnArrival, type ReadPlacement } from './placement-on-arrival.ts';
import type { ReadRequest } from './read-queue.ts';
import type { ReadTag, TagPool } from './tag-pool.ts';

const NOWHERE = -1;

export interface EarlyPlacementOptions {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaReadLink;
  /** On-chip memory in which bytes are placed. */
  readonly memory: Uint8Array;
  /** Parts of the read engine: its tags, its returning half. */
  readonly tags: TagPool;
  readonly account: BlockAccount;
  readonly dataPath: DmaDataPath;
}

export class EarlyPlacement implements ReadPlacement, EarlyPlaces {
  readonly memory: Uint8Array;

  readonly #plain: PlacementOnArrival;
  readonly #tags: TagPool;
  readonly #words: Int32Array;
  readonly #run: CompletionRun;
  /** End of the read's destination, by tag, while its bytes may be placed early; 0 otherwise. */
  readonly #ends: Int32Array;
  /**
   * Bytes placed early for a read that was abandoned with completions outstanding, by tag; never cleared. From then on
   * nothing is placed early under this tag, so a completion marked as placed early belongs to that read.
   */
  readonly #kept: (Uint8Array | undefined)[];

  constructor(options: EarlyPlacementOptions) {
    const { lp, domain, link, memory, tags, account, dataPath } = options;
    this.memory = memory;
    this.#plain = new PlacementOnArrival(memory, link.reader.bytes);
    this.#tags = tags;
    this.#words = link.reader.words;
    this.#ends = new Int32Array(tags.tags.length);
    this.#kept = tags.tags.map(() => undefined);
    this.#run = new CompletionRun({ lp, domain, link, tags, account, dataPath, kept: this.#kept });
  }

  placeOf(descriptor: number, byteCount: number): number {
    const { number, remainingBytes } = this.#tags.tagOf(tagOf(descriptor));
    const end = number < 0 ? 0 : this.#ends[number]!;
    return end > 0 && byteCount <= remainingBytes ? end - byteCount : NOWHERE;
  }

  begin(tag: ReadTag, { queue, sramOffset }: ReadRequest, bytes: number): void {
    const mayBeEarly = queue.placesEarly && this.#kept[tag.number] === undefined;
    this.#ends[tag.number] = mayBeEarly ? sramOffset + bytes : 0;
  }

  /** Bytes that were placed early are present, unless the destination was abandoned since. */
  place(tag: ReadTag, offset: number, bytes: number): void {
    if ((this.#words[(offset >> 2) + WORD_FLAGS]! & FLAG_PLACED_EARLY) === 0) {
      this.#plain.place(tag, offset, bytes);
      return;
    }
    const kept = this.#kept[tag.number];
    if (kept === undefined) return;
    const from = kept.length - tag.remainingBytes;
    this.memory.set(kept.subarray(from, from + bytes), tag.sramOffset);
  }

  /** Keeps the bytes placed early: late completions of this read may still be taken for those of the tag's next read. */
  giveUp({ number, sramOffset, remainingBytes }: ReadTag): void {
    this.#kept[number] ??= this.memory.slice(sramOffset, sramOffset + remainingBytes);
    this.#ends[number] = 0;
  }

  takeAtOnce(offset: number, isTagAwaited: boolean): boolean {
    return this.#run.take(offset, isTagAwaited);
  }

  hasTakenAt(cycle: Cycles): boolean {
    return this.#run.lastCycle === cycle;
  }

  rebase(cycles: number): void {
    this.#run.lastCycle -= cycles;
  }
}
