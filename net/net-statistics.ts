/** Counters of the kernel path, incremented at each event: the costs that RDMA avoids. */

export class NetStatistics {
  /** System calls of the socket layer, and those of them that move data or wait for it. */
  systemCalls = 0;
  dataPathCalls = 0;
  /** Copies by the CPU: user to kernel, kernel to user, and within the kernel (small segments joined). */
  copiesIn = 0;
  copiedInBytes = 0;
  copiesOut = 0;
  copiedOutBytes = 0;
  copiesInside = 0;
  copiedInsideBytes = 0;
  /** Times a thread blocked in a call: it was switched out, and later in. */
  contextSwitches = 0;
  /** Threads woken. */
  wakeUps = 0;
  interrupts = 0;
  /** Polls of the rings, kernel threads started for them, and rests taken to let programs run. */
  polls = 0;
  pollThreads = 0;
  pollRests = 0;
  framesSent = 0;
  bytesSent = 0;
  framesReceived = 0;
  bytesReceived = 0;
  /** Stores to the transmit doorbell. */
  doorbells = 0;
  segmentsSent = 0;
  acknowledgementsSent = 0;
  retransmissions = 0;
  fastRetransmissions = 0;
  retransmissionTimeouts = 0;
  /** Received and dropped: bad headers, bad checksums, duplicates, no buffer, no room, beyond the window. */
  badFrames = 0;
  badChecksums = 0;
  duplicates = 0;
  droppedForMemory = 0;
  droppedForRoom = 0;
  outOfOrder = 0;
  resetsSent = 0;
  /** ARP requests, answers to other stations' requests, and ARP packets without effect: not for us, or unsolicited. */
  arpRequests = 0;
  arpReplies = 0;
  arpIgnored = 0;
  /** Counts for IPv6, and for both versions the probes of known neighbours. */
  neighborSolicitations = 0;
  neighborAdvertisements = 0;
  neighborIgnored = 0;
  neighbourProbes = 0;
  /** Frames dropped because no host answered for their destination, or because too many waited for that. */
  unresolvedFrames = 0;
  /** Answers to pings. */
  echoReplies = 0;
  /** Received and dropped: unknown VLANs, EtherTypes, protocols or messages, destinations that are not ours, and fragments. */
  foreignVlans = 0;
  foreignTypes = 0;
  foreignProtocols = 0;
  foreignDestinations = 0;
  fragments = 0;
  /** Packets from hosts without a route back. */
  unroutable = 0;
  /** Checksummed by the CPU. */
  checksummedBytes = 0;
  /** Repairs made by the watchdog. */
  recoveredInterrupts = 0;
  adapterResets = 0;

  /** Copies of all kinds. */
  get copies(): number {
    return this.copiesIn + this.copiesOut + this.copiesInside;
  }

  get copiedBytes(): number {
    return this.copiedInBytes + this.copiedOutBytes + this.copiedInsideBytes;
  }
}
