export {
  checkedTopology,
  hostCountMax,
  hostCountMin,
  parsedTopology,
  type TopologyEntry,
  topologyText,
} from './check-topology.ts';
export {
  cabledPeerOf,
  declaredOf,
  directionsOf,
  hostsOf,
  hostsWith,
  type LinkDirectionEnds,
  linkBetween,
  pairsOf,
  peerOf,
  peersOf,
  subnetOf,
  type Topology,
} from './topology.ts';
