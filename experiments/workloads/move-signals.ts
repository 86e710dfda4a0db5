/**
 * How the two sides of `move` tell each other which chunks are available and which are consumed. Both kinds count from 0
 * in each leg.
 *
 *     words     an inline WRITE of the count into a word of the peer, which polls it: the peer has the chunk before it, since
 *               a responder executes requests in their order (IBTA 9.5)
 *     notices   over iWARP, a SEND of no bytes for each chunk: only what is delivered to a receive says that the WRITEs before
 *               it were placed (RFC 5040, 5.5)
 */
import type { ProgramContext } from '../../machine/index.ts';
import {
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvQp,
  type IbvSendWr,
  postRecv,
} from '../../userlib/index.ts';
import { type CompletionPoller, WorkFailedError } from './completion-poller.ts';
import { type RingNote, wordOffsets } from './move-plan.ts';
import type { RcBuffer } from './rc-endpoint.ts';

export type MoveWord = 'available' | 'consumed';

export interface MoveSignals {
  /**
   * Whether each SEND needs a signal that its slot is free, because the peer's card ends the connection for a message that
   * finds no receive (RFC 5040, 7.2) where InfiniBand's has it sent again. Then the last signal of a leg must also be
   * awaited: it would count for the next one.
   */
  readonly areNotices: boolean;
  /** Begins a leg, while nothing of an earlier one is under way. @param count signals that will arrive */
  begin(count: number): void;
  /** Tells the peer a count, after all earlier posts. */
  publish(word: MoveWord, value: number): Promise<void>;
  /** Waits until the peer has told at least this count. */
  until(word: MoveWord, value: number): Promise<void>;
  /** Whether it already has. */
  has(word: MoveWord, value: number): Promise<boolean>;
}

/** The parts of a ring that signals use. */
export interface SignalParts {
  readonly program: ProgramContext;
  readonly qp: IbvQp;
  readonly words: RcBuffer;
  readonly peer: RingNote;
  readonly receives: CompletionPoller;
  /** Chunks in flight. */
  readonly window: number;
  /** Posts one signalled request. */
  post(wr: IbvSendWr): Promise<void>;
}

const wordBytes = 8;

export class WordSignals implements MoveSignals {
  readonly areNotices = false;
  readonly #parts: SignalParts;

  constructor(parts: SignalParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { program, words } = this.#parts;
    program.memory.writeUint64(words.address + wordOffsets.available, 0n);
    program.memory.writeUint64(words.address + wordOffsets.consumed, 0n);
  }

  async publish(word: MoveWord, value: number): Promise<void> {
    const { program, words, peer, post } = this.#parts;
    const addr = words.address + wordOffsets.outgoing;
    program.memory.writeUint64(addr, BigInt(value));
    await post({
      wrId: 0,
      sgList: [{ addr, length: wordBytes, lkey: words.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_SIGNALED | IBV_SEND_INLINE,
      wr: { rdma: { remoteAddr: peer.wordsAddress + wordOffsets[word], rkey: peer.wordsKey } },
    });
  }

  async until(word: MoveWord, value: number): Promise<void> {
    const { program, words } = this.#parts;
    const { cpu, memory, verbs } = program;
    const physical = memory.process.physicalAddress(words.address + wordOffsets[word]);
    await cpu.settle();
    await cpu.spin(
      physical,
      verbs.costs.pollEmpty,
      () => memory.process.view.getUint32(physical, true) >= value,
    );
  }

  async has(word: MoveWord, value: number): Promise<boolean> {
    const { program, words } = this.#parts;
    await program.cpu.settle();
    return program.memory.readUint64(words.address + wordOffsets[word]) >= BigInt(value);
  }
}

export class NoticeSignals implements MoveSignals {
  readonly areNotices = true;
  readonly #parts: SignalParts;
  /** Notices of this leg: expected, with a receive, and arrived. */
  #expected = 0;
  #posted = 0;
  #arrived = 0;

  constructor(parts: SignalParts) {
    this.#parts = parts;
  }

  begin(count: number): void {
    this.#expected = count;
    this.#posted = 0;
    this.#arrived = 0;
    this.#postReceives();
  }

  async publish(): Promise<void> {
    await this.#parts.post({
      wrId: 0,
      sgList: [],
      numSge: 0,
      opcode: IBV_WR_SEND,
      sendFlags: IBV_SEND_SIGNALED,
    });
  }

  async until(_word: MoveWord, value: number): Promise<void> {
    while (this.#arrived < value) this.#take(await this.#parts.receives.wait());
  }

  async has(_word: MoveWord, value: number): Promise<boolean> {
    await this.#parts.program.cpu.settle();
    this.#take(this.#parts.receives.poll());
    return this.#arrived >= value;
  }

  #take(count: number): void {
    this.#arrived += count;
    this.#postReceives();
  }

  /** As many as can be under way: the peer is at most a window ahead of the notices taken here. */
  #postReceives(): void {
    const { qp, window } = this.#parts;
    while (this.#posted < Math.min(this.#expected, this.#arrived + window)) {
      const error = postRecv(qp, { wrId: this.#posted++, sgList: [], numSge: 0 });
      if (error !== 0) throw new WorkFailedError(`post_recv: error ${error}`);
    }
  }
}
