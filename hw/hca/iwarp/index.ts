/** Interface of this room: see README.md. */
export { iwarpParameters } from './iwarp-parameters.ts';
export type { RdmaStream, SendSegment, StreamEnd, TcpStreams } from './streams.ts';
