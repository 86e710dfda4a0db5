/** Interface of this room: see README.md. */
export {
  buildGrh,
  exchangeGids,
  isGrhForGid,
  isGrhForGroup,
  isGrhForPort,
  isGrhFromPath,
  isLoopbackPath,
} from './grh.ts';
export { IbtaPacket, makeIbtaPacket } from './ibta-packet.ts';
export { LaneEgress } from './lane-egress.ts';
export { LaneGate, type LanePort } from './lane-gate.ts';
export { Loopback } from './loopback.ts';
export { countNak } from './nak-counters.ts';
export { GlobalRoutes, RoceRoutes, type TrafficClasses } from './network-headers.ts';
export type { PacketPort } from './packet-port.ts';
export {
  FIRST_MULTICAST_LID,
  isGroupLid,
  isOwnLid,
  PERMISSIVE_LID,
  type PortAddress,
  type RoceTables,
} from './port-address.ts';
export { ReceivedPackets } from './received-packets.ts';
export { ReorderBuffer } from './reorder-buffer.ts';
export {
  COMPLETES_RECEIVE_WQE,
  ENDS_MESSAGE,
  HAS_IMMEDIATE,
  HAS_INVALIDATE,
  IS_KNOWN,
  IS_REQUEST,
  MESSAGE_NONE,
  MESSAGE_SEND,
  MESSAGE_UNKNOWN,
  MESSAGE_WRITE,
  messageKind,
  STARTS_MESSAGE,
  TAKES_RECEIVE_WQE,
} from './request-traits.ts';
export {
  buildNetworkHeader,
  buildRoute,
  NO_TAG,
  sourceMacOf,
  udpSourcePortOf,
} from './roce-route.ts';
export { noteGroup, readSoftwareHeaders } from './software-headers.ts';
export { Transmitter } from './transmitter.ts';
export { TransportCounters } from './transport-counters.ts';
