/**
 * The host's side of the ledger of operations: from posting until the program has the completion, for every signalled
 * send request, by opcode. The verbs library's tap feeds it; the entry of {@link OperationTimes} stores the data of a
 * request.
 */
import { frameOperation } from '../../abi/index.ts';
import { farPs, Histogram } from '../../sim/index.ts';
import type { OperationTap } from '../../userlib/index.ts';
import type { OperationTimes } from './operation-times.ts';

const OPCODE_COUNT = frameOperation + 1;

export class OperationLog implements OperationTap {
  /** Counts by WQE opcode; kernel frames have a separate index. */
  readonly postedCount = new Float64Array(OPCODE_COUNT);
  readonly completedCount = new Float64Array(OPCODE_COUNT);
  /** Time from the CQE's departure at the device until the program polled it. */
  readonly takenPs = new Float64Array(OPCODE_COUNT);
  /** The part above it, for requests that lasted more than an hour. */
  readonly farTakenPs: bigint[] = new Array(OPCODE_COUNT).fill(0n);
  /** Requests of queues without entries: only their posts are known. */
  readonly untimedCount = new Float64Array(OPCODE_COUNT);
  readonly #latencies: (Histogram | undefined)[] = new Array(OPCODE_COUNT).fill(undefined);
  readonly #times: OperationTimes;

  constructor(times: OperationTimes) {
    this.#times = times;
  }

  opened(qpNumber: number, requestCount: number): void {
    this.#times.open(qpNumber, requestCount);
  }

  closed(qpNumber: number): void {
    this.#times.close(qpNumber);
  }

  posted(qpNumber: number, wqeCounter: number, opcode: number, ownPs: number, operation = 0): void {
    const entry = this.#times.entryOf(qpNumber, wqeCounter);
    this.postedCount[opcode] = this.postedCount[opcode]! + 1;
    if (entry < 0) this.untimedCount[opcode] = this.untimedCount[opcode]! + 1;
    else this.#times.notePosted(entry, opcode, ownPs, operation);
  }

  completed(qpNumber: number, wqeCounter: number, ownPs: number): void {
    const times = this.#times;
    const entry = times.entryOf(qpNumber, wqeCounter);
    if (entry < 0) return;
    const opcode = times.opcodeAt(entry);
    const postedPs = times.postedPsAt(entry);
    const issuedPs = times.issuedPsAt(entry);
    this.completedCount[opcode] = this.completedCount[opcode]! + 1;
    if (Number.isNaN(postedPs)) return;
    if (ownPs - postedPs > farPs) return this.#completedLate(opcode, entry, ownPs);
    this.#histogramOf(opcode).record(ownPs - postedPs);
    if (issuedPs >= postedPs) this.#addTaken(opcode, ownPs - issuedPs);
  }

  #addTaken(opcode: number, ps: number): void {
    const takenPs = this.takenPs[opcode]! + ps;
    this.takenPs[opcode] = takenPs;
    if (takenPs <= farPs) return;
    this.farTakenPs[opcode] = this.farTakenPs[opcode]! + BigInt(takenPs);
    this.takenPs[opcode] = 0;
  }

  /** A request that was posted long ago. */
  #completedLate(opcode: number, entry: number, ownPs: number): void {
    const takenPs = BigInt(ownPs);
    const postedPs = this.#times.exactPostedPsAt(entry);
    this.#histogramOf(opcode).recordFar(takenPs - postedPs);
    if (Number.isNaN(this.#times.issuedPsAt(entry))) return;
    const issuedPs = this.#times.exactIssuedPsAt(entry);
    if (issuedPs >= postedPs) this.farTakenPs[opcode] = this.farTakenPs[opcode]! + takenPs - issuedPs;
  }

  /** Starts a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#times.rebase(ps);
  }

  /** Latencies of an opcode; undefined if none completed. */
  latencyOf(opcode: number): Histogram | undefined {
    return this.#latencies[opcode];
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
