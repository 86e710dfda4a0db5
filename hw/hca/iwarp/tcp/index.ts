/** Interface of this room: see README.md. */
export { CardConnection, type TcpOpening } from './card-connection.ts';
export type { Listener } from './listener.ts';
export { type TcpBlocks, tcpSramBytes } from './tcp-blocks.ts';
export type { TcpControl } from './tcp-control.ts';
export type { TcpReport } from './tcp-events.ts';
export type { LoopedFrames } from './tcp-loopback.ts';
export { tcpSide } from './tcp-side.ts';
