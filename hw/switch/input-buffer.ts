/**
 * The packets of one virtual lane of an input of a switch, in the order of their arrival: only the first may leave, which blocks those after it even if their
 * outputs are free (head-of-line blocking). Credits bound the number of packets: see ReceiveBuffers.packetsMax.
 */
import { InvariantError, NEVER, type Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

const noOutputs: readonly number[] = [];

export class InputBuffer {
  readonly #capacity: number;
  readonly #offsets: Int32Array;
  readonly #readyPs: Float64Array;
  readonly #arrivedPs: Float64Array;
  /** Outputs of each packet, from port 1. */
  readonly #outputs: (readonly number[])[];
  /** Lane in which each packet leaves by each of these outputs. */
  readonly #lanes: (readonly number[])[];
  #first = 0;
  count = 0;
  /** Outputs that the first packet still has to leave by. */
  #remaining: readonly number[] = noOutputs;
  /** Since when the first packet is the first. */
  firstSincePs = 0;
  /** Greatest number of packets so far. */
  highWater = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#offsets = new Int32Array(capacity);
    this.#readyPs = new Float64Array(capacity);
    this.#arrivedPs = new Float64Array(capacity);
    this.#outputs = Array.from({ length: capacity }, () => []);
    this.#lanes = Array.from({ length: capacity }, () => []);
  }

  /**
   * Adds a packet.
   * @param offset of its record at the port
   * @param outputs at least one
   * @param lanes in which it leaves by each of them
   * @param arrivedPs when its first byte came
   * @param readyPs the earliest instant at which it may leave
   */
  add(
    offset: number,
    outputs: readonly number[],
    lanes: readonly number[],
    arrivedPs: Picoseconds,
    readyPs: Picoseconds,
  ): void {
    if (this.count === this.#capacity)
      throw new InvariantError('packets of an input', this.count, `fewer than ${this.#capacity}`);
    const at = (this.#first + this.count) % this.#capacity;
    this.#offsets[at] = offset;
    this.#readyPs[at] = readyPs;
    this.#arrivedPs[at] = arrivedPs;
    this.#outputs[at] = outputs;
    this.#lanes[at] = lanes;
    if (this.count++ === 0) {
      this.#remaining = outputs;
      this.firstSincePs = arrivedPs;
    }
    if (this.count > this.highWater) this.highWater = this.count;
  }

  /** Offset of the first packet's record. */
  get offset(): number {
    return this.#offsets[this.#first]!;
  }

  /** When the first packet may leave; NEVER without one. */
  get readyPs(): Picoseconds {
    return this.count === 0 ? NEVER : this.#readyPs[this.#first]!;
  }

  /** When the first byte of the first packet came. */
  get arrivedPs(): Picoseconds {
    return this.#arrivedPs[this.#first]!;
  }

  /** Since when the first packet waits: it is the first, and may leave. */
  get waitsSincePs(): Picoseconds {
    return Math.max(this.firstSincePs, this.#readyPs[this.#first]!);
  }

  /** Whether the first packet is to leave by this output. */
  wants(output: number): boolean {
    return this.count > 0 && this.#remaining.includes(output);
  }

  /**
   * Offsets of the first packets that all leave by this output alone, up to the first that does not.
   * @param lane in which they leave; left out: any
   */
  firstFor(output: number, lane?: number): readonly number[] {
    const offsets: number[] = [];
    for (let index = 0; index < this.count; index++) {
      const at = (this.#first + index) % this.#capacity;
      const outputs = index === 0 ? this.#remaining : this.#outputs[at]!;
      const isFor = outputs.length === 1 && outputs[0] === output;
      if (!isFor || (lane !== undefined && this.#lanes[at]![this.#outputs[at]!.indexOf(output)] !== lane))
        break;
      offsets.push(this.#offsets[at]!);
    }
    return offsets;
  }

  /** Lane in which the first packet leaves by one of its outputs. */
  laneTowards(output: number): number {
    return this.#lanes[this.#first]![this.#outputs[this.#first]!.indexOf(output)]!;
  }

  /** Outputs that the first packet still has to leave by. */
  get remaining(): readonly number[] {
    return this.#remaining;
  }

  /**
   * The first packet leaves by an output, or is dropped there. Returns true if that was its last one: it is no longer
   * the first.
   */
  leftBy(output: number, nowPs: Picoseconds): boolean {
    this.#remaining = this.#remaining.filter((other) => other !== output);
    if (this.#remaining.length > 0) return false;
    this.#removeFirst(nowPs);
    return true;
  }

  /** The first packet is gone: the next one is the first. */
  #removeFirst(nowPs: Picoseconds): void {
    this.firstSincePs = nowPs;
    this.#first = (this.#first + 1) % this.#capacity;
    this.count--;
    this.#remaining = this.count === 0 ? noOutputs : this.#outputs[this.#first]!;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.firstSincePs -= ps;
    for (const instants of [this.#readyPs, this.#arrivedPs])
      for (let index = 0; index < this.#capacity; index++) instants[index]! -= ps;
  }

  inspect(): BlockState {
    return { packets: this.count };
  }
}
