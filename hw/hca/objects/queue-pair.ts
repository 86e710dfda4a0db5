/**
 * The device's state of one queue pair: the fields of its context, decoded once per command, and the fields that change
 * with every packet. Fields are grouped by their user: identity (both sides), send side, receive side, and the
 * acknowledgement side between them. The transport keeps its own sequence numbers (transport/connection-states.ts);
 * counters here are free-running unless named otherwise.
 *
 * One object per slot of the {@link QpTable}, made when the slot is first taken: a field costs one or two instructions
 * where an element of a typed array costs nine. Fields that are not Wide hold 32-bit integers.
 */
import type { Wide } from '../../../base/index.ts';
import type { Cqn, Qpn, QpSlot } from './numbers.ts';
import { noRecord, type SendRecord } from './send-record.ts';
import { noLine, type WqeLine } from './wqe-line.ts';

const NONE = -1;

export class QueuePair {
  /**
   * The QP's index in the {@link QpTable}.
   */
  readonly slot: QpSlot;
  // Identity and configuration
  qpn: Qpn = 0;
  state = 0;
  serviceType = 0;
  pd = 0;
  uarPage = 0;
  mtuBytes = 0;
  messageBytesMax: Wide = 0;
  /** 1 if received frames of an Ethernet ring keep their tag. */
  keepsTag = 0;
  /** Received frames are written with their FCS. */
  keepsFcs = 0;
  /** 1 if the QP represents a table of Ethernet rings and has no queues. */
  isIndirect = 0;
  remoteQpn: Qpn = 0;
  remoteLid = 0;
  /**
   * Offset that the service adds to an RC opcode: 0 for RC, 0x20 for UC, 0x60 for datagrams; frames, which have no
   * opcode, have an own base. A value other than 0 means unreliable.
   */
  opcodeBase = 0;
  /**
   * The service in the opcodes of its packets. XRC differs from a reliable connection in this and in its receive
   * queues.
   */
  serviceBits = 0;
  /**
   * Whether packets carry a GRH, built from the path in the context bytes; and whether they go to this very port
   * regardless of the LID.
   */
  hasGrh = 0;
  isForcedBack = 0;
  sourcePathBits = 0;
  /** The port that the QP is bound to: 0 is port 1. */
  portIndex = 0;
  /** Service level of the path, at its position in a packet's record, and the path migration flag of its packets. */
  serviceLevelBits = 0;
  /** Static rate of the path as PathRecord.Rate has it; 0 for the rate of the line. */
  staticRateCode = 0;
  migrationFlag = 0;
  pkeyIndex = 0;
  queueKey = 0;
  /** Rights of a kernel's QP: it may use the reserved key, and register regions by work requests. */
  allowsReservedKey = 0;
  allowsFastRegister = 0;
  bufferMttOffset: Wide = 0;
  bufferPageBytes: Wide = 0;
  /** Byte offset of the send queue and of the receive queue from the first page of the buffer. */
  sqOffset: Wide = 0;
  rqOffset: Wide = 0;
  sqLogCount = 0;
  sqStrideBytes = 0;
  rqLogCount = 0;
  rqStrideBytes = 0;
  hasReceiveQueue = 0;
  /** 1 if messages that fit are put in their receive WQE. */
  receivesInline = 0;
  sendCqn: Cqn = 0;
  receiveCqn: Cqn = 0;
  /**
   * SRQ number, or -1. For XRC it is the SRQ that the peer's last message named, which also determines the receive CQ.
   */
  srqn = 0;
  xrcDomain = 0;
  doorbellRecord: Wide = 0;
  /** Generation of the work in flight, incremented to invalidate it: work with an older value is dropped. */
  sendGeneration = 0;
  /** Things in the pipelines that refer to this QP. */
  inPipelineCount = 0;
  /** Answer of the translation that last refused this QP an access, by memory/translation.ts; 0 before the first. */
  lastRefusal = 0;

  // Send side
  /** 16-bit counter of the next send WQE to execute. */
  sqCounter = 0;
  hasDoorbell = 0;
  /**
   * Whether and where the scheduler holds the QP, 0 is nowhere; from which cycle on it may be considered; and its neighbours
   * there: see SendScheduler, which alone writes these.
   */
  isScheduled = 0;
  scheduleCycle = 0;
  /** Cycles from which its next message, and its next READ response, may leave: see MessageGaps. */
  requestGapCycle = 0;
  responseGapCycle = 0;
  /** Cycle from which its next packet with a rate may be made; the transport sets it where QPs have rates. */
  pacedCycle = 0;
  scheduleNext: QueuePair = this;
  schedulePrevious: QueuePair = this;
  /** Why the QP is not scheduled though it has work: see SendScheduler. */
  parkedFor = 0;
  /**
   * Whether its context is being read for its next turn; and whether it has been read, so that the turn may use it even
   * if the cache has evicted it.
   */
  isFetchingContext = 0;
  hasFetchedContext = 0;
  /** 1 from a miss of its context until the context is on chip. */
  hasMissedContext = 0;
  /** The line that holds its next WQEs on chip. */
  wqeLine: WqeLine = noLine;
  isFetching = 0;
  /** Oldest and newest record of an executed WQE, the one being sent, and its next packet. */
  recordHead: SendRecord = noRecord;
  recordTail: SendRecord = noRecord;
  recordCursor: SendRecord = noRecord;
  packetCursor = 0;
  recordCount = 0;
  readsOutstanding = 0;
  readsOutstandingMax = 0;
  /** Payload writes requested when the last READ or atomic was complete: a fenced request waits until they have left. */
  fenceWriteCount: Wide = 0;
  sinceAckRequest = 0;
  ackRequestEvery = 0;
  retryCountMax = 0;
  rnrRetryCountMax = 0;
  retriesLeft = 0;
  rnrRetriesLeft = 0;
  /** Local ACK timeout in picoseconds; 0 is never. */
  ackTimeoutCode = 0;
  lastProgressPs = 0;
  hasTimer = 0;
  isWaitingRnr = 0;

  // Receive side
  remoteRights = 0;
  minRnrNakCode = 0;
  readResourcesMax = 0;
  creditsInvalid = 0;
  /** Opcode class of the message being received: 0 for none, 1 SEND, 2 WRITE. */
  messageKind = 0;
  messageBytes: Wide = 0;
  writeAddress: Wide = 0;
  writeAddressTop = 0;
  writeKey: Wide = 0;
  writeRemaining: Wide = 0;
  /** Length that the WRITE's header announced. */
  writeBytes: Wide = 0;
  /** 1 if a receive WQE was taken and is not yet completed. */
  hasReceiveWqe = 0;
  receiveWqeCounter = 0;
  /** 1 if the message is put in the WQE itself, whose list is not used. */
  isInlined = 0;
  /**
   * Index at which the slot's scatter list begins, -1 before its first: see QpTable.scatterListOf. The slot keeps it.
   */
  firstSegment = NONE;
  segmentCount = 0;
  segmentIndex = 0;
  segmentUsed: Wide = 0;
  hasCommunicated = 0;

  constructor(slot = NONE) {
    this.slot = slot;
  }
  /** Initialises the live fields of a context just created. */
  begin(): void {
    this.sqCounter = 0;
    this.readsOutstanding = 0;
    this.recordCount = 0;
    this.inPipelineCount = 0;
    this.lastRefusal = 0;
    this.lastProgressPs = 0;
    this.messageBytes = 0;
    this.hasDoorbell = 0;
    this.parkedFor = 0;
    this.isFetching = 0;
    this.isFetchingContext = 0;
    this.hasFetchedContext = 0;
    this.hasMissedContext = 0;
    this.hasTimer = 0;
    this.isWaitingRnr = 0;
    this.hasReceiveWqe = 0;
    this.messageKind = 0;
    this.hasCommunicated = 0;
    this.wqeLine = noLine;
    this.recordHead = noRecord;
    this.recordTail = noRecord;
    this.recordCursor = noRecord;
    this.packetCursor = 0;
    this.sinceAckRequest = 0;
    this.pacedCycle = 0;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.scheduleCycle -= cycles;
    this.requestGapCycle -= cycles;
    this.responseGapCycle -= cycles;
    this.pacedCycle = Math.max(0, this.pacedCycle - cycles);
    this.lastProgressPs -= ps;
  }
}
