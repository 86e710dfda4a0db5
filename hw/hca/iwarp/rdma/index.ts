/** Interface of this room: see README.md. */
export { IwarpRequests } from './iwarp-requests.ts';
export { Placement } from './placement.ts';
export { PlacementQueue } from './placement-queue.ts';
export { RdmaConnections } from './rdma-connections.ts';
export { RdmaPacket } from './rdma-packet.ts';
export { RdmaTransmitter } from './rdma-transmitter.ts';
export { ReadResponder } from './read-responder.ts';
export { SegmentCounters } from './segment-counters.ts';
export { StreamEnds } from './stream-ends.ts';
