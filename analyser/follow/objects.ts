/**
 * The objects of the device as the driver made them: the contexts that its commands handed over, and the queue activity
 * seen since. The device's own copies of contexts are never read.
 */
import {
  copyQpcFields,
  type cqc,
  type eqc,
  fieldsSetBy,
  type mpt,
  QpState,
  type QpTransitionName,
  qpc,
  qpTransitions,
  ServiceType,
  type srqc,
} from '../../abi/index.ts';
import { advance, counterMask16, type Decoded, distance, ringIndex, viewOf } from '../../base/index.ts';
import type { BufferPlace, QueueBuffer } from './queue-buffer.ts';

/** Context of a QP after the transitions so far. */
export class FollowedQp {
  readonly qpn: number;
  readonly context = new Uint8Array(qpc.sizeBytes);
  readonly #view = viewOf(this.context);
  state: QpState = QpState.RST;
  buffer: QueueBuffer | undefined;
  /** 16-bit counters in basic blocks: the next send WQE not seen fetched, and the next not seen in memory. */
  fetchedBlock = 0;
  walkedBlock = 0;
  /** Send WQEs found posted, and doorbells (or BlueFlame posts) for them. */
  postedWqes = 0;
  rings = 0;
  /** 16-bit counters: receive WQEs seen fetched, posted by the doorbell record, and completed. */
  receivesFetched = 0;
  receivesPosted = 0;
  receivesCompleted = 0;

  /** Blocks of the ring that a WQE beginning before them occupies, for the most recent WQEs. */
  readonly #tails = new Set<number>();

  constructor(qpn: number) {
    this.qpn = qpn;
  }

  /** Notes a send WQE of this many blocks from `block` on. */
  took(block: number, blocks: number): void {
    this.#tails.delete(ringIndex(block, this.logSqBlocks));
    for (let at = 1; at < blocks; at++) this.#tails.add(ringIndex(block + at, this.logSqBlocks));
    this.fetchedBlock = advance(block, blocks, counterMask16);
  }

  /** Whether the WQE there is one of those seen in the last pass. */
  hasTaken(block: number): boolean {
    const behind = distance(this.fetchedBlock, block, counterMask16);
    return behind > 0 && behind <= 1 << this.logSqBlocks;
  }

  /** Whether the bytes there are the rest of a WQE. */
  isTail(ringBlock: number): boolean {
    return this.#tails.has(ringBlock);
  }

  /** Stores the fields that a transition sets. */
  transition(name: QpTransitionName, optionalMask: number, mailbox: Uint8Array, offset: number): void {
    const from = viewOf(mailbox);
    copyQpcFields(fieldsSetBy(name, optionalMask), from, offset, this.#view, 0);
    this.state = qpTransitions[name].to;
  }

  get fields(): Decoded<typeof qpc> {
    return qpc.decode(this.context);
  }

  get serviceType(): number {
    return qpc.fields.serviceType.get(this.#view, 0);
  }

  get uarPage(): number {
    return qpc.fields.uarPage.get(this.#view, 0);
  }

  get recordAddress(): number {
    return qpc.fields.doorbellRecordAddress.getNumber(this.#view, 0);
  }

  get srqn(): number {
    return qpc.fields.srqAttached.get(this.#view, 0) === 1 ? qpc.fields.srqn.get(this.#view, 0) : -1;
  }

  get sqStrideBytes(): number {
    return 16 << qpc.fields.sqLogStride16.get(this.#view, 0);
  }

  get logSqBlocks(): number {
    return qpc.fields.sqLogCount.get(this.#view, 0);
  }

  /** Whether the QP represents a table of rings (RSS) and has no queues of its own. */
  get isIndirect(): boolean {
    return qpc.fields.isRssIndirection.get(this.#view, 0) === 1;
  }

  /**
   * A QP without a doorbell record, or on an SRQ, has no receive queue, whatever its context says. The send-only rings
   * of mlx4_en state the smallest receive queue, one WQE of 16 bytes, and any record address; a raw-packet QP with such
   * a queue is treated as one of them.
   */
  get hasReceiveQueue(): boolean {
    const { rqLogCount, rqLogStride16 } = qpc.fields;
    const isSendRing =
      this.serviceType === ServiceType.MLX &&
      rqLogCount.get(this.#view, 0) + rqLogStride16.get(this.#view, 0) === 0;
    return this.srqn === -1 && this.recordAddress !== 0 && !this.isIndirect && !isSendRing;
  }

  get rqStrideBytes(): number {
    return this.hasReceiveQueue ? 16 << qpc.fields.rqLogStride16.get(this.#view, 0) : 0;
  }

  get rqWqes(): number {
    return this.hasReceiveQueue ? 1 << qpc.fields.rqLogCount.get(this.#view, 0) : 0;
  }

  get sqBytes(): number {
    return this.sqStrideBytes << this.logSqBlocks;
  }

  /** The queue with the larger stride comes first; with equal strides, the send queue. */
  get sqOffset(): number {
    return this.rqStrideBytes > this.sqStrideBytes ? this.rqStrideBytes * this.rqWqes : 0;
  }

  get rqOffset(): number {
    return this.sqOffset === 0 ? this.sqBytes : 0;
  }

  get place(): BufferPlace {
    const { logPageSize4k, mttAddress, pageOffset64 } = this.fields;
    return {
      mttAddress,
      logPageBytes: logPageSize4k + 12,
      pageOffset: pageOffset64 * 64,
      sizeBytes: this.isIndirect ? 0 : this.sqBytes + this.rqStrideBytes * this.rqWqes,
    };
  }
}

export interface FollowedCq {
  readonly cqn: number;
  readonly context: Decoded<typeof cqc>;
  buffer: QueueBuffer;
  /** The buffer of an unfinished resize: the device may already write there. */
  nextBuffer: QueueBuffer | undefined;
  logEntries: number;
  /** CQEs that the device has written, 24 bits. */
  produced: number;
  resizeCount: number;
  /** Completion events that the device has written for it. */
  firedCount: number;
}

export interface FollowedEq {
  readonly eqn: number;
  readonly context: Decoded<typeof eqc>;
  readonly buffer: QueueBuffer;
  /** EQEs that the device has written, 24 bits. */
  produced: number;
}

export interface FollowedSrq {
  readonly srqn: number;
  readonly context: Decoded<typeof srqc>;
  readonly buffer: QueueBuffer;
  /** Index of the next WQE not seen fetched. */
  head: number;
  fetched: number;
  posted: number;
  completed: number;
}

export interface FollowedMpt {
  readonly index: number;
  readonly entry: Decoded<typeof mpt>;
}

const bytesOfEntries = (logEntries: number, entryBytes: number): number => 2 ** logEntries * entryBytes;

/** Address of the entries of a CQ or an EQ. */
export const ringPlaceOf = (
  context: Pick<Decoded<typeof cqc>, 'mttAddress' | 'logPageSize4k' | 'pageOffset32' | 'logEntries'>,
  entryBytes: number,
): BufferPlace => ({
  mttAddress: context.mttAddress,
  logPageBytes: context.logPageSize4k + 12,
  pageOffset: context.pageOffset32 * 32,
  sizeBytes: bytesOfEntries(context.logEntries, entryBytes),
});

export const srqPlaceOf = (context: Decoded<typeof srqc>): BufferPlace => ({
  mttAddress: context.mttAddress,
  logPageBytes: context.logPageSize4k + 12,
  pageOffset: context.pageOffset64 * 64,
  sizeBytes: bytesOfEntries(context.logWqes, 16 << context.logStride16),
});

/** Translation entries of a region; absent if its addresses are physical. */
export function mttEntriesOfRegion(entry: Decoded<typeof mpt>): number {
  if (entry.isPhysical === 1) return 0;
  if (entry.mttEntries > 0) return entry.mttEntries;
  if (entry.isRegion === 0 || entry.lengthBytes === 0n) return 0;
  const pageBytes = 1n << BigInt(entry.logPageSize);
  const first = entry.startAddress / pageBytes;
  const last = (entry.startAddress + entry.lengthBytes - 1n) / pageBytes;
  return Number(last - first + 1n);
}
