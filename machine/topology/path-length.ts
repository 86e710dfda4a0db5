/** Lengths of routes, in switches. */
import type { FabricRoutes } from './routes.ts';
import { farEndOf, isSwitch, type NodePort, type Topology } from './topology.ts';

/** Number of switches on the route from one port of a host to another: 0 for the ends of one cable; undefined if none leads there. */
export function switchesBetween(
  topology: Topology,
  routes: FabricRoutes,
  from: NodePort,
  to: NodePort,
): number | undefined {
  let at = farEndOf(topology, from);
  for (let count = 0; at !== undefined; count++) {
    if (!isSwitch(topology, at.node)) return at.node === to.node && at.port === to.port ? count : undefined;
    const port = routes.portTowards(at.node, to);
    if (port === undefined) return undefined;
    at = farEndOf(topology, { node: at.node, port });
  }
  return undefined;
}
