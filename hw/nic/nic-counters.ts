/**
 * Free-running counters of the NIC for reports; the statistics registers are differences of these.
 *
 *   frames:   arrivals = accepted + filtered + filteredVlans + wrongLength + missed + disabledDrops
 *             accepted = delivered + released by programmed I/O + droppedByReset + in the packet buffer
 */
export class NicCounters {
  // ---- transmit ----
  transmitDescriptors = 0;
  transmitFrames = 0;
  transmitBytes = 0;
  /** Frames sent by PIOTX among them. */
  programmedFrames = 0;
  /** Frames abandoned: a transfer failed, or the queue was stopped in the middle of one. */
  transmitAborts = 0;
  checksumsInserted = 0;
  tagsInserted = 0;

  // ---- receive: frames that the port delivered, by result ----
  arrivals = 0;
  accepted = 0;
  /** Frames to a destination that is not ours; then frames to ours, with a VLAN tag that VFTA does not include. */
  filtered = 0;
  filteredVlans = 0;
  wrongLength = 0;
  /** Frames that found no room in the packet buffer. */
  missed = 0;
  /** Reception was off. */
  disabledDrops = 0;
  receiveDescriptors = 0;
  /** Frames in host memory whose last descriptor was written back, and their bytes. */
  delivered = 0;
  deliveredBytes = 0;
  /** Delivered frames whose tag was removed: the tag's bytes are not counted. */
  deliveredTags = 0;
  /** Frames read by programmed I/O and released. */
  released = 0;
  releasedBytes = 0;
  broadcasts = 0;
  /** Frames that found no descriptor and had to wait. */
  waitedForDescriptor = 0;
  droppedByReset = 0;

  // ---- both ----
  descriptorFetches = 0;
  writeBacks = 0;
  busErrors = 0;
  programmingErrors = 0;
  /** Register accesses of an invalid size or offset; reads returned zero, writes were dropped. */
  registerAccessErrors = 0;
  registerReads = 0;
  registerWrites = 0;
  bufferReadBytes = 0;
  bufferWriteBytes = 0;
  resets = 0;

  // ---- interrupts: raised = messages + moderated + forgotten + waiting; a message represents one or more ----
  /** Times an enabled cause rose. */
  interruptsRaised = 0;
  interruptMessages = 0;
  /** Raised interrupts that joined a message already due. */
  interruptsModerated = 0;
  /** Raised interrupts that were masked, read or cleared before their message left. */
  interruptsForgotten = 0;
  pinAssertions = 0;
}
