/** Interface of this room: see README.md. */

export { type CompletionQueue, CQ_ARMED_NEXT, CQ_ARMED_SOLICITED, CQ_NOT_ARMED } from './completion-queue.ts';
export { ContextTable, enlarged } from './context-table.ts';
export { CqTable } from './cq-table.ts';
export { type DatagramAddresses, NOT_NUMBERED } from './datagram-addresses.ts';
export type { FrameOffloads } from './frame-offloads.ts';
export { KeyRequest } from './key-request.ts';
export type { Cqn, CqSlot, EqSlot, Qpn, QpSlot, SrqSlot } from './numbers.ts';
export {
  ETHERNET_OPCODE_BASE,
  NO_OPCODE_BASE,
  QP_RIGHT_ATOMIC,
  QP_RIGHT_READ,
  QP_RIGHT_WRITE,
  QpTable,
  SEGMENTS_MAX,
  UC_OPCODE_BASE,
  UD_OPCODE_BASE,
  XRC_SERVICE,
} from './qp-table.ts';
export { QueuePair } from './queue-pair.ts';
export {
  ASKED,
  IDLE,
  NO_LINE,
  READING_RECORD,
  READING_WQES,
  RECORD_READ,
  ReceiveQueueState,
} from './receive-queue-state.ts';
export { type ReplacementPolicy, SetAssociativeDirectory } from './replacement.ts';
export {
  type DataSegment,
  ENDED_BY_ANSWER,
  ENDED_BY_RNR_DELAY,
  ENDED_BY_TIMEOUT,
  endAttempts,
  INLINE_BYTES_MAX,
  NO_ATTEMPT,
  noRecord,
  type SendRecord,
} from './send-record.ts';
export { SendRecords } from './send-records.ts';
export { type SharedQueueProgress, type SharedQueueSetting, SrqTable } from './srq-table.ts';
export { NOT_REACHED, SegmentTimes } from './stream-milestones.ts';
export { noLine, WQE_LINE_BYTES, WqeLine, wqeBlocksOf } from './wqe-line.ts';
