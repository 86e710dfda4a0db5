export { type NetErrno, NetError, netErrno } from './net-error.ts';
export {
  type PollEvent,
  type PollRequest,
  type PollResult,
  type SocketAddress,
  SocketCalls,
  type SocketOption,
  type TransferFlags,
} from './socket-calls.ts';
