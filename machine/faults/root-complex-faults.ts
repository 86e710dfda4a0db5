/**
 * Faults on the host's side of the slot: reads of the device that the root complex answers wrongly or not at all. They
 * are the same for a simulated host and for the root complex of a guest.
 */
import { TrafficClass } from '../../hw/dma/index.ts';
import {
  READ_LOST,
  READ_POISONED,
  type ReadFaults,
  STATUS_ABORT,
  STATUS_SUCCESS,
  STATUS_UNSUPPORTED_REQUEST,
} from '../../hw/pcie/index.ts';
import type { FaultLog } from './fault-log.ts';
import { isNth } from './fields.ts';
import type { Fault, FaultOf } from './kinds.ts';
import { faultsOf } from './plan.ts';

const answers: Readonly<Record<FaultOf<'read'>['answer'], number>> = {
  lost: READ_LOST,
  unsupportedRequest: STATUS_UNSUPPORTED_REQUEST,
  completerAbort: STATUS_ABORT,
  poisoned: READ_POISONED,
};

/** Makes the root complex of a node answer the device's reads as the plan says. */
export function injectRootComplexFaults(
  faults: readonly Fault[],
  node: number,
  rootComplex: { readonly reads: { faults: ReadFaults | undefined } },
  log: FaultLog,
): void {
  const reads = faultsOf(faults, node, 'read');
  if (reads.length > 0) rootComplex.reads.faults = new ReadAnswers(reads, log);
}

class ReadAnswers implements ReadFaults {
  readonly #faults: readonly FaultOf<'read'>[];
  /** Reads counted by each fault. */
  readonly #seen: number[];
  readonly #log: FaultLog;

  constructor(faults: readonly FaultOf<'read'>[], log: FaultLog) {
    this.#faults = faults;
    this.#log = log;
    this.#seen = faults.map(() => 0);
  }

  answerTo(trafficClass: number): number {
    let answer: number = STATUS_SUCCESS;
    for (const [index, fault] of this.#faults.entries()) {
      const { read, nth, answer: wanted } = fault;
      if (read !== 'any' && TrafficClass[read] !== trafficClass) continue;
      this.#seen[index] = this.#seen[index]! + 1;
      if (answer !== STATUS_SUCCESS || !isNth(nth, this.#seen[index]!)) continue;
      answer = answers[wanted];
      this.#log.fired(fault);
    }
    return answer;
  }
}
