import { expect, it } from 'vitest';
import { orderedRuns } from './runs-of-hosts.ts';

it('a command names its host, and one with & at its end waits for the other side', () => {
  expect(
    orderedRuns(
      ['ls && true', 'host1: ls', 'host0: ib_write_lat -s 8 &', 'host1: sleep 1 & ib_read_lat host0'],
      2,
    ),
  ).toMatchObject([
    { node: 0, command: 'ls && true', isServer: false },
    { node: 1, command: 'ls', isServer: false },
    { node: 0, command: 'ib_write_lat -s 8', isServer: true, budgetName: 'host0: ib_write_lat -s 8 &' },
    { node: 1, command: 'sleep 1 & ib_read_lat host0', isServer: false },
  ]);
  expect(orderedRuns(['host7: ls'], 8)).toMatchObject([{ node: 7, command: 'ls' }]);
});
