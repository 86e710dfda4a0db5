/**
 * Messages between two processes over one reliable connection: how an application written for send and receive is
 * mapped onto RDMA.
 *
 *     eager        copy ─► SEND into a posted buffer ─► copy
 *     rendezvous   ADVERTISE ─► READ of the sender's buffer ─► FINISHED
 *       by WRITE   ADVERTISE ─► CLEAR ─► WRITE into the receiver's buffer, then FINISHED
 *
 * Promises: messages are matched with receives in the order of sends and of receives; a receive never overruns its buffer; the
 * peer's posted buffers never run out. An unreceived message waits in the buffer in which it arrived, so the peer can be ahead
 * by at most {@link MessagingConfig.bufferCount} messages. One thread uses a channel; each of its waits advances all sends and
 * receives, also those of other channels with the same completions.
 */
import { assertRange } from '../../base/index.ts';
import { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE } from '../constants.ts';
import { isAddress } from '../numbers.ts';
import type { IbvPd, IbvQp, IbvWc } from '../objects.ts';
import { VerbsError } from '../verbs-error.ts';
import { MessageCompletions, type Waiting } from './message-completions.ts';
import { MessageError } from './message-error.ts';
import { MessageKind } from './message-header.ts';
import { linkCompletionsOf, MessageLink } from './message-link.ts';
import type { MessagingConfig } from './parameters.ts';
import { type CachedRegion, RegistrationCache } from './registration-cache.ts';
import { copyUserMemory } from './user-copy.ts';

/** The longest message a QP can carry (interface sheet, max_msg_sz). */
export const messageBytesMax = 2 ** 30;

/** @throws MessageError EINVAL */
function checkRange(address: number, lengthBytes: number): void {
  if (isAddress(address) && isAddress(lengthBytes) && isAddress(address + lengthBytes)) return;
  throw new MessageError('EINVAL', `${lengthBytes} bytes at ${address}`);
}

/** A send or a receive that was started. */
export class MessageRequest {
  readonly address: number;
  /** Size of a receive's buffer in bytes; for a send: its length. */
  readonly capacityBytes: number;
  isDone = false;
  /** Bytes received or sent, once done. */
  lengthBytes = 0;
  error: MessageError | undefined;

  constructor(address: number, capacityBytes: number) {
    this.address = address;
    this.capacityBytes = capacityBytes;
  }

  finish(lengthBytes: number, error?: MessageError): void {
    this.isDone = true;
    this.lengthBytes = lengthBytes;
    this.error = error;
  }
}

/** The payload of an unfinished rendezvous, on either side. */
interface Rendezvous {
  readonly request: MessageRequest;
  readonly cached: CachedRegion;
}

/** Messages by protocol, sent and received. */
export interface MessageStatistics {
  eager: number;
  rendezvous: number;
  received: number;
}

export class MessageChannel {
  /** Messages of more bytes than this use a rendezvous. */
  readonly cutoffBytes: number;
  readonly cache: RegistrationCache;
  readonly counts: MessageStatistics = { eager: 0, rendezvous: 0, received: 0 };
  readonly #completions: MessageCompletions;
  readonly #link: MessageLink;
  readonly #config: MessagingConfig;
  /** Receives that wait for a message, in order. */
  readonly #posted: MessageRequest[] = [];
  /** Slots of messages that wait for a receive, in order. */
  readonly #unmatched: number[] = [];
  /** Rendezvous that this side advertised, and those that it answers, by the advertiser's slot. */
  readonly #sending: (Rendezvous | undefined)[];
  readonly #receiving: (Rendezvous | undefined)[];

  private constructor(
    completions: MessageCompletions,
    link: MessageLink,
    cache: RegistrationCache,
    config: MessagingConfig,
  ) {
    this.#completions = completions;
    this.#link = link;
    this.#config = config;
    this.cache = cache;
    this.cutoffBytes = config.cutoffBytes;
    this.#sending = new Array<Rendezvous | undefined>(config.rendezvousCount).fill(undefined);
    this.#receiving = new Array<Rendezvous | undefined>(config.rendezvousCount).fill(undefined);
  }

  /**
   * Creates a channel with its QP in RESET. The caller connects {@link qp} and calls {@link postReceives} in INIT. Both sides
   * have the same configuration, with a cut-off already chosen.
   * @param waiting how its thread waits; or the completions of its other channels, see {@link completionsFor}
   * @throws VerbsError as the verbs do; ConfigurationError for a cut-off that is 0 or above eagerBytes
   */
  static async create(
    pd: IbvPd,
    config: MessagingConfig,
    waiting: Waiting | MessageCompletions = 'poll',
  ): Promise<MessageChannel> {
    const access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    assertRange('messaging.cutoffBytes', config.cutoffBytes, 1, config.eagerBytes);
    const isOwn = typeof waiting === 'string';
    const completions = isOwn ? await MessageChannel.completionsFor(pd, config, 1, waiting) : waiting;
    const limits = {
      regionCount: config.cachedRegions,
      pinnedBytes: config.cachedMib * 2 ** 20,
      lookupCycles: config.cacheLookup,
    };
    try {
      const link = await MessageLink.create(pd, config, completions);
      const channel = new MessageChannel(
        completions,
        link,
        new RegistrationCache(pd, access, limits),
        config,
      );
      completions.add(channel);
      return channel;
    } catch (error) {
      if (isOwn) await completions.destroy();
      throw error;
    }
  }

  /** Completions for `channelCount` channels of one thread; the last channel that closes releases them. */
  static completionsFor(
    { context }: IbvPd,
    config: MessagingConfig,
    channelCount: number,
    waiting: Waiting = 'poll',
  ): Promise<MessageCompletions> {
    return MessageCompletions.create(context, channelCount * linkCompletionsOf(config), waiting);
  }

  get qpNum(): number {
    return this.qp.qpNum;
  }

  /** A completion of this channel's QP. */
  take(completion: IbvWc): void {
    this.#link.take(completion);
  }

  get qp(): IbvQp {
    return this.#link.qp;
  }

  postReceives(): void {
    this.#link.postReceives();
  }

  /** Waits until all sent messages have arrived in the peer's buffers. */
  async flush(): Promise<void> {
    await this.handle();
    while (!this.isFlushed) await this.#progress();
  }

  /** Whether all sent messages have arrived. */
  get isFlushed(): boolean {
    return this.#link.isIdle && this.#sending.every((rendezvous) => rendezvous === undefined);
  }

  /** Releases everything. Messages in flight are lost: both sides {@link flush}, tell each other, then close. */
  async close(): Promise<void> {
    await this.#link.destroy();
    this.#completions.remove(this);
    if (this.#completions.isUnused) await this.#completions.destroy();
    for (const table of [this.#sending, this.#receiving])
      for (const rendezvous of table)
        if (rendezvous !== undefined) await this.cache.release(rendezvous.cached);
    await this.cache.close();
  }

  /** Sends a message; the buffer may be used again when it returns. @throws MessageError EINVAL, EMSGSIZE, ECONNRESET, VerbsError */
  async send(address: number, lengthBytes: number): Promise<void> {
    await this.wait(await this.startSend(address, lengthBytes));
  }

  /** Receives the next message. @returns its length; @throws MessageError EINVAL, EMSGSIZE, ECONNRESET */
  async receive(address: number, capacityBytes: number): Promise<number> {
    return this.wait(await this.startReceive(address, capacityBytes));
  }

  /** Begins to send; an eager message is done at once, if room is available. */
  async startSend(address: number, lengthBytes: number): Promise<MessageRequest> {
    checkRange(address, lengthBytes);
    if (lengthBytes > messageBytesMax)
      throw new MessageError('EMSGSIZE', `${lengthBytes} bytes, at most ${messageBytesMax}`);
    const request = new MessageRequest(address, lengthBytes);
    while (!this.#link.hasRoom) await this.#progress();
    if (lengthBytes <= this.cutoffBytes) {
      this.counts.eager++;
      this.#link.send({ kind: MessageKind.EAGER, payloadBytes: lengthBytes }, address);
      request.finish(lengthBytes);
    } else {
      await this.#advertise(request);
    }
    return request;
  }

  /** Posts a buffer for a later message. @throws MessageError ENOBUFS if as many receives wait as messages can arrive */
  async startReceive(address: number, capacityBytes: number): Promise<MessageRequest> {
    checkRange(address, capacityBytes);
    if (this.#posted.length >= this.#config.bufferCount)
      throw new MessageError('ENOBUFS', `${this.#posted.length} receives are waiting`);
    const request = new MessageRequest(address, capacityBytes);
    this.#posted.push(request);
    await this.handle();
    return request;
  }

  /** Waits until a request is done. @returns the message's length */
  async wait(request: MessageRequest): Promise<number> {
    while (!request.isDone) await this.#progress();
    if (request.error !== undefined) throw request.error;
    return request.lengthBytes;
  }

  async #advertise(request: MessageRequest): Promise<void> {
    while (!this.#sending.includes(undefined)) await this.#progress();
    const { address, capacityBytes } = request;
    const cached = await this.cache.acquire(address, capacityBytes);
    while (!this.#link.hasRoom) await this.#progress();
    const rendezvous = this.#sending.indexOf(undefined);
    this.#sending[rendezvous] = { request, cached };
    this.counts.rendezvous++;
    const { rkey } = cached.region;
    this.#link.send({
      kind: MessageKind.ADVERTISE,
      rendezvous,
      payloadBytes: capacityBytes,
      address,
      rkey,
    });
  }

  /** Handles present events, or waits for the next one. */
  async #progress(): Promise<void> {
    if (await this.#completions.handleAll()) return;
    await this.#link.wait();
    await this.#completions.handleAll();
  }

  /** Handles everything that has completed. @returns whether there was anything */
  async handle(): Promise<boolean> {
    const { moved, arrivals } = this.#link;
    for (let didWork = false; ; didWork = true) {
      if (moved.length > 0) await this.#payloadMoved(moved.shift()!);
      else if (arrivals.length > 0) await this.#arrived(arrivals.shift()!);
      else if (this.#unmatched.length > 0 && this.#posted.length > 0) await this.#match();
      else if (this.#link.owesCredit) this.#link.send({ kind: MessageKind.CREDIT });
      else return didWork;
    }
  }

  async #arrived(slot: number): Promise<void> {
    const header = this.#link.headerOf(slot);
    switch (header.kind) {
      case MessageKind.EAGER:
      case MessageKind.ADVERTISE:
        this.#unmatched.push(slot);
        return;
      case MessageKind.CLEAR:
        this.#link.repost(slot, false);
        await this.#write(header.rendezvous, header.address, header.rkey);
        return;
      case MessageKind.FINISHED:
        this.#link.repost(slot, false);
        await this.#finished(header.rendezvous, header.status);
        return;
      default:
        this.#link.repost(slot, true);
    }
  }

  /** The oldest message and the oldest receive. */
  async #match(): Promise<void> {
    const slot = this.#unmatched.shift()!;
    const request = this.#posted.shift()!;
    const { kind, rendezvous, payloadBytes, address, rkey } = this.#link.headerOf(slot);
    const fits = payloadBytes <= request.capacityBytes;
    const failure =
      kind === MessageKind.EAGER && fits ? this.#copyOut(slot, request, payloadBytes) : undefined;
    this.#link.repost(slot, true);
    this.counts.received++;
    if (!fits) {
      request.finish(0, new MessageError('EMSGSIZE', `${payloadBytes} bytes for ${request.capacityBytes}`));
      if (kind === MessageKind.ADVERTISE) await this.#answer(MessageKind.FINISHED, rendezvous, 0, 0, 1);
    } else if (kind === MessageKind.EAGER) {
      request.finish(failure === undefined ? payloadBytes : 0, failure);
    } else {
      await this.#take(request, rendezvous, payloadBytes, address, rkey);
    }
  }

  /** Copies an eager message into the receive's buffer. @returns the reason if that is impossible: the message is then lost */
  #copyOut(slot: number, request: MessageRequest, lengthBytes: number): MessageError | undefined {
    const { platform, cpu } = this.#link;
    try {
      copyUserMemory(platform, cpu, this.#link.payloadAddress(slot), request.address, lengthBytes);
      return undefined;
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      return new MessageError('EINVAL', error.message);
    }
  }

  /** Receiver: reads the advertised payload, or tells the sender where to write it. */
  async #take(
    request: MessageRequest,
    rendezvous: number,
    payloadBytes: number,
    remoteAddr: number,
    remoteKey: number,
  ): Promise<void> {
    const cached = await this.#acquireForReceive(request, payloadBytes);
    if (cached === undefined) {
      await this.#answer(MessageKind.FINISHED, rendezvous, 0, 0, 1);
      return;
    }
    request.lengthBytes = payloadBytes;
    this.#receiving[rendezvous] = { request, cached };
    const { lkey, rkey } = cached.region;
    if (this.#config.rendezvousBy === 'write') {
      await this.#answer(MessageKind.CLEAR, rendezvous, request.address, rkey);
      return;
    }
    const local = { addr: request.address, length: payloadBytes, lkey };
    this.#link.move('read', rendezvous, local, { remoteAddr, rkey: remoteKey });
  }

  async #acquireForReceive(request: MessageRequest, payloadBytes: number): Promise<CachedRegion | undefined> {
    try {
      return await this.cache.acquire(request.address, payloadBytes);
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      request.finish(0, new MessageError(error.code === 'ENOMEM' ? 'ENOMEM' : 'EINVAL', error.message));
      return undefined;
    }
  }

  /** Sender: writes the payload where the receiver wants it; FINISHED follows on the same QP. */
  async #write(rendezvous: number, remoteAddr: number, rkey: number): Promise<void> {
    const { request, cached } = this.#sending[rendezvous]!;
    const local = { addr: request.address, length: request.capacityBytes, lkey: cached.region.lkey };
    this.#link.move('write', rendezvous, local, { remoteAddr, rkey });
    await this.#answer(MessageKind.FINISHED, rendezvous);
  }

  /** The READ (at the receiver) or the WRITE (at the sender) has completed. */
  async #payloadMoved(rendezvous: number): Promise<void> {
    if (this.#config.rendezvousBy === 'write') {
      await this.#end(this.#sending, rendezvous);
    } else {
      await this.#answer(MessageKind.FINISHED, rendezvous);
      await this.#end(this.#receiving, rendezvous);
    }
  }

  /** The other side reports that the payload has arrived, or that it had no room for it. */
  async #finished(rendezvous: number, status: number): Promise<void> {
    const isSender = this.#config.rendezvousBy === 'read' || status !== 0;
    await this.#end(isSender ? this.#sending : this.#receiving, rendezvous);
  }

  async #end(table: (Rendezvous | undefined)[], rendezvous: number): Promise<void> {
    const { request, cached } = table[rendezvous]!;
    await this.cache.release(cached);
    table[rendezvous] = undefined;
    request.finish(request.lengthBytes || request.capacityBytes);
  }

  async #answer(kind: number, rendezvous: number, address = 0, rkey = 0, status = 0): Promise<void> {
    while (!this.#link.canAnswer) await this.#link.wait();
    this.#link.send({ kind, rendezvous, address, rkey, status });
  }
}
