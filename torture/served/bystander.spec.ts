import { describe, expect, it, vi } from 'vitest';
import { nativeUnavailableReason } from '../../guests/slot/index.ts';
import { bystandersCq } from './bystander.ts';
import { pageBytes } from './guest-ram.ts';
import type { ServedDevice } from './served-device.ts';
import { playServedStory } from './served-story.ts';

vi.setConfig({ testTimeout: 300_000 });
const unavailable = nativeUnavailableReason();

const cqBytes = 1024;
const cqeBytes = 32;
/** Completions that are left as they are before one is not. */
const honestCount = 3;

type Write = (address: number, bytes: Uint8Array) => void;

/** Alters the completions that the device writes into the bystander's CQ. */
const falsified =
  (falsify: (address: number, cqe: Uint8Array, write: Write) => void) =>
  ({ emulation }: ServedDevice): void => {
    const { memory } = emulation.guests[0]!;
    const write = memory.write.bind(memory);
    let seen = 0;
    memory.write = (address, lengthBytes, source, sourceOffset) => {
      const isInCq = address >= bystandersCq && address + cqeBytes <= bystandersCq + cqBytes;
      const cqe = source.slice(sourceOffset, sourceOffset + lengthBytes);
      // An entry that is made the device's own has nothing but its owner bit.
      const isCompletion = isInCq && lengthBytes === cqeBytes && (cqe[0x1f]! & 0x7f) !== 0;
      if (!isCompletion || seen++ < honestCount) return write(address, lengthBytes, source, sourceOffset);
      falsify(address, cqe, (at, bytes) => void write(at, bytes.length, bytes, 0));
      return true;
    };
  };

const falsifications: [what: string, says: string, falsify: Parameters<typeof falsified>[0]][] = [
  [
    'a completion that comes twice',
    'completion',
    (address, cqe, write) => {
      write(address, cqe);
      if (address + 2 * cqeBytes <= bystandersCq + cqBytes) write(address + cqeBytes, cqe);
    },
  ],
  [
    'one of a QP that does not use the CQ',
    'of a QP that is not',
    (address, cqe, write) => {
      cqe[0x03] = 64;
      write(address, cqe);
    },
  ],
  [
    'one of a request that was not posted',
    'posted|under way',
    (address, cqe, write) => {
      cqe[0x18] = cqe[0x18]! + 1;
      write(address, cqe);
    },
  ],
  [
    'one of another operation',
    'of another operation',
    (address, cqe, write) => {
      cqe[0x1f] = (cqe[0x1f]! & 0xe0) | 0x10;
      write(address, cqe);
    },
  ],
  [
    'an entry that is no completion',
    'no completion',
    (address, cqe, write) => {
      cqe[0x1f] = cqe[0x1f]! ^ 0x80;
      write(address, cqe);
    },
  ],
  [
    'bytes beside the CQ',
    'only the guest writes',
    (address, cqe, write) => {
      write(address, cqe);
      write(address + pageBytes, cqe);
    },
  ],
];

const story = { seed: 1003, lives: 1, actions: 400, watchesMemory: false };

describe.skipIf(unavailable !== undefined)('a bystander in a rough guest', () => {
  it('gets the completions of what it posted', () => {
    let completions = 0;
    const sabotage = falsified((address, cqe, write) => {
      completions++;
      write(address, cqe);
    });
    const { findings } = playServedStory({ ...story, sabotage });
    expect(findings).toEqual([]);
    expect(completions).toBeGreaterThan(20);
  });

  it.each(falsifications)('notices %s', (_what, says, falsify) => {
    const { findings } = playServedStory({ ...story, sabotage: falsified(falsify) });
    expect(findings.map(({ kind }) => kind)).toContain('completion');
    expect(findings.find(({ kind }) => kind === 'completion')?.text).toMatch(new RegExp(says));
  });
});
