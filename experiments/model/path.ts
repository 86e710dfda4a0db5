/**
 * The path of a message through both HCAs and the cable, packet by packet, on an otherwise idle machine.
 *
 *     post ─ doorbell ─ schedule ─┬─ WQE fetch ─┐
 *                                 └─ BlueFlame ─┴─ requester ─ payload read ─ transmitter ─ wire ─ receiver ─ write
 *
 * Contexts, translations and receive WQEs are on chip, as for a connection in use whose regions persist.
 */
import { roundUp } from '../../base/index.ts';
import { hasRoomForBlueFlame } from '../../hw/hca/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { IBV_QPT_RC, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND } from '../../userlib/index.ts';
import { sendRowsOf, sendSizesOf, wqeBytesOf } from '../../userlib/sizes/index.ts';
import { type CableFigures, Opcode, packetBytesOf, receiveBufferBytesOf } from '../../wire/index.ts';
import { Bus, piecesOf } from './bus.ts';
import { cableOf } from './cable.ts';
import { Clocks } from './clocks.ts';
import { delay, lastLeavesPs, type Stage } from './pipeline.ts';
import { gathered, type Terms } from './terms.ts';

/** abi: BlueFlame pieces, WQE lines and CQEs. */
const blueFlamePieceBytes = 64;
const wqeLineBytes = 1024;
const cqeBytes = 32;
const eqeBytes = 32;
const creditBlockBytes = 64;
const messageBytes = 4;
const doorbellBytes = 4;
const receiveWqeBytes = 16;
const receiveRecordBytes = 4;
const translationBytes = 64;

type Verb = 'send' | 'write' | 'read';

const opcodeOf = { send: IBV_WR_SEND, write: IBV_WR_RDMA_WRITE, read: IBV_WR_RDMA_READ } as const;
const sendRows = sendRowsOf(IBV_QPT_RC);

/** Parameters with which a work request is posted. */
export interface Post {
  readonly verb: Verb;
  readonly lengthBytes: number;
  readonly isInline: boolean;
  /** maxInlineData of the QP, which determines the stride of its WQEs. */
  readonly qpInlineBytes: number;
}

/** One packet with payload. */
interface Packet {
  readonly bytes: number;
  /** Whether its payload must be read from memory. */
  readonly isRead: boolean;
  /** Bytes of entries (CQE) written after its payload. */
  readonly entries: readonly number[];
  /** Whether the requester's next packet belongs to another work request. */
  readonly endsRequest: boolean;
}

export class Path {
  readonly config: MachineConfig;
  readonly clocks: Clocks;
  readonly bus: Bus;
  readonly mtuBytes: number;
  readonly #cable: CableFigures;

  /** @param mtuBytes of the path; 0 is the port's largest */
  constructor(config: MachineConfig, mtuBytes = 0) {
    this.config = config;
    this.clocks = new Clocks(config);
    this.bus = new Bus(config, this.clocks);
    this.#cable = cableOf(config);
    this.mtuBytes = mtuBytes || this.#cable.mtuBytes;
  }

  /** Core cycles in picoseconds. */
  core(cycles: number): number {
    return cycles * this.clocks.corePs;
  }

  hca(cycles: number): number {
    return cycles * this.clocks.hcaPs;
  }

  /** Software's part of a post: until its stores leave. */
  postPs(post: Post): number {
    const cost = this.config.host.cost;
    const inlineBytes = post.isInline ? post.lengthBytes : 0;
    const cycles =
      cost.postSend +
      cost.postSendPerSegment +
      cost.postSendPerInlineByte64 * Math.ceil(inlineBytes / blueFlamePieceBytes) +
      cost.mmioStore * Math.max(1, this.#blueFlamePieces(post));
    return this.core(cycles);
  }

  /** Terms from the departure of the post's stores until the requester starts the WQE. */
  takeUp(post: Post): Terms {
    const schedulePs = this.hca(this.config.hca.scheduleCycles);
    const pieces = this.#blueFlamePieces(post);
    if (pieces > 0) {
      return [
        { name: 'doorbell', ps: this.bus.storePs(blueFlamePieceBytes, pieces) },
        { name: 'schedule', ps: schedulePs },
      ];
    }
    return [
      { name: 'doorbell', ps: this.bus.storePs(doorbellBytes) },
      { name: 'schedule', ps: schedulePs },
      ...this.#wqeFetch(post),
    ];
  }

  /**
   * Terms from the requester's start of a SEND or WRITE until its last byte (and the CQE of a SEND) is in the peer's
   * memory.
   */
  deliver(post: Post, behind: readonly Post[] = []): Terms {
    const packets = this.#packetsOf(post);
    const further = behind.flatMap((next) => {
      const { whole, job, tail } = this.#packetsOf(next);
      return [...(whole > 0 ? [job] : []), ...tail];
    });
    return this.#termsOf(this.#requestStages(), packets.job, packets.whole, [...packets.tail, ...further]);
  }

  /** Terms from the requester's start of a READ until its payload and CQE are in memory. */
  readBack(lengthBytes: number): Terms {
    const { transmitLatencyCycles, requestPacketCycles } = this.config.hca;
    const request = [
      { name: 'transmit', ps: this.hca(requestPacketCycles + transmitLatencyCycles) },
      { name: 'wire', ps: this.#wirePs(Opcode.RC_RDMA_READ_REQUEST, 0) + this.#cable.latencyPs },
      { name: 'receive', ps: this.#intakePs(0) + this.hca(1) },
    ];
    const { whole, rest } = piecesOf(lengthBytes, this.mtuBytes);
    const job: Packet = { bytes: this.mtuBytes, isRead: true, entries: [], endsRequest: false };
    const sizes = rest.length > 0 || whole === 0 ? [rest[0] ?? 0] : [this.mtuBytes];
    const tail = sizes.map((bytes) => ({ ...job, bytes, isRead: bytes > 0, entries: [cqeBytes] }));
    const count = rest.length > 0 || whole === 0 ? whole : whole - 1;
    return gathered([...request, ...this.#termsOf(this.#responseStages(), job, count, tail)]);
  }

  /**
   * Delay of a CQE's interrupt message after the CQE: the event writer's EQE, and the message after it
   * (completion-writer.ts, #postEvent; event-writer.ts).
   */
  eventPs(): number {
    const eventCycles = this.config.hca.completionCycles + 1;
    const entries = [eqeBytes, messageBytes];
    return this.hca(eventCycles) + this.bus.writeLanesPs(0, entries) - this.bus.writeLanesPs(0, [cqeBytes]);
  }

  /** Time from an event of the command processor until the interrupt message is accepted. */
  commandEventPs(): number {
    return this.hca(2) + this.bus.writeLanesPs(0, [eqeBytes, messageBytes]) + this.bus.writeFlightPs();
  }

  /** Reading the next receive WQEs: requested, seen and sent in one cycle each (receive-wqe-fetch.ts). */
  receiveFetchPs(): number {
    return this.hca(3) + this.bus.readPs(this.config.hca.receivePrefetchCount * receiveWqeBytes);
  }

  /** Reading an off-chip MPT entry or MTT line (translator.ts). */
  translationMissPs(): number {
    return this.bus.readPs(translationBytes) + this.hca(this.config.hca.cacheMissCycles + 1);
  }

  /** Wait of a message if every receive that the HCA has counted is used up: the HCA first reads the doorbell record. */
  receiveRefillPs(): number {
    return this.hca(3) + this.bus.readPs(receiveRecordBytes) + this.receiveFetchPs();
  }

  /** Time from the requester's start of an inline SEND until its acknowledgement is processed. */
  acknowledgedPs(lengthBytes: number): number {
    const { requestPacketCycles, responseCycles, transmitLatencyCycles, ackDelayCycles } = this.config.hca;
    const { transmitBytesPerCycle } = this.config.hca;
    const formCycles =
      requestPacketCycles + transmitLatencyCycles + Math.ceil(lengthBytes / transmitBytesPerCycle);
    const answerCycles = ackDelayCycles + responseCycles + transmitLatencyCycles;
    const therePs = this.#wirePs(Opcode.RC_SEND_ONLY, lengthBytes) + this.#intakePs(lengthBytes);
    const backPs = this.#wirePs(Opcode.RC_ACKNOWLEDGE, 0) + this.#intakePs(0);
    return this.hca(formCycles + answerCycles) + therePs + backPs + 2 * this.#cable.latencyPs;
  }

  /** Number of 64-byte pieces that a post writes; 0 if it rings the doorbell. */
  #blueFlamePieces(post: Post): number {
    const { hca, pcie } = this.config;
    if (!hasRoomForBlueFlame(hca.capability, pcie.function)) return 0;
    const row = sendRows[opcodeOf[post.verb]]!;
    const bytes = this.#wqeBytes(post);
    const isShort = row.isShort || post.isInline || post.lengthBytes === 0;
    const halfBytes = 2 ** (hca.capability.logBlueFlameRegisterBytes - 1);
    if (!isShort || bytes > halfBytes) return 0;
    return Math.ceil(bytes / blueFlamePieceBytes);
  }

  #wqeBytes({ verb, lengthBytes, isInline }: Post): number {
    const wr = { wrId: 0, sgList: [], numSge: 1, opcode: opcodeOf[verb], sendFlags: 0 };
    return wqeBytesOf(sendRows[opcodeOf[verb]]!, wr, isInline ? lengthBytes : -1);
  }

  /**
   * From the requester's missing WQE until it has the WQE: requested, seen and sent in one cycle each, and examined in
   * the next (wqe-fetch.ts). A fetch continues to the end of the line, so its length depends on the WQE's place: the
   * mean is used. A fetch that found only valid WQEs is followed by another while the payload is read (requester.ts,
   * #fetchAhead): its reads alternate with those of the first packet.
   */
  #wqeFetch(post: Post): Terms {
    const stride = 2 ** sendSizesOf(IBV_QPT_RC, 1, 1, post.qpInlineBytes).logStride;
    const places = wqeLineBytes / stride;
    const fetchedAt = (place: number): number => Math.min(this.config.hca.wqePrefetchCount, places - place);
    // If the bus is slower than the wire, reads of later packets are delayed as well as the first one's.
    const isBusSlower =
      this.bus.readHoldPs(this.mtuBytes) > this.#wirePs(Opcode.RC_SEND_MIDDLE, this.mtuBytes);
    const contendedBytes = isBusSlower ? post.lengthBytes : Math.min(post.lengthBytes, this.mtuBytes);
    const payloadReads = this.bus.readCountOf(post.isInline ? 0 : contendedBytes);
    let fetchPs = 0;
    let aheadPs = 0;
    for (let place = 0; place < places; place++) {
      fetchPs += this.bus.readPs(fetchedAt(place) * stride);
      if (fetchedAt(place) !== 1) continue;
      const aheadBytes = fetchedAt((place + 1) % places) * stride;
      aheadPs += this.bus.readHoldPs(this.bus.bytesOfReads(aheadBytes, Math.max(0, payloadReads - 1)));
    }
    return [
      { name: 'wqeFetch', ps: this.hca(3) + fetchPs / places },
      { name: 'wqeAhead', ps: aheadPs / places },
    ];
  }

  #packetsOf(post: Post): { readonly whole: number; readonly job: Packet; readonly tail: readonly Packet[] } {
    const { whole, rest } = piecesOf(post.lengthBytes, this.mtuBytes);
    const isRead = !post.isInline;
    const job: Packet = { bytes: this.mtuBytes, isRead, entries: [], endsRequest: false };
    const last: Packet = {
      bytes: rest[0] ?? (whole > 0 ? this.mtuBytes : 0),
      isRead: isRead && post.lengthBytes > 0,
      entries: post.verb === 'send' ? [cqeBytes] : [],
      endsRequest: true,
    };
    return { whole: rest.length > 0 || whole === 0 ? whole : whole - 1, job, tail: [last] };
  }

  /** The time that each stage adds to the last packet, and its wait for the earlier packets (stream). */
  #termsOf(stages: readonly Stage<Packet>[], job: Packet, count: number, tail: readonly Packet[]): Terms {
    const last = tail.at(-1)!;
    const path = stages.map(({ term, passPs }) => ({ name: term, ps: passPs(last) }));
    const alone = path.reduce((sum, { ps }) => sum + ps, 0);
    const all = lastLeavesPs(stages, job, count, tail);
    return gathered([...path, { name: 'stream', ps: Math.max(0, all - alone) }]);
  }

  #requestStages(): Stage<Packet>[] {
    const { requestPacketCycles, sameQpIntervalCycles } = this.config.hca;
    return this.#packetStages('request', requestPacketCycles, (packet) =>
      this.hca(packet.endsRequest ? sameQpIntervalCycles : requestPacketCycles),
    );
  }

  #responseStages(): Stage<Packet>[] {
    const { responseCycles } = this.config.hca;
    return this.#packetStages('respond', responseCycles, () => this.hca(responseCycles));
  }

  /** Stages from the engine that builds packets until their effect in the other host's memory. */
  #packetStages(term: string, formCycles: number, formHoldPs: (packet: Packet) => number): Stage<Packet>[] {
    const { bus, config } = this;
    const { transmitLatencyCycles, transmitPacketCycles, transmitBytesPerCycle } = config.hca;
    const opcodeFor = term === 'request' ? Opcode.RC_SEND_MIDDLE : Opcode.RC_RDMA_READ_RESPONSE_MIDDLE;
    const formPs = this.hca(formCycles + transmitLatencyCycles);
    // Requested in one cycle, sent in the next, seen in the one after placement.
    const gatherPs = ({ isRead, bytes }: Packet): number => (isRead ? this.hca(2) + bus.readPs(bytes) : 0);
    return [
      { term, holdPs: formHoldPs, passPs: ({ isRead }) => (isRead ? this.hca(1) : 0) },
      delay('payloadRead', ({ isRead }) => (isRead ? bus.readRequestPs() : 0)),
      {
        term: 'payloadRead',
        holdPs: ({ isRead, bytes }) => (isRead ? Math.max(bus.readHoldPs(bytes), bus.tagHoldPs(bytes)) : 0),
        passPs: ({ isRead, bytes }) => (isRead ? bus.readDataPs(bytes) + this.hca(1) : 0),
      },
      delay('transmit', (packet) => Math.max(0, formPs - gatherPs(packet))),
      {
        term: 'transmit',
        holdPs: () => this.hca(transmitPacketCycles),
        passPs: ({ bytes }) => this.hca(Math.ceil(bytes / transmitBytesPerCycle)),
      },
      {
        term: 'wire',
        holdPs: ({ bytes }) =>
          Math.max(
            this.#wireHoldPs(opcodeFor, bytes) + this.#formationGapPs(bytes),
            this.#creditHoldPs(opcodeFor, bytes),
          ),
        passPs: ({ bytes }) => this.#wirePs(opcodeFor, bytes),
      },
      delay('wire', () => this.#cable.latencyPs),
      delay('receive', ({ bytes }) => this.#intakePs(bytes)),
      {
        term: 'receive',
        holdPs: ({ bytes }) => this.#receiveHoldPs(bytes),
        // The write engine sees the request in the next cycle; a CQE is one cycle later.
        passPs: ({ bytes, entries }) => this.hca(bytes === 0 && entries.length > 0 ? 2 : 1),
      },
      {
        term: 'payloadWrite',
        holdPs: ({ bytes, entries }) =>
          bus.writeHoldPs(bytes) + (entries.length > 0 ? bus.writeHoldPs(cqeBytes) : 0),
        passPs: ({ bytes }) => (bytes === 0 ? 0 : bus.writeLanesPs(bytes)),
      },
      delay('cqe', ({ bytes, entries }) =>
        entries.length === 0
          ? 0
          : bus.writeLanesPs(bytes, entries) - (bytes === 0 ? 0 : bus.writeLanesPs(bytes)),
      ),
      delay('payloadWrite', () => bus.writeFlightPs()),
    ];
  }

  /** Time from a packet's first byte to its last on the cable. */
  #wirePs(opcode: number, payloadBytes: number): number {
    return this.#bytesPs(this.#cable.sentBytesOf(opcode, payloadBytes));
  }

  /** Time until another can follow. */
  #wireHoldPs(opcode: number, payloadBytes: number): number {
    return this.#bytesPs(this.#cable.linkBytesOf(opcode, payloadBytes));
  }

  #bytesPs(bytes: number): number {
    const { numeratorPs, denominator } = this.#cable.byteTime;
    return (bytes * numeratorPs) / denominator;
  }

  /**
   * The port accepts a packet if at most transmitAheadBytes wait for the wire or leave while it is built. Building
   * begins at the transmitter's next edge, which may leave the wire idle (wire-sender.ts, expectPacket).
   */
  #formationGapPs(payloadBytes: number): number {
    const aheadPs = this.#bytesPs(this.#cable.transmitAheadBytes);
    const formPs = this.hca(Math.ceil(payloadBytes / this.config.hca.transmitBytesPerCycle));
    return Math.max(0, this.clocks.toHcaPs + formPs - Math.max(aheadPs, formPs));
  }

  /** Time from the wire until the receiver examines a packet. */
  #intakePs(payloadBytes: number): number {
    const { receiveLatencyCycles, receiveBytesPerCycle } = this.config.hca;
    return (
      this.clocks.toHcaPs + this.hca(receiveLatencyCycles + Math.ceil(payloadBytes / receiveBytesPerCycle))
    );
  }

  #receiveHoldPs(payloadBytes: number): number {
    const { receivePacketCycles, receiveHeadCycles, receiveBytesPerCycle } = this.config.hca;
    const passCycles =
      payloadBytes === 0 ? 0 : receiveHeadCycles + Math.ceil(payloadBytes / receiveBytesPerCycle);
    return this.hca(Math.max(receivePacketCycles, passCycles));
  }

  /**
   * Least distance of packets as limited by credits: the neighbour's buffer holds this many whole packets, and each
   * credit returns when the payload was handed to the bus. Building begins when the credit is available. Ethernet has
   * no credits.
   */
  #creditHoldPs(opcode: number, payloadBytes: number): number {
    if (this.config.hca.capability.linkLayer === 'ethernet') return 0;
    const receiveBufferBytes = receiveBufferBytesOf(this.config.wire);
    const bufferedBytes = roundUp(packetBytesOf(opcode, payloadBytes, false), creditBlockBytes);
    const formPs = this.hca(Math.ceil(payloadBytes / this.config.hca.transmitBytesPerCycle));
    const roundTripPs =
      formPs +
      this.#wirePs(opcode, payloadBytes) +
      2 * this.#cable.latencyPs +
      this.#intakePs(payloadBytes) +
      this.hca(1) +
      this.bus.writeEnginePs(payloadBytes) +
      this.clocks.toHcaPs;
    return roundTripPs / Math.floor(receiveBufferBytes / bufferedBytes);
  }
}
