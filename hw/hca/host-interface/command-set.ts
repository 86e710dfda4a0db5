/**
 * Commands and registers of a card, by which software configures the device. The command processor fetches a posted command from the
 * source and runs its steps. Commands work on the tables of objects, on the data path ({@link DataPathControl}) and on the ports.
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import type { CapabilityConfig } from '../capabilities.ts';
import type { CommandSource, Commands, ControlConfig, DrainWatch } from '../commands/index.ts';
import type { EqTable, EventWriter } from '../events/index.ts';
import type { MulticastGroups, SpecialQps } from '../ibta/receiver/index.ts';
import type { TcpControl } from '../iwarp/tcp/index.ts';
import type { ContextTable } from '../objects/index.ts';
import type { HcaPort, ManagementAgents, NodeIdentity, SubnetAdministration } from '../port/index.ts';
import type { ProtocolViolations } from '../statistics/index.ts';
import type { DataPathControl } from './data-path-control.ts';

/** Tables of objects as commands use them. */
export interface ContextTables {
  readonly qps: ContextTable<'QP'>;
  readonly cqs: ContextTable<'CQ'>;
  readonly srqs: ContextTable<'SRQ'>;
}

/** Parts of the device that commands and registers use. */
export interface CommandSetParts extends ContextTables {
  readonly domain: ClockDomain;
  readonly config: ControlConfig;
  readonly capabilities: CapabilityConfig;
  /** Device ID of the PCI function. */
  readonly deviceId: number;
  readonly eqs: EqTable;
  readonly ports: readonly HcaPort[];
  readonly node: NodeIdentity;
  readonly agents: ManagementAgents;
  readonly managers: readonly SubnetAdministration[];
  readonly groups: MulticastGroups;
  readonly violations: ProtocolViolations;
}

export interface CommandSetPorts {
  readonly dataPath: DataPathControl;
  readonly events: EventWriter;
  readonly drains: Pick<DrainWatch, 'watch' | 'forget' | 'reset'>;
  /** TCP connections of the card; undefined without iWARP. */
  readonly tcp: TcpControl | undefined;
  readonly processor: {
    /** Software has posted a command. */
    posted(cycle: Cycles): void;
  };
  readonly moderation: {
    /** INTx: software has handled the interrupt of the pin. */
    clearPin(cycle: Cycles): void;
  };
  readonly control: {
    /** Software has triggered a full reset of the device. */
    deviceReset(cycle: Cycles): void;
  };
}

/** Observer of resets: the fault injector. */
export interface ResetObserver {
  /** Software has triggered a reset, which is done. */
  resetWritten(cycle: Cycles): void;
}

/** Registers of the device in BAR0. */
export interface RegisterSpace {
  /** Faults to inject: the register reads as taken, even after a release. */
  isOwnerStuck: boolean;
  isSemaphoreStuck: boolean;
  observeResets(observer: ResetObserver): void;
  /** Reports a fatal error of the firmware to software. */
  setCatastrophicError(code: number): void;
  /** Reads `lengthBytes` at `offset` into the beginning of `into`, in memory order. */
  read(offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void;
  /** Writes bytes in memory order at `offset`. */
  write(offset: number, bytes: DataView, byteOffset: number, lengthBytes: number, cycle: Cycles): void;
}

export interface CommandSet extends SpecialQps {
  readonly registers: RegisterSpace;
  readonly source: CommandSource;
  readonly commands: Commands;
  connect(ports: CommandSetPorts): void;
  /** Restores the state after power-on: every object is forgotten. */
  reset(cycle: Cycles): void;
  /** State of its blocks by name: see Block.inspect. */
  inspect(): BlockState;
}
