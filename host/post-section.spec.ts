import { describe, expect, it } from 'vitest';
import { PostSection } from './post-section.ts';

const at = (localCycle: number) => ({ core: { localCycle } });

describe('the section of a post', () => {
  it('makes a post wait until the turn of the one before has ended', () => {
    const section = new PostSection({ postSection: 700, postSectionPerThread: 60 });
    // The first begins at once, at cycle 110; with two threads its turn lasts 820 cycles.
    expect(section.enter(at(100), 10, 2)).toBe(0);
    expect(section.enter(at(150), 10, 2)).toBe(110 + 820 - 160);
    // Begun before the second, but third to arrive: its turn follows the second's, which ends at 1750.
    expect(section.enter(at(140), 10, 2)).toBe(1750 - 150);
  });

  it('lets a post pass whose turn is free', () => {
    const section = new PostSection({ postSection: 700, postSectionPerThread: 60 });
    section.enter(at(0), 0, 1);
    expect(section.enter(at(760), 0, 1)).toBe(0);
  });

  it('keeps its time over an epoch', () => {
    const section = new PostSection({ postSection: 700, postSectionPerThread: 0 });
    section.enter(at(5000), 0, 1);
    section.rebase(5000);
    expect(section.enter(at(100), 0, 1)).toBe(600);
  });
});
