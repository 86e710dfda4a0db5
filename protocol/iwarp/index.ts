export {
  AtomicOperation,
  atomicRequest,
  atomicResponse,
  DdpQueue,
  enhancedData,
  immediateData,
  mpaFrame,
  RdmapOpcode,
  readRequest,
  taggedHeader,
  terminateControl,
  untaggedHeader,
} from './formats.ts';
export {
  crc32c,
  MARKER_DISTANCE_BYTES,
  markedBytes,
  multiplePduBytes,
  plainBytes,
  segmentBytesWithin,
} from './fpdu.ts';
export { FpduReader, type SegmentSink } from './fpdu-reader.ts';
export { FpduWriter } from './fpdu-writer.ts';
export {
  codeOf,
  ErrorLayer,
  errorOf,
  IwarpError,
  isKnownError,
  layerOf,
  NO_ERROR,
  typeOf,
} from './iwarp-error.ts';
export {
  ENHANCED_PRIVATE_BYTES_MAX,
  type EnhancedConnection,
  encodeMpaFrame,
  type MpaFrame,
  type MpaParsing,
  PRIVATE_BYTES_MAX,
  parseMpaFrame,
  READS_NOT_NEGOTIATED,
} from './mpa-frame.ts';
export {
  agreementOfReply,
  checkRequest,
  concludeReply,
  type MpaAgreement,
  type MpaParameters,
  type ReplyResult,
  type RequestCheck,
  replyOf,
  requestOf,
} from './mpa-negotiation.ts';
export { OutstandingReads } from './outstanding-reads.ts';
export { PlacingStream, type SegmentBuffer, type StreamBounds } from './placing-stream.ts';
export {
  AtomicRequest,
  AtomicResponse,
  copyAtomicRequest,
  copyOperand,
  Operand,
  ReadRequest,
} from './rdmap-messages.ts';
export { RdmapReceiver, type ReceiverOptions, type StreamOwner } from './rdmap-receiver.ts';
export { OutboundMessage, RdmapSender, type SenderOptions } from './rdmap-sender.ts';
export { ReadyMessage } from './ready-message.ts';
export { SegmentHeader } from './segment-header.ts';
export { maySendMessages, type StreamEvent, type StreamState, stateAfter } from './stream-state.ts';
export { QuotedSegment, TERMINATE_BYTES_MAX, TerminateNotice } from './terminate.ts';
