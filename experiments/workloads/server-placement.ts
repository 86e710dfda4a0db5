/**
 * Where parameter servers stand. A rack is the hosts at one switch.
 *
 *     packed       the last hosts of the last racks: as few racks as possible
 *     spread       the last free host of each rack in turn
 *     co-located   every host, which is a worker too
 */
import { ConfigurationError } from '../../base/index.ts';

export const placements = ['packed', 'spread', 'co-located'] as const;
export type Placement = (typeof placements)[number];

/**
 * The hosts that are servers, ascending.
 * @param racks hosts of each rack;
 * @param count of servers; left out: 1, or with `co-located` all hosts
 * @throws ConfigurationError if no worker is left, and for a number of co-located servers other than all hosts
 */
export function serversAt(
  racks: readonly (readonly number[])[],
  placement: Placement,
  count?: number,
): readonly number[] {
  const hosts = racks.flat();
  if (placement === 'co-located') {
    if (count !== undefined && count !== hosts.length)
      throw new ConfigurationError('servers', count, `${hosts.length} or left out: each host is one`);
    return hosts.toSorted((left, right) => left - right);
  }
  const servers = count ?? 1;
  if (servers >= hosts.length)
    throw new ConfigurationError('servers', servers, `at most ${hosts.length - 1} of ${hosts.length} hosts`);
  const order = placement === 'packed' ? hosts.toReversed() : inTurn(racks);
  return order.slice(0, servers).toSorted((left, right) => left - right);
}

/** The last host of each rack, then the last but one of each. */
function inTurn(racks: readonly (readonly number[])[]): number[] {
  const most = Math.max(...racks.map(({ length }) => length));
  return Array.from({ length: most }, (_, turn) => turn).flatMap((turn) =>
    racks.flatMap((rack) => rack.at(-1 - turn) ?? []),
  );
}
