import { describe, expect, it } from 'vitest';
import { configurationOf } from '../machine/profile/index.ts';
import { knots } from './draw-hardware.ts';

describe('the hardware of stories', () => {
  it.each(knots.map((knot) => ({ knot })))('can be tied like $knot', ({ knot }) => {
    // What the configuration refuses is left out of a story without a word.
    expect(() => configurationOf({ set: knot })).not.toThrow();
  });
});
