/** State of the receive-WQE fetch per receive queue, and its progress in finding the queue's WQEs. */

/** Phases of a poll of host memory: requested, reading the doorbell record, reading the WQEs. */
export const IDLE = 0;
export const ASKED = 1;
export const READING_RECORD = 2;
export const RECORD_READ = 3;
export const READING_WQES = 4;

/** A cycle before all edges. */
const NEVER = Number.NEGATIVE_INFINITY;
export const NO_LINE = -1;

/** Counters are 16 bits. */
export class ReceiveQueueState {
  phase = IDLE;
  /** The queue's line of the receive-WQE cache, or -1. */
  line = NO_LINE;
  posted = 0;
  consumed = 0;
  /** The doorbell record as last read, a big-endian dword. */
  recordWord = 0;
  /** Index of the next WQE of a shared queue. */
  nextIndex = 0;
  /** Cycles at which the last read of the record began, and the last read that found nothing posted. */
  pollCycle = NEVER;
  emptyCycle = NEVER;
  /** Packets that the latter has been the answer for. */
  emptyAnswerCount = 0;
  hasFailed = 0;
  readsUnderWay = 0;
  /** 1 while the queue is in the fifo of queues to examine: once, even if it is closed and reopened in between. */
  isQueued = 0;
  /** 1 if the record must be read although WQEs are known: whether the limit is reached depends on memory. */
  needsPoll = 0;
  /** Owner of the message for which WQEs were last requested (costs/). */
  owner = 0;

  /** WQEs known to be posted and not consumed. */
  get available(): number {
    return (this.posted - this.consumed) & 0xffff;
  }

  /** Begins a new queue without known state. A read in flight is still counted, and keeps its place in the fifo. */
  begin(): void {
    this.phase = IDLE;
    this.posted = 0;
    this.consumed = 0;
    this.recordWord = 0;
    this.nextIndex = 0;
    this.pollCycle = NEVER;
    this.emptyCycle = NEVER;
    this.emptyAnswerCount = 0;
    this.hasFailed = 0;
    this.needsPoll = 0;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.pollCycle -= cycles;
    this.emptyCycle -= cycles;
  }
}
