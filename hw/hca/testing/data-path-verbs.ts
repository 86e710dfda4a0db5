/**
 * Software for the data-path bench: queue pairs as a driver and a user library make and use them, byte by byte in host
 * memory by the layouts of abi; and the calls of the command processor. Regions and the other queues are beside it.
 */

import { addressPath } from '../../../abi/address-path.ts';
import { sendDoorbellOffset } from '../../../abi/bar-map.ts';
import { receiveRecord } from '../../../abi/doorbell-records.ts';
import { sendDoorbell } from '../../../abi/doorbells.ts';
import { PathMtu, QpState, qpc, ServiceType } from '../../../abi/qpc.ts';
import {
  atomicSegment,
  completionRequested,
  controlSegment,
  datagramSegment,
  inlineHeader,
  remoteAddressSegment,
} from '../../../abi/wqe.ts';
import { inlineBytes, inlinePieces } from '../../../abi/wqe-inline.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Initial } from '../../../base/index.ts';
import { type AnyNode, type DataPathNode, UAR_AREA_BYTES } from './data-path-bench.ts';
import {
  Cq,
  pagesOf,
  type Srq,
  takeNumber,
  UAR,
  writePointer,
  writeReceiveList,
} from './data-path-queues.ts';
import { type AnySegment, PD } from './data-path-regions.ts';

export * from './data-path-queues.ts';
export * from './data-path-regions.ts';

/** Code of the local ACK timeout that means never. */
const NO_TIMEOUT = 0;

/** A send work request. */
export interface SendRequest {
  readonly opcode: number;
  readonly segments?: readonly AnySegment[];
  readonly inline?: Uint8Array;
  readonly remote?: { readonly address: number | bigint; readonly key: number };
  readonly immediate?: number;
  readonly isUnsignalled?: boolean;
  readonly isSolicited?: boolean;
  readonly isFenced?: boolean;
  readonly swapOrAdd?: bigint;
  readonly compare?: bigint;
  /** Masks of a masked compare and swap. */
  readonly masks?: { readonly swap: bigint; readonly compare: bigint };
  /** Destination of a datagram. */
  readonly datagram?: Initial<typeof datagramSegment>;
  /** The peer's SRQ for a message of an XRC initiator. */
  readonly remoteSrqn?: number;
  /** Segment of an LSO, without padding. */
  readonly lso?: Uint8Array;
}

export interface QpOptions {
  readonly qpn?: number;
  readonly sendCq: Cq;
  readonly receiveCq?: Cq;
  readonly srq?: Srq;
  readonly sqLogCount?: number;
  readonly sqLogStride16?: number;
  readonly rqLogCount?: number;
  readonly rqLogStride16?: number;
  readonly fields?: Initial<typeof qpc>;
}

export class Qp<Node extends AnyNode = DataPathNode> {
  readonly qpn: number;
  readonly slot: number;
  readonly node: Node;
  readonly recordAddress: number;
  readonly sqAddress: number;
  readonly rqAddress: number;
  /** 16-bit counters of what software has posted. */
  sendCounter = 0;
  receiveCounter = 0;
  readonly #sqLogCount: number;
  readonly #sqStride: number;
  readonly #rqCount: number;
  readonly #rqStride: number;

  constructor(node: Node, options: QpOptions) {
    this.node = node;
    this.qpn = options.qpn ?? takeNumber();
    this.#sqLogCount = options.sqLogCount ?? 5;
    this.#sqStride = 16 << (options.sqLogStride16 ?? 3);
    this.#rqCount = 1 << (options.rqLogCount ?? 4);
    this.#rqStride = 16 << (options.rqLogStride16 ?? 2);
    const sqBytes = this.#sqStride << this.#sqLogCount;
    const rqBytes = this.#rqStride * this.#rqCount;
    const buffer = node.allocate(sqBytes + rqBytes);
    const isReceiveFirst = this.#rqStride > this.#sqStride;
    this.sqAddress = buffer + (isReceiveFirst ? rqBytes : 0);
    this.rqAddress = buffer + (isReceiveFirst ? 0 : sqBytes);
    this.recordAddress = node.allocate(8, 64);
    this.#initialiseSendQueue();
    const { qps } = node.dataPath.parts;
    this.slot = qps.allocate(this.qpn);
    const receiveCq = options.receiveCq ?? options.sendCq;
    qps.bytes.set(
      qpc.encode({
        state: QpState.INIT,
        serviceType: ServiceType.RC,
        pd: PD,
        pathMtu: PathMtu.MTU_1024,
        logMaxMessage: 31,
        sqLogCount: this.#sqLogCount,
        sqLogStride16: options.sqLogStride16 ?? 3,
        rqLogCount: options.rqLogCount ?? 4,
        rqLogStride16: options.rqLogStride16 ?? 2,
        uarPage: UAR,
        localQpn: this.qpn,
        sendCqn: options.sendCq.cqn,
        receiveCqn: receiveCq.cqn,
        mttAddress: node.writeMtt(pagesOf(buffer, sqBytes + rqBytes)),
        doorbellRecordAddress: BigInt(options.srq === undefined ? this.recordAddress : 0),
        srqAttached: options.srq === undefined ? 0 : 1,
        srqn: options.srq?.srqn ?? 0,
        logMaxRequesterReads: 4,
        logMaxResponderReads: 4,
        retryCount: 7,
        rnrRetryCount: 7,
        minRnrNak: 1,
        remoteReadEnabled: 1,
        remoteWriteEnabled: 1,
        remoteAtomicEnabled: 1,
        ...node.roceFields,
        ...options.fields,
      }),
      qps.offsetOf(this.slot),
    );
    node.act(() => node.dataPath.control.qpCreated(this.slot));
  }

  get state(): number {
    return this.node.dataPath.parts.qps.rows[this.slot]!.state;
  }

  /** INIT to RTR to RTS, with the peer's number and the PSNs. */
  connect(
    peerQpn: number,
    sendPsn: number,
    receivePsn: number,
    ackTimeout = NO_TIMEOUT,
    path: Initial<typeof addressPath> = {},
  ): void {
    const { qps } = this.node.dataPath.parts;
    const at = qps.offsetOf(this.slot);
    this.node.act(() => {
      qpc.fields.remoteQpn.set(qps.view, at, peerQpn);
      const primaryPath = { remoteLid: this.node.peerLid, ackTimeout, ...this.node.rocePath, ...path };
      qps.bytes.set(addressPath.encode(primaryPath), at + qpc.fields.primaryPath.field.offset);
      qpc.fields.nextReceivePsn.set(qps.view, at, receivePsn);
      this.#goTo(QpState.RTR, QpState.INIT);
    });
    this.node.act(() => {
      qpc.fields.nextSendPsn.set(qps.view, at, sendPsn);
      this.#goTo(QpState.RTS, QpState.RTR);
    });
  }

  /** Changes context fields of a live QP, as a transition that stays in its state or names another. */
  modify(fields: Partial<Record<'state' | 'remoteWriteEnabled', number>>): void {
    const { qps } = this.node.dataPath.parts;
    this.node.act(() => {
      const previous = qps.rows[this.slot]!.state;
      this.node.dataPath.control.qpSync(this.slot);
      const at = qps.offsetOf(this.slot);
      for (const [name, value] of Object.entries(fields))
        qpc.fields[name as 'state'].set(qps.view, at, value);
      this.node.dataPath.control.qpModified(this.slot, previous);
    });
  }

  /** Moves the QP to error (2ERR). */
  toError(): void {
    this.node.act(() => this.node.dataPath.control.qpToError(this.slot));
  }

  /** Writes a WQE and returns its counter. No doorbell. */
  post(request: SendRequest): number {
    const counter = this.sendCounter;
    const wqe = this.#encode(request, counter);
    const slots = (1 << this.#sqLogCount) - 1;
    this.node.memory.bytes.set(wqe, this.sqAddress + (counter & slots) * this.#sqStride);
    this.sendCounter = (counter + 1) & 0xffff;
    return counter;
  }

  /** Posts the bytes of a WQE unchanged, except the owner bit, and rings the doorbell. */
  sendBytes(wqe: Uint8Array): void {
    const slots = (1 << this.#sqLogCount) - 1;
    const at = this.sqAddress + (this.sendCounter & slots) * this.#sqStride;
    this.node.memory.bytes.set(wqe, at);
    controlSegment.fields.owner.set(this.node.view, at, (this.sendCounter >>> this.#sqLogCount) & 1);
    this.sendCounter = (this.sendCounter + 1) & 0xffff;
    this.ring();
  }

  /** The bytes of the WQE last written at `counter`, as BlueFlame copies them. */
  wqeBytes(counter: number, lengthBytes: number): Uint8Array {
    const slots = (1 << this.#sqLogCount) - 1;
    const at = this.sqAddress + (counter & slots) * this.#sqStride;
    const copy = this.node.memory.bytes.slice(at, at + lengthBytes);
    const view = new DataView(copy.buffer);
    controlSegment.fields.wqeCounter.set(view, 0, counter);
    controlSegment.fields.qpn.set(view, 0, this.qpn);
    return copy;
  }

  ring(uarPage = UAR): void {
    this.node.store(sendDoorbellOffset(uarPage), sendDoorbell.encode({ qpn: this.qpn }));
  }

  /** post_send: WQE and doorbell. */
  send(request: SendRequest): number {
    const counter = this.post(request);
    this.ring();
    return counter;
  }

  /** A WQE through BlueFlame, in stores of `pieceBytes`, at half 0 or 1 of the UAR's first register. */
  blueFlame(counter: number, lengthBytes: number, half = 0, pieceBytes = 64, uarPage = UAR): void {
    const bytes = this.wqeBytes(counter, Math.ceil(lengthBytes / 64) * 64);
    for (let at = 0; at < bytes.length; at += pieceBytes)
      this.node.store(UAR_AREA_BYTES + uarPage * 4096 + half * 256 + at, bytes.subarray(at, at + pieceBytes));
  }

  /** post_recv. Returns the WQE's counter. */
  receive(segments: readonly AnySegment[]): number {
    const counter = this.receiveCounter;
    const at = this.rqAddress + (counter & (this.#rqCount - 1)) * this.#rqStride;
    writeReceiveList(this.node, at, this.#rqStride, segments);
    this.receiveCounter = (counter + 1) & 0xffff;
    receiveRecord.fields.postedCounter.set(this.node.view, this.recordAddress, this.receiveCounter);
    this.node.memory.written(this.recordAddress);
    return counter;
  }

  #goTo(state: number, previous: number): void {
    const { qps } = this.node.dataPath.parts;
    qpc.fields.state.set(qps.view, qps.offsetOf(this.slot), state);
    this.node.dataPath.control.qpModified(this.slot, previous);
  }

  #initialiseSendQueue(): void {
    for (let block = 0; block < 1 << this.#sqLogCount; block++) {
      const at = this.sqAddress + block * this.#sqStride;
      this.node.view.setUint32(at, 0x8000_0000);
      for (let line = 64; line < this.#sqStride; line += 64) this.node.view.setUint32(at + line, 0xffff_ffff);
    }
  }

  #encode(request: SendRequest, counter: number): Uint8Array {
    const bytes = encodeWqe(request, (counter >>> this.#sqLogCount) & 1);
    if (bytes.length > this.#sqStride) throw new RangeError(`WQE of ${bytes.length} bytes is too long`);
    return bytes;
  }
}

/** The bytes of a send WQE with the given owner bit. */
export function encodeWqe(request: SendRequest, owner: number): Uint8Array {
  const bytes = new Uint8Array(1024);
  const view = new DataView(bytes.buffer);
  let next = 16;
  const { opcode } = request;
  if (request.datagram !== undefined) {
    bytes.set(datagramSegment.encode(request.datagram), next);
    next += datagramSegment.sizeBytes;
  }
  if (request.lso !== undefined) {
    bytes.set(request.lso, next);
    next += Math.ceil(request.lso.length / 16) * 16;
  } else if (opcode >= WqeOpcode.RDMA_WRITE && opcode !== WqeOpcode.SEND && opcode !== WqeOpcode.SEND_IMM) {
    remoteAddressSegment.fields.address.set(view, next, BigInt(request.remote?.address ?? 0));
    remoteAddressSegment.fields.rkey.set(view, next, request.remote?.key ?? 0);
    next += 16;
  }
  if (request.swapOrAdd !== undefined) {
    atomicSegment.fields.swapOrAdd.set(view, next, request.swapOrAdd);
    atomicSegment.fields.compare.set(view, next, request.compare ?? 0n);
    next += 16;
  }
  if (request.masks !== undefined) {
    view.setBigUint64(next, request.masks.swap);
    view.setBigUint64(next + 8, request.masks.compare);
    next += 16;
  }
  for (const segment of request.segments ?? []) {
    writePointer(view, next, segment);
    next += 16;
  }
  if (request.inline !== undefined) next += writeInline(view, bytes, next, request.inline);
  controlSegment.encodeInto(
    {
      owner,
      opcode: opcode as WqeOpcode,
      ds: next / 16,
      fence: request.isFenced ? 1 : 0,
      completion: request.isUnsignalled ? 0 : completionRequested,
      solicited: request.isSolicited ? 1 : 0,
      immediate: request.immediate ?? 0,
      remoteSrqn: request.remoteSrqn ?? 0,
    },
    bytes,
  );
  return bytes.slice(0, next);
}

function writeInline(view: DataView, bytes: Uint8Array, start: number, data: Uint8Array): number {
  let taken = 0;
  for (const { headerOffset, byteCount } of inlinePieces(start, data.length)) {
    inlineHeader.fields.isInline.set(view, headerOffset, 1);
    inlineHeader.fields.byteCount.set(view, headerOffset, byteCount);
    bytes.set(data.subarray(taken, taken + byteCount), headerOffset + 4);
    taken += byteCount;
  }
  return inlineBytes(start, data.length);
}

/** A connected pair with CQs of their own; PSNs near the end of their range, so that they wrap. */
export function connectedPair<Node extends AnyNode = DataPathNode>(
  a: Node,
  b: Node,
  options: {
    readonly a?: Partial<QpOptions>;
    readonly b?: Partial<QpOptions>;
    readonly ackTimeout?: number;
    readonly path?: Initial<typeof addressPath>;
  } = {},
): { a: Qp<Node>; b: Qp<Node>; aCq: Cq; bCq: Cq } {
  const aCq = options.a?.sendCq ?? new Cq(a);
  const bCq = options.b?.sendCq ?? new Cq(b);
  const qpA = new Qp(a, { sendCq: aCq, ...options.a });
  const qpB = new Qp(b, { sendCq: bCq, ...options.b });
  qpB.connect(qpA.qpn, FIRST_PSN_B, FIRST_PSN_A, options.ackTimeout, options.path);
  qpA.connect(qpB.qpn, FIRST_PSN_A, FIRST_PSN_B, options.ackTimeout, options.path);
  return { a: qpA, b: qpB, aCq, bCq };
}

export const FIRST_PSN_A = 0xff_fffd;
const FIRST_PSN_B = 0x00_0777;
/** PSN `count` packets after the first of side a. */
export const psnA = (count: number): number => (FIRST_PSN_A + count) & 0xff_ffff;
