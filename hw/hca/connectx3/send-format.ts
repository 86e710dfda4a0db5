/**
 * Send WQEs of the ConnectX-3: the control segment, and the segments that follow it in each service (interface sheet
 * 6.1 to 6.4).
 */
import { CqeSyndrome, controlSegment, ServiceType, wqeUnitBytes } from '../../../abi/index.ts';
import type { FormatParts, SendFormat } from '../host-interface/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  type QueuePair,
  type SendRecord,
  UC_OPCODE_BASE,
  UD_OPCODE_BASE,
  type WqeLine,
  XRC_SERVICE,
} from '../objects/index.ts';
import { EXECUTABLE_BY_RC, EXECUTABLE_BY_UC, EXECUTABLE_BY_XRC } from '../send-queue/index.ts';
import { DatagramDecoder } from './datagram-decoder.ts';
import { FrameDecoder } from './frame-decoder.ts';
import { decodeControl, decodeWqe, isFenced, opcodeOf } from './wqe-decoder.ts';

const { owner, ds } = controlSegment.fields;

export class ConnectX3SendFormat implements SendFormat {
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #datagrams: DatagramDecoder;
  readonly #frames: FrameDecoder;

  constructor(parts: FormatParts) {
    this.#sram = parts.sram;
    this.#sramView = parts.sramView;
    this.#datagrams = new DatagramDecoder(parts);
    this.#frames = new FrameDecoder(parts);
  }

  isPosted(view: DataView, at: number, pass: number): boolean {
    return owner.get(view, at) === pass;
  }

  bytesAt(view: DataView, at: number): number {
    return ds.get(view, at) * wqeUnitBytes;
  }

  opcodeAt(view: DataView, at: number): number {
    return opcodeOf(view, at);
  }

  isFencedAt(view: DataView, at: number): boolean {
    return isFenced(view, at);
  }

  decode(at: number, line: WqeLine, request: SendRecord, pair: QueuePair): number {
    return pair.opcodeBase === 0
      ? decodeWqe(this.#sramView, this.#sram, at, request, reliableServiceOf(pair))
      : this.#decodeUnreliable(at, line, request, pair);
  }

  /**
   * Decodes the WQE of a UC, UD or special QP, or of an Ethernet ring. A service that is not transported can send
   * nothing.
   */
  #decodeUnreliable(at: number, line: WqeLine, request: SendRecord, pair: QueuePair): number {
    const base = pair.opcodeBase;
    if (base === UC_OPCODE_BASE) return decodeWqe(this.#sramView, this.#sram, at, request, EXECUTABLE_BY_UC);
    if (base === ETHERNET_OPCODE_BASE) return this.#frames.decode(at, line, request);
    if (base !== UD_OPCODE_BASE) {
      decodeControl(this.#sramView, at, request);
      return CqeSyndrome.LOCAL_QP_OP_ERR;
    }
    return pair.serviceType === ServiceType.MLX
      ? this.#datagrams.decodeManagement(at, request, pair)
      : this.#datagrams.decode(at, request, pair);
  }
}

const reliableServiceOf = ({ serviceBits }: QueuePair): number =>
  serviceBits === XRC_SERVICE ? EXECUTABLE_BY_XRC : EXECUTABLE_BY_RC;
