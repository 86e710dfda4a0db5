/**
 * One completion that waits to be written: all that its CQE will say. One object per place of the completion writer's fifo,
 * made once; fields that are not Wide hold 32-bit integers.
 */
import type { Wide } from '../../../base/index.ts';

export class PostedCompletion {
  /** Slot of the CQ, which keeps it until the completion is dealt with; -1 when there was no such CQ. */
  cq = 0;
  qp = 0;
  qpn = 0;
  /** Send record released when the CQE is issued, or -1. */
  record = 0;
  isSend = false;
  opcode = 0;
  wqeCounter = 0;
  byteCount: Wide = 0;
  /** Of a receive: the message is in the WQE. */
  isInlined = 0;
  immediate = 0;
  isSolicited = 0;
  /** 0, or that of an error CQE. */
  syndrome = 0;
  sourceLid = 0;
  /** Of a datagram: the word with the source QPN, and the service level. Of an XRC target's receive: the number of the SRQ. */
  source = 0;
  serviceLevel = 0;
  /** Of a frame: the tag that was taken out of it, with bit 16; 0 for none. */
  tag = 0;
  /** Of a frame: what it is of IP, as bits of CqeIpStatus, and the sum; 0 where nothing is said of checksums. */
  ipStatus = 0;
  checksum = 0;
  /** Of a datagram of RoCE, whose tag is as that of a frame: the MAC that it comes from, its upper 16 and lower 32 bits. */
  isRoce = 0;
  sourceMacHigh = 0;
  sourceMacLow: Wide = 0;
  /** Of a receive: owner of the message (costs/). */
  owner = 0;

  /** All that a successful receive of nothing has not: what the next completion has of it is filled in. */
  clear(): void {
    this.record = -1;
    this.isSend = false;
    this.opcode = 0;
    this.wqeCounter = 0;
    this.byteCount = 0;
    this.isInlined = 0;
    this.immediate = 0;
    this.isSolicited = 0;
    this.syndrome = 0;
    this.sourceLid = 0;
    this.source = 0;
    this.serviceLevel = 0;
    this.tag = 0;
    this.ipStatus = 0;
    this.checksum = 0;
    this.isRoce = 0;
  }
}
