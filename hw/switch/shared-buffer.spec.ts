/** Room of an input with pauses, by hand: limit, headroom, and when its sender may send again. */
import { describe, expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { SharedBuffer } from './shared-buffer.ts';

const headroomBytes = 10_000;
const frameBytes = 1000;

/** 65,536 bytes, of which two inputs have headroom: 45,536 are shared. */
const bufferOf = (): SharedBuffer => {
  const { ethernet } = configurationOf({}).switch;
  const changes = { bufferKib: 64, flowControl: 'pause', pauseAlpha: '1', resumeBytes: 3072 } as const;
  return new SharedBuffer({ ...ethernet, ...changes }, 2, headroomBytes);
};

describe('an input that pauses its sender', () => {
  it('takes its share, then its headroom, and no more', () => {
    const buffer = bufferOf();
    // A frame is shared while held + 1000 is at most 45,536 - held: 22,000 + 1000 is, 23,000 + 1000 is not.
    for (let frame = 1; frame <= 23; frame++) {
      expect(buffer.take(0, 0, frameBytes)).toBe(true);
      // From 22,768 on, half of what is shared, it holds as much as is free.
      expect(buffer.mustStop(0, 0)).toBe(frame === 23);
    }
    expect(buffer.inspect()).toEqual({ usedBytes: 23_000, sharedUsedBytes: 23_000 });
    for (let frame = 1; frame <= 10; frame++) expect(buffer.take(0, 0, frameBytes)).toBe(true);
    expect(buffer.inspect()).toEqual({ usedBytes: 33_000, sharedUsedBytes: 23_000 });
    expect(buffer.take(0, 0, frameBytes)).toBe(false);
  });

  it('lets it send again when headroom is empty and its share is resumeBytes below the limit', () => {
    const buffer = bufferOf();
    for (let frame = 1; frame <= 33; frame++) buffer.take(0, 0, frameBytes);
    // Ten leave from the headroom. Then 21,000 + 3072 is at most 45,536 - 21,000; 22,000 + 3072 is more than 23,536.
    const isFree = Array.from({ length: 13 }, () => {
      buffer.release(0, 0, frameBytes);
      return buffer.mayResume(0, 0);
    });
    expect(isFree).toEqual(Array.from({ length: 13 }, (_, at) => at >= 11));
    expect(buffer.inspect()).toEqual({ usedBytes: 20_000, sharedUsedBytes: 20_000 });
  });
});
