/**
 * Statistics of the two ends of an Ethernet cable, kept apart. Bytes are of whole frames: header to FCS.
 *
 *   transmitted.frames + rearranged.copiedFrames
 *     = transmitted.lostFrames + received.(delivered + corrupted + fifoDrops + linkDownDrops) frames
 *
 * once nothing is on its way, nor held back.
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

/** What is missing between the statistics of two ends, in frames and bytes: zero once nothing is on its way. */
export function ethernetImbalance(
  sent: EthernetTransmitCounters,
  received: EthernetReceiveCounters,
  { copiedFrames, copiedBytes } = new EthernetRearranged(),
): { readonly frames: number; readonly bytes: number } {
  return {
    frames:
      sent.frames +
      copiedFrames -
      sent.lostFrames -
      received.deliveredFrames -
      received.corruptedFrames -
      received.fifoDrops -
      received.linkDownDrops,
    bytes:
      sent.bytes +
      copiedBytes -
      sent.lostBytes -
      received.deliveredBytes -
      received.corruptedBytes -
      received.droppedBytes,
  };
}
