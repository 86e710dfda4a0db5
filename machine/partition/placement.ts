/** Distribution of the logical processes over threads. The machine is the same in every partition, and so is its report. */
import { ConfigurationError, runtime } from '../../base/index.ts';
import { hintFor } from '../profile/index.ts';
import { farEndOf, hostsOf, portsOf, switchesOf, type Topology } from '../topology/index.ts';

/**
 * `single`: one thread; `per-node`: one for each host and its adapter, cut at the links of the topology, and one for all switches;
 * `per-device`: one for each host and each device, cut at PCIe too; `per-core`: as many threads as the computer has processors, with equal
 * numbers of neighbouring hosts, cut at links.
 */
export const partitions = ['single', 'per-node', 'per-device', 'per-core'] as const;
export type Partition = (typeof partitions)[number];

/** @throws ConfigurationError that suggests the nearest name */
export function checkedPartition(name: string): Partition {
  const partition = partitions.find((candidate) => candidate === name);
  if (partition !== undefined) return partition;
  const hint = hintFor(name, partitions);
  throw new ConfigurationError('partition', name, `one of ${partitions.join(', ')}${hint}`);
}

/**
 * Names of the logical processes of each thread.
 * @param coreCount processors, for `per-core`
 */
export function placementOf(
  partition: Partition,
  topology: Topology,
  adapter: 'hca' | 'nic' = 'hca',
  coreCount = runtime().coreCount,
): string[][] {
  const nodes = hostsOf(topology).map((node) => [`host${node}`, `${adapter}${node}`]);
  const switches = switchesOf(topology).map(switchName);
  if (partition === 'single') return [[...nodes.flat(), ...switches]];
  if (partition === 'per-core') return packed(nodes, topology, Math.min(coreCount, nodes.length));
  const threads = partition === 'per-node' ? nodes : nodes.flat().map((name) => [name]);
  return switches.length === 0 ? threads : [...threads, switches];
}

export const switchName = (node: number): string => `switch${node}`;

/** Neighbouring hosts have neighbouring numbers; a switch goes to the thread that has most of its hosts. */
function packed(nodes: readonly string[][], topology: Topology, threadCount: number): string[][] {
  const threadOf = (host: number): number => Math.floor((host * threadCount) / nodes.length);
  const threads: string[][] = Array.from({ length: threadCount }, () => []);
  for (const [index, names] of nodes.entries()) threads[threadOf(index)]!.push(...names);
  const hosts = hostsOf(topology);
  for (const [index, node] of switchesOf(topology).entries()) {
    const hostCounts = threads.map(() => 0);
    for (const port of portsOf(topology, node)) {
      const host = hosts.indexOf(farEndOf(topology, port)?.node ?? -1);
      if (host >= 0) hostCounts[threadOf(host)]!++;
    }
    const most = Math.max(...hostCounts);
    // Switches without hosts, the spines of a fabric, are dealt out.
    const thread = most === 0 ? index % threadCount : hostCounts.indexOf(most);
    threads[thread]!.push(switchName(node));
  }
  return threads;
}
