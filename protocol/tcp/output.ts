/**
 * Output of a connection: data as the windows and Nagle's rule allow, FIN after all data, acknowledgements.
 *
 *     output ── data ──► FIN ──► an acknowledgement that is due and was not piggybacked     (the caller rings the doorbell)
 *        └─ the device has no room: throttled until it has
 *
 * Source: RFC 9293, 3.8; RFC 5681; RFC 896 with Minshall's change (a small segment waits only for a small one).
 */

import { NEVER, usToPs } from '../../base/index.ts';
import { Flag, newSegmentFields, sackBlocksMax } from './header.ts';
import { isAfter, isBefore, sequenceAdd, sequenceDistance } from './sequence.ts';
import type { StreamBuffer, TcpConnection } from './tcp-connection.ts';

const windowFieldMax = 0xffff;
/** Reused for every segment: nothing waits while it is filled. */
const fields = newSegmentFields();

/** Sends what may be sent now. */
export function output<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  if (connection.hasSack) passArrived(connection);
  while (mayData(connection) && hasRoom(connection)) {
    if (!sendData(actor, connection, connection.sendQueue[connection.sendIndex]!)) break;
    connection.sendIndex++;
    if (connection.hasSack) passArrived(connection);
  }
  if (mayFin(connection) && hasRoom(connection)) sendFin(actor, connection);
  if (connection.isAckDue && hasRoom(connection)) acknowledge(actor, connection);
  startTimer(connection);
}

/** After a time-out, segments that the peer has reported are not sent again. */
function passArrived<Actor, Buffer extends StreamBuffer>(connection: TcpConnection<Actor, Buffer>): void {
  const { sendQueue, scoreboard } = connection;
  for (
    let next = sendQueue[connection.sendIndex];
    next?.isSent === true;
    next = sendQueue[connection.sendIndex]
  ) {
    const end = sequenceAdd(next.sequence, next.length);
    if (!scoreboard.covers(next.sequence, end)) return;
    connection.sendIndex++;
    advance(connection, end);
  }
}

/** Sends a segment of the queue again. @returns false when it was not sent */
export function resend<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  buffer: Buffer,
): boolean {
  if (connection.isHeld(buffer) || !hasRoom(connection)) return false;
  connection.timedEnd = -1;
  if (!sendPayload(actor, connection, buffer)) return false;
  connection.counts.retransmissions++;
  return true;
}

/** Retransmits the oldest unacknowledged segment, regardless of the windows. */
export function resendFirst<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  const first = connection.sendQueue[0];
  if (first?.isSent === true) resend(actor, connection, first);
}

/** Sends SYN, or SYN with ACK to answer one. @returns false when there is no buffer or no room */
export function sendSyn<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): boolean {
  const { isPassive } = connection;
  if (!hasRoom(connection)) return false;
  const buffer = connection.takeBuffer();
  if (buffer === undefined) return false;
  connection.allocated(actor);
  fields.sequence = connection.initialSequence;
  fields.acknowledgement = isPassive ? connection.received.next : 0;
  fields.flags = isPassive ? Flag.SYN | Flag.ACK : Flag.SYN;
  fields.window = Math.min(connection.receiveLimitBytes, windowFieldMax);
  fields.maximumSegment = connection.segmentBytes + (isPassive ? connection.optionBytes : 0);
  fields.windowScale = connection.isScaled ? connection.limits.windowScale : -1;
  fields.isSackPermitted = connection.hasSack;
  fields.sackBlocks = 0;
  stamp(connection);
  connection.lastAcknowledgement = fields.acknowledgement;
  connection.windowEdge = sequenceAdd(connection.received.next, fields.window);
  return connection.sendControl(actor, fields, buffer);
}

/** Sends an acknowledgement; with `isProbe` one of an old byte, to which the other side must respond with its window. */
export function acknowledge<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  isProbe: 'probe' | 'plain' = 'plain',
): boolean {
  const buffer = connection.takeBuffer();
  if (buffer === undefined) {
    // The delayed acknowledgement tries again.
    connection.delayedAckPs = connection.nowPs() + usToPs(connection.limits.memoryWaitUs);
    connection.isAckDue = false;
    connection.deadlineChanged();
    return false;
  }
  connection.allocated(actor);
  const { sendMax, sendUnacknowledged } = connection;
  prepare(connection, isProbe === 'probe' ? sequenceAdd(sendUnacknowledged, -1) : sendMax, Flag.ACK);
  // Blocks travel in segments without payload: those with payload keep their size.
  if (connection.hasSack) {
    const blocksMax = connection.hasTimestamps ? sackBlocksMax - 1 : sackBlocksMax;
    fields.sackBlocks = connection.gapRanges.write(fields.sackEdges, blocksMax);
  }
  if (isProbe === 'plain') connection.counts.acknowledgementsSent++;
  return connection.sendControl(actor, fields, buffer);
}

/** Sends RST: the connection no longer exists. */
export function sendReset<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  if (connection.room === 0) return;
  const buffer = connection.takeBuffer();
  if (buffer === undefined) return;
  prepare(connection, connection.sendMax, Flag.RST | Flag.ACK);
  if (connection.sendControl(actor, fields, buffer)) connection.counts.resetsSent++;
}

/**
 * Announces room made by reading if it amounts to a segment (RFC 9293, 3.8.6.2.2) and at least doubles the announced window
 * (Linux tcp_cleanup_rbuf); smaller steps are announced with acknowledgements.
 */
export function isWindowWorthAnnouncing<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
): boolean {
  const { received, receiveLimitBytes, segmentBytes, windowEdge } = connection;
  const free = receiveLimitBytes - received.readableBytes;
  const announced = sequenceDistance(windowEdge, received.next);
  return free >= 2 * announced && free - announced >= Math.min(segmentBytes, receiveLimitBytes / 2);
}

function mayData<Actor, Buffer extends StreamBuffer>(connection: TcpConnection<Actor, Buffer>): boolean {
  const buffer = connection.sendQueue[connection.sendIndex];
  if (buffer === undefined || !connection.maySendData) return false;
  if (buffer === connection.filling || connection.isHeld(buffer)) return false;
  const end = sequenceDistance(sequenceAdd(buffer.sequence, buffer.length), connection.sendUnacknowledged);
  // The peer accepts bytes that were once inside its window, even if the window was rounded down since (RFC 7323, 2.4).
  if (end > connection.sendWindow && !buffer.isSent) return false;
  const { networkBytes } = connection;
  if (networkBytes > 0 && networkBytes + buffer.length > connection.congestion.windowBytes) return false;
  return buffer.isSent || !isHeldByNagle(connection, buffer);
}

/** A segment that is not full waits while another such segment is in flight. */
function isHeldByNagle<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  buffer: Buffer,
): boolean {
  if (!connection.isDelayed || connection.isFinQueued || buffer.length >= connection.segmentBytes)
    return false;
  return isAfter(connection.smallEnd, connection.sendUnacknowledged);
}

function mayFin<Actor, Buffer extends StreamBuffer>(connection: TcpConnection<Actor, Buffer>): boolean {
  return (
    connection.isFinQueued &&
    connection.sendIndex === connection.sendQueue.length &&
    connection.sendNext === connection.queueEnd &&
    connection.maySendData
  );
}

/** Whether the device accepts a frame; if not, it calls the connection when it does. */
function hasRoom<Actor, Buffer extends StreamBuffer>(connection: TcpConnection<Actor, Buffer>): boolean {
  if (connection.room > 0) return true;
  connection.throttle();
  return false;
}

function sendData<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  buffer: Buffer,
): boolean {
  const isAgain = buffer.isSent;
  if (!sendPayload(actor, connection, buffer)) return false;
  const end = sequenceAdd(buffer.sequence, buffer.length);
  if (isAgain) {
    connection.counts.retransmissions++;
    connection.timedEnd = -1;
  } else {
    buffer.isSent = true;
    connection.scoreboard.pipeBytes += buffer.length;
    if (buffer.length < connection.segmentBytes) connection.smallEnd = end;
    if (connection.timedEnd < 0) {
      connection.timedEnd = end;
      connection.timedPs = connection.nowPs();
    }
  }
  advance(connection, end);
  return true;
}

function sendPayload<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
  buffer: Buffer,
): boolean {
  const isLast = connection.sendQueue.at(-1) === buffer;
  // A report of ranges after a gap still follows in a segment of its own.
  const isReportDue = connection.isAckDue && connection.gapRanges.count > 0;
  prepare(connection, buffer.sequence, Flag.ACK | (isLast ? Flag.PSH : 0));
  connection.isAckDue = isReportDue;
  return connection.sendData(actor, fields, buffer);
}

function sendFin<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): boolean {
  const buffer = connection.takeBuffer();
  if (buffer === undefined) return false;
  connection.allocated(actor);
  prepare(connection, connection.queueEnd, Flag.FIN | Flag.ACK);
  if (!connection.sendControl(actor, fields, buffer)) return false;
  advance(connection, sequenceAdd(connection.queueEnd, 1));
  return true;
}

/** Every segment carries the acknowledgement and the window of this moment. */
function prepare<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  sequence: number,
  flags: number,
): void {
  const { received, receiveScale, receiveLimitBytes } = connection;
  const unit = 2 ** receiveScale;
  const announced = Math.max(0, sequenceDistance(connection.windowEdge, received.next));
  const free = Math.max(0, receiveLimitBytes - received.readableBytes);
  // An announced window never shrinks, and grows by at least a worthwhile step.
  const isWorth = free - announced >= Math.min(connection.segmentBytes, receiveLimitBytes / 2);
  // Rounded up if room is left: rounding with every segment would add up to an unlimited window.
  const units = Math.min(Math.ceil((isWorth ? free : announced) / unit), Math.ceil(free / unit));
  const field = Math.min(Math.max(units, Math.floor(announced / unit)), windowFieldMax);
  const edge = sequenceAdd(received.next, field * unit);
  if (isAfter(edge, connection.windowEdge)) connection.windowEdge = edge;
  fields.sequence = sequence;
  fields.acknowledgement = sequenceAdd(received.next, connection.hasFin ? 1 : 0);
  fields.flags = flags;
  fields.window = field;
  fields.maximumSegment = 0;
  fields.sackBlocks = 0;
  stamp(connection);
  connection.lastAcknowledgement = fields.acknowledgement;
  connection.isAckDue = false;
  connection.unacknowledgedSegments = 0;
  connection.delayedAckPs = NEVER;
}

/** Timestamps, if both sides have them (RFC 7323, 3.2). */
function stamp<Actor, Buffer extends StreamBuffer>(connection: TcpConnection<Actor, Buffer>): void {
  fields.timestamp = connection.hasTimestamps ? connection.timestampNow : -1;
  fields.timestampEcho = Math.max(0, connection.recentTimestamp);
}

function advance<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  end: number,
): void {
  connection.sendNext = end;
  if (isBefore(connection.sendMax, end)) connection.sendMax = end;
}

/** If data are in flight, they must be acknowledged. If none are but some wait, the window is probed. */
function startTimer<Actor, Buffer extends StreamBuffer>(connection: TcpConnection<Actor, Buffer>): void {
  if (connection.retransmitPs !== NEVER || connection.isOver) return;
  const isOnItsWay = isBefore(connection.sendUnacknowledged, connection.sendMax);
  const waits = connection.sendQueue[connection.sendIndex];
  if (!isOnItsWay && (waits === undefined || waits === connection.filling || !connection.maySendData)) return;
  connection.armRetransmit();
}
