/** The guests in which the steps of a scenario run: guests on QEMU, or on PCs of this process. */
import type { JsonValue } from '../../../machine/index.ts';
import type { DevicesReport, PeerState } from '../../serve/index.ts';
import type { CommandLimits, CommandResult } from '../agent-line.ts';
import type { VectorComparison } from '../interrupts.ts';

/** The program of a simulated host beside the guest: values of its exchange. */
export interface StagePeer {
  put(name: string, value: JsonValue): void;
  /** The next value that the program puts by this name; undefined if it has ended, or none arrives within the limit. */
  take(name: string, limitMs: number): Promise<JsonValue | undefined>;
  /** Waits until the program has ended; its outcome. */
  ended(): Promise<PeerState>;
}

export interface StageSession extends AsyncDisposable {
  /** Undefined without a simulated host. */
  readonly peer: StagePeer | undefined;
  /** Milliseconds of processor time that each guest has used outside of this process. */
  readonly guests: readonly { readonly cpuMs: number }[];
  /** Address on the bus of the adapter of that number in its guest, as /sys/bus/pci has it. */
  adapterAddress(adapter: number): string;
  readonly machine: { report(): Promise<DevicesReport> };
  /** Milliseconds on the clock that limits the session's commands: simulated time, or the wall clock around QEMU. */
  readonly nowMs: number;
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
