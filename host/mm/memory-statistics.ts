/** Events of a host's memory management, counted by kind: the `memory` part of the report. */

export class MemoryStatistics {
  /** Faults that needed no device, and faults that waited for the swap or file device. */
  minorFaults = 0;
  majorFaults = 0;
  /** Minor faults by kind: mappings of the zero page; new zeroed pages; copies; pages found to be the last user's own. */
  zeroPageFaults = 0;
  zeroedPages = 0;
  copiedPages = 0;
  reusedPages = 0;
  /** Faults that ended in a signal, by kind. */
  segmentationFaults = 0;
  busErrors = 0;
  forks = 0;
  /** Pages that fork copied at once because they were pinned. */
  forkCopiedPages = 0;
  swappedOutPages = 0;
  swappedInPages = 0;
  /** Pages reclaimed without writing: clean file pages, clean pages of the swap cache. */
  droppedPages = 0;
  filePagesRead = 0;
  filePagesWritten = 0;
  scannedPages = 0;
  activatedPages = 0;
  migratedPages = 0;
  directReclaims = 0;
  kswapdWakeUps = 0;
  swapFullRefusals = 0;
  allocationFailures = 0;
  oomKills = 0;
  pinnedPages = 0;
  unpinnedPages = 0;
  /** Unpinned pages made present for devices (on-demand paging), and pages that devices released. */
  devicePagesHeld = 0;
  devicePagesReleased = 0;
  tlbMisses = 0;
  tlbFlushes = 0;
  /** Interrupts to other cores to empty their TLBs. */
  shootdowns = 0;
  /** Calls of subscribers because translations were removed. */
  invalidations = 0;
}
