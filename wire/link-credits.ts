/**
 * Link-level flow control of one virtual lane: the receiver's buffer is promised to the sender in blocks of 64 bytes, as an
 * absolute limit that wraps, so that a lost flow control packet does no harm.
 *
 *     sender: total blocks sent (FCTBS)          ──packets──▶   receiver: adjusted blocks received (ABR), free blocks
 *             may send while FCCL - FCTBS allows  ◀──FCCL───    FCCL = ABR + free blocks
 *
 * Source: InfiniBand Architecture Specification, volume 1, 7.9.4. All counts are modulo 4096; a difference above 2048 counts as
 * negative, which bounds a buffer to 2048 blocks. A packet uses its bytes from LRH to VCRC, rounded up.
 */
import type { Picoseconds } from '../base/index.ts';
import type { BlockState } from '../sim/index.ts';

const BLOCK_SHIFT = 6;
export const CREDIT_BLOCK_BYTES = 1 << BLOCK_SHIFT;
export const BUFFER_BLOCKS_MAX = 2048;
const COUNT_MASK = 0xfff;

export const blocksOf = (packetBytes: number): number =>
  (packetBytes + CREDIT_BLOCK_BYTES - 1) >> BLOCK_SHIFT;

/** Used instead of an instant: before all instants. */
const LONG_AGO = Number.NEGATIVE_INFINITY;

export class CreditSender {
  /** FCTBS: blocks sent since the link came up. */
  totalBlocksSent = 0;
  #limit = 0;
  #newLimit = 0;
  /** Instant at which the last limit arrived. */
  newLimitPs = LONG_AGO;

  /** Whether `blocks` may be sent. A limit counts from the instant after its arrival. */
  canSend(blocks: number, nowPs: Picoseconds): boolean {
    if (nowPs > this.newLimitPs) this.#limit = this.#newLimit;
    return ((this.#limit - this.totalBlocksSent - blocks) & COUNT_MASK) <= BUFFER_BLOCKS_MAX;
  }

  sent(blocks: number): void {
    this.totalBlocksSent = (this.totalBlocksSent + blocks) & COUNT_MASK;
  }

  limitReceived(creditLimit: number, nowPs: Picoseconds): void {
    if (nowPs > this.newLimitPs) this.#limit = this.#newLimit;
    this.#newLimit = creditLimit;
    this.newLimitPs = nowPs;
  }

  inspect(): BlockState {
    return { totalBlocksSent: this.totalBlocksSent, limit: this.#newLimit };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.newLimitPs -= ps;
  }

  /** Handles a link that came up: no block is sent or promised. */
  reset(): void {
    this.totalBlocksSent = 0;
    this.#limit = 0;
    this.#newLimit = 0;
    this.newLimitPs = LONG_AGO;
  }
}

export class CreditReceiver {
  readonly bufferBlocks: number;
  readonly #returnBlocks: number;
  freeBlocks: number;
  /** Fewest free blocks so far. */
  lowWater: number;
  #adjustedBlocksReceived = 0;
  #unreturnedBlocks = 0;

  /** @param returnBlocks number of freed blocks that causes a flow control packet */
  constructor(bufferBlocks: number, returnBlocks: number) {
    this.bufferBlocks = bufferBlocks;
    this.#returnBlocks = returnBlocks;
    this.freeBlocks = bufferBlocks;
    this.lowWater = bufferBlocks;
  }

  /** A packet uses its blocks. Returns false if they are not free: the sender broke the promise. */
  received(blocks: number): boolean {
    this.#adjustedBlocksReceived = (this.#adjustedBlocksReceived + blocks) & COUNT_MASK;
    if (blocks > this.freeBlocks) return false;
    this.freeBlocks -= blocks;
    if (this.freeBlocks < this.lowWater) this.lowWater = this.freeBlocks;
    return true;
  }

  /** Releases blocks. Returns true if enough are free for a flow control packet. */
  freed(blocks: number): boolean {
    this.freeBlocks += blocks;
    this.#unreturnedBlocks += blocks;
    return this.#unreturnedBlocks >= this.#returnBlocks;
  }

  /** Handles the sender's count from its flow control packet. Returns false if it differs from this end's: packets were lost in between. */
  synchronize(totalBlocksSent: number): boolean {
    const isEqual = this.#adjustedBlocksReceived === totalBlocksSent;
    this.#adjustedBlocksReceived = totalBlocksSent;
    return isEqual;
  }

  /** FCCL to be sent now. */
  takeCreditLimit(): number {
    this.#unreturnedBlocks = 0;
    return (this.#adjustedBlocksReceived + this.freeBlocks) & COUNT_MASK;
  }

  /** Does not record which blocks were advertised to the sender: that follows in the port's next turn. */
  inspect(): BlockState {
    return { freeBlocks: this.freeBlocks, adjustedBlocksReceived: this.#adjustedBlocksReceived };
  }

  /** Handles a link that came up: held blocks stay held. */
  reset(): void {
    this.#adjustedBlocksReceived = 0;
    this.#unreturnedBlocks = 0;
  }
}
