import { describe, expect, it, vi } from 'vitest';
import { BlockAccount } from '../../sim/block-account.ts';
import { ChannelWriter } from '../../sim/channel.ts';
import { LogicalProcess } from '../../sim/logical-process.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  descriptorOf,
  FLAG_PLACED_EARLY,
  FLAG_POISONED,
  UPDATE_FC,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_LENGTH,
} from '../pcie/tlp/tlp.ts';
import { CompletionRun } from './completion-run.ts';
import { ScriptedLink } from './dma-bench.ts';
import { DmaDataPath } from './dma-data-path.ts';
import { ReadQueue } from './read-queue.ts';
import { type ReadTag, TagPool } from './tag-pool.ts';

const READ_BYTES = 1024;
const TRAFFIC_CLASS = 4;

/** Differences from a completion that continues where the previous one ended. */
interface Second {
  readonly kind?: number;
  readonly flags?: number;
  readonly bytes?: number;
  readonly byteCount?: number;
  readonly tag?: number;
  readonly trafficClass?: number;
}

interface Circumstances {
  readonly firstPs?: number;
  readonly dataPathBytes?: number;
  readonly edgeCycle?: number;
  readonly eventPs?: number;
  readonly isTagAwaited?: boolean;
  /** A property of another read's tag, of which 768 bytes are outstanding. */
  readonly other?: (tag: ReadTag, tags: TagPool, kept: (Uint8Array | undefined)[]) => void;
}

/**
 * Two completions of 256 bytes arrive, at 100,500 (unless another instant is given) and 200,500 ps. Returns how many were taken
 * at each of the calls.
 */
function takenOf(second: Second = {}, circumstances: Circumstances = {}): number[] {
  const lp = new LogicalProcess('hca');
  const domain = lp.addClockDomain(1000);
  const link = new ScriptedLink(lp, false);
  const writer = new ChannelWriter(link.reader.buffer);
  const tags = new TagPool(4);
  const account = new BlockAccount('return');
  const dataPath = new DmaDataPath(circumstances.dataPathBytes ?? 32);
  const kept: (Uint8Array | undefined)[] = [undefined, undefined, undefined, undefined];
  const run = new CompletionRun({ lp, domain, link, tags, account, dataPath, kept });
  const queue = new ReadQueue({ name: 'r', trafficClass: TRAFFIC_CLASS, fifoDepth: 2, weight: 1 }, 0, {
    done: () => {},
  });
  const tagFor = (remainingBytes: number): ReadTag => {
    const tag = tags.take(1_000_000);
    queue.push(0, remainingBytes, 0, 0);
    tag.request = queue.issuing;
    queue.sent(remainingBytes);
    tag.request.readCount = 2;
    tag.remainingBytes = remainingBytes;
    return tag;
  };
  tagFor(READ_BYTES);
  const other = tagFor(READ_BYTES - 256);
  circumstances.other?.(other, tags, kept);
  const append = (timePs: number, given: Second): void => {
    const word = writer.append(timePs, given.kind ?? COMPLETION_DATA, 0) >> 2;
    writer.words[word + WORD_FLAGS] = given.flags ?? FLAG_PLACED_EARLY;
    writer.words[word + WORD_LENGTH] = given.bytes ?? 256;
    writer.words[word + WORD_BYTE_COUNT] = given.byteCount ?? READ_BYTES - 256;
    const trafficClass = given.trafficClass ?? TRAFFIC_CLASS;
    writer.words[word + WORD_DESCRIPTOR] = descriptorOf(0, given.tag ?? 0, trafficClass);
  };
  const taken: number[] = [];
  const countCompletions = vi.spyOn(link, 'countCompletions');
  lp.addInbound(link.reader, 1000, (offset) => {
    countCompletions.mockClear();
    const hasTaken = run.take(offset, circumstances.isTagAwaited ?? false);
    const counts = countCompletions.mock.calls.map((call: unknown[]) => call[1] as number);
    expect(hasTaken).toBe(counts.length > 0);
    taken.push(counts[0] ?? 0);
  });
  const stage = domain.addStage(() => {});
  if (circumstances.edgeCycle !== undefined) domain.wake(stage, circumstances.edgeCycle);
  const event = lp.queue.addHandler(() => {});
  if (circumstances.eventPs !== undefined) lp.queue.schedule(circumstances.eventPs, event);
  append(circumstances.firstPs ?? 100_500, { byteCount: READ_BYTES });
  append(200_500, second);
  writer.publish(0);
  lp.refreshHorizon();
  lp.advance(300_000);
  return taken;
}

describe('a run of completions', () => {
  it('PCIe 2.3.1.1: continues with one that continues a read, or belongs to another', () => {
    expect(takenOf()).toEqual([2]);
    expect(takenOf({ tag: 1 })).toEqual([2]);
    // The end of that read, not of its request.
    expect(takenOf({ tag: 1, bytes: 768 })).toEqual([2]);
  });

  it.each<[string, Second, Circumstances?]>([
    ['has no data', { kind: COMPLETION }],
    ['is none', { kind: UPDATE_FC }],
    ['carries its bytes', { flags: 0 }],
    ['is poisoned', { flags: FLAG_PLACED_EARLY | FLAG_POISONED }],
    ['has bytes that come later', { byteCount: 512 }],
    ['has more bytes than are to come', { bytes: 800 }],
    ['has none', { bytes: 0 }],
    ['is of a read that has ended', { tag: 1 }, { other: (tag, tags) => tags.release(tag) }],
    ['is of a read that has timed out', { tag: 1 }, { other: (tag, tags) => tags.expire(tag, 2_000_000) }],
    [
      'has bytes that were placed elsewhere',
      { tag: 1 },
      {
        other: (tag, _, kept) => {
          kept[tag.number] = new Uint8Array(768);
        },
      },
    ],
    [
      'ends its request',
      { tag: 1, bytes: 768 },
      {
        other: (tag) => {
          tag.request!.readCount = 1;
        },
      },
    ],
    ['frees a tag that a requester waits for', { tag: 1, bytes: 768 }, { isTagAwaited: true }],
  ])('does not when that %s', (_, second, circumstances = {}) => {
    expect(takenOf(second, circumstances)).toEqual([1, 0]);
  });

  it('is of one traffic class: the next begins another', () => {
    expect(takenOf({ trafficClass: 5 })).toEqual([1, 1]);
  });

  it('ends before anything else that is due in the process', () => {
    expect(takenOf({}, { edgeCycle: 200 })).toEqual([1, 1]);
    expect(takenOf({}, { edgeCycle: 201 })).toEqual([2]);
    expect(takenOf({}, { eventPs: 200_500 })).toEqual([1, 1]);
    expect(takenOf({}, { eventPs: 200_501 })).toEqual([2]);
  });

  it('takes no completion at the instant of an edge, nor while the data path is occupied', () => {
    expect(takenOf({}, { firstPs: 100_000, edgeCycle: 100 })).toEqual([0, 0]);
    expect(takenOf({}, { firstPs: 100_000, edgeCycle: 101 })).toEqual([1, 1]);
    expect(takenOf({}, { dataPathBytes: 2 })).toEqual([1, 0]);
    expect(takenOf({}, { dataPathBytes: 4 })).toEqual([2]);
  });
});
