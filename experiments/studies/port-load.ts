/** Bytes through the ports of an InfiniBand fabric, computed from its routes alone: the bytes that beta multiplies in an alpha-beta model. */
import {
  fabricRoutesOf,
  farEndOf,
  isSwitch,
  type NodePort,
  portsOnRoute,
  type Topology,
} from '../../machine/topology/index.ts';
import type { Flow } from '../workloads/index.ts';

/** The ports through which most bytes leave. */
export interface PortLoad {
  readonly bytes: number;
  readonly ports: readonly NodePort[];
}

/** @param flows each of `bytes`, on the routes of min-hop, between the first ports of their hosts */
export function mostLoadedOf(topology: Topology, flows: readonly Flow[], bytes: number): PortLoad {
  const routes = fabricRoutesOf(topology, 'min-hop');
  const counts = new Map<string, { readonly port: NodePort; count: number }>();
  for (const { from, to } of flows)
    for (const port of portsOnRoute(topology, routes, { node: from, port: 1 }, { node: to, port: 1 }) ?? []) {
      const key = `${port.node}.${port.port}`;
      const known = counts.get(key) ?? { port, count: 0 };
      known.count++;
      counts.set(key, known);
    }
  const most = Math.max(...[...counts.values()].map(({ count }) => count));
  const ports = [...counts.values()].filter(({ count }) => count === most).map(({ port }) => port);
  return { bytes: most * bytes, ports };
}

/** The host at one end of a port's cable; undefined between switches. */
export function hostAt(topology: Topology, port: NodePort): number | undefined {
  if (!isSwitch(topology, port.node)) return port.node;
  const far = farEndOf(topology, port);
  return far === undefined || isSwitch(topology, far.node) ? undefined : far.node;
}
