/**
 * Consecutive completions, taken before their records' calls. Most only change statistics: their bytes were placed early, and
 * their request waits for others as well.
 */
import type { BlockAccount, ClockDomain, LogicalProcess } from '../../sim/index.ts';
import {
  COMPLETION_DATA,
  FLAG_PLACED_EARLY,
  FLOAT_ADDRESS,
  tagOf,
  touchedDwords,
  trafficClassOf,
  UPDATE_FC,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_KIND,
  WORD_LENGTH,
} from '../pcie/index.ts';
import type { DmaDataPath } from './dma-data-path.ts';
import type { DmaReadLink } from './link.ts';
import { type ReadTag, TAG_ACTIVE, type TagPool } from './tag-pool.ts';

export interface CompletionRunParts {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaReadLink;
  /** Parts of the read engine: its tags, its returning half. */
  readonly tags: TagPool;
  readonly account: BlockAccount;
  readonly dataPath: DmaDataPath;
  /** See EarlyPlacement. */
  readonly kept: readonly (Uint8Array | undefined)[];
}

export class CompletionRun {
  /** Edge for which a completion was last taken. */
  lastCycle = -1;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #link: DmaReadLink;
  readonly #tags: TagPool;
  readonly #account: BlockAccount;
  readonly #dataPath: DmaDataPath;
  readonly #kept: readonly (Uint8Array | undefined)[];

  constructor({ lp, domain, link, tags, account, dataPath, kept }: CompletionRunParts) {
    this.#lp = lp;
    this.#domain = domain;
    this.#link = link;
    this.#tags = tags;
    this.#account = account;
    this.#dataPath = dataPath;
    this.#kept = kept;
  }

  /**
   * Takes the completion at `offset`, which has just arrived, and those that follow before anything else is due in the process,
   * each at its time, in place of the edge after it. Does so only if the result equals that of taking them at that edge: their
   * bytes were placed early, their request waits for others as well, and the data path is free.
   * @param isTagAwaited whether a request waits for a free tag
   * @returns whether it has taken any
   */
  take(offset: number, isTagAwaited: boolean): boolean {
    const lp = this.#lp;
    const link = this.#link;
    const tags = this.#tags;
    const { reader } = link;
    const { words, floats } = reader;
    const { clock, nextPs: edgePs } = this.#domain;
    const trafficClass = trafficClassOf(words[(offset >> 2) + WORD_DESCRIPTOR]!);
    let { freeCycle } = this.#account;
    let endPs = edgePs;
    let place = offset;
    let atPs = lp.nowPs;
    let busyCycles = 0;
    let count = 0;
    let dwords = 0;
    let bytes = 0;
    while (atPs < endPs) {
      const record = place >> 2;
      const descriptor = words[record + WORD_DESCRIPTOR]!;
      const lengthBytes = words[record + WORD_LENGTH]!;
      const tag = tags.tagOf(tagOf(descriptor));
      const { remainingBytes } = tag;
      const cycle = clock.cycleAfter(atPs);
      const hasKept = this.#kept[tag.number] !== undefined;
      if (
        hasKept ||
        !isPlain(words, record, tag) ||
        trafficClassOf(descriptor) !== trafficClass ||
        cycle < freeCycle
      )
        break;
      const isLast = lengthBytes === remainingBytes;
      if (isLast && (isTagAwaited || tag.request!.readCount === 1)) break;
      if (count === 0) endPs = Math.min(endPs, lp.runAhead.quiescentUntilPs(reader));
      else lp.runAhead.takeRecord(reader);
      link.passCompletion(place);
      this.lastCycle = cycle;
      const serviceCycles = this.#dataPath.cyclesOf(lengthBytes);
      freeCycle = cycle + serviceCycles;
      busyCycles += serviceCycles;
      count++;
      dwords += touchedDwords(floats[(record >> 1) + FLOAT_ADDRESS]!, lengthBytes);
      bytes += lengthBytes;
      tag.sramOffset += lengthBytes;
      tag.remainingBytes = remainingBytes - lengthBytes;
      if (isLast) {
        tag.request!.readCount--;
        tags.release(tag);
      }
      place = reader.nextOffset;
      if (words[(place >> 2) + WORD_KIND] === UPDATE_FC && link.passLimits(endPs)) {
        // TLPs that wait for credits may now leave.
        endPs = Math.min(endPs, lp.runAhead.quiescentUntilPs(reader));
        place = reader.nextOffset;
      }
      atPs = reader.nextPs;
    }
    if (count === 0) return false;
    link.countCompletions(trafficClass, count, dwords, bytes);
    // The account is the same as if the completions had been taken without a pause and the last one at its time.
    this.#account.serve(freeCycle - busyCycles, busyCycles);
    return true;
  }
}

/** Whether the record at word `record` is a completion that continues the read of this tag, with bytes that were placed early. */
function isPlain(words: Int32Array, record: number, tag: ReadTag): boolean {
  const { remainingBytes } = tag;
  const lengthBytes = words[record + WORD_LENGTH]!;
  return (
    words[record + WORD_KIND] === COMPLETION_DATA &&
    words[record + WORD_FLAGS] === FLAG_PLACED_EARLY &&
    words[record + WORD_BYTE_COUNT] === remainingBytes &&
    tag.state === TAG_ACTIVE &&
    lengthBytes > 0 &&
    lengthBytes <= remainingBytes
  );
}
