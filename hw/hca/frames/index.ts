/** Interface of this room: see README.md. */

export { Inbound, Outbound } from './both-ways.ts';
export {
  fillIpChecksum,
  fillTransportChecksum,
  isFragment,
  isIpChecksumRight,
  isTransportChecksumRight,
  type PacketPlaces,
  tagOf,
} from './frame-headers.ts';
export { FrameReceiver } from './frame-receiver.ts';
export { FrameRequests } from './frame-requests.ts';
export { FrameTransmitter } from './frame-transmitter.ts';
export { ReceiveTurns } from './receive-turns.ts';
export { segmentPlacesOf } from './segment-headers.ts';
