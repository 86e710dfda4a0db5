/** Hosts of parameter servers, by hand. */
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/index.ts';
import { parsedTopology, racksOf } from '../../machine/topology/index.ts';
import { checkedFabricWorkload, fabricArgsOf } from './fabric-fields.ts';
import { flowsOf } from './fabric-plan.ts';
import { serversAt } from './server-placement.ts';

describe('racks', () => {
  it('are the hosts at one switch; a host without a switch is one of its own', () => {
    expect(racksOf(parsedTopology('leaf-spine:2x4:8'))).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
    ]);
    expect(racksOf(parsedTopology('star:3'))).toEqual([[0, 1, 2]]);
    expect(racksOf(parsedTopology('0-1'))).toEqual([[0], [1]]);
  });
});

describe('parameter servers', () => {
  const racks = [
    [0, 1, 2],
    [3, 4, 5],
  ];

  it.each([
    ['packed', 1, [5]],
    ['packed', 4, [2, 3, 4, 5]],
    ['spread', 1, [2]],
    ['spread', 2, [2, 5]],
    ['spread', 3, [1, 2, 5]],
    ['co-located', 6, [0, 1, 2, 3, 4, 5]],
    ['co-located', undefined, [0, 1, 2, 3, 4, 5]],
  ] as const)('%s, %s of them, are hosts %j', (placement, count, hosts) => {
    expect(serversAt(racks, placement, count)).toEqual(hosts);
  });

  it('have flows of each worker in turn, which begins at a server of its own', () => {
    const flows = (servers: readonly number[], hostCount: number): string[] =>
      flowsOf({ pattern: 'parameter-server', servers, hostCount }).map(({ from, to }) => `${from}-${to}`);
    expect(flows([2, 3], 4)).toEqual(['0-2', '0-3', '1-3', '1-2']);
    expect(flows([0, 1, 2], 3)).toEqual(['0-1', '0-2', '1-2', '1-0', '2-0', '2-1']);
  });

  it.each([
    [{ servers: 6 }, 'servers is 6, expected at most 5 of 6 hosts'],
    [{ servers: 4, placement: 'co-located' }, 'servers is 4, expected 6 or left out'],
    [{ servers: 3, size: 64 }, 'size is 64, expected a multiple of 3'],
    [{ window: 2 }, 'window is 2, expected left out for parameter servers'],
    [{ verb: 'read' }, 'verb is "read", expected left out for parameter servers'],
    [{ qps: 2 }, 'qps is 2, expected left out for parameter servers'],
    [{ algorithm: 'ring' }, 'algorithm is "ring", expected left out for parameter-server'],
    [{ test: 'incast', servers: 2 }, 'servers is 2, expected left out for incast'],
    [{ test: 'ring', placement: 'spread' }, 'placement is "spread", expected left out for ring'],
    [{ placement: 'near' }, 'placement is "near", expected one of packed, spread, co-located'],
  ])('reject %j', (fields, message) => {
    const ask = () => fabricArgsOf(checkedFabricWorkload({ test: 'parameter-server', ...fields }), racks);
    expect(ask).toThrow(ConfigurationError);
    expect(ask).toThrow(message);
  });
});
