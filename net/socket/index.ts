export { SocketCalls } from './socket-calls.ts';
export { NetError } from './net-error.ts';
