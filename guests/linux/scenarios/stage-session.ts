/** The guests in which the steps of a scenario run: guests on QEMU, or on PCs of this process. */
import type { DevicesReport } from '../../serve/index.ts';
import type { CommandLimits, CommandResult } from '../agent-line.ts';
import type { VectorComparison } from '../interrupts.ts';

export interface StageSession extends AsyncDisposable {
  /** Milliseconds of processor time that each guest has used outside of this process. */
  readonly guests: readonly { readonly cpuMs: number }[];
  readonly machine: { report(): Promise<DevicesReport> };
  /** Runs a command in a guest. @throws GuestError if the guest does not answer or has ended */
  run(guest: number, command: string, limits: CommandLimits): Promise<CommandResult>;
  /** Loads the drivers in all guests. @throws GuestError */
  load(): Promise<void>;
  /** Interrupts of the loaded drivers, as counted by the guests and the devices. @throws GuestError */
  compareInterrupts(): Promise<VectorComparison[]>;
  /** Ends the guests. @throws GuestError */
  finish(): Promise<StageResult>;
}

export interface StageResult {
  readonly interrupts: readonly VectorComparison[];
  readonly report: DevicesReport;
}
