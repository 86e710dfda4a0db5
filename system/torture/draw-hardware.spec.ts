import { describe, expect, it } from 'vitest';
import { Random } from '../../sim/index.ts';
import { fittedConnectx3 } from '../machine/profile/fitted-connectx3.ts';
import { configurationOf, type ParameterValues } from '../machine/profile/index.ts';
import { acceptable, drawHardware, drawnPaths, knots } from './draw-hardware.ts';
import { withReceivePath } from './draw-receive-path.ts';
import { drawStory } from './draw-story.ts';

describe('the hardware of stories', () => {
  it.each(knots.map((knot) => ({ knot })))('can be tied like $knot', ({ knot }) => {
    // What the configuration refuses is left out of a story without a word.
    expect(() => configurationOf({ set: knot })).not.toThrow();
  });

  const drawn: readonly ParameterValues[] = Array.from({ length: 300 }, (_, seed) =>
    drawHardware(new Random(seed, 'hardware')),
  );

  it('is accepted by all checks of the configuration, those of the wire too', () => {
    for (const set of drawn) expect(() => configurationOf({ set })).not.toThrow();
  });

  it('has costs of the fitted profiles, and of keys, in some stories', () => {
    const later = [
      ...Object.keys(fittedConnectx3).filter((path) => path !== 'hca.receiveHeadCycles'),
      'hca.keyOperationCycles',
    ];
    for (const path of later)
      expect(drawn.filter((set) => path in set).length, path).toBeGreaterThan(drawn.length / 100);
    expect(drawnPaths).toEqual(expect.arrayContaining(later));
  });

  it('has headers that take their time in some stories of players, and leaves the rest of them as it was', () => {
    const stories = Array.from({ length: 400 }, (_, seed) => drawStory(seed));
    const received = stories.map((story) => withReceivePath(new Random(story.seed, 'receiving'), story));
    const changed = received.filter(({ set }) => 'hca.receiveHeadCycles' in set);
    expect(changed.length).toBeGreaterThan(8);
    expect(changed.length).toBeLessThan(40);
    for (const [at, { set, ...rest }] of received.entries()) {
      const { set: before, ...same } = stories[at]!;
      expect(rest).toEqual(same);
      expect(set).toMatchObject(before);
    }
    expect(drawnPaths).toContain('hca.receiveHeadCycles');
  });

  it('keeps what a scene needs, and leaves out what cannot be beside it', () => {
    const hardware = { 'wire.creditReturnBytes': 12_000, 'dma.tagCount': 1 };
    const needed = { 'wire.receiveBufferBytes': 8448 };
    expect(acceptable(hardware, needed)).toEqual({ 'dma.tagCount': 1, ...needed });
  });
});
