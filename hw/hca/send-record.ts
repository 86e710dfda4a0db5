/**
 * One send WQE that has been taken up and is not yet complete. One object per place of {@link SendRecords}, made once.
 * A field that begins as FLOAT_ZERO may hold any number, the others hold 32-bit integers: V8 chooses a field's representation by
 * its first value.
 */
import { FLOAT_ZERO } from '../../base/float-zero.ts';

/** Largest descriptor, hence most inline data. */
export const INLINE_BYTES_MAX = 1008;

/** A piece of host memory that a work request gathers from, or scatters to. */
export class DataSegment {
  address = FLOAT_ZERO;
  key = FLOAT_ZERO;
  bytes = 0;
}

export class SendRecord {
  /** Its place in {@link SendRecords}. */
  readonly number: number;
  /** Raised when the request has ended: what still carries an older value belongs to an earlier request. */
  generation = 0;
  /** The next one of the QP's list; {@link noRecord} behind the last. */
  next: SendRecord;
  qp = 0;
  wqeCounter = 0;
  opcode = 0;
  isSignalled = 0;
  isSolicited = 0;
  /** READ or atomic: completed by a response of its own. */
  isReadOrAtomic = 0;
  firstPsn = 0;
  /** PSNs this message occupies: packets sent, or responses expected of a READ. */
  psnCount = 0;
  messageBytes = 0;
  remoteAddress = FLOAT_ZERO;
  remoteKey = FLOAT_ZERO;
  immediate = 0;
  segmentCount = 0;
  /** The first data segment, and the others, made when first needed. */
  readonly #segment = new DataSegment();
  readonly #others: DataSegment[] = [];
  isInline = 0;
  readonly inlineData: Uint8Array;
  /** Operands of an atomic as low and high words: swap or add, then compare. */
  readonly operands = new Int32Array(4);
  /** Responses of a READ received. */
  responsesReceived = 0;
  /** A local error found when the WQE was taken up or its payload read: a CQE syndrome, or 0. */
  syndrome = 0;
  /** Nothing more is waited for: a NOP, or a message of an unreliable service that has been sent. */
  isDone = 0;
  /**
   * Milestones of its life on chip, in core cycles: its WQE was asked for, was there, was taken up; all payload was there;
   * the last packet was sent; the answer was there.
   */
  fetchBegunCycle = 0;
  fetchedCycle = 0;
  takenUpCycle = 0;
  gatheredCycle = 0;
  transmittedCycle = 0;
  acknowledgedCycle = 0;

  constructor(number: number, inlineData: Uint8Array) {
    this.number = number;
    this.next = this;
    this.inlineData = inlineData;
  }

  /** PSN of the last packet of the message. */
  get lastPsn(): number {
    return (this.firstPsn + this.psnCount - 1) & 0xffffff;
  }

  /** The data segment of this number. */
  segment(index: number): DataSegment {
    if (index === 0) return this.#segment;
    while (index > this.#others.length) this.#others.push(new DataSegment());
    return this.#others[index - 1]!;
  }
}

/** Stands where there is no record: behind the last one of a list, and in an empty one. */
export const noRecord = new SendRecord(-1, new Uint8Array(0));
