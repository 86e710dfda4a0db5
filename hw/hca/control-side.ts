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

import { EventType } from '../../abi/eqe.ts';
import { mailboxBytes } from '../../abi/hcr.ts';
import { viewOf } from '../../base/index.ts';
import type { Cycles } from '../../base/units.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import type { BlockState } from '../../sim/index.ts';
import {
  type CapabilityConfig,
  CommandDma,
  CommandProcessor,
  type ContextTables,
  type ControlConfig,
  type DataPathControl,
  DeviceState,
  interruptPin,
  startOn,
} from './commands/index.ts';
import { EqTable, EventWriter } from './events/index.ts';
import type { DmaReads, DmaWrites, IcmMap, InterruptPort, SramAllocator } from './memory/index.ts';
import {
  HcaPort,
  type LinkStateSource,
  type LinkTraffic,
  ManagementAgents,
  NodeIdentity,
} from './port/index.ts';
import { CommandRegister, ControlRegisters } from './registers/index.ts';
import { ProtocolViolations } from './statistics/index.ts';

export interface ControlSideSetup {
  readonly domain: ClockDomain;
  readonly icm: IcmMap;
  readonly interrupts: InterruptPort;
  readonly reads: DmaReads;
  readonly writes: DmaWrites;
  readonly sram: SramAllocator;
  readonly tables: ContextTables;
  /** The cable of port 1. */
  readonly link: (LinkStateSource & LinkTraffic) | undefined;
  readonly config: ControlConfig;
  readonly capabilities: CapabilityConfig;
  /** Which node this is, from 0: its GUIDs and LID come from it. */
  readonly nodeIndex: number;
}

export interface ControlSidePorts {
  readonly dataPath: DataPathControl;
  readonly device: {
    /** A reset was triggered through BAR0: the DMA engines drop what they hold. */
    deviceReset(cycle: Cycles): void;
  };
}

/** Company part of all GUIDs, and the distance of two nodes' GUIDs. */
const guidBase = 0x0002_c903_0000_0000n;
const guidsPerNode = 16n;

export class ControlSide {
  readonly violations = new ProtocolViolations();
  readonly icm: IcmMap;
  readonly eqs: EqTable;
  readonly events: EventWriter;
  readonly ports: readonly HcaPort[];
  readonly processor: CommandProcessor;
  readonly registers: ControlRegisters;
  readonly state: DeviceState;
  readonly #setup: ControlSideSetup;
  readonly #dma: CommandDma;
  #device!: ControlSidePorts['device'];
  readonly #drainStage: number;
  /** Polls of draining queues since the last of them began or ended. */
  #drainPolls = 0;

  constructor(setup: ControlSideSetup) {
    const { domain, config, icm, reads, writes, sram } = setup;
    this.#setup = setup;
    this.icm = icm;
    this.eqs = new EqTable(2 ** setup.capabilities.logMaxEqs, domain.clock.frequencyMHz);
    this.events = new EventWriter({
      domain,
      eqs: this.eqs,
      icm,
      reads,
      writes,
      sram,
      interrupts: setup.interrupts,
      violations: this.violations,
      fifoDepth: config.eventFifoDepth,
      eventCycles: config.eventCycles,
    });
    const hcr = new CommandRegister(this.violations);
    this.ports = this.#makePorts();
    this.state = this.#makeState();
    this.processor = new CommandProcessor({
      domain,
      hcr,
      start: startOn(this.state, config),
      decodeCycles: config.commandDecodeCycles,
      pollCycles: config.conditionPollCycles,
    });
    this.#dma = new CommandDma({ reads, writes, sram, writesInFlightMax: config.fillWritesInFlight });
    this.registers = new ControlRegisters(hcr, this.violations, interruptPin);
    this.#drainStage = domain.addStage(this.#reportDrained, this);
    hcr.connect({ processor: this.processor });
  }

  connect({ dataPath, device }: ControlSidePorts): void {
    const { processor, registers, state, ports, events } = this;
    this.#dma.connect({ processor });
    processor.connect({ dma: this.#dma, events });
    registers.connect({ control: this, moderation: events.moderation });
    state.connect({ dataPath, drained: this });
    // The cable is port 1's.
    ports[0]?.connect({ dataPath });
    this.#device = device;
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
      hcaPorts: this.ports.map((port) => port.inspect()),
    };
  }

  /** A QP was added to those that owe software a drained event. */
  watchDraining(): void {
    const { domain } = this.#setup;
    this.#drainPolls = 0;
    domain.wake(this.#drainStage, domain.cycle + 1);
  }

  #reportDrained(cycle: Cycles): void {
    const { draining, parts } = this.state;
    for (const slot of draining) {
      if (parts.dataPath.qpIsDraining(slot)) continue;
      // A queue that failed while it drained is flushed: there is nothing to change and bring back (IBTA vol 1, 10.3.1).
      if (parts.dataPath.qpIsInError(slot)) {
        draining.delete(slot);
        continue;
      }
      if (!this.events.canPost()) continue;
      this.events.postQpEvent(EventType.SQ_DRAINED, parts.qps.numberOf[slot]!, cycle);
      draining.delete(slot);
      this.#drainPolls = 0;
    }
    if (draining.size === 0) return;
    // The distance doubles after every 1,024 polls: a queue that drains for hours takes few of them, and its event is late by
    // at most a thousandth of that time.
    const distance = this.#setup.config.conditionPollCycles * 2 ** Math.min(24, this.#drainPolls++ >> 10);
    this.#setup.domain.wake(this.#drainStage, cycle + distance);
  }

  #makePorts(): HcaPort[] {
    const { config, capabilities, domain, nodeIndex, link } = this.#setup;
    return Array.from(
      { length: capabilities.portCount },
      (_, index) =>
        new HcaPort({
          portNumber: index + 1,
          guid: portGuidOf(nodeIndex, index + 1),
          logGids: capabilities.logGids,
          logPkeys: capabilities.logPkeys,
          maxVls: capabilities.maxVls,
          linkInitialiseCycles: config.linkInitialiseCycles,
          subnetManagerCycles: config.subnetManagerCycles,
          hasEmbeddedSubnetManager: config.embeddedSubnetManager,
          lid: config.portLid === 0 ? nodeIndex + 1 : config.portLid,
          subnetManagerLid: config.subnetManagerLid,
          domain,
          events: this.events,
          link: index === 0 ? link : undefined,
          traffic: index === 0 ? link : undefined,
        }),
    );
  }

  #makeState(): DeviceState {
    const { config, capabilities, domain, tables, icm, nodeIndex } = this.#setup;
    const node = new NodeIdentity(nodeGuidOf(nodeIndex), `hca-emulator node ${nodeIndex}`);
    return new DeviceState({
      ...tables,
      capabilities,
      coreClockMHz: domain.clock.frequencyMHz,
      icm,
      eqs: this.eqs,
      events: this.events,
      ports: this.ports,
      node,
      agents: new ManagementAgents(node, this.ports),
      now: () => domain.cycle,
      memoryMapPerPageCycles: config.memoryMapPerPageCycles,
    });
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.processor.rebase(cycles);
    this.registers.epochCycles += cycles;
    this.events.rebase(cycles);
    for (const port of this.ports) port.rebase(cycles);
  }
}

const nodeGuidOf = (nodeIndex: number): bigint => guidBase + BigInt(nodeIndex) * guidsPerNode;

/** GUID of a port, from 1, of the HCA of a node. */
export const portGuidOf = (nodeIndex: number, port: number): bigint => nodeGuidOf(nodeIndex) + BigInt(port);
