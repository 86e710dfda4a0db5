/** The request that the responder works on: what its headers say, and how far it is. There is one at a time. */
import * as packetConstants from '../../wire/packet.ts';
import { QueuePair } from './queue-pair.ts';
import type { ReceivedPackets } from './received-packets.ts';
import { kindByOpcode, MESSAGE_NONE, traitsByOpcode } from './request-traits.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { FLOAT_VIRTUAL_ADDRESS, WORD_DMA_LENGTH, WORD_OPCODE } = packetConstants;
const { WORD_PAYLOAD_BYTES, WORD_PSN, WORD_RKEY } = packetConstants;

export class InboundRequest {
  /** The QP it is for. */
  qp = -1;
  pair = new QueuePair();
  /** Place of the packet's record in the receive buffer. */
  offset = 0;
  opcode = 0;
  /** MESSAGE_ and trait bits of the opcode. */
  kind = MESSAGE_NONE;
  traits = 0;
  psn = 0;
  payloadBytes = 0;
  /** Payload bytes of the packet already on their way. */
  placed = 0;
  /** CQE syndrome of a receive WQE that the message does not fit or whose memory is refused; 0 while all is well. */
  receiveSyndrome = 0;
  readonly #packets: ReceivedPackets;

  constructor(packets: ReceivedPackets) {
    this.#packets = packets;
  }

  /** Turns to the packet at `offset`. */
  load(offset: number, qp: number, pair: QueuePair): void {
    const words = this.#packets.rxWords;
    const word = offset >> 2;
    const opcode = words[word + WORD_OPCODE]!;
    this.qp = qp;
    this.pair = pair;
    this.offset = offset;
    this.opcode = opcode;
    this.kind = kindByOpcode[opcode]!;
    this.traits = traitsByOpcode[opcode]!;
    this.psn = words[word + WORD_PSN]!;
    this.payloadBytes = words[word + WORD_PAYLOAD_BYTES]!;
    this.placed = 0;
    this.receiveSyndrome = 0;
  }

  /** Buffer in which the packet lies. */
  get bytes(): Uint8Array {
    return this.#packets.rxBytes;
  }

  get words(): Int32Array {
    return this.#packets.rxWords;
  }

  /** A header word. */
  word(word: number): number {
    return this.#packets.rxWords[(this.offset >> 2) + word]!;
  }

  /** Of the RETH or AtomicETH. */
  get remoteAddress(): number {
    return this.#packets.rxFloats[(this.offset >> 3) + FLOAT_VIRTUAL_ADDRESS]!;
  }

  get remoteKey(): number {
    return this.word(WORD_RKEY) >>> 0;
  }

  get dmaBytes(): number {
    return this.word(WORD_DMA_LENGTH) >>> 0;
  }
}
