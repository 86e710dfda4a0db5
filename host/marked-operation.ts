/**
 * A stretch of a program, marked by the program as one operation, and its costs for the processor: cycles of its thread by
 * cause, stores that reach the device as a posted write each, loads from it, system calls, work requests.
 *
 * A store belongs to the operation that was open at its commit, even if it leaves the store buffer later. Cycles are those of
 * the operation's thread, including kernel code, without idle cycles and interrupt handlers.
 */
import type { ExactPs } from '../sim/index.ts';
import { type CpuCause, cpuCauses } from './cpu-account.ts';
import type { DevicePort } from './device-port.ts';

/** Costs of one operation for its processor, as plain data. */
export interface ProcessorCost {
  readonly number: number;
  readonly name: string;
  readonly program: string;
  readonly beganPs: ExactPs;
  /** End of the operation; undefined while it is open. */
  readonly endedPs: ExactPs | undefined;
  readonly workRequests: number;
  readonly mmioWrites: number;
  readonly mmioReads: number;
  readonly systemCalls: number;
  /** Causes without cycles are left out. */
  readonly cycles: Readonly<Partial<Record<CpuCause, number>>>;
}

export class MarkedOperation {
  /** Number among the operations of its host, from 1. */
  readonly number: number;
  readonly name: string;
  readonly program: string;
  readonly beganPs: ExactPs;
  endedPs: ExactPs | undefined;
  workRequests = 0;
  mmioWrites = 0;
  mmioReads = 0;
  systemCalls = 0;
  readonly #cycles = new Float64Array(cpuCauses.length);

  constructor(number: number, name: string, program: string, beganPs: ExactPs) {
    this.number = number;
    this.name = name;
    this.program = program;
    this.beganPs = beganPs;
    this.endedPs = undefined;
  }

  /** Its thread has spent cycles of a cause. */
  spend(causeIndex: number, cycles: number): void {
    this.#cycles[causeIndex] = this.#cycles[causeIndex]! + cycles;
  }

  cost(): ProcessorCost {
    const { number, name, program, beganPs, endedPs, workRequests, mmioWrites, mmioReads, systemCalls } =
      this;
    const cycles = cpuCauses.flatMap((cause, index) =>
      this.#cycles[index] === 0 ? [] : [[cause, this.#cycles[index]!] as const],
    );
    return {
      ...{ number, name, program, beganPs, endedPs, workRequests, mmioWrites, mmioReads, systemCalls },
      cycles: Object.fromEntries(cycles),
    };
  }
}

/** The operation of the store that leaves a core now. */
export interface StoreOwner {
  operation: MarkedOperation | undefined;
}

/** A core's port to the device that counts each store for its operation. */
export function countedPort(port: DevicePort, owner: StoreOwner): DevicePort {
  return {
    canStore: () => port.canStore(),
    cpuStore: (busAddress, trafficClass, source, sourceOffset, lengthBytes) => {
      if (owner.operation !== undefined) owner.operation.mmioWrites++;
      port.cpuStore(busAddress, trafficClass, source, sourceOffset, lengthBytes);
    },
    connect: (ports) => port.connect(ports),
    cpuLoad: (busAddress, lengthBytes, done) => port.cpuLoad(busAddress, lengthBytes, done),
    cpuConfigRead: (functionId, offset, done) => port.cpuConfigRead(functionId, offset, done),
    cpuConfigWrite: (functionId, offset, value, done) => port.cpuConfigWrite(functionId, offset, value, done),
  };
}
