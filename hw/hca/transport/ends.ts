/**
 * The other blocks of a transport as the engines reach them: senders of packets, receivers of packets, and those that
 * answer requests.
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockAccount, Wakeable } from '../../../sim/index.ts';
import type { QpSlot } from '../objects/index.ts';
import type { PacketQueue, PacketSlot } from '../packets/index.ts';

/** Sends the packets of the queues. */
export interface PacketSink extends Wakeable {
  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue, packet: PacketSlot, status: number, cycle: Cycles): void;
}

/** The transmitter. */
export interface OutboundEnd extends PacketSink {
  readonly account: BlockAccount;
  /** The wire port may take a packet again. */
  spaceFreed(): void;
}

/** The receiving block as other blocks use it: the receiver of packets, that of frames, or both combined. */
export interface InboundEnd extends Wakeable {
  /** Room for a completion became free. */
  completionSpace(cycle: Cycles): void;
  /** True while a packet of this QP is being worked on. */
  isServing(slot: QpSlot): boolean;
}

/** The receiver, in whose stage payload is placed. */
export interface PacketReceiver extends InboundEnd {
  readonly account: BlockAccount;
}

/** Answers the requests of peers. */
export interface ResponseSide extends Wakeable {
  readonly account: BlockAccount;
  /** True while the memory of an atomic is being read or written; and atomics executed. */
  readonly isInAtomic: boolean;
  readonly atomicCount: number;
  /** See SlotUser. */
  slotsGrown(slotCount: number): void;
  /** A write of received payload has left for memory. */
  payloadLeft(cycle: Cycles): void;
  /** The pages that an answer of the QP waited for are present, or refused. */
  pagesAnswered(slot: QpSlot, cycle: Cycles): void;
  /** A generation of the QP begins. */
  open(slot: QpSlot): void;
  /**
   * Drops everything queued for the QP; {@link dropRequests} keeps a pending refusal.
   */
  drop(slot: QpSlot): void;
  dropRequests(slot: QpSlot): void;
  /** True while anything of the QP is queued or being answered. */
  isBusy(slot: QpSlot): boolean;
}
