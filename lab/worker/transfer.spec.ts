/** "The other way": the drawn periods of each core add up to its ledger, and the bytes arrive. */
import { describe, expect, it } from 'vitest';
import { spentUntil } from '../page/spent.ts';
import { type ComparePath, comparePaths } from '../protocol.ts';
import { transfer } from './transfer.ts';

const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };
const sizeBytes = 256;

describe('one message by each way', () => {
  const takesNoCycle: Readonly<Partial<Record<ComparePath, number>>> = { write: 1, read: 0 };
  it.each(comparePaths)('%s: the intervals of the cores add up to their ledgers by cause', async (path) => {
    const { hosts, isEqual, isBalanced, latencyPs, cable } = await transfer({ machine, path, sizeBytes });
    expect(isEqual).toBe(true);
    expect(isBalanced).toBe(true);
    expect(latencyPs).toBeGreaterThan(0);
    expect(cable.length).toBeGreaterThan(0);
    hosts.forEach(({ work, cycles, cyclesTotal }, node) => {
      const drawn = spentUntil(work, Number.POSITIVE_INFINITY).map(({ name, amount }) => [
        name,
        Math.round(amount),
      ]);
      expect(Object.fromEntries(drawn), `host ${node}`).toEqual(cycles);
      expect(cyclesTotal === 0, `host ${node}`).toBe(takesNoCycle[path] === node);
    });
  });
});

it('a ledger fills in proportion to the elapsed part of current work', () => {
  const work = [
    { core: 0, fromPs: 0, toPs: 100, cause: 'copy', cycles: 10 },
    { core: 0, fromPs: 100, toPs: 300, cause: 'interrupt', cycles: 20 },
    { core: 1, fromPs: 100, toPs: 200, cause: 'copy', cycles: 10 },
  ];
  expect(spentUntil(work, 0)).toEqual([]);
  expect(spentUntil(work, 150)).toEqual([
    { name: 'copy', amount: 15 },
    { name: 'interrupt', amount: 5 },
  ]);
});
