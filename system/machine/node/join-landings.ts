/**
 * Has the root complex of each host put what its HCA reads where it lands, when both are in this thread. This and
 * lend-payload.ts are all that logical processes share besides their channels; no result depends on it: hw/dma/README.md
 * tells why.
 */
import type { RootComplex } from '../../../hw/pcie/index.ts';
import type { HcaNode } from './hca-node.ts';

interface HostSide {
  readonly node: number;
  readonly rootComplex: RootComplex;
}

export function joinLandings(hosts: readonly HostSide[], hcas: readonly HcaNode[]): void {
  for (const { node, rootComplex } of hosts)
    rootComplex.reads.landings = hcas.find((hca) => hca.node === node)?.hca.dmaRead;
}
