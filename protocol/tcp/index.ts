export { deadlinesDue } from './deadlines.ts';
export {
  Flag,
  readSegmentHeader,
  type SegmentFields,
  segmentHeaderBytes,
  synOptionBytes,
  transportHeader,
  transportHeaderBytes,
  writeSegmentHeader,
} from './header.ts';
export { isWindowWorthAnnouncing, output, sendReset, sendSyn } from './output.ts';
export { limitOrphan, segmentArrived } from './segment-input.ts';
export { isAfter, isBefore, sequenceAdd, sequenceDistance } from './sequence.ts';
export {
  type Arrival,
  type ReceivedBytes,
  type StreamBuffer,
  TcpConnection,
  type TcpSetup,
} from './tcp-connection.ts';
