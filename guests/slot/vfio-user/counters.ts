/** Counters of a server over all its clients, for a report. */

export interface ServerCounters {
  /** Clients that agreed on a version. */
  clientCount: number;
  /** Connections that did not end with a clean close by the client. */
  droppedCount: number;
  /** Clients that were refused because another is being served. */
  refusedCount: number;
  /** Why the last connection ended; empty before. */
  lastEnd: string;
  /** Commands processed or refused. */
  messageCount: number;
  /** Refused messages, with or without a requested reply. */
  errorReplyCount: number;
  regionReadCount: number;
  /** Messages; one may carry many writes (REGION_WRITE_MULTI). */
  regionWriteCount: number;
  dmaMapCount: number;
  dmaUnmapCount: number;
}

export const zeroCounters = (): ServerCounters => ({
  clientCount: 0,
  droppedCount: 0,
  refusedCount: 0,
  lastEnd: '',
  messageCount: 0,
  errorReplyCount: 0,
  regionReadCount: 0,
  regionWriteCount: 0,
  dmaMapCount: 0,
  dmaUnmapCount: 0,
});
