/**
 * State that a sender keeps for SACK: ranges received by its peer, retransmitted ranges, and the amount in the network. Source: RFC 6675, 3 and 4.
 */
import { isAfter, isBefore, sequenceAdd } from './sequence.ts';
import { SequenceRanges } from './sequence-ranges.ts';

export class SackScoreboard extends SequenceRanges {
  /** End of the data retransmitted in this recovery (HighRxt). */
  retransmittedTo = 0;
  /** Bytes that are believed to be in the network (pipe). */
  pipeBytes = 0;

  /** IsLost: as many ranges or bytes as three duplicates would show were received after it. */
  isLost(sequence: number, duplicates: number, segmentBytes: number): boolean {
    return (
      this.countAfter(sequence) >= duplicates || this.bytesAfter(sequence) > (duplicates - 1) * segmentBytes
    );
  }

  /** SetPipe, over the segments of the queue that were sent. */
  measure(
    sent: readonly { readonly sequence: number; readonly length: number; readonly isSent: boolean }[],
    sentTo: number,
    duplicates: number,
    segmentBytes: number,
  ): void {
    let bytes = 0;
    for (const { sequence, length, isSent } of sent) {
      if (!isSent || !isBefore(sequence, sentTo)) break;
      if (this.covers(sequence, sequenceAdd(sequence, length))) continue;
      if (!this.isLost(sequence, duplicates, segmentBytes)) bytes += length;
      if (isBefore(sequence, this.retransmittedTo)) bytes += length;
    }
    this.pipeBytes = bytes;
  }

  /** Notes that bytes up to `end` were retransmitted. */
  retransmitted(end: number, lengthBytes: number): void {
    if (isAfter(end, this.retransmittedTo)) this.retransmittedTo = end;
    this.pipeBytes += lengthBytes;
  }
}
