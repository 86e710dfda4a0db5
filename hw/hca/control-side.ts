/**
 * The control side of the HCA: registers, command processor, event queues, ports. This file only wires it.
 *
 *   BAR0 ──> CommandSet (of the card) ──> CommandProcessor ──> its commands ──> tables, DataPathControl
 *                 │ reset                       │ event              │ DMA
 *                 v                             v                    v
 *            ControlSide.reset             EventWriter ──> EQEs, interrupts      HcaPort ──> EQEs
 *
 * The data path posts its events through {@link ControlSide.events}, and hands EQ doorbells to `events.eqDoorbell`.
 */
import { type Cycles, viewOf } from '../../base/index.ts';
import { type BlockState, connectBlocks } from '../../sim/index.ts';
import { CommandDma, type CommandProcessor } from './commands/index.ts';
import {
  type ControlBlocks,
  type ControlSideSetup,
  controlWires,
  type Management,
  makeBlocks,
} from './control-blocks.ts';
import { EqTable, type EventContexts, type EventPoster, type EventWriter } from './events/index.ts';
import type { DataPathControl } from './host-interface/index.ts';
import type { TcpControl } from './iwarp/tcp/index.ts';
import type { HcaPort } from './port/index.ts';
import { ProtocolViolations } from './statistics/index.ts';

export interface ControlSidePorts {
  readonly dataPath: DataPathControl;
  /** TCP connections of the card; left out without iWARP. */
  readonly tcp?: TcpControl | undefined;
  readonly device: {
    /** A reset was triggered through BAR0: the DMA engines drop their requests. */
    deviceReset(cycle: Cycles): void;
  };
  /** Cache of EQ contexts; omitted: all of them are on chip. */
  readonly contexts?: EventContexts | undefined;
  /** Blocks of the data path that stall while the fifo of events is full. */
  readonly posters: readonly EventPoster[];
}

/** Room for the translation entry of an EQ's page, aligned. */
const TRANSLATION_ROOM_BYTES = 64;

export class ControlSide {
  readonly violations: ProtocolViolations;
  readonly eqs: EqTable;
  readonly management: Management;
  readonly blocks: ControlBlocks;
  #device!: ControlSidePorts['device'];

  constructor(setup: ControlSideSetup) {
    const { capabilities, domain, eventQueues } = setup;
    this.violations = new ProtocolViolations();
    this.eqs = new EqTable(2 ** capabilities.logMaxEqs, eventQueues, domain.clock.frequencyMHz);
    const { management, ...blocks } = makeBlocks({
      ...setup,
      eqs: this.eqs,
      violations: this.violations,
    });
    this.management = management;
    this.blocks = blocks;
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

  /** On-chip memory that the control side allocates. @param patternCount of the card's patterns */
  static sramBytes(patternCount: number): number {
    return CommandDma.sramBytes(patternCount) + TRANSLATION_ROOM_BYTES;
  }

  /** BAR0 write of the PCIe function; returns the cycles its write port is occupied. */
  barWrite(
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: Cycles,
  ): number {
    this.blocks.commandSet.registers.write(offset, viewOf(bytes), byteOffset, lengthBytes, cycle);
    return 1;
  }

  /** BAR0 read of the PCIe function. */
  barRead(offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    this.blocks.commandSet.registers.read(offset, lengthBytes, into, cycle);
  }

  /** Software wrote the reset register. */
  deviceReset(cycle: Cycles): void {
    this.reset(cycle);
    this.#device.deviceReset(cycle);
  }

  /** Resets everything, whether the PCIe function triggered it (FLR, hot reset) or software through BAR0. */
  reset(cycle: Cycles): void {
    this.processor.reset(cycle);
    this.blocks.commandSet.reset(cycle);
  }

  /** The state of each block, by name: see Block.inspect. */
  inspect(): BlockState {
    const { commandSet, drains, ports } = this.blocks;
    return {
      ...commandSet.inspect(),
      commandProcessor: this.processor.inspect(),
      eventWriter: this.events.inspect(),
      drainWatch: drains.inspect(),
      hcaPorts: ports.inspect(),
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
