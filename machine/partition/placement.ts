/** Distribution of the logical processes over threads. The machine is the same in every partition, and so is its report. */
import { ConfigurationError } from '../../base/index.ts';
import { hintFor } from '../profile/index.ts';
import { hostsOf, switchesOf, type Topology } from '../topology/index.ts';

/**
 * `single`: one thread; `per-node`: one for each host and its adapter, cut at the links of the topology, and one for all switches;
 * `per-device`: one for each host and each device, cut at PCIe too.
 */
export const partitions = ['single', 'per-node', 'per-device'] as const;
export type Partition = (typeof partitions)[number];

/** @throws ConfigurationError that suggests the nearest name */
export function checkedPartition(name: string): Partition {
  const partition = partitions.find((candidate) => candidate === name);
  if (partition !== undefined) return partition;
  const hint = hintFor(name, partitions);
  throw new ConfigurationError('partition', name, `one of ${partitions.join(', ')}${hint}`);
}

/** Names of the logical processes of each thread. */
export function placementOf(
  partition: Partition,
  topology: Topology,
  adapter: 'hca' | 'nic' = 'hca',
): string[][] {
  const nodes = hostsOf(topology).map((node) => [`host${node}`, `${adapter}${node}`]);
  const switches = switchesOf(topology).map((node) => `switch${node}`);
  if (partition === 'single') return [[...nodes.flat(), ...switches]];
  const threads = partition === 'per-node' ? nodes : nodes.flat().map((name) => [name]);
  return switches.length === 0 ? threads : [...threads, switches];
}
