import { describe, expect, it, vi } from 'vitest';
import { nativeUnavailableReason } from '../../../guest/index.ts';
import type { ServedDevice } from './served-device.ts';
import { playServedStory, type ServedFindingKind, shrinkServedStory } from './served-story.ts';

vi.setConfig({ testTimeout: 300_000 });
const unavailable = nativeUnavailableReason();

/** Small stories: a few seconds each on a busy computer. */
const small = { lives: 2, actions: 150 };

describe.skipIf(unavailable !== undefined)('a served device', () => {
  it.each([1, 2, 3])('is to the guest after rough ones what it was to the first: story %i', (seed) => {
    expect(playServedStory({ seed, ...small }).findings).toEqual([]);
  });

  it('is treated the same way by the same seed', () => {
    const one = { seed: 11, lives: 1, actions: 100 };
    expect(playServedStory(one).counts).toEqual(playServedStory(one).counts);
    expect(playServedStory({ ...one, seed: 12 }).counts).not.toEqual(playServedStory(one).counts);
  });
});

/** Mistakes put into the device, and the judge that is to find each. */
const mistakes: [what: string, ServedFindingKind, sabotage: (device: ServedDevice) => void][] = [
  [
    'a node description that outlives its guest',
    'changed',
    ({ emulation }) => {
      const { node } = emulation.hcas[0]!.hca.control.state.parts;
      node.reset = () => {};
    },
  ],
  [
    'counters that outlive their guest',
    'changed',
    ({ emulation }) => {
      const { agents } = emulation.hcas[0]!.hca.control.state.parts;
      agents.reset = () => {};
    },
  ],
  [
    'a register that throws',
    'thrown',
    ({ emulation }) => {
      const { registers } = emulation.hcas[0]!.hca.control;
      const read = registers.read.bind(registers);
      let countdown = 3000;
      registers.read = (...values) => {
        if (--countdown < 0) throw new TypeError('sabotaged');
        return read(...values);
      };
    },
  ],
  [
    'a turn that takes longer than a second',
    'silence',
    ({ slot }) => {
      const settle = slot.settle.bind(slot);
      let countdown = 3000;
      slot.settle = (nowMs) => {
        const before = process.threadCpuUsage();
        if (--countdown === 0) while (process.threadCpuUsage(before).user < 1_100_000);
        return settle(nowMs);
      };
    },
  ],
];

describe.skipIf(unavailable !== undefined)('the judges of a served device', () => {
  it.each(mistakes)('find %s', (_what, kind, sabotage) => {
    const found = Array.from({ length: 6 }, (_, at) => at + 1).some((seed) =>
      playServedStory({ seed, ...small, actions: 400, sabotage }).findings.some(
        (finding) => finding.kind === kind,
      ),
    );
    expect(found).toBe(true);
  });

  it('shrink a story to the few things that it takes', () => {
    const sabotage = mistakes[2]![2];
    const shrunk = shrinkServedStory({ seed: 5, lives: 2, actions: 200, sabotage });
    expect(shrunk?.story.findings[0]?.kind).toBe('thrown');
    expect(shrunk!.options.actions!).toBeLessThanOrEqual(200);
  });

  it('shrink nothing where nothing is wrong', () => {
    expect(shrinkServedStory({ seed: 5, lives: 1, actions: 30 })).toBeUndefined();
  });
});
