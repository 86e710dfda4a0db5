/** Deadlines of a connection: close, delayed acknowledgement, retransmission (RFC 6298, 5) and window probe (RFC 9293, 3.8.6.1). */
import { NEVER, usToPs } from '../../base/index.ts';
import { acknowledge, output, sendReset, sendSyn } from './output.ts';
import { isBefore } from './sequence.ts';
import type { StreamBuffer, TcpConnection } from './tcp-connection.ts';

/** Acts on the deadlines of a connection that have passed. */
export function deadlinesDue<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  const nowPs = connection.nowPs();
  if (connection.closePs <= nowPs) {
    connection.end(actor);
    return;
  }
  if (connection.delayedAckPs <= nowPs) {
    connection.delayedAckPs = NEVER;
    connection.isAckDue = true;
    output(actor, connection);
  }
  if (connection.retransmitPs <= nowPs) retransmitDue(actor, connection);
  if (connection.keepalivePs <= nowPs) keepaliveDue(actor, connection);
}

/** RFC 9293, 3.8.4: probes an idle connection; a peer that answers none of the probes has left. */
function keepaliveDue<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  const { keepalive } = connection.extensions;
  connection.keepalivePs = NEVER;
  if (keepalive === undefined) return;
  if (connection.keepaliveProbes >= keepalive.probes) {
    sendReset(actor, connection);
    connection.fail(actor, 'ETIMEDOUT');
    return;
  }
  // Unacknowledged bytes are retransmitted, which probes the peer too and has its own limit.
  if (connection.isProbing) {
    connection.keepaliveProbes++;
    probe(actor, connection);
  }
  connection.keepalivePs = connection.nowPs() + usToPs(keepalive.intervalUs);
  connection.deadlineChanged();
}

function retransmitDue<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  const { limits } = connection;
  connection.retransmitPs = NEVER;
  const isOpening = connection.state === 'SYN_SENT' || connection.state === 'SYN_RECEIVED';
  const isHeld = connection.sendQueue[0] !== undefined && connection.isHeld(connection.sendQueue[0]);
  if (isHeld && !connection.isProbing) {
    // The device still holds the segment, so the network does not cause the delay.
    connection.retransmitPs = connection.nowPs() + usToPs(limits.retransmitMinUs);
    connection.deadlineChanged();
    return;
  }
  if (++connection.tries > (isOpening ? limits.synRetries : limits.dataRetries)) {
    if (connection.state === 'SYN_RECEIVED') connection.end(actor);
    else connection.fail(actor, 'ETIMEDOUT');
    return;
  }
  connection.roundTrip.backoff++;
  connection.timedEnd = -1;
  if (isOpening) sendSyn(actor, connection);
  else if (connection.isProbing) probe(actor, connection);
  else sendAgain(actor, connection);
  if (!connection.isOver) connection.armRetransmit();
}

function probe<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  if (connection.room > 0) acknowledge(actor, connection, 'probe');
}

/** Retransmits everything unacknowledged, as the congestion window opens. */
function sendAgain<Actor, Buffer extends StreamBuffer>(
  actor: Actor,
  connection: TcpConnection<Actor, Buffer>,
): void {
  connection.counts.retransmissionTimeouts++;
  // The peer may have discarded data that it has reported (RFC 2018, 8).
  connection.scoreboard.clear();
  connection.congestion.timedOut(connection.flightBytes, connection.sendMax, connection.tries === 1);
  connection.duplicateAcks = 0;
  if (isBefore(connection.sendUnacknowledged, connection.sendMax)) {
    connection.sendNext = connection.sendUnacknowledged;
    connection.sendIndex = 0;
  }
  output(actor, connection);
}
