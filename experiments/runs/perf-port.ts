/**
 * Whether a test fits the first port of a machine, before the machine is built: its transport, the path MTU, the indexes of its GID
 * table, and the longest datagram. The programs repeat the check once the port is up.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { cableOf } from '../model/index.ts';
import type { FieldNaming, PerfArgs } from '../workloads/index.ts';
import { checkTransport } from './perf-transport.ts';

/** The driver's GIDs on Ethernet: one for the link-local and one for the IPv4 address per version of RoCE (IBTA A17.4). */
const gidCounts = { none: 1, v1: 2, v2: 4 } as const;

/**
 * @param named names of the fields in their source
 * @throws ConfigurationError for a path MTU, a GID index or a datagram beyond those of the port, and as {@link checkTransport} does
 */
export function checkPort(
  args: PerfArgs,
  config: MachineConfig,
  named: FieldNaming = (field) => field,
): void {
  checkTransport(args, config, named);
  const { connection, sizeBytes, sizes, route } = args;
  const { mtuBytes } = cableOf(config);
  const refuseAbove = (
    field: Parameters<FieldNaming>[0],
    value: number,
    max: number,
    range: string,
  ): void => {
    if (value > max) throw new ConfigurationError(named(field), value, range);
  };
  refuseAbove('mtu', args.mtuBytes, mtuBytes, `at most the port's, ${mtuBytes}`);
  const placeMax = gidCounts[config.hca.capability.roce] - 1;
  refuseAbove('gidIndex', route?.gidIndex ?? 0, placeMax, `0 to ${placeMax}, the GIDs of the port`);
  if (connection !== 'UD') return;
  const range = `at most the MTU of the port, ${mtuBytes}, with connection UD: a datagram is one packet`;
  refuseAbove(sizes === undefined ? 'size' : 'sizes', sizeBytes, mtuBytes, range);
}
