export {
  checkedTopology,
  parsedTopology,
  portText,
  type TopologyEntry,
  topologyText,
} from './check-topology.ts';
export { portsOnRoute } from './ports-on-route.ts';
export { hostCountMin, nodeCountMax, readyMadeNames } from './ready-made.ts';
export { type FabricRoutes, fabricRoutesOf } from './routes.ts';
export {
  cabledPeerOf,
  declaredOf,
  directionsOf,
  farEndOf,
  farPortsOf,
  hostPortMax,
  hostsBySide,
  hostsOf,
  hostsWith,
  isSwitch,
  isSwitched,
  joinedHostsOf,
  type LinkCable,
  type LinkDirectionEnds,
  linkAt,
  linkBetween,
  type NodeKind,
  type NodePort,
  pairsOf,
  peerOf,
  peersOf,
  portCountOf,
  portsOf,
  subnetOf,
  switchesOf,
  switchPortMax,
  type Topology,
} from './topology.ts';
