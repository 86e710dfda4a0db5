/** Interface of this room: see README.md. */
export type { ConnectionNumbers, ConnectionStates } from './connection-states.ts';
export type { InboundEnd, OutboundEnd, PacketReceiver, PacketSink, ResponseSide } from './ends.ts';
export type { RequestLifecycle, RequestTransport, SentMessages } from './request-transport.ts';
export type {
  EngineBlocks,
  EngineParts,
  Transport,
  TransportParts,
  TransportRoles,
  TransportSite,
} from './transport.ts';
