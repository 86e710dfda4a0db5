export * from './aeth.ts';
export { type CableFigures, infinibandFigures, iwarpFigures, roceFigures } from './cable-figures.ts';
export { isMarkedRoute, markCongestion, takesCongestionMark } from './congestion-mark.ts';
export { crc32 } from './crc.ts';
export { DamagePlace } from './damage.ts';
export { type Datagram, receivedDatagram, sendDatagram } from './datagram.ts';
export { type EthernetConfig, ethernetParameters } from './ethernet-parameters.ts';
export {
  EthernetPort,
  FRAME as ETHERNET_FRAME,
  LOST_FRAME as LOST_ETHERNET_FRAME,
  WORD_FRAME_BYTES,
  WORD_IS_CORRUPTED,
  WORD_IS_SENT_AGAIN,
  WORD_TAIL_DELAY_PS,
} from './ethernet-port.ts';
export * from './ethernet-sizing.ts';
export { frameProtocolIn, frameProtocols } from './frame-protocol.ts';
export * from './headers.ts';
export {
  highWeightParameters,
  type LanesConfig,
  laneParameters,
  lowWeightParameters,
  slToVlParameters,
} from './lane-parameters.ts';
export { ARBITRATION_ENTRIES, type LaneTables, lanesDefaults, laneTablesOf } from './lane-tables.ts';
export { blocksOf } from './link-credits.ts';
export { byteTimeOf, dataRateMbpsOf, type PacketArrival, tailDelayOf, wireLatencyPs } from './link-rate.ts';
export { ethernetPlug, loopbackPlug } from './loopback-plug.ts';
export * from './opcodes.ts';
export { openPacket } from './open-packet.ts';
export * from './packet.ts';
export * from './packet-bytes.ts';
export { PacketCounters } from './packet-counters.ts';
export { type PacketIdentity, receivedIdentity, receivedPkey } from './packet-identity.ts';
export type { PacketSelection, PsnRange } from './packet-rules.ts';
export { type LaneCount, type LaneSpeed, type WireConfig, wireParameters } from './parameters.ts';
export * from './psn.ts';
export { ICRC_WRONG, PACKET_RIGHT } from './record-bytes.ts';
export {
  canRelay,
  destinationLidOf,
  isReceivedDamaged,
  type RecordPlace,
  receivedPacketBytes,
  receivedServiceLevel,
  receivedVirtualLane,
  relayPacket,
} from './relay.ts';
export * from './rnr-timer.ts';
export {
  ipv4Checksum,
  isIpv4Route,
  isRoceFrame,
  packetSeenIn,
  RoceBytes,
  takeRoute,
} from './roce-bytes.ts';
export { SlToVlTable } from './sl-to-vl-table.ts';
export { NO_LANE, type PortArbitration, VlArbiter } from './vl-arbiter.ts';
export { VlArbitrationTable } from './vl-arbitration-table.ts';
export { FAULT_DELAY_PS_MAX, type PacketEffect } from './wire-faults.ts';
export type { WireTap } from './wire-observer.ts';
export { type PacketReceiver, WirePort, type WirePortPorts } from './wire-port.ts';
export { ethernetPortWires, wirePortWires } from './wire-port-blocks.ts';
export {
  checkConfig as checkWireConfig,
  dataLanesOf,
  receiveBufferBytesOf,
  wireChannelBytes,
} from './wire-sizing.ts';
