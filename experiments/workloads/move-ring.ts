/**
 * One side of `move`: a ring of chunk slots and a page of words, both registered, and the connection to the peer.
 *
 *     sender's ring ═══ SEND, WRITE, READ ═══► receiver's ring
 *     words: available ◄─ inline WRITE ─ the side that has a new chunk
 *            consumed  ◄─ inline WRITE ─ the side that has consumed a chunk
 */

import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  type IbvSendWr,
  type IbvSge,
  postSend,
} from '../../userlib/index.ts';
import { CompletionPoller, WorkFailedError } from './completion-poller.ts';
import { type MoveArgs, type RingNote, wordOffsets, wordsBytes } from './move-plan.ts';
import { connectRc, createBuffer, createRcQps, openEndpoint, type RcBuffer } from './rc-endpoint.ts';

const wordBytes = 8;

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

  /** Writes a counter into a word of the peer, after all earlier posts. */
  async publish(word: 'available' | 'consumed', value: number): Promise<void> {
    const { address } = this.words;
    this.program.memory.writeUint64(address + wordOffsets.outgoing, BigInt(value));
    await this.post({
      wrId: 0,
      sgList: [{ addr: address + wordOffsets.outgoing, length: wordBytes, lkey: this.words.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_SIGNALED | IBV_SEND_INLINE,
      wr: { rdma: { remoteAddr: this.peer.wordsAddress + wordOffsets[word], rkey: this.peer.wordsKey } },
    });
  }

  /** Spins until the peer has written at least `value` into a word of this side. */
  async until(word: 'available' | 'consumed', value: number): Promise<void> {
    const { cpu, memory, verbs } = this.program;
    const physical = memory.process.physicalAddress(this.words.address + wordOffsets[word]);
    await cpu.settle();
    await cpu.spin(
      physical,
      verbs.costs.pollEmpty,
      () => memory.process.view.getUint32(physical, true) >= value,
    );
  }

  /** Resets both words of this side to 0 between two ways; no peer writes them then. */
  clearWords(): void {
    const { memory } = this.program;
    memory.writeUint64(this.words.address + wordOffsets.available, 0n);
    memory.writeUint64(this.words.address + wordOffsets.consumed, 0n);
  }
}
