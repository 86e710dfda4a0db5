/** The state that a transport keeps for each QP, as the table of QPs begins it and writes it into contexts. */
import type { QpSlot } from '../objects/index.ts';

/** Numbers of a connection that a context shows. All have 24 bits, as software writes them. */
export interface ConnectionNumbers {
  /** Number of the next new request packet, and of the newest one that the peer has acknowledged. */
  readonly nextSend: number;
  readonly lastAcknowledged: number;
  /** Messages sent. */
  readonly sentMessages: number;
  /** Number of the next request packet expected from the peer. */
  readonly nextReceive: number;
  /** Messages received. */
  readonly receivedMessages: number;
}

export interface ConnectionStates {
  /** See SlotUser: the table of QPs has room for that many slots. */
  slotsGrown(slotCount: number): void;
  /** A context was created: the connection starts from nothing. */
  begin(slot: QpSlot): void;
  /** The transition from INIT to RTR: the peer's first request packet has number `first`. */
  startReceiving(slot: QpSlot, first: number): void;
  /** The transition from RTR to RTS: the first request packet to the peer has number `first`. */
  startSending(slot: QpSlot, first: number): void;
  numbersOf(slot: QpSlot): ConnectionNumbers;
}
