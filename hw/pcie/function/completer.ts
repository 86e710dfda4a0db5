/**
 * Answers to non-posted requests, in order: a fifo of finished requests that wait for their latency and then for room at the
 * link port. A request's record is kept until its completion leaves, so its credits bound the fifo.
 *
 *     ingress ─► slot (request, status, data) ─► ready cycle reached ─► link port has room ─► completion, request consumed
 */
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount, type BlockState, Fifo, stallReasons } from '../../../sim/index.ts';
import {
  COMPLETION_FLOW,
  FLOAT_ADDRESS,
  MEMORY_READ,
  WORD_DESCRIPTOR,
  WORD_KIND,
  WORD_LENGTH,
} from '../tlp/index.ts';
import type { FunctionCore } from './function-core.ts';
import type { FunctionPort } from './function-port.ts';

const stalls = stallReasons('linkFifo');
const { linkFifo: STALL_LINK_FIFO } = stalls;

export class Completer {
  readonly account = new BlockAccount('pcieCompleter', stalls);

  readonly #port: FunctionPort;
  readonly #slotBytes: number;
  /** Answers, as many as requests may wait: each request holds its non-posted credit until it was answered. */
  readonly #waiting: Fifo;
  readonly #request: Float64Array;
  readonly #status: Uint8Array;
  readonly #lengthBytes: Int32Array;
  readonly #data: Uint8Array;
  readonly #views: readonly DataView[];
  #nextSlot = 0;

  constructor({ port, config }: Pick<FunctionCore, 'port' | 'config'>) {
    const { requestFifoDepth: depth, registerAccessBytesMax: slotBytes } = config;
    this.#port = port;
    this.#slotBytes = slotBytes;
    this.#waiting = new Fifo({
      name: 'reads to complete',
      capacity: depth,
      whenFull: 'the link gives no non-posted credits',
    });
    this.#request = new Float64Array(depth);
    this.#status = new Uint8Array(depth);
    this.#lengthBytes = new Int32Array(depth);
    this.#data = new Uint8Array(depth * slotBytes);
    this.#views = Array.from(
      { length: depth },
      (_, slot) => new DataView(this.#data.buffer, slot * slotBytes, slotBytes),
    );
  }

  /** Cycle from which the oldest answer may leave, or Infinity. */
  get readyCycle(): Cycles {
    return this.#waiting.headCycle;
  }

  get count(): number {
    return this.#waiting.count;
  }

  /** Zeroed room for the data of the next answer, to be filled before {@link answer}. */
  nextData(): DataView {
    const start = this.#nextSlot * this.#slotBytes;
    this.#data.fill(0, start, start + this.#slotBytes);
    return this.#views[this.#nextSlot]!;
  }

  /** Queues the answer to the request at `offset`, with `lengthBytes` of {@link nextData}, or none. */
  answer(offset: number, status: number, lengthBytes: number, readyCycle: Cycles): void {
    const slot = this.#nextSlot;
    this.#nextSlot = slot + 1 === this.#waiting.capacity ? 0 : slot + 1;
    this.#request[slot] = offset;
    this.#status[slot] = status;
    this.#lengthBytes[slot] = lengthBytes;
    this.#waiting.push(slot, readyCycle);
  }

  /**
   * Sends the oldest answer if it is ready and the link port has room.
   * @returns the cycle at which to call again; Infinity if no answer waits, or the link port has no room
   */
  send(cycle: Cycles): number {
    if (this.#waiting.headCycle > cycle) {
      this.account.rest(cycle);
      return this.#waiting.headCycle;
    }
    if (!this.#port.canSend(COMPLETION_FLOW)) {
      this.account.stall(cycle, STALL_LINK_FIFO);
      return Number.POSITIVE_INFINITY;
    }
    this.account.serve(cycle, 1);
    const slot = this.#waiting.pop();
    this.#sendSlot(slot);
    this.#port.consume(this.#request[slot]!);
    return Math.max(cycle + 1, this.#waiting.headCycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    this.#waiting.rebase(cycles);
  }

  /** Forgets all answers and releases their requests: the link went down. */
  reset(): void {
    while (!this.#waiting.isEmpty) this.#port.consume(this.#request[this.#waiting.pop()]!);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { answers: this.#waiting.count };
  }

  #sendSlot(slot: number): void {
    const offset = this.#request[slot]!;
    const { words, floats } = this.#port.reader;
    const word = offset >> 2;
    const completion = this.#port.completion.begin(words[word + WORD_DESCRIPTOR]!);
    const lengthBytes = this.#lengthBytes[slot]!;
    // Byte count and lower address of a completion without data: 4 and 0, or the request's (2.2.9, 2.3.2).
    const isRead = words[word + WORD_KIND] === MEMORY_READ;
    completion.status = this.#status[slot]!;
    if (lengthBytes > 0) {
      completion.source = this.#data;
      completion.sourceOffset = slot * this.#slotBytes;
      completion.lengthBytes = lengthBytes;
      completion.byteCount = lengthBytes;
    } else if (isRead) {
      completion.byteCount = words[word + WORD_LENGTH]!;
    }
    if (lengthBytes > 0 || isRead) completion.address = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    this.#port.sendCompletion();
  }
}
