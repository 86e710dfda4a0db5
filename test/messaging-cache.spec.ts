/**
 * Registrations that outlive their use: replaced memory, the pin limit, forks, exits. In every case the transferred bytes are
 * those that the program sees, and nothing stays pinned.
 */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import type { JsonValue } from '../machine/program.ts';
import { expectBalanced } from './expectations.ts';
import { eachPartition, type Outcome, programOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const config = { cutoffBytes: 1000 };

describe('cached registrations', () => {
  async function run(
    names: readonly string[],
    args: object = { config },
    { set = {}, partition = 'single' }: Pick<MachineOptions, 'set' | 'partition'> = {},
  ): Promise<Outcome> {
    const programs = names.map((name, at) =>
      programOf('cached-regions', name, at % 2, { args: args as JsonValue }),
    );
    const outcome = await runPrograms(programs, { partition, set });
    expectBalanced(outcome.report);
    return outcome;
  }

  it.each([
    ['by madvise', 'madvise'],
    ['by mmap with MAP_FIXED over them', 'mmap'],
  ])(
    'reach the old frames without a cache that follows the replaced pages %s, and the new ones through the cache',
    async (_how, replaceBy) => {
      const { results } = await run(['replacer', 'reader'], { replaceBy });
      // The second read should find pattern 2: the classic bug. The cache's second read finds pattern 4.
      expect(results[1]).toEqual([1, 1, 3, 4]);
      expect(results[0]).toEqual({ hits: 0, misses: 2, invalidations: 1 });
    },
  );

  it.each(eachPartition)(
    'are registered again after madvise, mmap over them, mremap and munmap, of the range or a page of it: %s',
    async (partition) => {
      const { results } = await run(['changer', 'follower'], { config }, { partition });
      expect(results[1]).toEqual([true, true, true, true, true, true, true]);
      expect(results[0]).toMatchObject({ hits: expect.any(Number), failure: 'VerbsError EFAULT' });
      const { hits, misses, invalidations } = results[0] as Record<string, number>;
      expect(hits! + misses!).toBe(6);
      // Replaced three times; moved, or only grown in place.
      expect(invalidations).toBeGreaterThanOrEqual(3);
      expect(misses).toBe(invalidations! + 1);
    },
  );

  it.each(eachPartition)(
    'that are invalidated during a transfer serve it to its end, and are then removed: %s',
    async (partition) => {
      const { results } = await run(['hasty', 'longReceiver'], { config }, { partition });
      expect(results[0]).toEqual({ isPinned: true, afterwards: 0, sizes: [0, 1] });
      expect(results[1]).toEqual([true, true]);
    },
  );

  it('are deregistered when the pin limit is reached, and only a buffer beyond it fails', async () => {
    const limit = { 'host.memory.memlockLimitKib': 560 };
    const { results } = await run(
      ['limited', 'limitedReceiver'],
      { config: { ...config, eagerBytes: 1024 } },
      { set: limit },
    );
    const { evictions, failure } = results[0] as Record<string, JsonValue>;
    expect(failure).toBe('VerbsError ENOMEM');
    expect(evictions).toBeGreaterThanOrEqual(3);
    expect(results[1]).toEqual([true, true, true, true, true, true, true]);
  });

  it('remain valid for the parent of a fork, and never reach the child', async () => {
    const { results } = await run(['forking', 'threeReceiver']);
    expect(results[0]).toEqual({ hits: 2, misses: 1, seen: [true] });
    expect(results[1]).toEqual([true, true, true]);
  });

  it('are released by the kernel when a program ends with them', async () => {
    const { results } = await run(['deserter', 'deserter', 'watcher']);
    expect(results).toEqual([1, 1, true]);
  });

  it('serve many channels of a process at once', async () => {
    const { results } = await run(['many', 'many']);
    expect(results).toEqual([12, 12]);
  });
});
