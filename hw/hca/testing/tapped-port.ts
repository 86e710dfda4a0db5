/** A wire port whose inbound packets are noted, and dropped when a spec says so; and packets made by hand. */
import { viewOf } from '../../../base/bytes.ts';
import type { Picoseconds } from '../../../base/units.ts';
import type { LogicalProcess } from '../../../sim/index.ts';
import {
  ADDRESS_TOP_SHIFT,
  isRequest,
  operandBytes,
  PACKET_PAYLOAD_OFFSET,
  type PacketReceiver,
  packetShapes,
  requestRecord,
  responseRecord,
  SERVICE_LEVEL_SHIFT,
  type WirePort,
  type WirePortPorts,
  WORD_AETH,
  WORD_LIDS,
  WORD_REQUEST_PKEY,
  WORD_RESPONSE_PKEY,
  xrcethWord,
} from '../../../wire/index.ts';
import type { PacketPort } from '../ibta/packets/packet-port.ts';

/** A packet as it reached a node. */
export interface Packet {
  readonly timePs: Picoseconds;
  readonly opcode: number;
  readonly qpn: number;
  readonly psn: number;
  /** The flags that specs check: acknowledge request, solicited, GRH, retransmission. */
  readonly flags: number;
  readonly address: number;
  readonly addressTop: number;
  readonly rkey: number;
  readonly dmaBytes: number;
  readonly syndrome: number;
  readonly msn: number;
  readonly immediate: number;
  readonly payloadBytes: number;
  readonly lids: number;
  readonly virtualLane: number;
  /** P_Key of a connection's packet. */
  readonly pkey: number;
  /** Operands of atomics, as words. */
  readonly operands: readonly number[];
  /** The SRQ that an XRC request names; 0 of others. */
  readonly srqn: number;
}

export interface HandMadePacket {
  readonly opcode: number;
  readonly qpn: number;
  readonly psn: number;
  readonly flags?: number;
  readonly address?: number;
  readonly addressTop?: number;
  readonly rkey?: number;
  readonly dmaBytes?: number;
  readonly aeth?: number;
  readonly immediate?: number;
  readonly lids?: number;
  /** The default partition when left out. */
  readonly pkey?: number;
  readonly payload?: Uint8Array;
  readonly operands?: readonly number[];
  /** SRQ number of an XRC request. */
  readonly srqn?: number;
}

export class TappedPort implements PacketPort, PacketReceiver {
  readonly packets: Packet[] = [];
  /** Packets that this answers true for never reach the data path. */
  drops: (packet: Packet) => boolean = () => false;
  #receiver!: PacketReceiver;
  readonly #port: WirePort;
  readonly #lp: LogicalProcess;

  readonly #lids: number;

  /** @param lids of packets made by hand: source << 16 | destination */
  constructor(port: WirePort, lp: LogicalProcess, lids: number) {
    this.#port = port;
    this.#lp = lp;
    this.#lids = lids;
  }

  get discardedCount(): number {
    return this.#port.discardedCount;
  }

  get txBytes(): Uint8Array {
    return this.#port.txBytes;
  }

  get txWords(): Int32Array {
    return this.#port.txWords;
  }

  get txFloats(): Float64Array {
    return this.#port.txFloats;
  }

  get rxBytes(): Uint8Array {
    return this.#port.rxBytes;
  }

  get rxWords(): Int32Array {
    return this.#port.rxWords;
  }

  get rxFloats(): Float64Array {
    return this.#port.rxFloats;
  }

  get receivePacketsMax(): number {
    return this.#port.receivePacketsMax;
  }

  readonly holdReasons: readonly string[] = [];
  readonly holdReason = -1;

  get outboundHeaders(): WirePort['outboundHeaders'] {
    return this.#port.outboundHeaders;
  }

  get freePs(): Picoseconds {
    return this.#port.freePs;
  }

  expectPacket(fromPs: Picoseconds, formingPs: Picoseconds): number {
    return this.#port.expectPacket(fromPs, formingPs);
  }

  sendPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    atPs: Picoseconds,
    virtualLane?: number,
  ): number {
    return this.#port.sendPacket(opcode, payloadBytes, flags, atPs, virtualLane);
  }

  packetFilled(offset: number): void {
    this.#port.packetFilled(offset);
  }

  /** Puts itself between the port and the data path. */
  connect({ receiver, sender }: Pick<WirePortPorts, 'receiver' | 'sender'>): void {
    this.#receiver = receiver;
    this.#port.connect({ receiver: this, sender, link: { linkChanged: () => {} } });
  }

  packetArrived(offset: number, payloadBytes: number): void {
    const packet = this.#decode(offset);
    this.packets.push(packet);
    if (this.drops(packet)) this.#port.consume(offset);
    else this.#receiver.packetArrived(offset, payloadBytes);
  }

  consume(offset: number): void {
    this.#port.consume(offset);
  }

  /** Sends a packet to the neighbour, at an edge. */
  inject(packet: HandMadePacket, nowPs: Picoseconds): void {
    const port = this.#port;
    const payload = packet.payload ?? new Uint8Array(0);
    port.outboundHeaders.destinationQpn = packet.qpn;
    port.outboundHeaders.psn = packet.psn;
    const offset = port.beginPacket(packet.opcode, payload.length, packet.flags ?? 0, nowPs);
    const view = viewOf(port.txBytes);
    const { fields } = requestRecord;
    fields.destinationQpn.set(view, offset, packet.qpn);
    fields.psn.set(view, offset, packet.psn);
    fields.virtualAddress.set(view, offset, packet.address ?? 0);
    fields.rKey.set(view, offset, packet.rkey ?? 0);
    fields.dmaLength.set(view, offset, packet.dmaBytes ?? payload.length);
    const word = offset >> 2;
    port.txWords[word + WORD_AETH] = packet.aeth ?? 0;
    fields.immediate.set(view, offset, packet.immediate ?? 0);
    const pkeyPlace = isRequest(packet.opcode) ? WORD_REQUEST_PKEY : WORD_RESPONSE_PKEY;
    port.txWords[word + pkeyPlace] =
      (packet.pkey ?? 0xffff) | ((packet.addressTop ?? 0) << ADDRESS_TOP_SHIFT);
    port.txWords[word + WORD_LIDS] = packet.lids ?? this.#lids;
    const operands = packet.operands ?? [];
    operands.forEach((value, index) => {
      port.txWords[word + PACKET_PAYLOAD_OFFSET / 4 + index] = value;
    });
    port.txBytes.set(payload, offset + PACKET_PAYLOAD_OFFSET);
    if (packetShapes[packet.opcode]!.hasXrceth)
      port.txWords[xrcethWord(offset, operandBytes(packet.opcode) + payload.length)] = packet.srqn ?? 0;
    port.packetFilled(offset);
  }

  #decode(offset: number): Packet {
    const { rxBytes, rxWords } = this.#port;
    const request = requestRecord.decode(rxBytes, offset);
    const response = responseRecord.decode(rxBytes, offset);
    const { opcode, payloadBytes } = request;
    const isFromRequester = isRequest(opcode);
    const partition = isFromRequester ? request : response;
    const operands = Array.from(
      { length: operandBytes(opcode) / 4 },
      (_, index) => rxWords[(offset + PACKET_PAYLOAD_OFFSET) / 4 + index]!,
    );
    return {
      timePs: this.#lp.nowPs,
      opcode,
      qpn: request.destinationQpn,
      psn: request.psn,
      flags:
        request.hasAckRequest |
        (request.isSolicited << 1) |
        (request.hasGrh << 2) |
        (request.isRetransmission << 3),
      address: request.virtualAddress,
      addressTop: isFromRequester ? request.virtualAddressTop : 0,
      rkey: request.rKey,
      dmaBytes: request.dmaLength,
      syndrome: isFromRequester ? 0 : response.syndrome,
      msn: isFromRequester ? 0 : response.messageSequenceNumber,
      immediate: isFromRequester ? request.immediate | 0 : 0,
      pkey: partition.partitionKey | (partition.serviceLevel << SERVICE_LEVEL_SHIFT),
      payloadBytes,
      lids: (request.sourceLid << 16) | request.destinationLid,
      virtualLane: request.virtualLane,
      operands,
      srqn: packetShapes[opcode]!.hasXrceth
        ? rxWords[xrcethWord(offset, operandBytes(opcode) + payloadBytes)]!
        : 0,
    };
  }
}
