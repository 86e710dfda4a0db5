/** Which logical processes share a thread: expected by the rules in words, for fabrics drawn by hand. */
import { describe, expect, it } from 'vitest';
import { pairsOf, parsedTopology } from '../topology/index.ts';
import { placementOf } from './placement.ts';

describe('per-core', () => {
  it('packs neighbouring hosts with their adapters, and a switch with most of its hosts', () => {
    // leaf-spine:2x2:4: spines 4 and 5; hosts 0 and 1 at one leaf, 2 and 3 at the other.
    const threads = placementOf('per-core', parsedTopology('leaf-spine:2x2:4'), 'hca', 2);
    expect(threads.map((names) => names.filter((name) => !name.startsWith('switch')))).toEqual([
      ['host0', 'hca0', 'host1', 'hca1'],
      ['host2', 'hca2', 'host3', 'hca3'],
    ]);
    const leaves = threads.map((names) => names.filter((name) => name.startsWith('switch')).length);
    // A leaf and a spine each.
    expect(leaves).toEqual([2, 2]);
  });

  it('gives the one switch of a star to the first of equal threads', () => {
    expect(placementOf('per-core', parsedTopology('star:4'), 'hca', 2)).toEqual([
      ['host0', 'hca0', 'host1', 'hca1', 'switch4'],
      ['host2', 'hca2', 'host3', 'hca3'],
    ]);
  });

  it('has no more threads than hosts, and one where there is one processor', () => {
    expect(placementOf('per-core', pairsOf(2), 'nic', 64)).toEqual([
      ['host0', 'nic0'],
      ['host1', 'nic1'],
    ]);
    expect(placementOf('per-core', pairsOf(4), 'hca', 1)).toEqual(
      placementOf('single', pairsOf(4), 'hca', 1),
    );
  });

  it('keeps hosts that a cable joins together: pairs do not cross threads', () => {
    expect(placementOf('per-core', pairsOf(6), 'hca', 3).map((names) => names.join(' '))).toEqual([
      'host0 hca0 host1 hca1',
      'host2 hca2 host3 hca3',
      'host4 hca4 host5 hca5',
    ]);
  });
});
