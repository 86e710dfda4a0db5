/** The judge of packets on a cable of InfiniBand: a story's capture as it was, and falsified. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Played, playStory } from '../run-story.ts';
import { exampleStory } from '../testing/example-story.ts';
import { judgeLinks } from './links.ts';
import { type Frame, withFrames } from './testing/altered-capture.ts';

const lrh = 16;
const bth = lrh + 8;

describe('the judge of links', () => {
  let played: Played;
  beforeAll(async () => {
    const story = { ...exampleStory(121), again: undefined };
    played = await playStory(story, { partition: 'single', shuffleSeed: undefined });
  }, 120_000);

  /** Findings when one packet in the middle is another. */
  const foundIn = (change: (frame: Frame) => Partial<Frame>): string =>
    judgeLinks(
      withFrames(played, (frames) => {
        const at = frames.length >> 1;
        return frames.with(at, { ...frames[at]!, ...change(frames[at]!) });
      }),
    ).join('\n');
  const withByte =
    (at: number, bits: number) =>
    ({ bytes }: Frame) => ({ bytes: bytes.with(at, bytes[at]! ^ bits) });

  it('finds nothing in what passed both ends', () => {
    expect(judgeLinks(played)).toEqual([]);
    expect(foundIn(() => ({}))).toBe('');
  });

  it.each([
    ['a lane that the VCRC does not cover', withByte(lrh, 0x10), /VCRC 0x\w+, due 0x\w+/],
    ['a bit of the QP number', withByte(bth + 7, 1), /ICRC 0x\w+, due 0x\w+/],
    ['reserved bits of the LRH', withByte(lrh + 4, 0x80), /LRH: reserved/],
    ['another length', withByte(lrh + 5, 1), /PktLen/],
    [
      'a packet that a fault is said to have damaged',
      () => ({ comment: 'damaged on its way by a fault' }),
      /nothing is wrong/,
    ],
    ['what is no packet', ({ bytes }: Frame) => ({ bytes: bytes.subarray(0, 30) }), /are no packet/],
  ] as const)('finds %s', (_what, change, words) => {
    expect(foundIn(change)).toMatch(words);
  });
});
