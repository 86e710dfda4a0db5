/**
 * How long a connection of a QP has waited to send, by cause: as Linux counts it in tcp_info (tcpi_rwnd_limited, tcpi_sndbuf_limited).
 *
 *     something to send ─┬─ beyond the peer's window ──────► receiveWindow
 *                        ├─ beyond the congestion window ──► congestionWindow; while lost segments are sent again, recovery
 *                        └─ no place for the frame ────────► transmitter
 *     everything sent, and the RDMA side wants room ───────► sendBuffer
 *
 * The engine notes the cause after each turn; between two notes it does not change.
 */
import { sequenceAdd, sequenceDistance } from '../../../../protocol/tcp/index.ts';
import type { CardConnection } from './card-connection.ts';

export const connectionWaits = [
  'receiveWindow',
  'congestionWindow',
  'recovery',
  'transmitter',
  'sendBuffer',
] as const;
export type ConnectionWait = (typeof connectionWaits)[number];

export class ConnectionWaits {
  /** Picoseconds by cause, in the order of {@link connectionWaits}. */
  readonly #sumsPs = new Float64Array(connectionWaits.length);
  #cause: ConnectionWait | undefined;
  #sincePs = 0;

  /** From now on the connection waits for what its state says. */
  note(connection: CardConnection, nowPs: number): void {
    const cause = causeOf(connection);
    if (cause === this.#cause) return;
    this.#add(nowPs, this.#sumsPs);
    this.#cause = cause;
    this.#sincePs = nowPs;
  }

  /** Adds the sums up to now to those of several connections. */
  addTo(sumsPs: Float64Array, nowPs: number): void {
    for (const [index, ps] of this.#sumsPs.entries()) sumsPs[index]! += ps;
    this.#add(nowPs, sumsPs);
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#sincePs -= ps;
  }

  #add(nowPs: number, sumsPs: Float64Array): void {
    if (this.#cause !== undefined) sumsPs[connectionWaits.indexOf(this.#cause)]! += nowPs - this.#sincePs;
  }
}

function causeOf(connection: CardConnection): ConnectionWait | undefined {
  const { stream, sendQueue, sendIndex, wantsRoom, sendWindow, sendUnacknowledged } = connection;
  const { networkBytes, congestion, isOver } = connection;
  if (stream === undefined || isOver) return;
  const next = sendQueue[sendIndex];
  if (next === undefined) return wantsRoom ? 'sendBuffer' : undefined;
  const end = sequenceDistance(sequenceAdd(next.sequence, next.length), sendUnacknowledged);
  if (end > sendWindow && !next.isSent) return 'receiveWindow';
  if (networkBytes > 0 && networkBytes + next.length > congestion.windowBytes)
    return congestion.isRecovering ? 'recovery' : 'congestionWindow';
  return 'transmitter';
}
