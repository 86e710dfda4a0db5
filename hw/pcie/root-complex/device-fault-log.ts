/** Counts the errors of devices, and keeps the first: the root port's error log, modelled on AER. */
import type { BusAddress } from '../../../base/index.ts';
import type { ExactPs } from '../../../sim/index.ts';
import { DEVICE_FAULTS, type DeviceFault } from './root-complex-interfaces.ts';

export interface LoggedFault {
  readonly fault: DeviceFault;
  readonly atPs: ExactPs;
  readonly address: number;
  readonly lengthBytes: number;
}

const LOG_ENTRIES_MAX = 64;

export class DeviceFaultLog {
  readonly counts: Record<DeviceFault, number>;
  /** The first faults, in order. */
  readonly entries: LoggedFault[] = [];

  constructor() {
    this.counts = Object.fromEntries(DEVICE_FAULTS.map((fault) => [fault, 0])) as Record<DeviceFault, number>;
  }

  note(fault: DeviceFault, atPs: ExactPs, address: BusAddress, lengthBytes: number): void {
    this.counts[fault]++;
    if (this.entries.length < LOG_ENTRIES_MAX) this.entries.push({ fault, atPs, address, lengthBytes });
  }
}
