/**
 * Statistics of the two ends of an Ethernet cable, counted independently. Bytes are of whole frames: header to FCS.
 *
 *   transmitted.frames + rearranged.copiedFrames
 *     = transmitted.lostFrames + received.(delivered + corrupted + fifoDrops + linkDownDrops) frames
 *
 * when nothing is in flight or held back. MAC control frames of a port with flow control are counted separately and added to
 * both sides of the balance; those that the cable loses or damages are among the lost and the damaged.
 */
export class EthernetTransmitCounters {
  /** Frames handed over for the wire. */
  frames = 0;
  bytes = 0;
  /** Effects of the cable's faults on these frames. */
  lostFrames = 0;
  lostBytes = 0;
  corruptedFrames = 0;
  delayedFrames = 0;
  /** Frames discarded because the link was down. */
  discardedFrames = 0;
  /** Zero bytes added to frames that were too short. */
  padBytes = 0;
}

/** Effects of faults on the order of frames. */
export class EthernetRearranged {
  /** Copies sent in addition. */
  copiedFrames = 0;
  copiedBytes = 0;
  /** Frames overtaken by others. */
  heldBackFrames = 0;
}

/**
 * Frames with a wrong FCS at a cut-through switch. Received ones are delivered all the same, those that the switch then
 * stores and drops among them, and counted as such: a management counter of FCS errors has them in addition to the
 * corrupted ones. The next port counts sent ones as corrupted, unless it cuts them through, too; those that the cable
 * loses or damages are not among the sent ones, copies are.
 */
export class RelayedFcsErrors {
  /** Delivered with a wrong frame check sequence, and sent with it. */
  received = 0;
  sent = 0;
}

export class EthernetReceiveCounters {
  /** Frames handed to the MAC. */
  deliveredFrames = 0;
  deliveredBytes = 0;
  /** Wrong frame check sequence. */
  corruptedFrames = 0;
  corruptedBytes = 0;
  /** Frames dropped because the MAC was full, or because this end was down. */
  fifoDrops = 0;
  linkDownDrops = 0;
  droppedBytes = 0;
}

/** Flow control of one end, in both directions: flow-control.ts. */
export class FlowControlCounters {
  /** PAUSE frames, FCS included; how often they let the other end resume, and the time for which it had to stop. */
  sentFrames = 0;
  sentBytes = 0;
  sentTransitions = 0;
  stoppingPs = 0;
  /** MAC control frames; those of them that are PAUSE frames for this station. */
  receivedFrames = 0;
  receivedBytes = 0;
  receivedPauses = 0;
  /**
   * Number of pauses of this end's sender that ended, the time of all pauses, and the part of it in which something
   * waited.
   */
  receivedTransitions = 0;
  pausedPs = 0;
  pauseWaitPs = 0;
  /** Dropped control frames: with another opcode than PAUSE; of another length, or for another station. */
  unknownOpcodes = 0;
  malformedFrames = 0;
}
