export { NetError } from './net-error.ts';
export { SocketCalls } from './socket-calls.ts';
