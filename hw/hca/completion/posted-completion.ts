/**
 * One completion that waits to be written: all contents of its CQE. One object per place of the completion writer's
 * fifo, created once; fields that are not Wide hold 32-bit integers.
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
  /** 1 if the message of a receive is in the WQE. */
  isInlined = 0;
  immediate = 0;
  isSolicited = 0;
  /** 0, or that of an error CQE. */
  syndrome = 0;
  sourceLid = 0;
  /**
   * The word with the source QPN of a datagram, and its service level; for a receive of an XRC target, the number of
   * the SRQ.
   */
  source = 0;
  serviceLevel = 0;
  /** The tag that was removed from a frame, with bit 16; 0 for none. */
  tag = 0;
  /** IP status of a frame as bits of CqeIpStatus, and its checksum; 0 if the completion reports no checksums. */
  ipStatus = 0;
  checksum = 0;
  /**
   * 1 for a datagram of RoCE, whose tag is stored like that of a frame; its source MAC follows, upper 16 and lower 32
   * bits.
   */
  isRoce = 0;
  sourceMacHigh = 0;
  sourceMacLow: Wide = 0;
  /** Owner of a received message (costs/). */
  owner = 0;

  /**
   * Clears the fields that an empty successful receive does not use; callers then set those that the next completion
   * uses.
   */
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
