/**
 * Messages over RDMA: every byte at every size around the boundaries, in order, with either side late, in either rendezvous and
 * either way of waiting; a failure affects only its own message.
 */
import { describe, expect, it, vi } from 'vitest';
import { messagingConfigOf } from '../experiments/model/index.ts';
import { configurationOf } from '../machine/profile/index.ts';
import type { JsonValue } from '../machine/program.ts';
import { expectBalanced } from './expectations.ts';
import { bothPartitions, type Outcome, programOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const cutoffBytes = 4096;
/** 0, 1, around the cut-off, around pages and packets, above any eager buffer. */
const borders = [0, 1, 31, 4064, 4095, 4096, 4097, 8192, 12_345, 65_536, 300_001];

async function run(names: readonly [string, string], args: object, set = {}): Promise<Outcome> {
  const programs = names.map((name, node) => programOf('messages', name, node, { args: args as JsonValue }));
  const outcome = await runPrograms(programs, { set });
  expectBalanced(outcome.report);
  return outcome;
}

describe.each([
  ['read', 'poll'],
  ['read', 'event'],
  ['write', 'poll'],
  ['write', 'event'],
] as const)('a channel with rendezvous by %s, waiting by %s', (rendezvousBy, waiting) => {
  it('carries every byte of messages of any length, by the protocol for their length', async () => {
    const args = { config: { cutoffBytes, rendezvousBy }, waiting, lengths: borders };
    const { results } = await run(['sender', 'receiver'], args);
    expect(results).toEqual([{ eager: 6, rendezvous: 5 }, borders.map(() => true)]);
  });

  it('throttles the sender, and loses nothing, while no receive is posted', async () => {
    // 40 messages for 4 buffers, of both kinds.
    const lengths = Array.from({ length: 40 }, (_, at) => (at % 5 === 4 ? 9000 + at : 100 + at));
    const args = {
      config: { cutoffBytes, rendezvousBy, bufferCount: 4, rendezvousCount: 2 },
      waiting,
      lengths,
    };
    const { results } = await run(['sender', 'lateReceiver'], args);
    expect(results[1]).toEqual(lengths.map(() => true));
  });

  it('succeeds if both sides send before they receive', async () => {
    const lengths = [100, 20_000, 5000, 64, 20_001, 5001];
    const args = { config: { cutoffBytes, rendezvousBy, rendezvousCount: 4 }, waiting, lengths };
    const { results } = await run(['exchanger', 'exchanger'], args);
    expect(results).toEqual([lengths.map(() => true), lengths.map(() => true)]);
  });
});

describe('a channel', () => {
  it.each(['poll', 'event'] as const)(
    'waiting by %s uses the cut-off of the cost profile, unless the profile names one',
    async (waiting) => {
      const slow = { 'host.cost.copyBytesPerCycle': 2 };
      for (const set of [{}, slow, { 'messaging.cutoffBytes': 777 }]) {
        const { cutoffBytes: computed } = messagingConfigOf(configurationOf({ set }), waiting);
        const { results } = await run(
          ['sender', 'receiver'],
          { waiting, lengths: [computed, computed + 1] },
          set,
        );
        expect(results).toEqual([{ eager: 1, rendezvous: 1 }, [true, true]]);
        if ('messaging.cutoffBytes' in set) expect(computed).toBe(777);
      }
    },
  );

  it('copies eager messages once on each side, twice over the memory bus, and never copies in a rendezvous', async () => {
    const lengths = [1000, 4096, 50_000];
    const { report } = await run(['sender', 'receiver'], { config: { cutoffBytes }, lengths });
    for (const { memoryBus, cpu } of report.nodes) {
      expect(memoryBus.copies).toBe(2 * (1000 + 4096));
      expect(memoryBus.total).toBeGreaterThan(memoryBus.copies + 55_000);
      // host.cost: 50 cycles a copy, and one cycle for 4 bytes.
      const cycles = cpu.cores.reduce((sum, core) => sum + core.cycles.copy, 0);
      expect(cycles).toBe(2 * 50 + (1000 + 4096) / 4);
    }
  });

  it('is not created without a chosen cut-off, or with one above the buffer size', async () => {
    const { results } = await run(['unchosen', 'unchosen'], {});
    const refused = ['ConfigurationError', 'ConfigurationError'];
    expect(results).toEqual([refused, refused]);
  });

  it('uses its own cut-off, for any size of the eager buffers', async () => {
    const lengths = [1000, 1001];
    const config = { cutoffBytes: 1000, eagerBytes: 16_384 };
    const { results } = await run(['sender', 'receiver'], { config, lengths });
    expect(results[0]).toEqual({ eager: 1, rendezvous: 1 });
  });

  it('comes to rest with the fewest buffers: credit messages are not answered by credit messages', async () => {
    const lengths = Array.from({ length: 12 }, () => 100);
    const config = { cutoffBytes, bufferCount: 2, rendezvousCount: 1 };
    const { results } = await run(['sender', 'lateReceiver'], { config, lengths });
    expect(results[1]).toEqual(lengths.map(() => true));
  });

  it('notifies a receiver with too little room, writes nothing there, and carries the next messages', async () => {
    const lengths = [100, 100, 20_000, 20_000];
    const { results } = await run(['sender', 'narrowReceiver'], { config: { cutoffBytes }, lengths });
    const refused = 'MessageError EMSGSIZE, true';
    expect(results[1]).toEqual([refused, true, refused, true]);
  });

  it('loses neither buffers nor credits to unmapped memory, on either side, and carries the next messages', async () => {
    const lengths = Array.from({ length: 40 }, (_, index) => 100 + index);
    const { results } = await run(['carelessSender', 'carelessReceiver'], {
      config: { cutoffBytes, bufferCount: 3 },
      lengths,
    });
    expect(results[0]).toEqual(['VerbsError EINVAL']);
    expect(results[1]).toEqual(lengths.map((_, index) => index % 2 === 1 || 'MessageError EINVAL'));
  });

  it('notifies both sides of a rendezvous from or to unmapped memory, and carries the next messages', async () => {
    const lengths = [20_000, 20_001, 20_002, 20_003];
    const { results } = await run(['carelessSender', 'carelessReceiver'], {
      config: { cutoffBytes },
      lengths,
    });
    expect(results[0]).toEqual(['VerbsError EFAULT']);
    expect(results[1]).toEqual(['MessageError EINVAL', true, 'MessageError EINVAL', true]);
  });

  it('reports the end of the connection, to a sender and to a receiver', async () => {
    const { results } = await run(['abandoned', 'abandoned'], {});
    expect(results[0]).toEqual({
      send: 'MessageError ECONNRESET',
      receive: 'MessageError ECONNRESET',
    });
  });

  it('is the same in every partition', async () => {
    const args = { config: { cutoffBytes }, lengths: borders };
    const reports = [];
    for (const partition of bothPartitions) {
      const programs = ['sender', 'receiver'].map((name, node) =>
        programOf('messages', name, node, { args }),
      );
      reports.push(JSON.stringify((await runPrograms(programs, { partition })).report));
    }
    expect(reports[1]).toBe(reports[0]);
  });
});

interface CachedTold {
  readonly pinnedBytes: number;
  readonly pinnedAfterwards: number;
}

describe('the registration cache', () => {
  it('registers each buffer once, keeps as many as its limit allows and deregisters all of them', async () => {
    const lengths = [20_000, 30_000, 40_000];
    const { results } = await run(['cachedSender', 'cachedReceiver'], { lengths });
    const [sent, wrong] = results as [CachedTold, number];
    expect(wrong).toBe(0);
    // Three rounds of three buffers: registered in the first, found in the other two.
    expect(sent).toMatchObject({ misses: 3, hits: 6, evictions: 0 });
    expect(sent.pinnedAfterwards).toBeLessThan(sent.pinnedBytes - 90_000);
  });

  it('evicts the least recently used if it may keep fewer than are in use', async () => {
    const lengths = [20_000, 30_000, 40_000];
    const config = { cachedRegions: 2 };
    const { results } = await run(['cachedSender', 'cachedReceiver'], { config, lengths });
    // Always evicts the one needed next: three rounds of misses, and all but two evicted.
    expect(results[0]).toMatchObject({ misses: 9, hits: 0, evictions: 7 });
    expect(results[1]).toBe(0);
  });

  it('keeps nothing when it may keep nothing', async () => {
    const { results } = await run(['cachedSender', 'cachedReceiver'], {
      config: { cachedRegions: 0 },
      lengths: [20_000],
    });
    expect(results[0]).toMatchObject({ misses: 3, hits: 0, evictions: 0 });
  });
});
