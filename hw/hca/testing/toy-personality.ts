/**
 * A host interface that no card has, for specs: little-endian, with letters for operations, a validity byte instead of an owner bit,
 * receive lists that begin with their length, CQEs of 16 bytes and doorbells of its own; and software for it.
 *
 *     send WQE     letter | flags | 1 + pass | pieces || remote key | remote address || pieces of 16 bytes
 *     receive WQE  pieces, in 16 bytes || pieces of 16 bytes
 *     piece        key | bytes | address
 *     CQE          1 + pass | letter, or x | syndrome | 0 || WQE counter | bytes || QPN
 */
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { CqArmCommand } from '../../../abi/doorbells.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount } from '../../../sim/index.ts';
import type {
  DoorbellBlock,
  DoorbellParts,
  DoorbellPorts,
  EventFormat,
  FormatParts,
  HostFormats,
  Personality,
} from '../host-interface/index.ts';
import type { SendRecord } from '../objects/index.ts';
import type { DataPathNode } from './data-path-bench.ts';
import type { Segment } from './data-path-verbs.ts';

const SIGNALLED = 1;
const FENCED = 2;
const HEAD_BYTES = 16;
const PIECE_BYTES = 16;
const CQE_BYTES = 16;
const ARM_OFFSET = 4;

/** Letters of operations that this interface has. */
const operations: Readonly<Record<string, number>> = {
  W: WqeOpcode.RDMA_WRITE,
  R: WqeOpcode.RDMA_READ,
  S: WqeOpcode.SEND,
  /** Invalidates the key in the field of the remote key. */
  I: WqeOpcode.LOCAL_INVAL,
};
/** Opcode for a WQE with an unknown letter: no operation has it. */
const UNKNOWN = 31;
const operationAt = (view: DataView, at: number): number =>
  operations[String.fromCharCode(view.getUint8(at))] ?? UNKNOWN;

interface Piece {
  readonly key: number;
  readonly bytes: number;
  readonly address: number;
}

const pieceAt = (view: DataView, at: number): Piece => ({
  key: view.getUint32(at, true),
  bytes: view.getUint32(at + 4, true),
  address: Number(view.getBigUint64(at + 8, true)),
});

function putPiece(view: DataView, at: number, { key, bytes, address }: Piece): void {
  view.setUint32(at, key, true);
  view.setUint32(at + 4, bytes, true);
  view.setBigUint64(at + 8, BigInt(address), true);
}

function addPiece(request: SendRecord, { key, bytes, address }: Piece): void {
  const segment = request.segment(request.segmentCount++);
  segment.key = key;
  segment.bytes = bytes;
  segment.address = address;
  segment.addressTop = 0;
  request.messageBytes += bytes;
}

const makeFormats = ({ sramView }: FormatParts): HostFormats => ({
  sends: {
    isPosted: (view, at, pass) => view.getUint8(at + 2) === 1 + pass,
    bytesAt: (view, at) => HEAD_BYTES + view.getUint8(at + 3) * PIECE_BYTES,
    opcodeAt: operationAt,
    isFencedAt: (view, at) => (view.getUint8(at + 1) & FENCED) !== 0,
    decode: (at, _line, request) => {
      const opcode = operationAt(sramView, at);
      const count = sramView.getUint8(at + 3);
      request.opcode = opcode;
      request.isSignalled = sramView.getUint8(at + 1) & SIGNALLED;
      request.isSolicited = 0;
      request.isReadOrAtomic = opcode === WqeOpcode.RDMA_READ ? 1 : 0;
      request.isKeyOperation = opcode === WqeOpcode.LOCAL_INVAL ? 1 : 0;
      request.isInline = 0;
      request.segmentCount = 0;
      request.messageBytes = 0;
      request.wqeBytes = HEAD_BYTES + count * PIECE_BYTES;
      request.remoteKey = sramView.getUint32(at + 4, true);
      request.remoteAddress = Number(sramView.getBigUint64(at + 8, true));
      request.remoteAddressTop = 0;
      if (request.isKeyOperation === 1) request.keyRequest.key = request.remoteKey;
      for (let piece = 0; piece < count; piece++)
        addPiece(request, pieceAt(sramView, at + HEAD_BYTES + piece * PIECE_BYTES));
      return opcode === UNKNOWN ? CqeSyndrome.LOCAL_QP_OP_ERR : 0;
    },
  },
  receives: {
    sharedHeaderBytes: 0,
    nextIndexAt: () => 0,
    recordBytes: 4,
    postedAt: (view, at) => view.getUint16(at + 2, true),
    loadList: (view, at, _end, qps, pair) => {
      const first = qps.scatterListOf(pair);
      const count = view.getUint8(at);
      for (let piece = 0; piece < count; piece++) {
        const { key, bytes, address } = pieceAt(view, at + (1 + piece) * PIECE_BYTES);
        qps.segmentKey[first + piece] = key;
        qps.segmentBytes[first + piece] = bytes;
        qps.segmentAddress[first + piece] = address;
        qps.segmentAddressTop[first + piece] = 0;
      }
      return count;
    },
  },
  completions: {
    entryBytes: CQE_BYTES,
    encode: (view, offset, completion, pass) => {
      const letter = completion.isSend ? 's' : 'r';
      view.setUint8(offset, 1 + pass);
      view.setUint8(offset + 1, (completion.syndrome === 0 ? letter : 'x').charCodeAt(0));
      view.setUint8(offset + 2, completion.syndrome);
      view.setUint16(offset + 4, completion.wqeCounter, true);
      view.setUint32(offset + 8, completion.byteCount, true);
      view.setUint32(offset + 12, completion.qpn, true);
    },
    encodeResize: (view, offset, pass) => view.setUint8(offset, 1 + pass),
    recordBytes: 8,
    consumerAt: (view, at) => view.getUint32(at + 4, true),
  },
});

/** The doorbells: a dword with the QPN at 0, one with the CQN at 4 for an event of the next completion. */
class ToyDoorbells implements DoorbellBlock {
  readonly account = new BlockAccount('doorbells');
  sendCount = 0;
  armCount = 0;
  readonly blueFlameCount = 0;
  readonly blueFlameFromMemoryCount = 0;
  readonly eqCount = 0;
  readonly invalidateCount = 0;
  readonly #parts: DoorbellParts;
  #ports!: DoorbellPorts;

  constructor(parts: DoorbellParts) {
    this.#parts = parts;
  }

  connect(ports: DoorbellPorts): void {
    this.#ports = ports;
  }

  barWrite(offset: number, view: DataView, at: number, _lengthBytes: number, cycle: Cycles): number {
    const { qps, cqs } = this.#parts;
    const number = view.getUint32(at, true);
    if (offset === ARM_OFFSET) {
      this.armCount++;
      const cq = cqs.slotOf(number);
      this.#ports.notifier.arm(cq, CqArmCommand.NEXT, cqs.rows[cq]!.consumer, cycle);
      return 1;
    }
    this.sendCount++;
    const pair = qps.rows[qps.slotOf(number)]!;
    pair.hasDoorbell = 1;
    this.#ports.arrivals.sendRequested(pair, cycle);
    return 1;
  }
}

const EQE_BYTES = 16;

/** EQEs: 1 + pass | type | subtype | 0 || number || the rest of what the event says, as far as this interface says it. */
export const toyEvents: EventFormat = {
  entryBytes: EQE_BYTES,
  begin: (view, at, type, subtype) => {
    view.setUint8(at + 1, type);
    view.setUint8(at + 2, subtype);
  },
  own: (view, at, pass) => view.setUint8(at, 1 + pass),
  typeAt: (view, at) => view.getUint8(at + 1),
  cqnAt: (view, at) => view.getUint32(at + 4, true),
  completion: putNumber,
  command: (view, at, token, status) => {
    putNumber(view, at, token);
    view.setUint8(at + 8, status);
  },
  queuePair: putNumber,
  sharedReceiveQueue: putNumber,
  cqError: (view, at, cqn, syndrome) => {
    putNumber(view, at, cqn);
    view.setUint8(at + 8, syndrome);
  },
  pageRequestSubtype: (side) => side,
  pageRequest: (view, at, { token }) => putNumber(view, at, token),
  port: putNumber,
  tcpConnection: () => undefined,
  portInfo: (view, at, { port }) => putNumber(view, at, port),
  portTable: putNumber,
};

function putNumber(view: DataView, at: number, number: number): void {
  view.setUint32(at + 4, number, true);
}

/** The toy's work requests, completions, events and doorbells. */
export const toyWork: Pick<Personality, 'events' | 'makeFormats' | 'makeDoorbells'> = {
  events: toyEvents,
  makeFormats,
  makeDoorbells: (parts) => new ToyDoorbells(parts),
};

/** These on the contexts, keys and commands of another card. */
export const toyFormats = (card: Personality): Personality => ({ ...card, ...toyWork });

/** A request as software of this interface posts it. */
export interface ToyRequest {
  readonly letter: string;
  readonly pieces: readonly Segment[];
  readonly remote?: { readonly address: number; readonly key: number };
  readonly isFenced?: boolean;
}

/** Queues of software: rings of a QP and its doorbell record, and the buffer of a CQ with its own. */
export interface ToyRings {
  readonly qpn: number;
  readonly sqAddress: number;
  readonly rqAddress: number;
  readonly recordAddress: number;
}
export interface ToyCompletions {
  readonly cqn: number;
  readonly logEntries: number;
  readonly bufferAddress: number;
  readonly recordAddress: number;
}

/** Software of one queue pair: `qp` has rings of 64-byte WQEs, 2^`logCount` of each. */
export class ToySoftware {
  readonly #node: DataPathNode;
  readonly #qp: ToyRings;
  readonly #cq: ToyCompletions;
  readonly #logCount: number;
  #posted = 0;
  #received = 0;
  #consumed = 0;

  constructor(node: DataPathNode, qp: ToyRings, cq: ToyCompletions, logCount: number) {
    this.#node = node;
    this.#qp = qp;
    this.#cq = cq;
    this.#logCount = logCount;
  }

  /** Posts a request and rings the doorbell of this interface. */
  send({ letter, pieces, remote, isFenced }: ToyRequest): void {
    const { view } = this.#node;
    const at = this.#placeOf(this.#qp.sqAddress, this.#posted);
    view.setUint8(at, letter.charCodeAt(0));
    view.setUint8(at + 1, SIGNALLED | (isFenced === true ? FENCED : 0));
    view.setUint8(at + 2, 1 + ((this.#posted >>> this.#logCount) & 1));
    view.setUint8(at + 3, pieces.length);
    view.setUint32(at + 4, remote?.key ?? 0, true);
    view.setBigUint64(at + 8, BigInt(remote?.address ?? 0), true);
    pieces.forEach((piece, index) => {
      putPiece(view, at + HEAD_BYTES + index * PIECE_BYTES, piece);
    });
    this.#posted++;
    this.#ring(0, this.#qp.qpn);
  }

  /** Requests an event for the next completion. */
  arm(): void {
    this.#ring(ARM_OFFSET, this.#cq.cqn);
  }

  receive(pieces: readonly Segment[]): void {
    const { view, memory } = this.#node;
    const at = this.#placeOf(this.#qp.rqAddress, this.#received);
    view.setUint8(at, pieces.length);
    pieces.forEach((piece, index) => {
      putPiece(view, at + (1 + index) * PIECE_BYTES, piece);
    });
    this.#received++;
    view.setUint16(this.#qp.recordAddress + 2, this.#received, true);
    memory.written(this.#qp.recordAddress);
  }

  /** New completions, each as `letter counter: bytes`, or `x counter: syndrome`. */
  poll(): string[] {
    const { view } = this.#node;
    const found: string[] = [];
    for (;;) {
      const at = this.#cq.bufferAddress + (this.#consumed % 2 ** this.#cq.logEntries) * CQE_BYTES;
      if (view.getUint8(at) !== 1 + ((this.#consumed >>> this.#cq.logEntries) & 1)) break;
      const letter = String.fromCharCode(view.getUint8(at + 1));
      const detail = letter === 'x' ? view.getUint8(at + 2) : view.getUint32(at + 8, true);
      found.push(`${letter} ${view.getUint16(at + 4, true)}: ${detail}`);
      this.#consumed++;
    }
    view.setUint32(this.#cq.recordAddress + 4, this.#consumed, true);
    return found;
  }

  #ring(offset: number, number: number): void {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, number, true);
    this.#node.store(offset, bytes);
  }

  #placeOf(ring: number, counter: number): number {
    return ring + (counter % 2 ** this.#logCount) * 64;
  }
}
