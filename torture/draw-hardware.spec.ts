import { describe, expect, it } from 'vitest';
import { fittedConnectx3 } from '../machine/profile/fitted-connectx3.ts';
import { configurationOf, type ParameterValues } from '../machine/profile/index.ts';
import { Random } from '../sim/index.ts';
import { acceptable, drawHardware, drawnPaths, knots } from './draw-hardware.ts';
import { withReceivePath } from './draw-receive-path.ts';
import { withSendContexts } from './draw-send-contexts.ts';
import { drawStory } from './draw-story.ts';
import { withWqeBuffer } from './draw-wqe-buffer.ts';
import { storyOfSeed } from './story-of-seed.ts';

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
    const apart = ['hca.receiveHeadCycles', 'hca.sendContextEntries', 'hca.wqeBufferLines'];
    const later = [
      ...Object.keys(fittedConnectx3).filter((path) => !apart.includes(path)),
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

  it('has a requester with contexts of its own in some stories, and leaves the rest of them as it was', () => {
    const stories = Array.from({ length: 400 }, (_, seed) => drawStory(seed));
    const changed = stories.flatMap((story) => {
      const { set, ...rest } = withSendContexts(new Random(story.seed, 'send contexts'), story);
      const { set: before, ...same } = story;
      expect(rest).toEqual(same);
      expect(set).toMatchObject(before);
      expect(() => configurationOf({ set })).not.toThrow();
      return 'hca.contextFetchesInFlight' in set ? [set] : [];
    });
    expect(changed.length).toBeGreaterThan(20);
    expect(changed.length).toBeLessThan(70);
    const entries = changed.map((set) => set['hca.sendContextEntries'] ?? 0);
    expect(new Set(entries).size).toBeGreaterThan(4);
    for (const path of ['hca.sendContextEntries', 'hca.contextFetchesInFlight'])
      expect(drawnPaths).toContain(path);
  });

  it('has a requester that holds few lines of a WQE in some stories, and leaves the rest of them as it was', () => {
    const stories = Array.from({ length: 400 }, (_, seed) => drawStory(seed));
    const changed = stories.flatMap((story) => {
      const { set, ...rest } = withWqeBuffer(new Random(story.seed, 'WQE buffer'), story);
      const { set: before, ...same } = story;
      expect(rest).toEqual(same);
      const { 'hca.wqeLineCycles': _, ...others } = before;
      expect(set).toMatchObject(others);
      expect(() => configurationOf({ set })).not.toThrow();
      return 'hca.wqeBufferLines' in set ? [set['hca.wqeBufferLines']] : [];
    });
    expect(changed.length).toBeGreaterThan(20);
    expect(changed.length).toBeLessThan(70);
    expect(new Set(changed).size).toBe(6);
    expect(drawnPaths).toContain('hca.wqeBufferLines');
  });

  it('has such a requester in stories of players and of scenes', () => {
    const stories = Array.from({ length: 500 }, (_, seed) => storyOfSeed(seed));
    for (const path of ['hca.contextFetchesInFlight', 'hca.wqeBufferLines']) {
      const having = stories.filter(({ set }) => path in set);
      expect(new Set(having.map(({ scene }) => scene === undefined))).toEqual(new Set([true, false]));
    }
  });

  it('keeps what a scene needs, and leaves out what cannot be beside it', () => {
    const hardware = { 'wire.creditReturnBytes': 12_000, 'dma.tagCount': 1 };
    const needed = { 'wire.receiveBufferBytes': 8448 };
    expect(acceptable(hardware, needed)).toEqual({ 'dma.tagCount': 1, ...needed });
  });
});
