/**
 * One side of `move`: a ring of chunk slots and a page of words, both registered, and the connection to the peer.
 *
 *     sender's ring ═══ SEND, WRITE, READ ═══► receiver's ring
 *     signals: available ─► to the receiver, by the side that has a new chunk
 *              consumed  ─► to the sender, by the side that has consumed a chunk
 */

import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  IBV_TRANSPORT_IWARP,
  type IbvQp,
  type IbvSendWr,
  type IbvSge,
  postSend,
} from '../../userlib/index.ts';
import { CompletionPoller, WorkFailedError } from './completion-poller.ts';
import { type MoveArgs, type RingNote, wordsBytes } from './move-plan.ts';
import { type MoveSignals, NoticeSignals, WordSignals } from './move-signals.ts';
import { connectRc, createBuffer, createRcQps, openEndpoint, type RcBuffer } from './rc-endpoint.ts';

export class MoveRing {
  readonly program: ProgramContext;
  readonly args: MoveArgs;
  readonly qp: IbvQp;
  readonly ring: RcBuffer;
  readonly words: RcBuffer;
  readonly peer: RingNote;
  /** Completions of the send queue: one for each signalled request. */
  readonly sends: CompletionPoller;
  readonly receives: CompletionPoller;
  readonly signals: MoveSignals;
  /** Signalled requests that have completed, and words written, since the beginning. */
  completedCount = 0;
  #postedCount = 0;

  private constructor(
    program: ProgramContext,
    args: MoveArgs,
    parts: {
      readonly qp: IbvQp;
      readonly ring: RcBuffer;
      readonly words: RcBuffer;
      readonly peer: RingNote;
      readonly sends: CompletionPoller;
      readonly receives: CompletionPoller;
      readonly isIwarp: boolean;
    },
  ) {
    this.program = program;
    this.args = args;
    this.qp = parts.qp;
    this.ring = parts.ring;
    this.words = parts.words;
    this.peer = parts.peer;
    this.sends = parts.sends;
    this.receives = parts.receives;
    const { isIwarp, ...shared } = parts;
    const signalled = { program, window: args.window, ...shared, post: (wr: IbvSendWr) => this.post(wr) };
    this.signals = isIwarp ? new NoticeSignals(signalled) : new WordSignals(signalled);
  }

  static async connect(program: ProgramContext, args: MoveArgs): Promise<MoveRing> {
    const endpoint = await openEndpoint(program);
    const depth = 4 * args.window + 8;
    const sendCq = await createCq(endpoint.context, depth);
    const receiveCq = await createCq(endpoint.context, depth);
    const ring = await createBuffer(endpoint, args.window * args.chunkBytes);
    const words = await createBuffer(endpoint, wordsBytes);
    const [qp] = await createRcQps(
      endpoint,
      1,
      { send: sendCq, receive: receiveCq },
      {
        maxSendWr: depth,
        maxRecvWr: args.window,
        maxSendSge: 1,
        maxRecvSge: 1,
        maxInlineData: 64,
      },
    );
    const note: RingNote = {
      ringAddress: ring.address,
      ringKey: ring.region.rkey,
      wordsAddress: words.address,
      wordsKey: words.region.rkey,
    };
    const { note: peer } = await connectRc<RingNote>(endpoint, [qp!], 'move', note);
    return new MoveRing(program, args, {
      qp: qp!,
      ring,
      words,
      peer,
      sends: new CompletionPoller(sendCq),
      receives: new CompletionPoller(receiveCq),
      isIwarp: endpoint.context.device.transportType === IBV_TRANSPORT_IWARP,
    });
  }

  /** Address of the slot of chunk `index` on this side. */
  slotOf(index: number): number {
    return this.ring.address + (index % this.args.window) * this.args.chunkBytes;
  }

  /** Its address on the peer's side. */
  peerSlotOf(index: number): number {
    return this.peer.ringAddress + (index % this.args.window) * this.args.chunkBytes;
  }

  /** A list with the one buffer at `address` of the ring. */
  segments(address: number, length: number): IbvSge[] {
    return [{ addr: address, length, lkey: this.ring.region.lkey }];
  }

  /** Posts one signalled request; polls completions first if the queue is full. */
  async post(wr: IbvSendWr): Promise<void> {
    const depth = 4 * this.args.window;
    while (this.#postedCount - this.completedCount >= depth) await this.takeSends();
    const error = postSend(this.qp, wr);
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
    this.#postedCount++;
  }

  /** Waits for completions of the send queue. */
  async takeSends(): Promise<void> {
    this.completedCount += await this.sends.wait();
  }

  /** Waits until every request posted so far has completed. */
  async flush(): Promise<void> {
    while (this.completedCount < this.#postedCount) await this.takeSends();
  }

  /** Number of the next request to be posted: it has completed when {@link completedCount} exceeds it. */
  get nextRequest(): number {
    return this.#postedCount;
  }
}
