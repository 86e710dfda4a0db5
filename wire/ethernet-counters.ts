/**
 * Statistics of the two ends of an Ethernet cable, kept apart. Bytes are of whole frames: header to FCS.
 *
 *   transmitted.frames + rearranged.copiedFrames
 *     = transmitted.lostFrames + received.(delivered + corrupted + fifoDrops + linkDownDrops) frames
 *
 * once nothing is on its way, nor held back. MAC control frames of a port with flow control are no frames here: they have counters of their
 * own, and both sides of the balance have them on top; those that the cable loses or damages are among the lost and the damaged.
 */
export class EthernetTransmitCounters {
  /** Frames that were to go on the wire. */
  frames = 0;
  bytes = 0;
  /** Of those: what the cable did to them. */
  lostFrames = 0;
  lostBytes = 0;
  corruptedFrames = 0;
  delayedFrames = 0;
  /** Frames that never went on the wire because the link was down. */
  discardedFrames = 0;
  /** Zero bytes added to frames that were too short. */
  padBytes = 0;
}

/** What faults made of the order of frames. */
export class EthernetRearranged {
  /** Copies that left in addition. */
  copiedFrames = 0;
  copiedBytes = 0;
  /** Frames that others passed. */
  heldBackFrames = 0;
}

export class EthernetReceiveCounters {
  /** Frames handed to the MAC. */
  deliveredFrames = 0;
  deliveredBytes = 0;
  /** Wrong frame check sequence. */
  corruptedFrames = 0;
  corruptedBytes = 0;
  /** Dropped because the MAC held too many, or because this end was down. */
  fifoDrops = 0;
  linkDownDrops = 0;
  droppedBytes = 0;
}

/** Flow control of one end, in both directions: flow-control.ts. */
export class FlowControlCounters {
  /** PAUSE frames, FCS included; how often the other end was let go on, and the time for which it was to stop. */
  sentFrames = 0;
  sentBytes = 0;
  sentTransitions = 0;
  stoppingPs = 0;
  /** MAC control frames; of them PAUSE frames for this station. */
  receivedFrames = 0;
  receivedBytes = 0;
  receivedPauses = 0;
  /** How often a pause of this end's sender ended, the time of all pauses, and that in which something waited for their end. */
  receivedTransitions = 0;
  pausedPs = 0;
  pauseWaitPs = 0;
  /** Dropped: of another opcode than PAUSE; of another length, or for another station. */
  unknownOpcodes = 0;
  malformedFrames = 0;
}
