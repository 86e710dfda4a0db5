/** The sending side of a QP: its work requests, reused for every post, and the numbers of posts and completions. */
import type { Wide } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_SEND_INLINE,
  IBV_WR_RDMA_READ,
  IBV_WR_SEND_WITH_IMM,
  type IbvQp,
  type IbvSendWr,
  postSend,
  SendFlag,
} from '../../userlib/index.ts';
import { WorkFailedError } from './completion-poller.ts';
import type { PerfArgs, SizeShare } from './perf-plan.ts';

const signalled = SendFlag.IBV_SEND_SIGNALED;

/** Source and destination of a message. */
export interface MessagePlace {
  readonly address: number;
  readonly lkey: number;
  readonly remoteAddress: number;
  readonly rkey: number;
}

/** Draws the place of the next message. */
export type TakePlace = () => MessagePlace;

export class PerfStream {
  readonly qp: IbvQp;
  /** Number of the QP that receives its peer's messages: the same QP, except for XRC. */
  readonly receivesAt: number;
  posted = 0;
  completed = 0;
  /** Sum of the drawn lengths. */
  drawnBytes: Wide = 0;
  /** The first of them is posted alone, all of them as a list. */
  readonly #wrs: readonly IbvSendWr[];
  /** Flags of every post. */
  readonly #sendFlags: number;
  readonly #inlineBytes: number;
  readonly #takePlace: TakePlace | undefined;
  readonly #takeSize: (() => number) | undefined;

  /** @param makeWr returns a work request for the first place */
  constructor(
    qp: IbvQp,
    receivesAt: number,
    { sizeBytes, inlineBytes, postList = 1, sizes }: PerfArgs,
    makeWr: () => IbvSendWr,
    random: Random,
    takePlace?: TakePlace,
  ) {
    this.qp = qp;
    this.receivesAt = receivesAt;
    this.#wrs = Array.from({ length: postList }, makeWr);
    for (const [index, wr] of this.#wrs.entries()) wr.next = this.#wrs[index + 1] ?? null;
    this.#sendFlags = sizeBytes <= inlineBytes ? IBV_SEND_INLINE : 0;
    this.#inlineBytes = inlineBytes;
    this.#takePlace = takePlace;
    this.#takeSize = sizes === undefined ? undefined : sizesOf(sizes, random);
  }

  /** Posts the next message. */
  post(isSignalled: boolean): void {
    const wr = this.#wrs[0]!;
    this.#prepare(wr, isSignalled);
    wr.next = null;
    this.#hand(wr, 1);
  }

  /**
   * Posts the next messages in one list.
   * @param isSignalled whether the message at an index of the list is signalled
   */
  postList(count: number, isSignalled: (index: number) => boolean): void {
    for (let index = 0; index < count; index++) {
      const wr = this.#wrs[index]!;
      this.#prepare(wr, isSignalled(index));
      wr.next = index + 1 < count ? this.#wrs[index + 1]! : null;
    }
    this.#hand(this.#wrs[0]!, count);
  }

  /** Posts one more message, with immediate data, which is not counted. */
  postEnd(): void {
    const wr = this.#wrs[0]!;
    const error = postSend(this.qp, {
      ...wr,
      next: null,
      opcode: IBV_WR_SEND_WITH_IMM,
      sendFlags: this.#sendFlags | signalled,
      immData: 0,
    });
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
  }

  /** Posts a READ of no bytes, signalled, which is not counted. */
  postEmptyRead(): void {
    const wr = this.#wrs[0]!;
    const empty = { next: null, sgList: [], numSge: 0, opcode: IBV_WR_RDMA_READ, sendFlags: signalled };
    const error = postSend(this.qp, { ...wr, ...empty });
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
  }

  /** Restarts the counts: all posts have completed. */
  restart(): void {
    this.posted = 0;
    this.completed = 0;
    this.drawnBytes = 0;
  }

  #hand(wr: IbvSendWr, count: number): void {
    const error = postSend(this.qp, wr);
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
    this.posted += count;
  }

  #prepare(wr: IbvSendWr, isSignalled: boolean): void {
    if (this.#takePlace !== undefined) move(wr, this.#takePlace());
    let flags = this.#sendFlags;
    if (this.#takeSize !== undefined) {
      const segment = wr.sgList[0]!;
      segment.length = this.#takeSize();
      flags = segment.length <= this.#inlineBytes ? IBV_SEND_INLINE : 0;
      this.drawnBytes += segment.length;
    }
    wr.sendFlags = isSignalled ? flags | signalled : flags;
  }
}

function move(wr: IbvSendWr, { address, lkey, remoteAddress, rkey }: MessagePlace): void {
  const segment = wr.sgList[0]!;
  segment.addr = address;
  segment.lkey = lkey;
  const { rdma, atomic } = wr.wr!;
  rdma!.remoteAddr = remoteAddress;
  rdma!.rkey = rkey;
  atomic!.remoteAddr = remoteAddress;
  atomic!.rkey = rkey;
}

/** Draws lengths in proportion to their weights. */
function sizesOf(sizes: readonly SizeShare[], random: Random): () => number {
  const sum = sizes.reduce((total, { weight }) => total + weight, 0);
  return () => {
    let drawn = random.below(sum);
    for (const { bytes, weight } of sizes) {
      if (drawn < weight) return bytes;
      drawn -= weight;
    }
    return sizes[0]!.bytes;
  };
}
