/**
 * Gives access to received packets, which lie in a wire port's buffer, in that of the loopback, or in the reorder buffer.
 * The receiver selects the side whose packet it works on; its two halves then read the headers here, independent of the
 * side.
 *
 * One number names a packet: the complement of its offset in the loopback, or its offset plus the first name of its
 * port. The names of the reorder buffer follow those of the last port.
 */
import type { Cycles } from '../../../../base/index.ts';
import {
  ADDRESS_TOP_SHIFT,
  FLOAT_VIRTUAL_ADDRESS,
  operandBytes,
  WORD_DESTINATION_QPN,
  WORD_DMA_LENGTH,
  WORD_LIDS,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_PSN,
  WORD_REQUEST_PKEY,
  WORD_RKEY,
  xrcethWord,
} from '../../../../wire/index.ts';
import type { Loopback } from './loopback.ts';
import type { PacketPort } from './packet-port.ts';
import type { PortAddress } from './port-address.ts';
import type { ReorderBuffer } from './reorder-buffer.ts';
import { traitsByOpcode } from './request-traits.ts';

/** Distance of two ports' names: more than the bytes of a receive buffer. */
const NAMES_PER_PORT = 2 ** 29;

export class ReceivedPackets {
  /** Buffers of the packet being worked on. */
  rxBytes: Uint8Array;
  rxWords: Int32Array;
  rxFloats: Float64Array;
  /** True if it arrived by the loopback. */
  isLoopback = false;
  /** Port at which it arrived, by cable or loopback, from 0, and the addresses of that port. */
  portIndex = 0;
  address: PortAddress;
  /** Offset of its record in the buffer, and the cycle from which it was visible. */
  offset = 0;
  arrivedCycle = 0;
  /**
   * Fields of its headers, all 32-bit integers. `traits` are those of the opcode (request-traits.ts). The receiver
   * replaces an XRC opcode by the RC one.
   */
  opcode = 0;
  traits = 0;
  destinationQpn = 0;
  psn = 0;
  flags = 0;
  payloadBytes = 0;
  lids = 0;
  /** Fields of a RETH or AtomicETH, to be read as unsigned. */
  key = 0;
  dmaLength = 0;
  readonly #ports: readonly PacketPort[];
  readonly #addresses: readonly PortAddress[];
  readonly #loopback: Loopback;
  readonly #reorder: ReorderBuffer;
  /** The selected side is the reorder buffer. */
  #isReordered = false;

  /** @param addresses of the ports */
  constructor(
    ports: readonly PacketPort[],
    addresses: readonly PortAddress[],
    loopback: Loopback,
    reorder: ReorderBuffer,
  ) {
    const port = ports[0]!;
    this.#ports = ports;
    this.#addresses = addresses;
    this.address = addresses[0]!;
    this.#loopback = loopback;
    this.#reorder = reorder;
    this.rxBytes = port.rxBytes;
    this.rxWords = port.rxWords;
    this.rxFloats = port.rxFloats;
  }

  /** Most packets that can be received and not yet consumed. */
  get receivePacketsMax(): number {
    const inside = this.#loopback.capacity + this.#reorder.capacity;
    return this.#ports.reduce((sum, port) => sum + port.receivePacketsMax, inside);
  }

  selectLoopback(): void {
    this.isLoopback = true;
    this.#isReordered = false;
    this.rxBytes = this.#loopback.bytes;
    this.rxWords = this.#loopback.words;
    this.rxFloats = this.#loopback.floats;
  }

  selectReordered(): void {
    this.#isReordered = true;
    this.rxBytes = this.#reorder.bytes;
    this.rxWords = this.#reorder.words;
    this.rxFloats = this.#reorder.floats;
  }

  /** @param index of the port, from 0 */
  selectPort(index: number): void {
    const port = this.#ports[index]!;
    this.isLoopback = false;
    this.#isReordered = false;
    this.rxBytes = port.rxBytes;
    this.rxWords = port.rxWords;
    this.rxFloats = port.rxFloats;
    this.#beAt(index);
  }

  #beAt(index: number): void {
    this.portIndex = index;
    this.address = this.#addresses[index]!;
  }

  /**
   * Selects the packet at `offset` of the selected side, which has been there since `arrivedCycle`, and reads its
   * headers.
   */
  turnTo(offset: number, arrivedCycle: Cycles): void {
    const words = this.rxWords;
    const word = offset >> 2;
    const opcode = words[word + WORD_OPCODE]!;
    if (this.#isReordered) this.#beAsHeld(offset);
    else if (this.isLoopback) this.#beAt(this.#loopback.portIndexOf(offset));
    this.offset = offset;
    this.arrivedCycle = arrivedCycle;
    this.opcode = opcode;
    this.traits = traitsByOpcode[opcode]!;
    this.destinationQpn = words[word + WORD_DESTINATION_QPN]!;
    this.psn = words[word + WORD_PSN]!;
    this.flags = words[word + WORD_PACKET_FLAGS]!;
    this.payloadBytes = words[word + WORD_PAYLOAD_BYTES]!;
    this.lids = words[word + WORD_LIDS]!;
    this.key = words[word + WORD_RKEY]!;
    this.dmaLength = words[word + WORD_DMA_LENGTH]!;
  }

  #beAsHeld(offset: number): void {
    this.isLoopback = this.#reorder.isLoopbackAt(offset);
    this.#beAt(this.#reorder.portIndexOf(offset));
  }

  /** Virtual address of a RETH or AtomicETH, and its top. */
  get virtualAddress(): number {
    return this.rxFloats[(this.offset >> 3) + FLOAT_VIRTUAL_ADDRESS]!;
  }

  get virtualAddressTop(): number {
    return this.rxWords[(this.offset >> 2) + WORD_REQUEST_PKEY]! >>> ADDRESS_TOP_SHIFT;
  }

  /** The SRQ that an XRC request names. */
  get sharedReceiveQueue(): number {
    return this.rxWords[xrcethWord(this.offset, operandBytes(this.opcode) + this.payloadBytes)]!;
  }

  /** A header word. */
  word(word: number): number {
    return this.rxWords[(this.offset >> 2) + word]!;
  }

  /** Releases a packet's buffer, by its name. */
  consume(name: number): void {
    if (name < 0) this.#loopback.consume(~name);
    else if (name < NAMES_PER_PORT) this.#ports[0]!.consume(name);
    else this.#bufferAt(Math.floor(name / NAMES_PER_PORT)).consume(name % NAMES_PER_PORT);
  }

  #bufferAt(index: number): { consume(offset: number): void } {
    return this.#ports[index] ?? this.#reorder;
  }

  /** Name of the packet at an offset of the selected side. */
  nameOf(offset: number): number {
    if (this.#isReordered) return this.nameAt(this.#ports.length, offset);
    return this.isLoopback ? ~offset : this.portIndex * NAMES_PER_PORT + offset;
  }

  /** Name of the packet at an offset of a port's buffer; the reorder buffer comes after the last port. */
  nameAt(portIndex: number, offset: number): number {
    return portIndex * NAMES_PER_PORT + offset;
  }
}
