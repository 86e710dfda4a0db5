/**
 * A transport that no network has, for specs: packets with three header fields, which cross a loop inside the device from one of its
 * QPs to another. It has no acknowledgements: a request is complete when its last packet has been placed. Its window is
 * {@link TOY_WINDOW} packets, all of which may be under way.
 *
 *     field     WRITE                          SEND
 *     letter    W                              S
 *     key       R_Key                          0
 *     address   where the payload goes         0
 */
import { CqeSyndrome, ReceiveOpcode } from '../../../abi/cqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Cycles, Wide } from '../../../base/index.ts';
import { BlockAccount, type ClockDomain, stallReasons } from '../../../sim/index.ts';
import { DONE, type MemoryAnswer, WAIT } from '../answers.ts';
import { BAD_KEY, PORT_RECEIVER, RIGHT_REMOTE_WRITE, type TranslationPort } from '../memory/index.ts';
import type { QpSlot, QpTable, QueuePair, SendRecord } from '../objects/index.ts';
import { PACKET_PAYLOAD_BYTES_MAX, PacketQueue, PacketSlot } from '../packets/index.ts';
import type { ReceiveBuffers } from '../receive-queue/index.ts';
import { NOT_PARKED, PARKED_TRANSPORT_WINDOW } from '../send-queue/index.ts';
import type {
  ConnectionNumbers,
  ConnectionStates,
  EngineBlocks,
  EngineParts,
  OutboundEnd,
  PacketReceiver,
  RequestLifecycle,
  RequestTransport,
  ResponseSide,
  Transport,
  TransportRoles,
} from '../transport/index.ts';
import type { TappedPort } from './tapped-port.ts';

/** Packets of a QP that may be under way. */
export const TOY_WINDOW = 4;
const MESSAGE_BYTES_MAX = 4 * 512;
const PACKET_BYTES = 512;
const WRITE = 'W'.charCodeAt(0);
const SEND = 'S'.charCodeAt(0);
const LOOP_CYCLES = 20;

/** The three fields. */
class ToyPacket extends PacketSlot {
  letter = 0;
  key: Wide = 0;
  address: Wide = 0;
}

/** Packets of a QP under way. */
class ToyConnections implements ConnectionStates {
  readonly underWay: number[] = [];
  readonly started: string[] = [];

  slotsGrown(slotCount: number): void {
    while (this.underWay.length < slotCount) this.underWay.push(0);
  }

  begin(slot: QpSlot): void {
    this.underWay[slot] = 0;
  }

  startReceiving(slot: QpSlot, first: number): void {
    this.started.push(`receive ${slot} ${first}`);
  }

  startSending(slot: QpSlot, first: number): void {
    this.started.push(`send ${slot} ${first}`);
  }

  numbersOf(slot: QpSlot): ConnectionNumbers {
    const nextSend = this.underWay[slot]!;
    return { nextSend, lastAcknowledged: 0, sentMessages: 0, nextReceive: 0, receivedMessages: 0 };
  }
}

class ToyRequests implements RequestTransport<ToyPacket>, RequestLifecycle {
  readonly windowStall = 'toyWindow';
  readonly isPaced = false;
  readonly #connections: ToyConnections;
  /** Requests that found the window too small. */
  refusedCount = 0;

  constructor(connections: ToyConnections) {
    this.#connections = connections;
  }

  slotsGrown(): void {}

  forget(): void {}

  reasonToPark(): number {
    return NOT_PARKED;
  }

  refusalOf(_pair: QueuePair, { messageBytes }: SendRecord): number {
    return messageBytes > MESSAGE_BYTES_MAX ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
  }

  packetBytes(): number {
    return PACKET_BYTES;
  }

  begin({ slot }: QueuePair, { packetCount }: SendRecord): boolean {
    const { underWay } = this.#connections;
    if (underWay[slot]! + packetCount > TOY_WINDOW) {
      this.refusedCount++;
      return false;
    }
    underWay[slot]! += packetCount;
    return true;
  }

  choosePacket(): void {}

  hasRoom(): boolean {
    return true;
  }

  opened(): void {}

  seal(packet: ToyPacket, _pair: QueuePair, request: SendRecord): void {
    const isWrite = request.opcode === WqeOpcode.RDMA_WRITE;
    packet.letter = isWrite ? WRITE : SEND;
    packet.key = isWrite ? request.remoteKey : 0;
    packet.address = isWrite ? request.remoteAddress + packet.firstByte : 0;
  }

  /** The packet is placed before it is sent. */
  sent(): void {}
}

/** Parts of the device that {@link ToyLoop} uses. */
interface ToyLoopSetup {
  readonly domain: ClockDomain;
  readonly qps: QpTable;
  readonly sram: Uint8Array;
  readonly translator: EngineParts['translator'];
  readonly requestPackets: PacketQueue<ToyPacket>;
  readonly connections: ToyConnections;
  readonly buffers: ToyBuffers;
}

/** A received packet lies in the slot that it was sent from, which stays open until its payload has left for memory. */
class ToyBuffers implements ReceiveBuffers {
  readonly receivePacketsMax: number;
  isHeld = false;

  constructor(receivePacketsMax: number) {
    this.receivePacketsMax = receivePacketsMax;
  }

  consume(): void {
    this.isHeld = false;
  }
}

/** Transmitter and receiver: places the oldest packet of the queue, then frees its slot. */
class ToyLoop implements OutboundEnd, PacketReceiver {
  readonly account = new BlockAccount(
    'toyLoop',
    stallReasons('context', 'translation', 'dma', 'receiveWqe', 'completion', 'keys', 'payload'),
  );
  /** Header fields of the packets that crossed the loop: letter and key, address, payload bytes. */
  readonly log: string[] = [];
  readonly #setup: ToyLoopSetup;
  readonly #stage: number;
  readonly #translation: TranslationPort;
  #engines!: EngineBlocks;
  /** Payload bytes of the oldest packet that are placed; and whether all is, and its completions are not. */
  #placed = 0;
  #isTaken = false;
  #isPlaced = false;

  constructor(setup: ToyLoopSetup) {
    this.#setup = setup;
    this.#translation = setup.translator.port(PORT_RECEIVER);
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect({ engines }: { readonly engines: EngineBlocks }): void {
    this.#engines = engines;
  }

  wake(cycle: Cycles): void {
    this.#setup.domain.wake(this.#stage, cycle);
  }

  payloadArrived(_queue: PacketQueue, packet: PacketSlot, status: number, cycle: Cycles): void {
    packet.pendingReads--;
    packet.failure = status;
    this.wake(cycle + 1);
  }

  spaceFreed(): void {}

  completionSpace(cycle: Cycles): void {
    this.wake(cycle + 1);
  }

  isServing(slot: QpSlot): boolean {
    return this.#isTaken && this.#targetOf(this.#setup.requestPackets.oldest).slot === slot;
  }

  reset(): void {
    this.#setup.requestPackets.clear();
    this.#placed = 0;
    this.#isTaken = false;
    this.#isPlaced = false;
  }

  #targetOf({ pair }: PacketSlot): QueuePair {
    return this.#setup.qps.rows[this.#setup.qps.slotOf(pair.remoteQpn)]!;
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const packet = this.#setup.requestPackets.oldest;
    const isReady = packet.isComplete && packet.readyCycle <= cycle;
    if (!isReady || this.#setup.buffers.isHeld) {
      this.account.rest(cycle);
      if (packet.isComplete) this.wake(Math.max(cycle + 1, packet.readyCycle));
      return;
    }
    const target = this.#targetOf(packet);
    if (!this.#isPlaced && this.#place(packet, target, cycle) !== DONE) return;
    this.#isPlaced = true;
    if (!this.#complete(packet, target, cycle)) return;
    this.account.serve(cycle, LOOP_CYCLES);
    this.#leave(packet, cycle);
  }

  /** Writes the payload to where the header says, or into the next receive. */
  #place(packet: ToyPacket, target: QueuePair, cycle: Cycles): MemoryAnswer {
    const { scatter } = this.#engines;
    const { sram } = this.#setup;
    const isSend = packet.letter === SEND;
    if (isSend && packet.index === 0 && !this.#isTaken && scatter.take(target.slot, cycle, cycle) !== DONE)
      return WAIT;
    this.#isTaken = true;
    while (this.#placed < packet.payloadBytes) {
      const left = packet.payloadBytes - this.#placed;
      const from = packet.payloadOffset + this.#placed;
      const moved = isSend
        ? scatter.place(target.slot, left, sram, from, cycle)
        : this.#write(packet, target, left, from, cycle);
      if (moved < 0) return WAIT;
      this.#placed += moved;
    }
    return DONE;
  }

  #write(packet: ToyPacket, target: QueuePair, left: number, from: number, cycle: Cycles): number {
    const address = packet.address + this.#placed;
    const { pd } = target;
    const found = this.#translation.translate(packet.key, pd, address, 0, left, RIGHT_REMOTE_WRITE, target);
    if (found >= BAD_KEY) throw new RangeError('a toy WRITE names memory that it may not write');
    return this.#engines.scatter.write(found, left, this.#setup.sram, from, cycle);
  }

  /** Completes the message at both ends with its last packet. False: no room for a CQE yet. */
  #complete(packet: ToyPacket, target: QueuePair, cycle: Cycles): boolean {
    if (!packet.isLast) return true;
    const { completions, completion } = this.#engines;
    if (!completions.hasRoom(2)) {
      this.account.stall(cycle, STALL_OF_COMPLETION);
      return false;
    }
    if (packet.letter === SEND) {
      target.hasReceiveWqe = 0;
      const received = completions.nextReceive(target);
      received.opcode = ReceiveOpcode.SEND;
      received.wqeCounter = target.receiveWqeCounter;
      received.byteCount = target.messageBytes;
      completions.post(received, cycle);
    }
    return completion.completeHead(packet.pair, cycle);
  }

  /** The slot is free once its payload has left; then the QP's window has room for another packet. */
  #leave(packet: ToyPacket, cycle: Cycles): void {
    const { pair, letter, key, address, payloadBytes } = packet;
    const { requests, scheduler, writer } = this.#engines;
    const { requestPackets, connections, buffers } = this.#setup;
    const place = letter === WRITE ? ` ${key.toString(16)} ${address.toString(16)}` : '';
    this.log.push(`${String.fromCharCode(letter)}${place}: ${payloadBytes}`);
    this.#placed = 0;
    this.#isTaken = false;
    this.#isPlaced = false;
    buffers.isHeld = true;
    writer.finish(packet.slot);
    requestPackets.close();
    pair.inPipelineCount--;
    connections.underWay[pair.slot]!--;
    if (pair.parkedFor === PARKED_TRANSPORT_WINDOW) scheduler.unpark(pair, cycle + 1);
    requests.slotFreed(cycle);
    requests.requestSent(packet, cycle);
    this.wake(cycle + LOOP_CYCLES);
  }
}

const STALL_OF_COMPLETION = 4;

/** Nothing is answered. */
class ToyResponses implements ResponseSide {
  readonly account = new BlockAccount('toyResponses');
  readonly isInAtomic = false;
  readonly atomicCount = 0;

  wake(): void {}
  slotsGrown(): void {}
  payloadLeft(): void {}
  pagesAnswered(): void {}
  open(): void {}
  drop(): void {}
  dropRequests(): void {}

  isBusy(): boolean {
    return false;
  }
}

type ToyParts = ReturnType<typeof makeParts>;
export type ToyBlocks = ReturnType<typeof makeBlocks>;

function makeParts({ config, allocateSram }: Parameters<Transport['makeParts']>[0]) {
  const packets = config.transmitBufferPackets;
  const sramOffset = allocateSram(packets * PACKET_PAYLOAD_BYTES_MAX);
  const makeSlot = (slot: number, payloadOffset: number, pair: QueuePair): ToyPacket =>
    new ToyPacket(slot, payloadOffset, pair);
  const buffers = new ToyBuffers(packets);
  return {
    requestPackets: new PacketQueue(packets, sramOffset, makeSlot),
    buffers,
    receiveBuffers: buffers,
    frameNames: undefined,
  };
}

function makeBlocks({ domain, qps, sram, translator, requestPackets, buffers }: EngineParts & ToyParts) {
  const connections = new ToyConnections();
  return {
    connections,
    toyRequests: new ToyRequests(connections),
    toyLoop: new ToyLoop({ domain, qps, sram, translator, requestPackets, connections, buffers }),
    toyResponses: new ToyResponses(),
  };
}

const rolesOf = ({ connections, toyRequests, toyLoop, toyResponses }: ToyBlocks): TransportRoles => ({
  connections,
  requestTransport: toyRequests,
  outbound: toyLoop,
  inbound: toyLoop,
  responses: toyResponses,
  otherAccounts: [],
  frameSink: { frameArrived: () => undefined },
});

/** See DataPathBench: the toy uses no cable. */
export const toyCarrier = {
  transportOf: (): Transport<ToyParts, ToyBlocks> => ({
    makeParts,
    makeBlocks,
    rolesOf,
    wires: (_blocks, engines) => ({ toyLoop: { engines } }),
  }),
  connect: (port: TappedPort, { toyLoop }: ToyBlocks): void =>
    port.connect({ receiver: { packetArrived: () => undefined }, sender: toyLoop }),
};
