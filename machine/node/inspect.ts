/**
 * The state of a node's blocks, by name: see Block.inspect. The states of a host and of its adapter have separate
 * names, because they may be in two threads.
 */
import type { BlockState } from '../../sim/index.ts';
import type { HcaNode } from './hca-node.ts';
import { heldByHca } from './held.ts';
import type { HostNode } from './host-node.ts';
import type { NicNode } from './nic-node.ts';

export function inspectHost(host: HostNode): BlockState {
  const { rootComplex, port } = host;
  return { ...host.inspect(), rootComplex: rootComplex.inspect(), rootPort: port.inspect() };
}

export function inspectHca(node: HcaNode): BlockState {
  const { hca } = node;
  const wirePort = (hca.ethernetPort ?? hca.wirePort).inspect();
  const [, secondPort] = hca.wirePorts;
  return {
    ...hca.dataPath.inspect(),
    ...hca.control.inspect(),
    eqcCache: hca.eqcCache.inspect(),
    wirePort,
    ...(secondPort === undefined ? {} : { secondWirePort: secondPort.inspect() }),
    ...inspectBus(hca),
    held: heldByHca(node),
  };
}

export const inspectNic = ({ nic }: NicNode): BlockState => ({
  ...nic.inspect(),
  port: nic.port.inspect(),
  ...inspectBus(nic),
});

/** Blocks that every adapter has between its core and the link. */
function inspectBus({
  linkPort,
  pcieFunction,
  dmaRead,
  dmaWrite,
}: HcaNode['hca'] | NicNode['nic']): BlockState {
  return {
    linkPort: linkPort.inspect(),
    pcieFunction: pcieFunction.inspect(),
    dmaRead: dmaRead.inspect(),
    dmaWrite: dmaWrite.inspect(),
  };
}
