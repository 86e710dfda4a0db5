/**
 * The host's side of the ledger of operations: from posting to the completion in the program's hands, for every
 * signalled send request, by opcode. Fed by the verbs library's tap; a record is numbers in typed arrays.
 */
import { Histogram } from '../../sim/index.ts';
import type { OperationTap } from '../../userlib/index.ts';
import type { OperationTimes } from './operation-times.ts';

const OPCODE_COUNT = 32;
const COUNTER_COUNT = 1 << 16;

export class OperationLog implements OperationTap {
  /** By WQE opcode. */
  readonly postedCount = new Float64Array(OPCODE_COUNT);
  readonly completedCount = new Float64Array(OPCODE_COUNT);
  /** From the CQE's departure at the device until the program took it. */
  readonly takenPs = new Float64Array(OPCODE_COUNT);
  readonly #latencies: (Histogram | undefined)[] = new Array(OPCODE_COUNT).fill(undefined);
  readonly #times: OperationTimes;
  /** Opcode of each request by counter, for each QP; made when a QP first posts. */
  readonly #opcodes = new Map<number, Uint8Array>();
  #lastQp = -1;
  #lastOpcodes: Uint8Array = new Uint8Array(0);

  constructor(times: OperationTimes) {
    this.#times = times;
  }

  posted(qpNumber: number, wqeCounter: number, opcode: number, localPs: number): void {
    this.#opcodesOf(qpNumber)[wqeCounter & (COUNTER_COUNT - 1)] = opcode;
    this.postedCount[opcode] = this.postedCount[opcode]! + 1;
    this.#times.notePosted(qpNumber, wqeCounter, localPs);
  }

  completed(qpNumber: number, wqeCounter: number, localPs: number): void {
    const opcode = this.#opcodesOf(qpNumber)[wqeCounter & (COUNTER_COUNT - 1)]!;
    this.completedCount[opcode] = this.completedCount[opcode]! + 1;
    const postedPs = this.#times.postedPs(qpNumber, wqeCounter);
    const issuedPs = this.#times.issuedPs(qpNumber, wqeCounter);
    if (postedPs < 0) return;
    this.#histogramOf(opcode).record(localPs - postedPs);
    if (issuedPs >= postedPs) this.takenPs[opcode] = this.takenPs[opcode]! + localPs - issuedPs;
  }

  /** Latencies of an opcode; undefined when none completed. */
  latencyOf(opcode: number): Histogram | undefined {
    return this.#latencies[opcode];
  }

  #opcodesOf(qpNumber: number): Uint8Array {
    if (qpNumber === this.#lastQp) return this.#lastOpcodes;
    let opcodes = this.#opcodes.get(qpNumber);
    if (opcodes === undefined) {
      opcodes = new Uint8Array(COUNTER_COUNT);
      this.#opcodes.set(qpNumber, opcodes);
    }
    this.#lastQp = qpNumber;
    this.#lastOpcodes = opcodes;
    return opcodes;
  }

  #histogramOf(opcode: number): Histogram {
    let histogram = this.#latencies[opcode];
    if (histogram === undefined) {
      histogram = new Histogram();
      this.#latencies[opcode] = histogram;
    }
    return histogram;
  }
}
