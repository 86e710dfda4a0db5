/**
 * The long-lived registered buffers of a channel: one region, slots of a header and an eager payload each.
 *
 *     | receive slots, posted in advance | send slots, taken for each message |
 */
import { IBV_ACCESS_LOCAL_WRITE } from '../constants.ts';
import { deregMr, regMr } from '../memory.ts';
import type { IbvMr, IbvPd } from '../objects.ts';
import { VerbsError } from '../verbs-error.ts';
import { messageHeaderBytes } from './message-header.ts';

const lineBytes = 64;

export class MessageBuffers {
  readonly region: IbvMr;
  readonly slotBytes: number;
  readonly receiveCount: number;
  readonly sendCount: number;
  readonly #mappedBytes: number;
  /** Send slots that no work request uses. */
  readonly #free: number[];

  private constructor(
    region: IbvMr,
    mappedBytes: number,
    slotBytes: number,
    receiveCount: number,
    sendCount: number,
  ) {
    this.region = region;
    this.#mappedBytes = mappedBytes;
    this.slotBytes = slotBytes;
    this.receiveCount = receiveCount;
    this.sendCount = sendCount;
    this.#free = Array.from({ length: sendCount }, (_, index) => sendCount - 1 - index);
  }

  /** @throws VerbsError ENOMEM if the process has no more memory, or as ibv_reg_mr does */
  static async create(
    pd: IbvPd,
    eagerBytes: number,
    receiveCount: number,
    sendCount: number,
  ): Promise<MessageBuffers> {
    const { memory } = pd.context.platform;
    const slotBytes = Math.ceil((messageHeaderBytes + eagerBytes) / lineBytes) * lineBytes;
    const bytes = slotBytes * (receiveCount + sendCount);
    const address = memory.map(bytes);
    if (address < 0)
      throw new VerbsError('message', 'ENOMEM', `no memory for ${bytes} bytes of message buffers`);
    try {
      const region = await regMr(pd, address, bytes, IBV_ACCESS_LOCAL_WRITE);
      return new MessageBuffers(region, bytes, slotBytes, receiveCount, sendCount);
    } catch (error) {
      memory.unmap(address, bytes);
      throw error;
    }
  }

  async destroy(): Promise<void> {
    await deregMr(this.region);
    this.region.context.platform.memory.unmap(this.region.addr, this.#mappedBytes);
  }

  get freeCount(): number {
    return this.#free.length;
  }

  /** A free send slot. The caller has checked {@link freeCount}. */
  take(): number {
    return this.#free.pop()!;
  }

  give(slot: number): void {
    this.#free.push(slot);
  }

  receiveAddress(slot: number): number {
    return this.region.addr + slot * this.slotBytes;
  }

  sendAddress(slot: number): number {
    return this.region.addr + (this.receiveCount + slot) * this.slotBytes;
  }
}
