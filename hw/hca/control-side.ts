/**
 * The control side of the HCA: BAR0, command processor, ICM map, event queues, ports. This file only wires it.
 *
 *   BAR0 ──> ControlRegisters ──> CommandRegister ──> CommandProcessor ──> commands/* ──> tables, DataPathControl
 *                 │ reset                                   │ EQE 0x0a            │ DMA
 *                 v                                         v                     v
 *            ControlSide.reset                         EventWriter ──> EQEs, interrupts      HcaPort ──> EQEs
 *
 * The data path posts its events through {@link ControlSide.events}, looks up context addresses in
 * {@link ControlSide.icm}, and hands EQ doorbells to `events.eqDoorbell`.
 */

import { mailboxBytes } from '../../abi/index.ts';
import { type Cycles, viewOf } from '../../base/index.ts';
import { type BlockState, connectBlocks } from '../../sim/index.ts';
import type { CommandProcessor, DataPathControl, DeviceState } from './commands/index.ts';
import { type ControlBlocks, type ControlSideSetup, controlWires, makeBlocks } from './control-blocks.ts';
import { EqTable, type EventContexts, type EventPoster, type EventWriter } from './events/index.ts';
import type { IcmMap } from './memory/index.ts';
import type { HcaPort } from './port/index.ts';
import type { ControlRegisters } from './registers/index.ts';
import { ProtocolViolations } from './statistics/index.ts';

export interface ControlSidePorts {
  readonly dataPath: DataPathControl;
  readonly device: {
    /** A reset was triggered through BAR0: the DMA engines drop what they hold. */
    deviceReset(cycle: Cycles): void;
  };
  /** The cache through which EQ contexts come; left out: all of them are on chip. */
  readonly contexts?: EventContexts | undefined;
  /** Blocks of the data path that stall while there is no room for an event. */
  readonly posters: readonly EventPoster[];
}

export class ControlSide {
  readonly violations: ProtocolViolations;
  readonly icm: IcmMap;
  readonly eqs: EqTable;
  readonly blocks: ControlBlocks;
  #device!: ControlSidePorts['device'];

  constructor(setup: ControlSideSetup) {
    const { capabilities, domain, icm } = setup;
    this.violations = new ProtocolViolations();
    this.icm = icm;
    this.eqs = new EqTable(2 ** capabilities.logMaxEqs, domain.clock.frequencyMHz);
    this.blocks = makeBlocks({ ...setup, eqs: this.eqs, violations: this.violations });
  }

  connect({ device, ...ports }: ControlSidePorts): void {
    this.#device = device;
    connectBlocks(this.blocks, controlWires({ ...this.blocks, ...ports, control: this }));
  }

  get events(): EventWriter {
    return this.blocks.events;
  }

  get ports(): readonly HcaPort[] {
    return this.blocks.ports.all;
  }

  get processor(): CommandProcessor {
    return this.blocks.processor;
  }

  get registers(): ControlRegisters {
    return this.blocks.registers;
  }

  get state(): DeviceState {
    return this.blocks.state;
  }

  /** On-chip memory the control side takes from the allocator. */
  static readonly sramBytes = 4 * mailboxBytes + 64;

  /** BAR0 write of the PCIe function; returns the cycles its write port is occupied. */
  barWrite(
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: Cycles,
  ): number {
    this.registers.write(offset, viewOf(bytes), byteOffset, lengthBytes, cycle);
    return 1;
  }

  /** BAR0 read of the PCIe function. */
  barRead(offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    this.registers.read(offset, lengthBytes, into, cycle);
  }

  /** Software wrote the reset register. */
  deviceReset(cycle: Cycles): void {
    this.reset(cycle);
    this.#device.deviceReset(cycle);
  }

  /** The same full reset, from the PCIe function (FLR, hot reset) or through BAR0. */
  reset(cycle: Cycles): void {
    this.processor.reset(cycle);
    this.state.reset(cycle);
    this.registers.reset();
  }

  /** What each block holds, by name: see Block.inspect. */
  inspect(): BlockState {
    return {
      controlRegisters: this.registers.inspect(),
      commandProcessor: this.processor.inspect(),
      eventWriter: this.events.inspect(),
      deviceState: this.state.inspect(),
      hcaPorts: this.blocks.ports.inspect(),
    };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    const { processor, events, ports } = this.blocks;
    processor.rebase(cycles);
    events.rebase(cycles);
    ports.rebase(cycles);
  }
}
