import { describe, expect, it, vi } from 'vitest';
import { nativeUnavailableReason } from '../../guests/slot/index.ts';
import { itOfAll } from '../../test/extent.ts';
import type { ServedDevice } from './served-device.ts';
import { playServedStory, type ServedFindingKind, shrinkServedStory } from './served-story.ts';

vi.setConfig({ testTimeout: 300_000 });
const unavailable = nativeUnavailableReason();

/** Small stories: a second or two each on an idle computer. */
const small = { lives: 1, actions: 200 };

describe.skipIf(unavailable !== undefined)('a served device', () => {
  it.each([1, 2, 3])('is to the guest after a rough one what it was to the first: story %i', (seed) => {
    expect(playServedStory({ seed, ...small }).findings).toEqual([]);
  });

  it('is treated the same way by the same seed', () => {
    const one = { seed: 11, lives: 1, actions: 60, watchesMemory: false };
    const { counts } = playServedStory(one);
    expect(playServedStory(one).counts).toEqual(counts);
    expect(playServedStory({ ...one, seed: 12 }).counts).not.toEqual(counts);
  });
});

/** Spends CPU time of this thread outside of the kernel; reading the CPU time costs more. */
function spend(): void {
  for (let n = 0, hash = 1; n < 1e6; n++) hash = Math.imul(hash ^ n, 0x01000193);
}

/** Mistakes put into the device, the judge that must find each, and a seed with which it does. */
const mistakes: [what: string, ServedFindingKind, seed: number, sabotage: (device: ServedDevice) => void][] =
  [
    [
      'a node description that outlives its guest',
      'changed',
      6,
      ({ emulation }) => {
        const { node } = emulation.hcas[0]!.hca.control.management;
        node.reset = () => {};
      },
    ],
    [
      'counters that outlive their guest',
      'changed',
      6,
      ({ emulation }) => {
        const { agents } = emulation.hcas[0]!.hca.control.management;
        agents.reset = () => {};
      },
    ],
    [
      'a register that throws',
      'thrown',
      1,
      ({ emulation, slot }) => {
        const { registers } = emulation.hcas[0]!.hca.control.blocks.commandSet;
        const read = registers.read.bind(registers);
        registers.read = (...values) => {
          if (slot.sessionCount > 1) throw new TypeError('sabotaged');
          return read(...values);
        };
      },
    ],
    [
      'memory that is never given back',
      'heap',
      1,
      ({ slot }) => {
        const kept: Uint8Array[] = [];
        const reset = slot.clientDisconnected.bind(slot);
        slot.clientDisconnected = () => {
          kept.push(new Uint8Array(40 * 2 ** 20));
          reset();
        };
      },
    ],
    [
      'a turn that takes longer than a second',
      'silence',
      1,
      ({ slot }) => {
        const settle = slot.settle.bind(slot);
        let countdown = 300;
        slot.settle = (nowMs) => {
          const before = process.threadCpuUsage();
          if (--countdown === 0) while (process.threadCpuUsage(before).user < 1_100_000) spend();
          return settle(nowMs);
        };
      },
    ],
  ];

describe.skipIf(unavailable !== undefined)('the judges of a served device', () => {
  it.each(mistakes)('find %s', (_what, kind, seed, sabotage) => {
    const { findings } = playServedStory({ seed, ...small, watchesMemory: kind === 'heap', sabotage });
    expect(findings.map((finding) => finding.kind)).toContain(kind);
  });

  itOfAll('shrink a story to the few things that it takes', () => {
    // Only a rough guest writes to the first page of doorbells.
    const sabotage = ({ slot }: ServedDevice): void => {
      const write = slot.regionWrite.bind(slot);
      slot.regionWrite = (region, offset, bytes) => {
        if (region === 2 && offset < 4096) throw new TypeError('sabotaged');
        return write(region, offset, bytes);
      };
    };
    const shrunk = shrinkServedStory({ seed: 3, lives: 1, actions: 60, sabotage });
    expect(shrunk?.story.findings[0]?.text).toContain('sabotaged');
    expect(shrunk!.options.actions!).toBeLessThan(60);
    expect(shrunk!.options.without!.length).toBeGreaterThan(5);
  });

  it('shrink nothing where nothing is wrong', () => {
    expect(shrinkServedStory({ seed: 5, lives: 1, actions: 30 })).toBeUndefined();
  });
});
