/**
 * The fault recording registers: refused accesses of the device, until the processor has read them. The first recorded fault
 * interrupts; a fault that finds the log full is only counted. Source: Intel VT-d architecture specification, 10.4.
 */
import type { BlockState, ExactPs, LogicalProcess } from '../../sim/index.ts';
import type { IommuConfig } from './parameters.ts';

/** Reason of a refused access. */
export type IommuFaultReason = 'notPresent' | 'readNotAllowed' | 'writeNotAllowed';

export interface IommuFault {
  readonly address: number;
  readonly reason: IommuFaultReason;
  readonly atPs: ExactPs;
}

export interface FaultLogPorts {
  readonly processor: {
    /** A fault is recorded in an empty log: the fault event interrupt. */
    faultRecorded(): void;
  };
}

export class FaultLog {
  /** Unread faults, oldest first; those that do not fit are only counted. */
  readonly faults: IommuFault[] = [];
  faultCount = 0;
  lostFaultCount = 0;
  /** Fault event interrupts raised. */
  interruptCount = 0;

  readonly #lp: Pick<LogicalProcess, 'instantPs'>;
  readonly #entries: number;
  #processor!: FaultLogPorts['processor'];

  constructor({
    lp,
    config,
  }: { readonly lp: Pick<LogicalProcess, 'instantPs'>; readonly config: IommuConfig }) {
    this.#lp = lp;
    this.#entries = config.faultLogEntries;
  }

  connect({ processor }: FaultLogPorts): void {
    this.#processor = processor;
  }

  record(address: number, reason: IommuFaultReason): void {
    this.faultCount++;
    if (this.faults.length === this.#entries) {
      this.lostFaultCount++;
      return;
    }
    this.faults.push({ address, reason, atPs: this.#lp.instantPs });
    if (this.faults.length > 1) return;
    this.interruptCount++;
    this.#processor.faultRecorded();
  }

  /** The processor reads the log, which makes room for new faults. */
  take(): IommuFault[] {
    return this.faults.splice(0);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { faults: this.faults.map(({ address, reason }) => [address, reason]) };
  }

  reset(): void {
    this.take();
  }
}
