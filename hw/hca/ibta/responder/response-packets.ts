/**
 * Packets of the response engine: at most one is open. A sealed packet is sent in order, with the credits that the QP
 * can grant; an abandoned one is dropped when its reads are done.
 */
import { type Cycles, counterMask16, distance } from '../../../../base/index.ts';
import { type BlockAccount, stallReasons } from '../../../../sim/index.ts';
import { ackSyndrome, CREDIT_CODE_INVALID, creditCodeFor } from '../../../../wire/index.ts';
import { noRecord, type QueuePair } from '../../objects/index.ts';
import { type PacketQueue, VOID_GENERATION } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { ReceiveWqeFetch } from '../../receive-queue/index.ts';
import type { IbtaPacket, Transmitter } from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';

export const responseStalls = stallReasons('translation', 'dma', 'responseBuffer', 'ordering', 'atomic');
export const {
  translation: STALL_TRANSLATION,
  dma: STALL_DMA,
  responseBuffer: STALL_RESPONSE_BUFFER,
  ordering: STALL_ORDERING,
  atomic: STALL_ATOMIC,
} = responseStalls;

export interface ResponsePacketPorts {
  readonly transmitter: Transmitter;
  /** Receive WQEs known to be posted: credits that the QP can grant. */
  readonly receives: ReceiveWqeFetch;
}

/** Parts of the device that {@link ResponsePackets} uses. */
export interface ResponsePacketsSetup {
  readonly config: Pick<HcaConfig, 'responseCycles' | 'transmitLatencyCycles'>;
  readonly responsePackets: PacketQueue<IbtaPacket>;
  readonly states: IbtaStates;
}

export class ResponsePackets {
  readonly queue: PacketQueue<IbtaPacket>;
  readonly #states: IbtaStates;
  readonly #account: BlockAccount;
  #ports!: ResponsePacketPorts;
  /** Cycles from sealing a packet until it can be sent. */
  readonly #formationCycles: number;
  /** True while `packet` is open. */
  isOpen = false;
  packet: IbtaPacket;

  /** @param account that of the response engine */
  constructor(setup: ResponsePacketsSetup, account: BlockAccount) {
    const queue = setup.responsePackets;
    this.queue = queue;
    this.#states = setup.states;
    this.#account = account;
    this.#formationCycles = setup.config.responseCycles + setup.config.transmitLatencyCycles;
    this.packet = queue.rows[0]!;
  }

  connect(ports: ResponsePacketPorts): void {
    this.#ports = ports;
  }

  /** The payload of a packet has arrived from memory, or could not be read. */
  payloadRead(slot: number, status: number, cycle: Cycles): void {
    this.#ports.transmitter.payloadArrived(this.queue, this.queue.rows[slot]!, status, cycle);
  }

  /** Opens a packet of a QP. False: there is no room, which is accounted for. */
  open(pair: QueuePair, cycle: Cycles): boolean {
    if (this.queue.isFull) {
      this.#account.stall(cycle, STALL_RESPONSE_BUFFER);
      return false;
    }
    this.packet = this.queue.open(pair, 0, noRecord);
    this.packet.flags = 0;
    this.isOpen = true;
    pair.inPipelineCount++;
    return true;
  }

  get #msn(): number {
    return this.#states.rows[this.packet.pair.slot]!.msn;
  }

  /** Completes the open packet as an answer: of all that the QP has accepted, or of less. */
  seal(opcode: number, psn: number, syndrome: number, cycle: Cycles, msn = this.#msn): void {
    const { packet } = this;
    const state = this.#states.rows[packet.pair.slot]!;
    packet.opcode = opcode;
    packet.becn = state.owedBecn;
    state.owedBecn = 0;
    packet.psn = psn;
    packet.aeth = (syndrome << 24) | msn;
    packet.readyCycle = cycle + this.#formationCycles;
    packet.isSealed = 1;
    this.isOpen = false;
    if (packet.pendingReads === 0) this.#ports.transmitter.wake(packet.readyCycle);
  }

  /** Abandons the open packet, if there is one. */
  abandon(cycle: Cycles): void {
    if (!this.isOpen) return;
    this.packet.sendGeneration = VOID_GENERATION;
    this.packet.isSealed = 1;
    this.isOpen = false;
    this.#ports.transmitter.wake(cycle + 1);
  }

  /** Returns the receive WQEs consumed from the QP's queue, 16 bits. */
  receivesTaken({ slot }: QueuePair): number {
    const { receives } = this.#ports;
    return receives.consumedCounter(receives.queueOf(slot));
  }

  /**
   * Returns the syndrome of an ACK: the credits that the QP can grant beyond the messages counted by the MSN, which
   * have consumed `takenCounter` receive WQEs.
   */
  creditSyndrome(pair: QueuePair, takenCounter = this.receivesTaken(pair)): number {
    if (pair.creditsInvalid === 1) return ackSyndrome(CREDIT_CODE_INVALID);
    const { receives } = this.#ports;
    const takenSince = distance(this.receivesTaken(pair), takenCounter, counterMask16);
    return ackSyndrome(creditCodeFor(receives.knownAvailable(receives.queueOf(pair.slot)) + takenSince));
  }

  /** Forgets the open packet: the queue is cleared, too. */
  reset(): void {
    this.isOpen = false;
  }
}
