/**
 * The connection under a channel: one QP, the registered buffers, and the credits that keep the peer's
 * posted buffers from running out.
 *
 *     receive slots = data (bufferCount) + 1 for CREDIT + 2 for each rendezvous (CLEAR, FINISHED)
 *
 * A data message (EAGER, ADVERTISE) needs a credit and leaves the last one for CREDIT; answers need none, because at
 * most two for each rendezvous are under way. What arrives is collected here and handled by the channel.
 */
import {
  IBV_QPT_RC,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  wcStatusStr,
} from '../constants.ts';
import type { IbvPd, IbvQp, IbvWc } from '../objects.ts';
import type { VerbsCpu, VerbsPlatform } from '../platform.ts';
import { postRecv } from '../post-recv.ts';
import { postSend } from '../post-send.ts';
import { createQp, destroyQp } from '../qp.ts';
import { MessageBuffers } from './message-buffers.ts';
import type { MessageCompletions } from './message-completions.ts';
import { MessageError } from './message-error.ts';
import { MessageKind, messageHeader, messageHeaderBytes } from './message-header.ts';
import type { MessagingConfig } from './parameters.ts';
import { copyUserMemory } from './user-copy.ts';

/** Fields of a header besides credits. */
export interface HeaderFields {
  readonly kind: number;
  readonly status?: number;
  readonly rendezvous?: number;
  readonly payloadBytes?: number;
  readonly address?: number;
  readonly rkey?: number;
}

/** Work request IDs: a kind in the upper bits, a slot or a rendezvous in the lower bits. */
const ID_SEND = 0;
const ID_RECEIVE = 1;
const ID_MOVE = 2;
const ID_KIND_SHIFT = 16;
const ID_SLOT_MASK = 0xffff;

const fields = messageHeader.fields;

/** Receive slots of a link, and as many send slots. */
const slotsOf = ({ bufferCount, rendezvousCount }: MessagingConfig): number =>
  bufferCount + 1 + 2 * rendezvousCount;

/** Completions that a link can have at once. */
export const linkCompletionsOf = (config: MessagingConfig): number =>
  2 * slotsOf(config) + 2 * config.rendezvousCount;

export class MessageLink {
  readonly qp: IbvQp;
  readonly cpu: VerbsCpu;
  readonly platform: VerbsPlatform;
  /** Receive slots with an unhandled message, in order of arrival. */
  readonly arrivals: number[] = [];
  /** Rendezvous whose READ or WRITE has completed. */
  readonly moved: number[] = [];
  /** Data messages, and one CREDIT, for which the peer has room. */
  credits: number;
  /** Freed buffers that were not announced to the peer yet. */
  owed = 0;

  readonly #completions: MessageCompletions;
  readonly #buffers: MessageBuffers;
  readonly #overheadCycles: number;
  readonly #inlineBytes: number;
  readonly #grantAt: number;

  private constructor(
    qp: IbvQp,
    completions: MessageCompletions,
    buffers: MessageBuffers,
    config: MessagingConfig,
  ) {
    this.qp = qp;
    this.cpu = qp.cpu;
    this.platform = qp.context.platform;
    this.#completions = completions;
    this.#buffers = buffers;
    this.#overheadCycles = config.messageOverhead;
    this.#inlineBytes = config.inlineBytes;
    this.credits = config.bufferCount + 1;
    // At 1, a CREDIT, which uses a credit itself, would be answered by another CREDIT indefinitely.
    this.#grantAt = Math.max(2, Math.floor((config.bufferCount + 1) / 2));
  }

  /** Creates everything; the QP is in RESET. @throws VerbsError as the verbs do, with everything released */
  static async create(
    pd: IbvPd,
    config: MessagingConfig,
    completions: MessageCompletions,
  ): Promise<MessageLink> {
    const slots = slotsOf(config);
    const buffers = await MessageBuffers.create(pd, config.eagerBytes, slots, slots);
    try {
      const cap = {
        maxSendWr: slots + 2 * config.rendezvousCount,
        maxRecvWr: slots,
        maxSendSge: 1,
        maxRecvSge: 1,
        maxInlineData: config.inlineBytes,
      };
      const { cq } = completions;
      const qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
      return new MessageLink(qp, completions, buffers, config);
    } catch (error) {
      await buffers.destroy();
      throw error;
    }
  }

  async destroy(): Promise<void> {
    await destroyQp(this.qp);
    await this.#buffers.destroy();
  }

  /** Posts all receive slots: once, when the QP has entered INIT. */
  postReceives(): void {
    for (let slot = 0; slot < this.#buffers.receiveCount; slot++) this.#postReceive(slot);
  }

  /** Whether a data message can go now. */
  get hasRoom(): boolean {
    return this.credits > 1 && this.#buffers.freeCount > 0;
  }

  /** Whether an answer can be sent now; if not, waiting for completions helps. */
  get canAnswer(): boolean {
    return this.#buffers.freeCount > 0;
  }

  /** Whether every sent message has completed. */
  get isIdle(): boolean {
    return this.#buffers.freeCount === this.#buffers.sendCount;
  }

  /** Whether the peer should receive its credits in a separate message. */
  get owesCredit(): boolean {
    return this.owed >= this.#grantAt && this.credits > 0 && this.#buffers.freeCount > 0;
  }

  /**
   * Sends a header, followed by the payload at `from` if it is EAGER. The caller has checked for room.
   * @throws VerbsError EINVAL if the payload is not mapped: nothing is sent, and slot, credit and owed credits are unchanged
   */
  send(header: HeaderFields, from = 0): void {
    const { kind, payloadBytes = 0 } = header;
    const slot = this.#buffers.take();
    const address = this.#buffers.sendAddress(slot);
    this.cpu.charge('application', this.#overheadCycles);
    const eagerBytes = kind === MessageKind.EAGER ? payloadBytes : 0;
    if (eagerBytes > 0) this.#copyPayload(slot, from, eagerBytes);
    if (kind !== MessageKind.CLEAR && kind !== MessageKind.FINISHED) this.credits--;
    this.#storeHeader(address, header);
    const length = messageHeaderBytes + eagerBytes;
    this.#post({
      wrId: (ID_SEND << ID_KIND_SHIFT) | slot,
      sgList: [{ addr: address, length, lkey: this.#buffers.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_SEND,
      sendFlags: length <= this.#inlineBytes ? IBV_SEND_SIGNALED | IBV_SEND_INLINE : IBV_SEND_SIGNALED,
    });
  }

  /** Moves a payload by READ or WRITE; {@link moved} names the rendezvous when it is done. */
  move(
    by: 'read' | 'write',
    rendezvous: number,
    local: { readonly addr: number; readonly length: number; readonly lkey: number },
    remote: { readonly remoteAddr: number; readonly rkey: number },
  ): void {
    this.#post({
      wrId: (ID_MOVE << ID_KIND_SHIFT) | rendezvous,
      sgList: [local],
      numSge: local.length === 0 ? 0 : 1,
      opcode: by === 'read' ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { rdma: remote },
    });
  }

  /** The header in a receive slot. */
  headerOf(slot: number): Required<HeaderFields> {
    const { view } = this.platform.memory;
    const at = this.platform.memory.physicalAddress(this.#buffers.receiveAddress(slot));
    return {
      kind: fields.kind.get(view, at),
      status: fields.status.get(view, at),
      rendezvous: fields.rendezvous.get(view, at),
      payloadBytes: fields.payloadBytes.get(view, at),
      address: fields.address.getNumber(view, at),
      rkey: fields.rkey.get(view, at),
    };
  }

  /** User address of the payload in a receive slot. */
  payloadAddress(slot: number): number {
    return this.#buffers.receiveAddress(slot) + messageHeaderBytes;
  }

  /** Makes a receive slot free again. @param isOwed whether its message used a credit */
  repost(slot: number, isOwed: boolean): void {
    if (isOwed) this.owed++;
    this.#postReceive(slot);
  }

  /** Waits for at least one completion of any channel. @throws MessageError ECONNRESET if a connection of theirs has failed */
  async wait(): Promise<void> {
    this.#checkAlive();
    await this.#completions.wait();
    this.#checkAlive();
  }

  #checkAlive(): void {
    const { failure } = this.#completions;
    if (failure !== undefined) throw failure;
  }

  #fail(cause: string): void {
    this.#completions.failure ??= new MessageError('ECONNRESET', cause);
  }

  /** Notes a completion of this QP. */
  take({ wrId, status }: IbvWc): void {
    if (status !== IBV_WC_SUCCESS) {
      this.#fail(wcStatusStr(status));
      return;
    }
    const slot = wrId & ID_SLOT_MASK;
    switch (wrId >>> ID_KIND_SHIFT) {
      case ID_SEND:
        this.#buffers.give(slot);
        return;
      case ID_MOVE:
        this.moved.push(slot);
        return;
      case ID_RECEIVE: {
        const at = this.platform.memory.physicalAddress(this.#buffers.receiveAddress(slot));
        this.credits += fields.credits.get(this.platform.memory.view, at);
        this.cpu.charge('application', this.#overheadCycles);
        this.arrivals.push(slot);
      }
    }
  }

  #copyPayload(slot: number, from: number, lengthBytes: number): void {
    const to = this.#buffers.sendAddress(slot) + messageHeaderBytes;
    try {
      copyUserMemory(this.platform, this.cpu, from, to, lengthBytes);
    } catch (error) {
      this.#buffers.give(slot);
      throw error;
    }
  }

  /** Registered memory stays where it is, and only the device reads it, after the post. */
  #storeHeader(address: number, header: HeaderFields): void {
    const { bytes, view } = this.platform.memory;
    const at = this.platform.memory.physicalAddress(address);
    bytes.fill(0, at, at + messageHeaderBytes);
    fields.kind.set(view, at, header.kind);
    fields.status.set(view, at, header.status ?? 0);
    fields.credits.set(view, at, this.owed);
    fields.rendezvous.set(view, at, header.rendezvous ?? 0);
    fields.payloadBytes.set(view, at, header.payloadBytes ?? 0);
    fields.address.setNumber(view, at, header.address ?? 0);
    fields.rkey.set(view, at, header.rkey ?? 0);
    this.owed = 0;
  }

  #postReceive(slot: number): void {
    const error = postRecv(this.qp, {
      wrId: (ID_RECEIVE << ID_KIND_SHIFT) | slot,
      sgList: [
        {
          addr: this.#buffers.receiveAddress(slot),
          length: this.#buffers.slotBytes,
          lkey: this.#buffers.region.lkey,
        },
      ],
      numSge: 1,
    });
    if (error !== 0) this.#fail(`ibv_post_recv: errno ${error}`);
  }

  #post(wr: Parameters<typeof postSend>[1]): void {
    const error = postSend(this.qp, wr);
    if (error !== 0) this.#fail(`ibv_post_send: errno ${error}`);
  }
}
