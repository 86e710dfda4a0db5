/**
 * Loss recovery by selective acknowledgements: which segments are lost, and when they are sent again. Source: RFC 6675, 5.
 *
 *     report ─► scoreboard ─► three duplicates, or that much after the first one? ─► recovery: window halves, the first is sent again
 *                             in recovery: lost segments, then new ones, while the window has more room than the network holds
 */
import type { SegmentFields } from './header.ts';
import { output, resend } from './output.ts';
import { isAfter, isBefore, sequenceAdd } from './sequence.ts';
import type { StreamBuffer, TcpConnection } from './tcp-connection.ts';

/** Takes the blocks of a segment. @returns true if they say something new */
export function sackArrived<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  { sackBlocks, sackEdges, acknowledgement }: SegmentFields,
): boolean {
  const { scoreboard, sendMax, sendUnacknowledged } = connection;
  const from = isAfter(acknowledgement, sendUnacknowledged) ? acknowledgement : sendUnacknowledged;
  let isNew = false;
  for (let block = 0; block < sackBlocks; block++) {
    const start = sackEdges[2 * block]!;
    const end = sackEdges[2 * block + 1]!;
    // A duplicate is reported below what is acknowledged (RFC 2883); anything else out of range is not valid.
    const isValid = !isBefore(start, from) && isAfter(end, start) && !isAfter(end, sendMax);
    if (isValid && scoreboard.add(start, end)) isNew = true;
  }
  return isNew;
}

/** Begins or continues the recovery after a report, or an acknowledgement of a part of the lost data. */
export function recoverLost<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  const { congestion, scoreboard, limits, sendUnacknowledged, segmentBytes } = connection;
  if (!congestion.isRecovering) {
    const isLost =
      connection.duplicateAcks >= limits.duplicateAcks ||
      scoreboard.isLost(sendUnacknowledged, limits.duplicateAcks, segmentBytes);
    if (!isLost || !isBefore(sendUnacknowledged, connection.sendMax)) return;
    if (!congestion.lost(connection.flightBytes, connection.sendMax, limits.duplicateAcks)) return;
    connection.counts.fastRetransmissions++;
    scoreboard.retransmittedTo = sendUnacknowledged;
    measure(connection);
    const first = connection.sendQueue[0];
    if (first !== undefined) resendAndNote(actor, connection, first);
  } else measure(connection);
  resendLost(actor, connection, 'lost');
  output(actor, connection);
  // Without new segments to send, segments that may be lost are sent (RFC 6675, 4, NextSeg 3).
  if (connection.sendQueue[connection.sendIndex] === undefined) resendLost(actor, connection, 'doubtful');
}

function measure<Actor, Buffer extends StreamBuffer>({
  scoreboard,
  sendQueue,
  sendMax,
  limits,
  segmentBytes,
}: TcpConnection<Actor, Buffer>): void {
  scoreboard.measure(sendQueue, sendMax, limits.duplicateAcks, segmentBytes);
}

/** Sends segments again while the window has room. */
function resendLost<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  which: 'lost' | 'doubtful',
): void {
  const { congestion, scoreboard, segmentBytes } = connection;
  while (congestion.windowBytes - scoreboard.pipeBytes >= segmentBytes) {
    const next = nextSegment(connection, which);
    if (next === undefined || !resendAndNote(actor, connection, next)) return;
  }
}

function resendAndNote<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  buffer: Buffer,
): boolean {
  if (!resend(actor, connection, buffer)) return false;
  connection.scoreboard.retransmitted(sequenceAdd(buffer.sequence, buffer.length), buffer.length);
  return true;
}

/** The first segment that was not sent again, has not arrived, and lies before one that has. */
function nextSegment<Actor, Buffer extends StreamBuffer>(
  { scoreboard, sendQueue, limits, segmentBytes, sendUnacknowledged }: TcpConnection<Actor, Buffer>,
  which: 'lost' | 'doubtful',
): Buffer | undefined {
  const highest = scoreboard.highest(sendUnacknowledged);
  return sendQueue.find(({ sequence, length, isSent }) => {
    if (!isSent || isBefore(sequence, scoreboard.retransmittedTo) || !isBefore(sequence, highest))
      return false;
    if (scoreboard.covers(sequence, sequenceAdd(sequence, length))) return false;
    return which === 'doubtful' || scoreboard.isLost(sequence, limits.duplicateAcks, segmentBytes);
  });
}
