/**
 * Software for the data-path bench: regions, completion queues, shared receive queues and queue pairs as a driver and a
 * user library make them, byte by byte in host memory by the layouts of abi; and the calls of the command processor.
 */
import { cqArmOffset, sendDoorbellOffset } from '../../../abi/bar-map.ts';
import { cqc } from '../../../abi/cqc.ts';
import { CqeOpcode, cqe, cqeBytes, errorCqe } from '../../../abi/cqe.ts';
import { cqArm, cqRecord, receiveRecord, sendDoorbell } from '../../../abi/doorbells.ts';
import { indexFormOfKey } from '../../../abi/keys.ts';
import { MptStatus, mpt } from '../../../abi/mpt.ts';
import { PathMtu, QpState, qpc, ServiceType } from '../../../abi/qpc.ts';
import { srqc } from '../../../abi/srqc.ts';
import {
  atomicSegment,
  completionRequested,
  controlSegment,
  dataPointer,
  inlineHeader,
  invalidLkey,
  remoteAddressSegment,
  srqNextSegment,
} from '../../../abi/wqe.ts';
import { inlineBytes, inlinePieces } from '../../../abi/wqe-inline.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Initial } from '../../../base/index.ts';
import { type DataPathNode, UAR_AREA_BYTES } from './data-path-bench.ts';

export const PD = 5;
export const UAR = 9;
export const EQN = 4;
/** 1.24 ms × … no: 0 switches the local ACK timeout off. */
const NO_TIMEOUT = 0;

/** Rights of a region by the names of verbs. */
export interface Rights {
  readonly localRead?: boolean;
  readonly localWrite?: boolean;
  readonly remoteRead?: boolean;
  readonly remoteWrite?: boolean;
  readonly remoteAtomic?: boolean;
}

export const allRights: Rights = {
  localRead: true,
  localWrite: true,
  remoteRead: true,
  remoteWrite: true,
  remoteAtomic: true,
};

/** A scatter/gather entry. */
export interface Segment {
  readonly address: number;
  readonly bytes: number;
  readonly key: number;
}

export interface RegionOptions {
  readonly pd?: number;
  readonly rights?: Rights;
  /** Offset of the first byte in its first page. */
  readonly pageOffset?: number;
  readonly logPageBytes?: number;
  readonly variant?: number;
  /** Pages that are not present. */
  readonly holes?: readonly number[];
}

/** A memory region over pages that lie apart and in descending order, so that no two neighbours are contiguous. */
export class Region {
  readonly key: number;
  readonly address: number;
  readonly lengthBytes: number;
  readonly mptIndex: number;
  readonly #node: DataPathNode;
  readonly #pages: number[] = [];
  readonly #pageBytes: number;
  readonly #pageOffset: number;
  #status: number = MptStatus.VALID;
  readonly #fields: Initial<typeof mpt>;

  constructor(node: DataPathNode, lengthBytes: number, options: RegionOptions = {}) {
    this.#node = node;
    this.lengthBytes = lengthBytes;
    this.#pageBytes = 2 ** (options.logPageBytes ?? 12);
    this.#pageOffset = options.pageOffset ?? 0;
    const pageCount = Math.ceil((this.#pageOffset + lengthBytes) / this.#pageBytes);
    const base = node.allocate(2 * pageCount * this.#pageBytes, this.#pageBytes);
    for (let page = 0; page < pageCount; page++)
      this.#pages.push(base + 2 * (pageCount - 1 - page) * this.#pageBytes);
    const holes = options.holes ?? [];
    const mttOffset = node.writeMtt(this.#pages.map((page, index) => (holes.includes(index) ? -1 : page)));
    // The virtual address is congruent to the first byte's place in its page, and above 4 GiB.
    this.address = 0x7f00_0000_0000 + base * 16 + this.#pageOffset;
    const rights = options.rights ?? allRights;
    this.#fields = {
      localReadEnabled: rights.localRead ? 1 : 0,
      localWriteEnabled: rights.localWrite ? 1 : 0,
      remoteReadEnabled: rights.remoteRead ? 1 : 0,
      remoteWriteEnabled: rights.remoteWrite ? 1 : 0,
      atomicEnabled: rights.remoteAtomic ? 1 : 0,
      isRegion: 1,
      pd: options.pd ?? PD,
      startAddress: BigInt(this.address),
      lengthBytes: BigInt(lengthBytes),
      mttAddress: mttOffset,
      logPageSize: options.logPageBytes ?? 12,
    };
    const keyOf = (index: number): number => ((index << 8) | (options.variant ?? 0)) >>> 0;
    this.mptIndex = node.writeMpt((index) =>
      mpt.encode({ ...this.#fields, status: this.#status, keyIndexForm: indexFormOfKey(keyOf(index)) }),
    );
    this.key = keyOf(this.mptIndex);
    node.act(() => node.dataPath.mptChanged(this.mptIndex));
  }

  /** A scatter/gather entry within the region. */
  part(offset = 0, bytes = this.lengthBytes - offset): Segment {
    return { address: this.address + offset, bytes, key: this.key };
  }

  write(bytes: Uint8Array, offset = 0): void {
    for (let index = 0; index < bytes.length; index++)
      this.#node.memory.bytes[this.physical(offset + index)] = bytes[index]!;
  }

  read(offset = 0, lengthBytes = this.lengthBytes - offset): Uint8Array {
    return Uint8Array.from(
      { length: lengthBytes },
      (_, index) => this.#node.memory.bytes[this.physical(offset + index)]!,
    );
  }

  /** Fills the region with bytes that depend on `seed` and place. */
  fill(seed: number): void {
    this.write(pattern(seed, this.lengthBytes));
  }

  physical(offset: number): number {
    const byte = this.#pageOffset + offset;
    return this.#pages[Math.floor(byte / this.#pageBytes)]! + (byte % this.#pageBytes);
  }
}

export function pattern(seed: number, lengthBytes: number): Uint8Array {
  return Uint8Array.from({ length: lengthBytes }, (_, index) => (seed + index * 7 + (index >> 8)) & 0xff);
}

/** A completion, as poll_cq would give it. */
export interface Completion {
  readonly qpn: number;
  readonly isSend: boolean;
  readonly opcode: number;
  readonly wqeCounter: number;
  readonly byteCount: number;
  readonly immediate: number;
  readonly sourceLid: number;
  /** 0, or the syndrome of an error CQE. */
  readonly syndrome: number;
}

let nextNumber = 0x40;
const takeNumber = (): number => nextNumber++;

export class Cq {
  readonly cqn: number;
  readonly slot: number;
  readonly recordAddress: number;
  logEntries: number;
  consumer = 0;
  bufferAddress: number;
  armSequence = 1;
  readonly #node: DataPathNode;

  constructor(node: DataPathNode, logEntries = 6, fields: Initial<typeof cqc> = {}) {
    this.#node = node;
    this.cqn = takeNumber();
    this.logEntries = logEntries;
    this.bufferAddress = freshCqBuffer(node, logEntries);
    this.recordAddress = node.allocate(8, 64);
    const { cqs } = node.dataPath.tables;
    this.slot = cqs.allocate(this.cqn);
    cqs.bytes.set(
      cqc.encode({
        logEntries,
        uarPage: UAR,
        eqn: EQN,
        mttAddress: node.writeMtt(pagesOf(this.bufferAddress, cqeBytes << logEntries)),
        doorbellRecordAddress: BigInt(this.recordAddress),
        ...fields,
      }),
      cqs.offsetOf(this.slot),
    );
    node.act(() => node.dataPath.cqCreated(this.slot));
  }

  /** The next completion, or undefined. The consumer counter goes to the doorbell record unless `isSilent`. */
  poll(): Completion | undefined {
    const at = this.bufferAddress + (this.consumer & ((1 << this.logEntries) - 1)) * cqeBytes;
    const { view } = this.#node;
    if (cqe.fields.owner.get(view, at) !== ((this.consumer >>> this.logEntries) & 1)) return undefined;
    this.consumer = (this.consumer + 1) & 0xffffff;
    const opcode = cqe.fields.opcode.get(view, at);
    const isError = opcode === CqeOpcode.ERROR;
    return {
      qpn: cqe.fields.qpn.get(view, at),
      isSend: cqe.fields.isSend.get(view, at) === 1,
      opcode,
      wqeCounter: cqe.fields.wqeCounter.get(view, at),
      byteCount: cqe.fields.byteCount.get(view, at),
      immediate: cqe.fields.immediate.get(view, at),
      sourceLid: cqe.fields.sourceLid.get(view, at),
      syndrome: isError ? errorCqe.fields.syndrome.get(view, at) : 0,
    };
  }

  /** All completions there are; they are consumed. */
  drain(): Completion[] {
    const all: Completion[] = [];
    for (let one = this.poll(); one !== undefined; one = this.poll()) all.push(one);
    this.publishConsumer();
    return all;
  }

  /** Consumes what there is and returns how many completions have been consumed in all. */
  takenCount(): number {
    this.drain();
    return this.consumer;
  }

  publishConsumer(): void {
    cqRecord.fields.consumerCounter.set(this.#node.view, this.recordAddress, this.consumer);
  }

  /** req_notify_cq: 2 is any completion, 1 solicited ones. */
  arm(command: number, sequenceNumber = this.armSequence, uarPage = UAR, consumer = this.consumer): void {
    const bytes = cqArm.encode({
      sequenceNumber: sequenceNumber & 3,
      command: command as 1 | 2,
      cqn: this.cqn,
      consumerCounter: consumer,
    });
    this.#node.store(cqArmOffset(uarPage), bytes);
  }
}

/** A CQ buffer whose entries all belong to hardware in the first pass. */
export function freshCqBuffer(node: DataPathNode, logEntries: number): number {
  const address = node.allocate(cqeBytes << logEntries);
  for (let entry = 0; entry < 1 << logEntries; entry++)
    cqe.fields.owner.set(node.view, address + entry * cqeBytes, 1);
  return address;
}

/** The 4 KiB pages of a contiguous buffer. */
export function pagesOf(address: number, lengthBytes: number): number[] {
  const count = Math.ceil(lengthBytes / 4096);
  return Array.from({ length: count }, (_, page) => address + page * 4096);
}

export class Srq {
  readonly srqn: number;
  readonly slot: number;
  readonly recordAddress: number;
  readonly #bufferAddress: number;
  readonly #node: DataPathNode;
  readonly #strideBytes = 64;
  readonly #count: number;
  #posted = 0;
  /** Indices that software may fill, in list order. */
  readonly #free: number[];
  #tail: number;

  constructor(node: DataPathNode, logWqes = 4, fields: Initial<typeof srqc> = {}) {
    this.#node = node;
    this.srqn = takeNumber();
    this.#count = 2 ** logWqes;
    this.#bufferAddress = node.allocate(this.#count * this.#strideBytes);
    this.recordAddress = node.allocate(8, 64);
    this.#free = Array.from({ length: this.#count }, (_, index) => index);
    this.#tail = this.#count - 1;
    for (let index = 0; index < this.#count; index++) this.#link(index, (index + 1) % this.#count);
    const { srqs } = node.dataPath.tables;
    this.slot = srqs.allocate(this.srqn);
    srqs.bytes.set(
      srqc.encode({
        logWqes,
        srqn: this.srqn,
        logStride16: 2,
        mttAddress: node.writeMtt(pagesOf(this.#bufferAddress, this.#count * this.#strideBytes)),
        pd: PD,
        doorbellRecordAddress: BigInt(this.recordAddress),
        ...fields,
      }),
      srqs.offsetOf(this.slot),
    );
    node.act(() => node.dataPath.srqCreated(this.slot));
  }

  /** Posts a receive into the next free place of the list and returns its index. */
  post(segments: readonly Segment[]): number {
    const index = this.#free.shift()!;
    const at = this.#bufferAddress + index * this.#strideBytes;
    writeReceiveList(this.#node, at + 16, this.#strideBytes - 16, segments);
    this.#posted = (this.#posted + 1) & 0xffff;
    receiveRecord.fields.postedCounter.set(this.#node.view, this.recordAddress, this.#posted);
    return index;
  }

  /** Gives a completed index back: it goes to the tail of the list. */
  release(index: number): void {
    this.#link(this.#tail, index);
    this.#tail = index;
    this.#free.push(index);
  }

  /** ARM_SRQ. */
  armLimit(limit: number): void {
    this.#node.act(() => {
      const { srqs } = this.#node.dataPath.tables;
      srqc.fields.limitWatermark.set(srqs.view, srqs.offsetOf(this.slot), limit);
      this.#node.dataPath.srqArmed(this.slot);
    });
  }

  #link(index: number, next: number): void {
    const at = this.#bufferAddress + index * this.#strideBytes;
    srqNextSegment.fields.nextWqeIndex.set(this.#node.view, at, next);
  }
}

function writeReceiveList(
  node: DataPathNode,
  at: number,
  roomBytes: number,
  segments: readonly Segment[],
): void {
  segments.forEach((segment, index) => {
    writePointer(node.view, at + index * 16, segment);
  });
  if (segments.length * 16 < roomBytes)
    writePointer(node.view, at + segments.length * 16, { address: 0, bytes: 0, key: invalidLkey });
}

function writePointer(view: DataView, at: number, { address, bytes, key }: Segment): void {
  dataPointer.fields.byteCount.set(view, at, bytes);
  dataPointer.fields.lkey.set(view, at, key);
  dataPointer.fields.address.setNumber(view, at, address);
}

/** A send work request. */
export interface SendRequest {
  readonly opcode: number;
  readonly segments?: readonly Segment[];
  readonly inline?: Uint8Array;
  readonly remote?: { readonly address: number; readonly key: number };
  readonly immediate?: number;
  readonly isUnsignalled?: boolean;
  readonly isSolicited?: boolean;
  readonly isFenced?: boolean;
  readonly swapOrAdd?: bigint;
  readonly compare?: bigint;
}

export interface QpOptions {
  readonly sendCq: Cq;
  readonly receiveCq?: Cq;
  readonly srq?: Srq;
  readonly sqLogCount?: number;
  readonly sqLogStride16?: number;
  readonly rqLogCount?: number;
  readonly rqLogStride16?: number;
  readonly fields?: Initial<typeof qpc>;
}

export class Qp {
  readonly qpn: number;
  readonly slot: number;
  readonly node: DataPathNode;
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

  constructor(node: DataPathNode, options: QpOptions) {
    this.node = node;
    this.qpn = takeNumber();
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
    const { qps } = node.dataPath.tables;
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
        ...options.fields,
      }),
      qps.offsetOf(this.slot),
    );
    node.act(() => node.dataPath.qpCreated(this.slot));
  }

  get state(): number {
    return this.node.dataPath.tables.qps.state[this.slot]!;
  }

  /** INIT to RTR to RTS, with the peer's number and the PSNs. */
  connect(peerQpn: number, sendPsn: number, receivePsn: number, ackTimeout = NO_TIMEOUT): void {
    const { qps } = this.node.dataPath.tables;
    const at = qps.offsetOf(this.slot);
    this.node.act(() => {
      qpc.fields.remoteQpn.set(qps.view, at, peerQpn);
      qpc.fields.primaryPath.fields.remoteLid.set(qps.view, at, 3);
      qpc.fields.primaryPath.fields.ackTimeout.set(qps.view, at, ackTimeout);
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
    const { qps } = this.node.dataPath.tables;
    this.node.act(() => {
      const previous = qps.state[this.slot]!;
      this.node.dataPath.qpSync(this.slot);
      const at = qps.offsetOf(this.slot);
      for (const [name, value] of Object.entries(fields))
        qpc.fields[name as 'state'].set(qps.view, at, value);
      this.node.dataPath.qpModified(this.slot, previous);
    });
  }

  /** 2ERR. */
  toError(): void {
    this.node.act(() => this.node.dataPath.qpToError(this.slot));
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
  receive(segments: readonly Segment[]): number {
    const counter = this.receiveCounter;
    const at = this.rqAddress + (counter & (this.#rqCount - 1)) * this.#rqStride;
    writeReceiveList(this.node, at, this.#rqStride, segments);
    this.receiveCounter = (counter + 1) & 0xffff;
    receiveRecord.fields.postedCounter.set(this.node.view, this.recordAddress, this.receiveCounter);
    return counter;
  }

  #goTo(state: number, previous: number): void {
    const { qps } = this.node.dataPath.tables;
    qpc.fields.state.set(qps.view, qps.offsetOf(this.slot), state);
    this.node.dataPath.qpModified(this.slot, previous);
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
  if (opcode >= WqeOpcode.RDMA_WRITE && opcode !== WqeOpcode.SEND && opcode !== WqeOpcode.SEND_IMM) {
    remoteAddressSegment.fields.address.setNumber(view, next, request.remote?.address ?? 0);
    remoteAddressSegment.fields.rkey.set(view, next, request.remote?.key ?? 0);
    next += 16;
  }
  if (request.swapOrAdd !== undefined) {
    atomicSegment.fields.swapOrAdd.set(view, next, request.swapOrAdd);
    atomicSegment.fields.compare.set(view, next, request.compare ?? 0n);
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
export function connectedPair(
  a: DataPathNode,
  b: DataPathNode,
  options: {
    readonly a?: Partial<QpOptions>;
    readonly b?: Partial<QpOptions>;
    readonly ackTimeout?: number;
  } = {},
): { a: Qp; b: Qp; aCq: Cq; bCq: Cq } {
  const aCq = options.a?.sendCq ?? new Cq(a);
  const bCq = options.b?.sendCq ?? new Cq(b);
  const qpA = new Qp(a, { sendCq: aCq, ...options.a });
  const qpB = new Qp(b, { sendCq: bCq, ...options.b });
  qpB.connect(qpA.qpn, FIRST_PSN_B, FIRST_PSN_A, options.ackTimeout);
  qpA.connect(qpB.qpn, FIRST_PSN_A, FIRST_PSN_B, options.ackTimeout);
  return { a: qpA, b: qpB, aCq, bCq };
}

export const FIRST_PSN_A = 0xff_fffd;
export const FIRST_PSN_B = 0x00_0777;
/** PSN `count` packets behind the first of side a. */
export const psnA = (count: number): number => (FIRST_PSN_A + count) & 0xff_ffff;
