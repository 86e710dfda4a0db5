/**
 * What an arriving segment does to a connection. The order of the checks is that of RFC 9293, 3.10.7.4:
 *
 *     sequence in window? ─► RST ─► SYN ─► ACK: what is acknowledged, windows, states ─► payload ─► FIN
 *
 * The buffer belongs to this file: it ends in the receive queue or is given back.
 */
import { usToPs } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import type { Connection } from './connection.ts';
import { Flag } from './headers.ts';
import { output, resendFirst, sendReset } from './output.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import { isAfter, isBefore, sequenceAdd, sequenceDistance } from './sequence.ts';

const never = Number.POSITIVE_INFINITY;

/** A parsed segment; one object, reused. The payload is what the buffer's start and length say. */
export interface Segment {
  sequence: number;
  acknowledgement: number;
  flags: number;
  window: number;
  /** Options of a SYN: 0 and -1 when they are absent. */
  maximumSegment: number;
  windowScale: number;
}

export function segmentArrived(
  cpu: Cpu,
  connection: Connection,
  segment: Segment,
  buffer: PacketBuffer,
): void {
  if (connection.state === 'SYN_SENT') {
    answerArrived(cpu, connection, segment);
    drop(connection, buffer);
    return;
  }
  if (!isAcceptable(connection, segment, buffer.length)) {
    drop(connection, buffer);
    connection.environment.counts.duplicates++;
    if ((segment.flags & Flag.RST) === 0) acknowledgeNow(cpu, connection);
    return;
  }
  if ((segment.flags & (Flag.RST | Flag.SYN)) !== 0 || (segment.flags & Flag.ACK) === 0) {
    drop(connection, buffer);
    unusualArrived(cpu, connection, segment);
    return;
  }
  if (connection.state === 'SYN_RECEIVED' && !becomesEstablished(cpu, connection, segment)) {
    drop(connection, buffer);
    return;
  }
  const isPure = buffer.length === 0;
  if (!acknowledgementArrived(cpu, connection, segment, isPure)) {
    drop(connection, buffer);
    return;
  }
  const end = sequenceAdd(segment.sequence, buffer.length);
  payloadArrived(cpu, connection, segment, buffer);
  if ((segment.flags & Flag.FIN) !== 0) finArrived(cpu, connection, end);
  if (connection.state !== 'CLOSED') output(cpu, connection);
}

function drop(connection: Connection, buffer: PacketBuffer): void {
  connection.environment.device.buffers.give(buffer);
}

/** An answer to our SYN. */
function answerArrived(cpu: Cpu, connection: Connection, segment: Segment): void {
  const { flags, acknowledgement } = segment;
  const isOurs = (flags & Flag.ACK) !== 0 && acknowledgement === connection.sendMax;
  if (!isOurs) return;
  if ((flags & Flag.RST) !== 0) {
    connection.fail(cpu, 'ECONNREFUSED');
    return;
  }
  if ((flags & Flag.SYN) === 0) return;
  connection.received.next = sequenceAdd(segment.sequence, 1);
  connection.windowEdge = sequenceAdd(
    connection.received.next,
    Math.min(connection.receiveLimitBytes, 0xffff),
  );
  connection.agree(segment.maximumSegment, segment.windowScale);
  connection.state = 'ESTABLISHED';
  connection.route.via.confirmed(connection.route);
  takeAcknowledged(connection, acknowledgement);
  connection.sendWindow = segment.window;
  connection.windowSequence = segment.sequence;
  connection.windowAcknowledgement = acknowledgement;
  connection.isAckDue = true;
  connection.wakeAll(cpu);
  output(cpu, connection);
}

/** The test of RFC 9293, 3.10.7.4, first step. An empty window still takes a segment without length at its edge. */
function isAcceptable(connection: Connection, segment: Segment, payloadBytes: number): boolean {
  const next = sequenceAdd(connection.received.next, connection.hasFin ? 1 : 0);
  const length = payloadBytes + ((segment.flags & Flag.FIN) !== 0 ? 1 : 0);
  const window = Math.max(0, sequenceDistance(connection.windowEdge, next));
  const first = sequenceDistance(segment.sequence, next);
  if (length === 0) return window === 0 ? first === 0 : first >= 0 && first < window;
  return first + length > 0 && first + length <= window + 1 && first < Math.max(window, 1);
}

/** RST, SYN, or no ACK. */
function unusualArrived(cpu: Cpu, connection: Connection, segment: Segment): void {
  if ((segment.flags & Flag.RST) !== 0) {
    if (segment.sequence !== connection.received.next && !connection.hasFin) {
      acknowledgeNow(cpu, connection);
      return;
    }
    const isClosed = connection.state === 'TIME_WAIT' || connection.state === 'SYN_RECEIVED';
    if (isClosed) connection.end(cpu);
    else connection.fail(cpu, 'ECONNRESET');
    return;
  }
  // A SYN inside of the window is challenged (RFC 5961).
  if ((segment.flags & Flag.SYN) !== 0) acknowledgeNow(cpu, connection);
}

/** The third step of the handshake. */
function becomesEstablished(cpu: Cpu, connection: Connection, segment: Segment): boolean {
  if (segment.acknowledgement !== connection.sendMax) return false;
  // Where it can't be queued the acknowledgement is forgotten: the SYN is answered again.
  if (!connection.environment.established(cpu, connection)) return false;
  connection.state = 'ESTABLISHED';
  connection.windowSequence = segment.sequence;
  connection.windowAcknowledgement = segment.acknowledgement;
  connection.sendWindow = segment.window << connection.sendScale;
  return true;
}

/** @returns false when the rest of the segment is to be ignored */
function acknowledgementArrived(
  cpu: Cpu,
  connection: Connection,
  segment: Segment,
  isPure: boolean,
): boolean {
  const { acknowledgement } = segment;
  if (isAfter(acknowledgement, connection.sendMax)) {
    acknowledgeNow(cpu, connection);
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
  if (isNew) newlyAcknowledged(cpu, connection, acknowledgement);
  else if (isDuplicate) duplicateArrived(cpu, connection);
  // A peer that answers a probe is alive.
  else if (connection.isProbing) connection.tries = 0;
  return connection.state !== 'CLOSED';
}

function updateWindow(connection: Connection, segment: Segment, window: number): void {
  if (isBefore(segment.acknowledgement, connection.sendUnacknowledged)) return;
  const isNewer =
    isBefore(connection.windowSequence, segment.sequence) ||
    (connection.windowSequence === segment.sequence &&
      !isAfter(connection.windowAcknowledgement, segment.acknowledgement));
  if (!isNewer) return;
  if (window > connection.sendWindow && connection.isProbing) {
    connection.retransmitPs = never;
    connection.tries = 0;
    connection.roundTrip.backoff = 0;
  }
  connection.sendWindow = window;
  connection.windowSequence = segment.sequence;
  connection.windowAcknowledgement = segment.acknowledgement;
}

function newlyAcknowledged(cpu: Cpu, connection: Connection, acknowledgement: number): void {
  const { congestion, route } = connection;
  route.via.confirmed(route);
  const bytes = sequenceDistance(acknowledgement, connection.sendUnacknowledged);
  connection.duplicateAcks = 0;
  const freed = takeAcknowledged(connection, acknowledgement);
  cpu.charge('protocol', freed * connection.environment.costs.bufferFree);
  const isNextLost = congestion.acknowledged(bytes, acknowledgement);
  if (isNextLost) resendFirst(cpu, connection);
  if (connection.hasSendRoom) connection.writable.wake(cpu);
  if (connection.isFinAcknowledged) finAcknowledged(cpu, connection);
}

/** Takes what was acknowledged out of the queue, and the timers with it. @returns buffers that were freed */
function takeAcknowledged(connection: Connection, acknowledgement: number): number {
  const { environment, sendQueue } = connection;
  connection.sendUnacknowledged = acknowledgement;
  if (isBefore(connection.sendNext, acknowledgement)) connection.sendNext = acknowledgement;
  let freed = 0;
  for (let first = sendQueue[0]; first !== undefined; first = sendQueue[0]) {
    if (isAfter(sequenceAdd(first.sequence, first.length), acknowledgement) || !first.isSent) break;
    sendQueue.shift();
    environment.device.buffers.giveWhenSent(first);
    freed++;
  }
  connection.sendIndex = Math.max(0, connection.sendIndex - freed);
  if (connection.timedEnd >= 0 && !isBefore(acknowledgement, connection.timedEnd)) {
    connection.roundTrip.sample(environment.platform.nowPs() - connection.timedPs);
    connection.timedEnd = -1;
  }
  connection.roundTrip.backoff = 0;
  connection.tries = 0;
  connection.retransmitPs = never;
  if (isBefore(acknowledgement, connection.sendMax)) connection.armRetransmit();
  return freed;
}

function duplicateArrived(cpu: Cpu, connection: Connection): void {
  const { environment, congestion } = connection;
  connection.duplicateAcks++;
  if (connection.duplicateAcks !== environment.config.duplicateAcks) {
    if (connection.duplicateAcks > environment.config.duplicateAcks) congestion.duplicate();
    return;
  }
  if (!congestion.lost(connection.flightBytes, connection.sendMax, environment.config.duplicateAcks)) return;
  environment.counts.fastRetransmissions++;
  resendFirst(cpu, connection);
}

/** Our FIN has arrived. */
function finAcknowledged(cpu: Cpu, connection: Connection): void {
  if (connection.state === 'FIN_WAIT_1') {
    connection.state = 'FIN_WAIT_2';
    if (connection.isOrphan) limitOrphan(connection);
  } else if (connection.state === 'CLOSING') connection.waitOut(cpu);
  else if (connection.state === 'LAST_ACK') connection.end(cpu);
}

/** An orphan does not wait for the other side's FIN for ever. */
export function limitOrphan(connection: Connection): void {
  const { platform, config } = connection.environment;
  connection.closePs = platform.nowPs() + usToPs(config.finTimeoutUs);
  connection.environment.timersChanged(connection);
}

function payloadArrived(cpu: Cpu, connection: Connection, segment: Segment, buffer: PacketBuffer): void {
  const { environment, received } = connection;
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
    sendReset(cpu, connection);
    connection.end(cpu);
    return;
  }
  buffer.sequence = segment.sequence;
  const arrival = received.arrive(buffer);
  if (received.copiedBytes > 0) countCopy(cpu, connection, received.copiedBytes);
  if (arrival === 'inOrder') {
    // A gap that has just been closed, or is still there, is acknowledged at once (RFC 5681, 4.2).
    connection.unacknowledgedSegments++;
    if (connection.unacknowledgedSegments >= 2 || received.hasGap) connection.isAckDue = true;
    else delayAcknowledgement(connection);
    connection.readable.wake(cpu);
    return;
  }
  if (arrival === 'behindGap') environment.counts.outOfOrder++;
  else if (arrival === 'duplicate') environment.counts.duplicates++;
  else environment.counts.droppedForRoom++;
  connection.isAckDue = true;
}

function countCopy(cpu: Cpu, connection: Connection, bytes: number): void {
  const { counts, platform } = connection.environment;
  cpu.charge('copy', platform.costs.copyFixed + Math.ceil(bytes / platform.costs.copyBytesPerCycle));
  counts.copiesInside++;
  counts.copiedInsideBytes += bytes;
}

function delayAcknowledgement(connection: Connection): void {
  const { config, platform } = connection.environment;
  if (config.delayedAckUs === 0) {
    connection.isAckDue = true;
    return;
  }
  if (connection.delayedAckPs !== never) return;
  connection.delayedAckPs = platform.nowPs() + usToPs(config.delayedAckUs);
  connection.environment.timersChanged(connection);
}

/** The other side has sent everything; `end` is the sequence number of its FIN. */
function finArrived(cpu: Cpu, connection: Connection, end: number): void {
  // Behind a gap it is left to be sent again.
  connection.isAckDue = true;
  if (connection.hasFin || end !== connection.received.next) return;
  const { state } = connection;
  if (state === 'ESTABLISHED') connection.state = 'CLOSE_WAIT';
  else if (state === 'FIN_WAIT_1') connection.state = 'CLOSING';
  else if (state !== 'FIN_WAIT_2') return;
  connection.hasFin = true;
  connection.readable.wake(cpu);
  connection.writable.wake(cpu);
  if (state !== 'FIN_WAIT_2') return;
  output(cpu, connection);
  connection.waitOut(cpu);
}

function acknowledgeNow(cpu: Cpu, connection: Connection): void {
  connection.isAckDue = true;
  output(cpu, connection);
}
