/**
 * The table of TCP contexts: numbers of connections and listeners, which the card chooses, and the objects that they name. Addresses and
 * settings are in a context's bytes as software gave them; what changes with every segment is written there before the bytes are read.
 */
import { TcpState, tcpContext } from '../../../../abi/index.ts';
import { psPerNs } from '../../../../base/index.ts';
import type { ConnectionState } from '../../../../protocol/tcp/index.ts';
import { ContextTable } from '../../objects/index.ts';
import { CardConnection } from './card-connection.ts';
import { Listener } from './listener.ts';

const { fields } = tcpContext;
/** 0 names no connection. */
const FIRST_NUMBER = 1;
const NONE = -1;
const WORD_MAX = 0xffff_ffff;

export class TcpTable extends ContextTable<'TCP'> {
  /** Connections and listeners by slot. */
  readonly rows: (CardConnection | Listener | undefined)[] = [];
  /** Entries of the table in host memory; 0 before software has placed it. */
  count = 0;
  #nextNumber = FIRST_NUMBER;
  /** Released numbers, the oldest first. */
  #freeNumbers: number[] = [];

  constructor(capacity: number) {
    super(tcpContext.sizeBytes, capacity);
  }

  /**
   * Allocates a number and a zeroed slot for it. @returns the slot, or -1 when all are in use
   */
  takeNumber(): number {
    const number = this.#nextNumber < this.count ? this.#nextNumber++ : (this.#freeNumbers.shift() ?? NONE);
    return number === NONE ? NONE : this.allocate(number);
  }

  override free(slot: number): void {
    this.#freeNumbers.push(this.numberOf[slot]!);
    this.rows[slot] = undefined;
    super.free(slot);
  }

  /** The connection or listener of a number. */
  rowOf(number: number): CardConnection | Listener | undefined {
    const slot = this.slotOf(number);
    return slot === NONE ? undefined : this.rows[slot];
  }

  connectionOf(number: number): CardConnection | undefined {
    const row = this.rowOf(number);
    return row instanceof CardConnection ? row : undefined;
  }

  override sync(slot: number): void {
    const row = this.rows[slot];
    if (row instanceof CardConnection) syncConnection(this.view, this.offsetOf(slot), row);
    else if (row instanceof Listener) fields.state.set(this.view, this.offsetOf(slot), TcpState.LISTEN);
  }

  override clear(): void {
    super.clear();
    this.rows.length = 0;
    this.#nextNumber = FIRST_NUMBER;
    this.#freeNumbers = [];
    this.count = 0;
  }
}

const stateNumbers: Readonly<Record<ConnectionState, number>> = TcpState;

function syncConnection(view: DataView, at: number, connection: CardConnection): void {
  const { congestion, roundTrip, counts, received } = connection;
  const { thresholdBytes } = congestion;
  fields.state.set(view, at, stateNumbers[connection.state]);
  fields.maxSegmentBytes.set(view, at, connection.segmentBytes);
  fields.receiveScale.set(view, at, connection.receiveScale);
  fields.sendScale.set(view, at, connection.sendScale);
  fields.qpn.set(view, at, connection.qpn);
  fields.initialSendSequence.set(view, at, connection.initialSequence);
  fields.sendUnacknowledged.set(view, at, connection.sendUnacknowledged);
  fields.sendNext.set(view, at, connection.sendNext);
  fields.sendWindowBytes.set(view, at, connection.sendWindow);
  fields.initialReceiveSequence.set(view, at, connection.initialReceiveSequence);
  fields.receiveNext.set(view, at, received.next);
  fields.congestionWindowBytes.set(view, at, Math.min(Math.floor(congestion.windowBytes), WORD_MAX));
  fields.slowStartThresholdBytes.set(view, at, Math.min(thresholdBytes, WORD_MAX));
  fields.smoothedRoundTripNs.set(view, at, nsOf(roundTrip.smoothedPs));
  fields.roundTripVariationNs.set(view, at, nsOf(roundTrip.variationPs));
  fields.retransmissions.set(view, at, counts.retransmissions);
  fields.retransmissionTimeouts.set(view, at, counts.retransmissionTimeouts);
  fields.bytesSent.set(view, at, BigInt(connection.bytesSent));
  fields.bytesReceived.set(view, at, BigInt(connection.bytesReceived));
}

const nsOf = (ps: number): number => Math.min(Math.round(ps / psPerNs), WORD_MAX);
