export { deadlinesDue } from './deadlines.ts';
export { carryOn, type EstablishedState, establishedStateOf } from './established-state.ts';
export {
  Flag,
  newSegmentFields,
  readSegmentHeader,
  type SegmentFields,
  segmentHeaderBytes,
  synOptionBytes,
  transportHeader,
  transportHeaderBytes,
  writeSegmentHeader,
} from './header.ts';
export { isWindowWorthAnnouncing, output, sendReset, sendSyn } from './output.ts';
export { limitFinWait, segmentArrived } from './segment-input.ts';
export { isAfter, isBefore, sequenceAdd, sequenceDistance } from './sequence.ts';
export {
  type Arrival,
  type ConnectionState,
  type Keepalive,
  noTcpCounts,
  plainTcp,
  type ReceivedBytes,
  type StreamBuffer,
  TcpConnection,
  type TcpCounts,
  type TcpExtensions,
  type TcpSetup,
} from './tcp-connection.ts';
