/**
 * One send WQE that has been taken up and is not yet complete. One object per place of {@link SendRecords}, made once;
 * what is several numbers per record stands there in arrays. A field that begins as NaN may hold any number, the others hold
 * 32-bit integers: V8 chooses a field's representation by its first value.
 */
export class SendRecord {
  next = 0;
  qp = 0;
  wqeCounter = 0;
  opcode = 0;
  isSignalled = 0;
  isSolicited = 0;
  isFenced = 0;
  /** READ or atomic: completed by a response of its own. */
  isReadOrAtomic = 0;
  firstPsn = 0;
  /** PSNs this message occupies: packets sent, or responses expected of a READ. */
  psnCount = 0;
  messageBytes = Number.NaN;
  remoteAddress = Number.NaN;
  remoteKey = Number.NaN;
  immediate = 0;
  ssn = 0;
  segmentCount = 0;
  isInline = 0;
  /** Packets sent at least once, and responses of a READ received. */
  packetsSent = 0;
  responsesReceived = 0;
  /** A local error found when the WQE was taken up or its payload read: a CQE syndrome, or 0. */
  syndrome = 0;
  /** Nothing more is waited for: a NOP, or a message of an unreliable service that has been sent. */
  isDone = 0;

  constructor() {
    this.messageBytes = 0;
    this.remoteAddress = 0;
    this.remoteKey = 0;
  }
}
