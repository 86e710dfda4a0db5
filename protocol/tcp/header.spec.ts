import { describe, expect, it } from 'vitest';
import { viewOf } from '../../base/index.ts';
import { newSegmentFields, readSegmentHeader, type SegmentFields } from './index.ts';

/** The options of a header of TCP whose other fields are 0, in a segment that ends with them. */
function optionsOf(options: readonly number[]): Pick<SegmentFields, 'maximumSegment' | 'windowScale'> {
  const segment = Uint8Array.from([...new Array<number>(20).fill(0), ...options]);
  segment[12] = (segment.length / 4) << 4;
  const fields = { ...newSegmentFields(), maximumSegment: 1, windowScale: 1 };
  expect(readSegmentHeader(viewOf(segment), 0, segment.length, fields)).toBe(segment.length);
  return { maximumSegment: fields.maximumSegment, windowScale: fields.windowScale };
}

describe('the options of a segment', () => {
  it.each([
    ['none', [], 0, -1],
    ['maximum segment size 1460, window scale 7', [2, 4, 0x05, 0xb4, 1, 3, 3, 7], 1460, 7],
    ['what follows the end of the list', [0, 3, 3, 7], 0, -1],
    ['an unknown kind, which its length passes over', [254, 4, 0, 0, 2, 4, 0x05, 0xb4], 1460, -1],
    ['a length of less than kind and length', [254, 1, 0, 0, 2, 4, 0x05, 0xb4], 0, -1],
    ['a length beyond the header', [1, 2, 4, 0x05], 0, -1],
    ['a kind in the last byte of the header', [1, 1, 1, 2], 0, -1],
  ])('RFC 9293, 3.1: of %s', (_what, options, maximumSegment, windowScale) => {
    expect(optionsOf(options)).toEqual({ maximumSegment, windowScale });
  });
});
