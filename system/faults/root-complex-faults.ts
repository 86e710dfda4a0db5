/**
 * Faults of the host's side of the slot: reads of the device that the root complex answers wrongly, or not at all. The
 * same for a simulated host and for the root complex in front of a guest.
 */
import { TrafficClass } from '../../hw/dma/traffic-class.ts';
import { READ_LOST, READ_POISONED, type ReadFaults } from '../../hw/pcie/root-complex-interfaces.ts';
import { STATUS_ABORT, STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST } from '../../hw/pcie/tlp.ts';
import { isNth } from './fields.ts';
import type { Fault, FaultOf } from './kinds.ts';
import { faultsOf } from './plan.ts';

const answers: Readonly<Record<FaultOf<'read'>['answer'], number>> = {
  lost: READ_LOST,
  unsupportedRequest: STATUS_UNSUPPORTED_REQUEST,
  completerAbort: STATUS_ABORT,
  poisoned: READ_POISONED,
};

/** Has the root complex of a node answer the device's reads as the plan says. */
export function injectRootComplexFaults(
  faults: readonly Fault[],
  node: number,
  rootComplex: { readonly reads: { faults: ReadFaults | undefined } },
): void {
  const reads = faultsOf(faults, node, 'read');
  if (reads.length > 0) rootComplex.reads.faults = new ReadAnswers(reads);
}

class ReadAnswers implements ReadFaults {
  readonly #faults: readonly FaultOf<'read'>[];
  /** Reads seen by each fault. */
  readonly #seen: number[];

  constructor(faults: readonly FaultOf<'read'>[]) {
    this.#faults = faults;
    this.#seen = faults.map(() => 0);
  }

  answerTo(trafficClass: number): number {
    let answer: number = STATUS_SUCCESS;
    for (const [index, { read, nth, answer: wanted }] of this.#faults.entries()) {
      if (read !== 'any' && TrafficClass[read] !== trafficClass) continue;
      this.#seen[index] = this.#seen[index]! + 1;
      if (answer === STATUS_SUCCESS && isNth(nth, this.#seen[index]!)) answer = answers[wanted];
    }
    return answer;
  }
}
