/** One end of a connection with a stock program in a guest: a QP, its CQ, and one buffer with all rights, whose parts its messages use. */
import type { ProgramContext } from '../../machine/index.ts';
import {
  allocPd,
  createCq,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  type IbvMr,
  type IbvSendWr,
  postRecv,
  postSend,
  type RdmaCmId,
  rdmaCreateQp,
  regMr,
} from '../../userlib/index.ts';
import { CompletionPoller, checkPosted } from './completion-poller.ts';
import { allAccess } from './rc-states.ts';

/** Requests in flight at most. */
const sendDepth = 16;

/** An operation, and the peer's memory for it if there is one. */
export type GuestRequest = Pick<IbvSendWr, 'opcode' | 'wr'>;

export interface GuestEndSize {
  readonly bufferBytes: number;
  /** Receives posted at most. */
  readonly receives: number;
}

export class GuestEnd {
  readonly id: RdmaCmId;
  readonly region: IbvMr;
  /** Address of the buffer. */
  readonly buffer: number;
  readonly #program: ProgramContext;
  readonly #completions: CompletionPoller;
  /** Completions that were polled and not waited for yet. */
  #receives = 0;
  #sends = 0;

  private constructor(
    program: ProgramContext,
    id: RdmaCmId,
    completions: CompletionPoller,
    region: IbvMr,
    buffer: number,
  ) {
    this.#program = program;
    this.id = id;
    this.#completions = completions;
    this.region = region;
    this.buffer = buffer;
  }

  /** Creates the QP of an ID whose address is resolved, or of a request. */
  static async create(program: ProgramContext, id: RdmaCmId, size: GuestEndSize): Promise<GuestEnd> {
    const { bufferBytes, receives } = size;
    const verbs = id.verbs!;
    const pd = await allocPd(verbs);
    const buffer = program.memory.map(bufferBytes);
    const region = await regMr(pd, buffer, bufferBytes, allAccess);
    const cq = await createCq(verbs, sendDepth + receives);
    const cap = { maxSendWr: sendDepth, maxRecvWr: receives, maxSendSge: 1, maxRecvSge: 1 };
    await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
    return new GuestEnd(program, id, new CompletionPoller(cq), region, buffer);
  }

  /** Posts a receive into a part of the buffer. */
  postReceive(address: number, lengthBytes: number): void {
    checkPosted(postRecv(this.id.qp!, { wrId: 1, ...this.#listOf(address, lengthBytes) }));
  }

  /** Waits until the next receive is complete. @throws WorkFailedError if the connection has ended */
  async received(): Promise<void> {
    while (this.#receives === 0) await this.#take();
    this.#receives--;
  }

  /** Carries out a request of a part of the buffer, and waits for its completion. @throws WorkFailedError if it fails */
  async carryOut(request: GuestRequest, address: number, lengthBytes: number): Promise<void> {
    await this.carryOutAll(request, address, lengthBytes, 1);
  }

  /** Carries out the same request `count` times, several in flight. @throws WorkFailedError if one is refused or fails */
  async carryOutAll(
    request: GuestRequest,
    address: number,
    lengthBytes: number,
    count: number,
  ): Promise<void> {
    await this.#program.cpu.settle();
    const list = this.#listOf(address, lengthBytes);
    for (let posted = 0, done = 0; done < count; done++) {
      for (; posted < Math.min(count, done + sendDepth); posted++)
        checkPosted(postSend(this.id.qp!, { wrId: 2, sendFlags: IBV_SEND_SIGNALED, ...request, ...list }));
      while (this.#sends === 0) await this.#take();
      this.#sends--;
    }
  }

  async #take(): Promise<void> {
    const count = await this.#completions.wait();
    for (const { opcode } of this.#completions.taken.slice(0, count)) {
      if (opcode === IBV_WC_RECV) this.#receives++;
      else this.#sends++;
    }
  }

  #listOf(addr: number, length: number) {
    return { sgList: [{ addr, length, lkey: this.region.lkey }], numSge: 1 };
  }
}
