/** Interface of this room: see README.md. */
export { CardConnection, type TcpOpening } from './card-connection.ts';
export type { Listener } from './listener.ts';
export {
  makeTcpBlocks,
  type TcpBlocks,
  type TcpSite,
  type TcpSurroundings,
  tcpSramBytes,
  tcpWires,
} from './tcp-blocks.ts';
export type { TcpControl } from './tcp-control.ts';
export type { TcpEventSink, TcpReport } from './tcp-events.ts';
export { type TcpSideSite, tcpSide } from './tcp-side.ts';
