/** The operations that the programs of one host have marked. */
import { ConfigurationError } from '../../base/index.ts';
import { type CoreThread, MarkedOperation, type ProcessorCost } from '../../host/index.ts';
import type { OperationTap } from '../../userlib/index.ts';
import type { OperationLog } from '../node/operation-log.ts';

/** Greatest number of operations per host. */
const OPERATIONS_MAX = 1 << 18;

export class MarkedOperations {
  readonly #operations: MarkedOperation[] = [];

  /**
   * Runs a section of a program as one operation of this name.
   * @throws ConfigurationError inside another operation of the thread, and if the host has marked too many
   */
  async run<T>(cpu: CoreThread, program: string, name: string, stretch: () => T | Promise<T>): Promise<T> {
    if (cpu.operation !== undefined)
      throw new ConfigurationError(
        `operation ${name}`,
        `inside of ${cpu.operation.name}`,
        'outside of other operations',
      );
    if (this.#operations.length === OPERATIONS_MAX)
      throw new ConfigurationError('operations of a host', OPERATIONS_MAX + 1, `at most ${OPERATIONS_MAX}`);
    const operation = new MarkedOperation(this.#operations.length + 1, name, program, cpu.instantPs);
    this.#operations.push(operation);
    cpu.operation = operation;
    try {
      return await stretch();
    } finally {
      cpu.operation = undefined;
      operation.endedPs = cpu.instantPs;
    }
  }

  /** The verbs library's tap for a program on this thread: each work request carries the operation that it is posted in. */
  tapOf(cpu: CoreThread, log: OperationLog): OperationTap {
    return {
      opened: (qpNumber, wqeCount) => log.opened(qpNumber, wqeCount),
      closed: (qpNumber) => log.closed(qpNumber),
      posted: (qpNumber, counter, opcode, atPs) => {
        const { operation } = cpu;
        if (operation !== undefined) operation.workRequests++;
        log.posted(qpNumber, counter, opcode, atPs, operation?.number ?? 0);
      },
      completed: (qpNumber, counter, atPs) => log.completed(qpNumber, counter, atPs),
    };
  }

  costs(): ProcessorCost[] {
    return this.#operations.map((operation) => operation.cost());
  }
}
