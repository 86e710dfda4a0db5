/**
 * Collective operations over verbs: every word at every host, for any number of hosts, by either rendezvous and either way of
 * waiting; the number of messages is that of the published algorithms.
 */
import { describe, expect, it, vi } from 'vitest';
import { parsedTopology } from '../machine/topology/index.ts';
import { collectivePeers } from '../userlib/messaging/index.ts';
import { expectBalanced } from './expectations.ts';
import { programOf, runPrograms } from './machines.ts';
import type { CollectiveResult } from './programs/collectives.ts';

vi.setConfig({ testTimeout: 240_000 });

async function run(name: string, size: number, args: object): Promise<readonly unknown[]> {
  const programs = Array.from({ length: size }, (_, node) =>
    programOf('collectives', name, node, { args: { size, ...args } }),
  );
  const { results, report } = await runPrograms(programs, { topology: parsedTopology(`star:${size}`) });
  expectBalanced(report);
  return results;
}

/** Messages that rank 0 sends: 2 (n - 1); up and down a binomial tree from its root; 2 log2 n, with folding one more for each pair. */
const messagesOfRank0 = {
  2: { ring: 2, tree: 1, 'halving-doubling': 2 },
  3: { ring: 4, tree: 2, 'halving-doubling': 3 },
  5: { ring: 8, tree: 3, 'halving-doubling': 5 },
  8: { ring: 14, tree: 3, 'halving-doubling': 6 },
} as const;

describe.each([2, 3, 5, 8] as const)('%i programs', (size) => {
  it.each([
    ['read', 'poll', 7],
    ['write', 'poll', 5003],
    ['write', 'event', 5003],
    ['read', 'event', 1],
  ] as const)(
    'add, broadcast and exchange by %s, waiting by %s, %i words each',
    async (rendezvousBy, waiting, count) => {
      const config = { rendezvousBy, cutoffBytes: 1024 };
      const results = (await run('collective', size, { count, config, waiting })) as CollectiveResult[];
      for (const { wrong } of results)
        expect(Object.entries(wrong).filter(([, words]) => words !== 0)).toEqual([]);
      expect(results[0]!.sent).toEqual(messagesOfRank0[size]);
      // No program leaves the barrier before the last one has entered it.
      const last = Math.max(...results.map(({ barrier }) => barrier.enteredPs));
      for (const { barrier } of results) expect(barrier.leftPs).toBeGreaterThan(last);
    },
  );
});

describe('a communicator', () => {
  it('of one program copies its own part', async () => {
    const alone = programOf('collectives', 'collective', 0, { args: { size: 1, count: 9 } });
    const { results } = await runPrograms([alone]);
    const { wrong } = results[0] as CollectiveResult;
    expect(Object.values(wrong)).toEqual([0, 0, 0, 0, 0]);
  });

  it('ends a wait for one peer when the connection to another has failed', async () => {
    const results = await run('losesOne', 4, { count: 1 });
    expect(results).toEqual(['silent', 'ECONNRESET', 'silent', 'silent']);
  });

  it('has channels to the peers of its operations only', async () => {
    expect(collectivePeers(['ring'], 0, 6)).toEqual([1, 5]);
    expect(collectivePeers(['tree'], 2, 6)).toEqual([0, 1, 3, 4]);
    // Ranks 1 and 3 of six leave their part to 0 and 2, so that four ranks remain: 0, 2, 4 and 5.
    expect([0, 1, 4].map((rank) => collectivePeers(['halving-doubling'], rank, 6))).toEqual([
      [1, 2, 4],
      [0],
      [0, 5],
    ]);
    const results = await run('needsOther', 4, { count: 1 });
    expect(results).toEqual(
      [
        [0, 2, '1, 3'],
        [1, 3, '0, 2'],
        [2, 0, '1, 3'],
        [3, 1, '0, 2'],
      ].map(
        ([rank, peer, open]) => `peer of rank ${rank} is ${peer}, expected one it was opened for: ${open}`,
      ),
    );
  });
});
