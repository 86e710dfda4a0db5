/**
 * Processes the segments that arrive for a connection. The order of the checks is that of RFC 9293, 3.10.7.4:
 *
 *     sequence in window? ─► RST ─► SYN ─► ACK: what is acknowledged, windows, states ─► payload ─► FIN
 *
 * The buffer belongs to this file: it enters the receive queue or is returned.
 */
import { NEVER, psPerMs, usToPs } from '../../base/index.ts';
import { Flag, type SegmentFields } from './header.ts';
import { output, resendFirst, sendReset } from './output.ts';
import { recoverLost, sackArrived } from './sack-recovery.ts';
import { isAfter, isBefore, sequenceAdd, sequenceDistance } from './sequence.ts';
import type { Arrival, StreamBuffer, TcpConnection } from './tcp-connection.ts';

export function segmentArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
  buffer: Buffer,
): void {
  connection.activity();
  if (connection.state === 'SYN_SENT') {
    answerArrived(actor, connection, segment);
    drop(connection, buffer);
    return;
  }
  if (connection.hasTimestamps && !isStamped(actor, connection, segment)) {
    drop(connection, buffer);
    return;
  }
  if (!isAcceptable(connection, segment, buffer.length)) {
    drop(connection, buffer);
    connection.counts.duplicates++;
    if ((segment.flags & Flag.RST) === 0) acknowledgeNow(actor, connection);
    return;
  }
  if ((segment.flags & (Flag.RST | Flag.SYN)) !== 0 || (segment.flags & Flag.ACK) === 0) {
    drop(connection, buffer);
    unusualArrived(actor, connection, segment);
    return;
  }
  if (connection.state === 'SYN_RECEIVED' && !becomesEstablished(actor, connection, segment)) {
    drop(connection, buffer);
    return;
  }
  const isPure = buffer.length === 0;
  if (!acknowledgementArrived(actor, connection, segment, isPure)) {
    drop(connection, buffer);
    return;
  }
  const end = sequenceAdd(segment.sequence, buffer.length);
  payloadArrived(actor, connection, segment, buffer);
  if ((segment.flags & Flag.FIN) !== 0) finArrived(actor, connection, end);
  if (connection.state !== 'CLOSED') output(actor, connection);
}

function drop<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  buffer: Buffer,
): void {
  connection.discard(buffer);
}

/**
 * Protection against wrapped sequence numbers (RFC 7323, 5.3): a segment that is older than one that was acknowledged is answered and dropped;
 * one without timestamps is dropped. RST is exempt.
 */
function isStamped<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  { flags, timestamp, sequence }: SegmentFields,
): boolean {
  if ((flags & Flag.RST) !== 0) return true;
  if (timestamp < 0) return false;
  const { recentTimestamp } = connection;
  if (recentTimestamp >= 0 && isBefore(timestamp, recentTimestamp)) {
    connection.counts.duplicates++;
    acknowledgeNow(actor, connection);
    return false;
  }
  if (!isAfter(sequence, connection.lastAcknowledgement)) connection.recentTimestamp = timestamp;
  return true;
}

/** An answer to our SYN. */
function answerArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
): void {
  const { flags, acknowledgement } = segment;
  const isOurs = (flags & Flag.ACK) !== 0 && acknowledgement === connection.sendMax;
  if (!isOurs) return;
  if ((flags & Flag.RST) !== 0) {
    connection.fail(actor, 'ECONNREFUSED');
    return;
  }
  if ((flags & Flag.SYN) === 0) return;
  connection.received.next = sequenceAdd(segment.sequence, 1);
  connection.windowEdge = sequenceAdd(
    connection.received.next,
    Math.min(connection.receiveLimitBytes, 0xffff),
  );
  connection.agree(segment);
  connection.state = 'ESTABLISHED';
  connection.pathConfirmed();
  takeAcknowledged(connection, acknowledgement);
  connection.sendWindow = segment.window;
  connection.sendWindowMax = segment.window;
  connection.windowSequence = segment.sequence;
  connection.windowAcknowledgement = acknowledgement;
  connection.isAckDue = true;
  connection.readable(actor);
  connection.writable(actor);
  output(actor, connection);
}

/** The test of RFC 9293, 3.10.7.4, first step. An empty window still accepts a segment of length 0 at its edge. */
function isAcceptable<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
  payloadBytes: number,
): boolean {
  const next = sequenceAdd(connection.received.next, connection.hasFin ? 1 : 0);
  const length = payloadBytes + ((segment.flags & Flag.FIN) !== 0 ? 1 : 0);
  const window = Math.max(0, sequenceDistance(connection.windowEdge, next));
  const first = sequenceDistance(segment.sequence, next);
  if (length === 0) return window === 0 ? first === 0 : first >= 0 && first < window;
  return first + length > 0 && first + length <= window + 1 && first < Math.max(window, 1);
}

/** RST, SYN, or no ACK. */
function unusualArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
): void {
  if ((segment.flags & Flag.RST) !== 0) {
    // RFC 5961, 3.2: any other place inside of the window is challenged.
    if (segment.sequence !== sequenceAdd(connection.received.next, connection.hasFin ? 1 : 0)) {
      acknowledgeNow(actor, connection);
      return;
    }
    const isClosed = connection.state === 'TIME_WAIT' || connection.state === 'SYN_RECEIVED';
    if (isClosed) connection.end(actor);
    else connection.fail(actor, 'ECONNRESET');
    return;
  }
  // A SYN inside of the window is challenged (RFC 5961).
  if ((segment.flags & Flag.SYN) !== 0) acknowledgeNow(actor, connection);
}

/** The third step of the handshake. */
function becomesEstablished<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
): boolean {
  if (segment.acknowledgement !== connection.sendMax) return false;
  // If it cannot be queued, the acknowledgement is dropped: the SYN is answered again.
  if (!connection.established(actor)) return false;
  connection.state = 'ESTABLISHED';
  connection.windowSequence = segment.sequence;
  connection.windowAcknowledgement = segment.acknowledgement;
  connection.sendWindow = segment.window << connection.sendScale;
  connection.sendWindowMax = connection.sendWindow;
  return true;
}

/** @returns false if the rest of the segment must be ignored */
function acknowledgementArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
  isPure: boolean,
): boolean {
  const { acknowledgement } = segment;
  // RFC 5961, 5.2: neither bytes that were never sent nor those of long ago can be acknowledged.
  const age = sequenceDistance(connection.sendUnacknowledged, acknowledgement);
  if (isAfter(acknowledgement, connection.sendMax) || age > connection.sendWindowMax) {
    acknowledgeNow(actor, connection);
    return false;
  }
  const window = segment.window * 2 ** connection.sendScale;
  const isNew = isAfter(acknowledgement, connection.sendUnacknowledged);
  const isDuplicate =
    acknowledgement === connection.sendUnacknowledged &&
    isPure &&
    window === connection.sendWindow &&
    (segment.flags & Flag.FIN) === 0 &&
    isBefore(connection.sendUnacknowledged, connection.sendMax);
  updateWindow(connection, segment, window);
  const isReport = connection.hasSack && sackArrived(connection, segment);
  if (isNew) newlyAcknowledged(actor, connection, segment);
  else if (connection.hasSack ? isReport : isDuplicate) duplicateArrived(actor, connection);
  // A peer that answers a probe is alive.
  else if (connection.isProbing) connection.tries = 0;
  return connection.state !== 'CLOSED';
}

function updateWindow<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
  window: number,
): void {
  if (isBefore(segment.acknowledgement, connection.sendUnacknowledged)) return;
  // A segment that acknowledges more was sent later, even if its bytes are older: a retransmission (Linux, tcp_may_update_window).
  const isNewer =
    isAfter(segment.acknowledgement, connection.windowAcknowledgement) ||
    isBefore(connection.windowSequence, segment.sequence) ||
    (connection.windowSequence === segment.sequence &&
      !isAfter(connection.windowAcknowledgement, segment.acknowledgement));
  if (!isNewer) return;
  if (window > connection.sendWindow && connection.isProbing) {
    connection.retransmitPs = NEVER;
    connection.tries = 0;
    connection.roundTrip.backoff = 0;
  }
  connection.sendWindow = window;
  connection.sendWindowMax = Math.max(connection.sendWindowMax, window);
  connection.windowSequence = segment.sequence;
  connection.windowAcknowledgement = segment.acknowledgement;
}

function newlyAcknowledged<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  { acknowledgement, timestampEcho }: SegmentFields,
): void {
  const { congestion, roundTrip } = connection;
  connection.pathConfirmed();
  const bytes = sequenceDistance(acknowledgement, connection.sendUnacknowledged);
  connection.duplicateAcks = 0;
  // Karn's rule excludes retransmitted segments; a timestamp belongs to one transmission (RFC 7323, 4.1).
  const isTimed = !connection.hasTimestamps || connection.timedEnd >= 0;
  if (!isTimed) sampleEcho(connection, timestampEcho);
  const freed = takeAcknowledged(connection, acknowledgement);
  connection.freed(actor, freed);
  const isNextLost = congestion.acknowledged(
    bytes,
    acknowledgement,
    connection.nowPs(),
    roundTrip.smoothedPs,
  );
  if (isNextLost && connection.hasSack) recoverLost(actor, connection);
  else if (isNextLost) resendFirst(actor, connection);
  if (connection.hasSendRoom) connection.writable(actor);
  if (connection.isFinAcknowledged) finAcknowledged(actor, connection);
}

function sampleEcho<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  echo: number,
): void {
  const elapsedMs = sequenceDistance(connection.timestampNow, echo);
  // The clock ticks once a millisecond: the granularity of RFC 6298.
  if (echo !== 0 && elapsedMs >= 0) connection.roundTrip.sample(Math.max(elapsedMs, 1) * psPerMs);
}

/** Removes acknowledged data from the queue, and stops the timer: output starts it again for the rest (RFC 6298, 5.3). @returns freed buffers */
function takeAcknowledged<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  acknowledgement: number,
): number {
  const { sendQueue } = connection;
  connection.sendUnacknowledged = acknowledgement;
  if (connection.hasSack) connection.scoreboard.removeBefore(acknowledgement);
  if (isBefore(connection.sendNext, acknowledgement)) connection.sendNext = acknowledgement;
  let freed = 0;
  for (let first = sendQueue[0]; first !== undefined; first = sendQueue[0]) {
    if (isAfter(sequenceAdd(first.sequence, first.length), acknowledgement) || !first.isSent) break;
    sendQueue.shift();
    connection.release(first);
    freed++;
  }
  connection.sendIndex = Math.max(0, connection.sendIndex - freed);
  if (connection.timedEnd >= 0 && !isBefore(acknowledgement, connection.timedEnd)) {
    connection.roundTrip.sample(connection.nowPs() - connection.timedPs);
    connection.timedEnd = -1;
  }
  connection.tries = 0;
  connection.retransmitPs = NEVER;
  return freed;
}

function duplicateArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  const { congestion, limits } = connection;
  connection.duplicateAcks++;
  if (connection.hasSack) {
    recoverLost(actor, connection);
    return;
  }
  if (connection.duplicateAcks !== limits.duplicateAcks) {
    if (connection.duplicateAcks > limits.duplicateAcks) congestion.duplicate();
    return;
  }
  if (!congestion.lost(connection.flightBytes, connection.sendMax, limits.duplicateAcks)) return;
  connection.counts.fastRetransmissions++;
  resendFirst(actor, connection);
}

/** Our FIN has arrived. */
function finAcknowledged<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  if (connection.state === 'FIN_WAIT_1') {
    connection.state = 'FIN_WAIT_2';
    if (connection.isFinWaitLimited) limitFinWait(connection);
  } else if (connection.state === 'CLOSING') connection.waitOut(actor);
  else if (connection.state === 'LAST_ACK') connection.end(actor);
}

/** Limits how long a connection waits in FIN_WAIT_2 for the peer's FIN. */
export function limitFinWait<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
): void {
  connection.closePs = connection.nowPs() + usToPs(connection.limits.finTimeoutUs);
  connection.deadlineChanged();
}

function payloadArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  segment: SegmentFields,
  buffer: Buffer,
): void {
  const { received } = connection;
  if (buffer.length === 0) {
    drop(connection, buffer);
    return;
  }
  const mayReceive =
    connection.state === 'ESTABLISHED' ||
    connection.state === 'FIN_WAIT_1' ||
    connection.state === 'FIN_WAIT_2';
  if (!mayReceive || connection.hasFin) {
    drop(connection, buffer);
    connection.isAckDue = true;
    return;
  }
  if (connection.isOrphan) {
    // No socket is left to read it: the peer gets a RST.
    drop(connection, buffer);
    sendReset(actor, connection);
    connection.end(actor);
    return;
  }
  buffer.sequence = segment.sequence;
  const end = sequenceAdd(segment.sequence, buffer.length);
  const arrival = received.arrive(buffer);
  if (connection.hasSack) noteRanges(connection, arrival, segment.sequence, end);
  if (received.copiedBytes > 0) connection.copied(actor, received.copiedBytes);
  if (arrival === 'inOrder') {
    // A gap that was just closed, or still exists, is acknowledged at once (RFC 5681, 4.2).
    connection.unacknowledgedSegments++;
    if (connection.unacknowledgedSegments >= 2 || received.hasGap) connection.isAckDue = true;
    else delayAcknowledgement(connection);
    connection.readable(actor);
    return;
  }
  if (arrival === 'behindGap') connection.counts.outOfOrder++;
  else if (arrival === 'duplicate') connection.counts.duplicates++;
  else connection.counts.droppedForRoom++;
  connection.isAckDue = true;
}

/** Keeps the ranges after a gap that are reported; a duplicate after a gap is reported first (RFC 2018, 4). */
function noteRanges<Actor, Buffer extends StreamBuffer>(
  { gapRanges, received }: TcpConnection<Actor, Buffer>,
  arrival: Arrival,
  start: number,
  end: number,
): void {
  const isAfterGap = isAfter(start, received.next);
  if (arrival === 'behindGap' || (arrival === 'duplicate' && isAfterGap)) gapRanges.add(start, end);
  gapRanges.removeBefore(received.next);
}

function delayAcknowledgement<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
): void {
  const { delayedAckUs } = connection.limits;
  if (delayedAckUs === 0) {
    connection.isAckDue = true;
    return;
  }
  if (connection.delayedAckPs !== NEVER) return;
  connection.delayedAckPs = connection.nowPs() + usToPs(delayedAckUs);
  connection.deadlineChanged();
}

/** Handles a FIN: the other side has sent everything; `end` is its sequence number. */
function finArrived<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  end: number,
): void {
  // After a gap the segment is dropped; the peer retransmits it.
  connection.isAckDue = true;
  if (connection.hasFin || end !== connection.received.next) return;
  const { state } = connection;
  if (state === 'ESTABLISHED') connection.state = 'CLOSE_WAIT';
  else if (state === 'FIN_WAIT_1') connection.state = 'CLOSING';
  else if (state !== 'FIN_WAIT_2') return;
  connection.hasFin = true;
  connection.readable(actor);
  connection.writable(actor);
  if (state !== 'FIN_WAIT_2') return;
  output(actor, connection);
  connection.waitOut(actor);
}

function acknowledgeNow<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  connection.isAckDue = true;
  output(actor, connection);
}
