/**
 * States of a stream, which are those of its queue pair (RDMA Protocol Verbs Specification, 6.2; RFC 5040, 6.2).
 *
 *     IDLE ── MPA done ──► RTS ── close, or FIN with nothing to send ──► CLOSING ── TCP closed ──► IDLE
 *                           ├── Terminate sent or received ──► TERMINATE ── TCP closed ──► ERROR ── reset ──► IDLE
 *                           └── TCP lost ──► ERROR
 */
export type StreamState = 'IDLE' | 'RTS' | 'CLOSING' | 'TERMINATE' | 'ERROR';

/** Events that change the state. */
export type StreamEvent =
  /** MPA has agreed. */
  | 'established'
  /** The consumer closes, with no work outstanding. */
  | 'closed'
  /** The peer's FIN has arrived between two messages, with no work outstanding. */
  | 'finArrived'
  /** A FIN within a message or with work outstanding, or bytes of the peer after its close: the end is not orderly. */
  | 'finEarly'
  | 'terminateSent'
  | 'terminateArrived'
  /** Both directions of TCP are closed. */
  | 'connectionClosed'
  /** RST, time-out, or an abortive close of the consumer. */
  | 'connectionLost'
  /** The consumer resets the queue pair. */
  | 'reset';

const transitions: Readonly<Record<StreamState, Readonly<Partial<Record<StreamEvent, StreamState>>>>> = {
  IDLE: { established: 'RTS', connectionLost: 'ERROR' },
  RTS: {
    closed: 'CLOSING',
    finArrived: 'CLOSING',
    finEarly: 'ERROR',
    terminateSent: 'TERMINATE',
    terminateArrived: 'TERMINATE',
    connectionClosed: 'ERROR',
    connectionLost: 'ERROR',
  },
  CLOSING: {
    finEarly: 'ERROR',
    terminateSent: 'ERROR',
    terminateArrived: 'ERROR',
    connectionClosed: 'IDLE',
    connectionLost: 'ERROR',
  },
  TERMINATE: { connectionClosed: 'ERROR', connectionLost: 'ERROR' },
  ERROR: { reset: 'IDLE' },
};

/** The state after an event; an event without effect leaves the state as it is. */
export const stateAfter = (state: StreamState, event: StreamEvent): StreamState =>
  transitions[state][event] ?? state;

/** Whether messages may be sent: not in the second half of a close, nor after a Terminate in either direction. */
export const maySendMessages = (state: StreamState): boolean => state === 'RTS';
