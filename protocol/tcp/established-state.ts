/**
 * Hands an established connection from one owner to another: a kernel opens it and lets a card carry it on. The 4-tuple, the buffers and the
 * unread bytes are the owners' affair. Source: RFC 9293, 3.3.1 for the variables.
 */
import { psPerUs } from '../../base/index.ts';
import type { StreamBuffer, TcpConnection } from './tcp-connection.ts';

/** Variables of an established connection. */
export interface EstablishedState {
  /** SND.UNA and SND.NXT: the new owner retransmits the bytes between them. */
  readonly sendUnacknowledged: number;
  readonly sendNext: number;
  /** SND.WND in bytes, and the shift of its field. */
  readonly sendWindow: number;
  readonly sendScale: number;
  /** RCV.NXT, the edge of the window that was announced, and the shift of its field. */
  readonly receiveNext: number;
  readonly windowEdge: number;
  readonly receiveScale: number;
  /** Payload bytes of the longest segment, options deducted. */
  readonly segmentBytes: number;
  readonly hasSack: boolean;
  /** TS.Recent and the present TSval; undefined without timestamps. */
  readonly timestamps: { readonly recent: number; readonly now: number } | undefined;
  /** Smoothed round-trip time in microseconds; 0: not measured. */
  readonly roundTripUs: number;
}

/**
 * Returns the state of a connection whose owner hands it over. @returns undefined unless it is established, has no gap
 * in its received data, and has sent everything that is queued
 */
export function establishedStateOf<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
): EstablishedState | undefined {
  const { state, isFinQueued, hasFin, sendIndex, sendQueue, received } = connection;
  const isAllSent = sendIndex === sendQueue.length && connection.sendNext === connection.sendMax;
  if (state !== 'ESTABLISHED' || isFinQueued || hasFin || !isAllSent || received.hasGap) return undefined;
  return {
    sendUnacknowledged: connection.sendUnacknowledged,
    sendNext: connection.sendNext,
    sendWindow: connection.sendWindow,
    sendScale: connection.sendScale,
    receiveNext: received.next,
    windowEdge: connection.windowEdge,
    receiveScale: connection.receiveScale,
    segmentBytes: connection.segmentBytes,
    hasSack: connection.hasSack,
    timestamps: connection.hasTimestamps
      ? { recent: connection.recentTimestamp, now: connection.timestampNow }
      : undefined,
    roundTripUs: Math.round(connection.roundTrip.smoothedPs / psPerUs),
  };
}

/**
 * Carries an established connection on.
 * @param connection new, of which nothing was sent
 * @param unacknowledged the segments from SND.UNA up to SND.NXT, in order
 */
export function carryOn<Actor, Buffer extends StreamBuffer>(
  connection: TcpConnection<Actor, Buffer>,
  state: EstablishedState,
  unacknowledged: readonly Buffer[],
): void {
  connection.resume(state);
  for (const buffer of unacknowledged) buffer.isSent = true;
  connection.sendQueue.push(...unacknowledged);
  connection.sendIndex = unacknowledged.length;
  if (unacknowledged.length > 0) connection.armRetransmit();
  connection.activity();
}
