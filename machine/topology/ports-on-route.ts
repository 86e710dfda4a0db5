/** Routes from host to host. */
import type { FabricRoutes } from './routes.ts';
import { farEndOf, isSwitch, type NodePort, type Topology } from './topology.ts';

/**
 * The sending ports of the cables on the route from one port of a host to another, in order: one for the ends of one cable, one more for
 * each switch; undefined if none leads there.
 */
export function portsOnRoute(
  topology: Topology,
  routes: FabricRoutes,
  from: NodePort,
  to: NodePort,
): readonly NodePort[] | undefined {
  const ports = [from];
  // A route passes each node at most once.
  while (ports.length <= topology.nodes.length) {
    const at = farEndOf(topology, ports.at(-1)!);
    if (at === undefined) return undefined;
    if (!isSwitch(topology, at.node)) return at.node === to.node && at.port === to.port ? ports : undefined;
    const port = routes.portTowards(at.node, to);
    if (port === undefined) return undefined;
    ports.push({ node: at.node, port });
  }
  return undefined;
}
