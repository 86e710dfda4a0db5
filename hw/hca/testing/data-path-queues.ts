/** Completion queues and shared receive queues for the data-path bench, as a driver and a user library make them. */
import { cqArmOffset } from '../../../abi/bar-map.ts';
import { cqc } from '../../../abi/cqc.ts';
import { CqeOpcode, cqe, cqeBytes, errorCqe } from '../../../abi/cqe.ts';
import { cqRecord, receiveRecord } from '../../../abi/doorbell-records.ts';
import { cqArm } from '../../../abi/doorbells.ts';
import { srqc } from '../../../abi/srqc.ts';
import { dataPointer, invalidLkey, srqNextSegment } from '../../../abi/wqe.ts';
import type { Initial } from '../../../base/index.ts';
import type { AnyNode } from './data-path-bench.ts';
import { type AnySegment, PD } from './data-path-regions.ts';

/** UAR page and event queue of everything that a spec does not give another one. */
export const UAR = 9;
export const EQN = 4;

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
  /** The message is in the receive WQE; left out otherwise. */
  readonly isInline?: true;
}

let nextNumber = 0x40;
export const takeNumber = (): number => nextNumber++;

export class Cq {
  readonly cqn: number;
  readonly slot: number;
  readonly recordAddress: number;
  logEntries: number;
  consumer = 0;
  bufferAddress: number;
  armSequence = 1;
  /** Source of the datagram of the completion last polled. */
  source = { qpn: 0, hasGrh: false, pathBits: 0, serviceLevel: 0 };
  readonly #node: AnyNode;

  constructor(node: AnyNode, logEntries = 6, fields: Initial<typeof cqc> = {}) {
    this.#node = node;
    this.cqn = takeNumber();
    this.logEntries = logEntries;
    this.bufferAddress = freshCqBuffer(node, logEntries);
    this.recordAddress = node.allocate(8, 64);
    const { cqs } = node.dataPath.parts;
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
    node.act(() => node.dataPath.control.cqCreated(this.slot));
  }

  /** The next completion, or undefined. The consumer counter goes to the doorbell record unless `isSilent`. */
  poll(): Completion | undefined {
    const at = this.bufferAddress + (this.consumer & ((1 << this.logEntries) - 1)) * cqeBytes;
    const { view } = this.#node;
    if (cqe.fields.owner.get(view, at) !== ((this.consumer >>> this.logEntries) & 1)) return undefined;
    this.consumer = (this.consumer + 1) & 0xffffff;
    const opcode = cqe.fields.opcode.get(view, at);
    const isError = opcode === CqeOpcode.ERROR;
    this.source = {
      qpn: cqe.fields.sourceQpn.get(view, at),
      hasGrh: cqe.fields.grhPresent.get(view, at) === 1,
      pathBits: cqe.fields.destinationPathBits.get(view, at),
      serviceLevel: cqe.fields.serviceLevel.get(view, at),
    };
    return {
      qpn: cqe.fields.qpn.get(view, at),
      isSend: cqe.fields.isSend.get(view, at) === 1,
      opcode,
      wqeCounter: cqe.fields.wqeCounter.get(view, at),
      byteCount: cqe.fields.byteCount.get(view, at),
      immediate: cqe.fields.immediate.get(view, at),
      sourceLid: cqe.fields.sourceLid.get(view, at),
      syndrome: isError ? errorCqe.fields.syndrome.get(view, at) : 0,
      ...(cqe.fields.inlineScatter.get(view, at) === 1 ? { isInline: true } : {}),
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
export function freshCqBuffer(node: AnyNode, logEntries: number): number {
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
  readonly #node: AnyNode;
  readonly #strideBytes = 64;
  readonly #count: number;
  #posted = 0;
  /** Indices that software may fill, in list order. */
  readonly #free: number[];
  #tail: number;

  constructor(node: AnyNode, logWqes = 4, fields: Initial<typeof srqc> = {}) {
    this.#node = node;
    this.srqn = takeNumber();
    this.#count = 2 ** logWqes;
    this.#bufferAddress = node.allocate(this.#count * this.#strideBytes);
    this.recordAddress = node.allocate(8, 64);
    this.#free = Array.from({ length: this.#count }, (_, index) => index);
    this.#tail = this.#count - 1;
    for (let index = 0; index < this.#count; index++) this.#link(index, (index + 1) % this.#count);
    const { srqs } = node.dataPath.parts;
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
    node.act(() => node.dataPath.control.srqCreated(this.slot));
  }

  /** Posts a receive into the next free place of the list and returns its index. */
  post(segments: readonly AnySegment[]): number {
    const index = this.#free.shift()!;
    const at = this.#bufferAddress + index * this.#strideBytes;
    writeReceiveList(this.#node, at + 16, this.#strideBytes - 16, segments);
    this.#posted = (this.#posted + 1) & 0xffff;
    receiveRecord.fields.postedCounter.set(this.#node.view, this.recordAddress, this.#posted);
    return index;
  }

  /** Returns a completed index to the tail of the list. */
  release(index: number): void {
    this.#link(this.#tail, index);
    this.#tail = index;
    this.#free.push(index);
  }

  /** ARM_SRQ. */
  armLimit(limit: number): void {
    this.#node.act(() => {
      const { srqs } = this.#node.dataPath.parts;
      srqc.fields.limitWatermark.set(srqs.view, srqs.offsetOf(this.slot), limit);
      this.#node.dataPath.control.srqArmed(this.slot);
    });
  }

  #link(index: number, next: number): void {
    const at = this.#bufferAddress + index * this.#strideBytes;
    srqNextSegment.fields.nextWqeIndex.set(this.#node.view, at, next);
  }
}

export function writeReceiveList(
  node: AnyNode,
  at: number,
  roomBytes: number,
  segments: readonly AnySegment[],
): void {
  segments.forEach((segment, index) => {
    writePointer(node.view, at + index * 16, segment);
  });
  if (segments.length * 16 < roomBytes)
    writePointer(node.view, at + segments.length * 16, { address: 0, bytes: 0, key: invalidLkey });
}

export function writePointer(view: DataView, at: number, { address, bytes, key }: AnySegment): void {
  dataPointer.fields.byteCount.set(view, at, bytes);
  dataPointer.fields.lkey.set(view, at, key);
  dataPointer.fields.address.set(view, at, BigInt(address));
}
