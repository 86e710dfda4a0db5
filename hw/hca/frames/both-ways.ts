/**
 * Combines the two transmitters and the two receivers of an Ethernet port with RoCE into one of each for the other
 * blocks. The transmitters share the queue of request packets: each dequeues its own packets from the front. The
 * receivers alternate.
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { ETHERNET_OPCODE_BASE, type QpSlot } from '../objects/index.ts';
import type { PacketQueue, PacketSlot } from '../packets/index.ts';
import type { ReceiveTurns } from './receive-turns.ts';

/** A transmitter as the requester sees it. */
interface SendingEnd {
  wake(cycle: Cycles): void;
  spaceFreed(): void;
  payloadArrived(queue: PacketQueue, packet: PacketSlot, status: number, cycle: Cycles): void;
}

export interface OutboundPorts {
  readonly transmitter: SendingEnd;
  readonly frameTransmitter: SendingEnd;
  readonly requester: {
    slotFreed(cycle: Cycles): void;
    requestSent(packet: PacketSlot, cycle: Cycles): void;
  };
}

export class Outbound {
  readonly #requests: PacketQueue;
  #ports!: OutboundPorts;

  /** @param requestPackets the queue that both transmitters share */
  constructor(requestPackets: PacketQueue) {
    this.#requests = requestPackets;
  }

  connect(ports: OutboundPorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#ports.transmitter.wake(cycle);
    this.#ports.frameTransmitter.wake(cycle);
  }

  /** Notes that the wire port may accept a frame again. */
  spaceFreed(): void {
    this.#ports.transmitter.spaceFreed();
    this.#ports.frameTransmitter.spaceFreed();
  }

  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue, packet: PacketSlot, status: number, cycle: Cycles): void {
    const { transmitter, frameTransmitter } = this.#ports;
    const sender = packet.pair.opcodeBase === ETHERNET_OPCODE_BASE ? frameTransmitter : transmitter;
    sender.payloadArrived(queue, packet, status, cycle);
  }

  /** Wakes the transmitters if the packet now at the front is complete: it may belong to the other one. */
  slotFreed(cycle: Cycles): void {
    this.#ports.requester.slotFreed(cycle);
    const { oldest } = this.#requests;
    if (oldest.isComplete) this.wake(Math.max(cycle + 1, oldest.readyCycle));
  }

  requestSent(packet: PacketSlot, cycle: Cycles): void {
    this.#ports.requester.requestSent(packet, cycle);
  }
}

/** A receiver as other blocks see it. */
interface ReceivingEnd {
  wake(cycle: Cycles): void;
  completionSpace(cycle: Cycles): void;
  isServing(qp: QpSlot): boolean;
}

export interface InboundPorts {
  readonly receiver: ReceivingEnd;
  readonly frameReceiver: ReceivingEnd;
}

export class Inbound {
  readonly #turns: ReceiveTurns | undefined;
  #ports!: InboundPorts;

  constructor(turns: ReceiveTurns | undefined) {
    this.#turns = turns;
  }

  connect(ports: InboundPorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#ports.receiver.wake(cycle);
    this.#ports.frameReceiver.wake(cycle);
  }

  /** Room for a completion became free. */
  completionSpace(cycle: Cycles): void {
    this.#ports.receiver.completionSpace(cycle);
    this.#ports.frameReceiver.completionSpace(cycle);
  }

  isServing(qp: QpSlot): boolean {
    return this.#ports.receiver.isServing(qp) || this.#ports.frameReceiver.isServing(qp);
  }

  inspect(): BlockState {
    return this.#turns?.inspect() ?? {};
  }

  reset(): void {
    this.#turns?.reset();
  }
}
