/**
 * The conventional NIC: one logical process from the PCIe link to the Ethernet cable. Its blocks are wired in nic-blocks.ts.
 *
 *   PCIe link ── PcieFunction ──BAR0──► registers ─► rings, engines, masks          ┌─► TransmitMac ─┐
 *                     │        ──BAR2──► packet buffer: transmit half │ receive half │                ├─ EthernetPort ── cable
 *                     │                      ▲ bus master     bus master ▼           └── ReceiveMac ◄┘
 *                     └── DMA read and write engines (hw/dma) ── TransmitEngine, ReceiveEngine, descriptor rings
 *
 * Stages are added from the output side back: function, DMA engines, interrupts, MAC, engines, rings.
 */

import { NicBar } from '../../abi/nic/index.ts';
import type { Cycles } from '../../base/index.ts';
import {
  type BlockAccount,
  type BlockState,
  type ClockDomain,
  connectBlocks,
  type LogicalProcess,
} from '../../sim/index.ts';
import { EthernetPort } from '../../wire/index.ts';
import { BusInterface, type DmaReadEngine, type DmaWriteEngine } from '../dma/index.ts';
import type { AccessObserver, BarTarget, PcieFunction, PcieLinkPort } from '../pcie/index.ts';
import { makeBlocks, type NicBlock, type NicBlocks, nicWires } from './nic-blocks.ts';
import { NicCounters } from './nic-counters.ts';
import { NicRegisters, type ResetByRegister } from './nic-registers.ts';
import { checkSetup, type NicSetup } from './nic-setup.ts';
import { NicStatistics } from './nic-statistics.ts';
import type { NicConfig } from './parameters.ts';
import { cacheBytesOf } from './transmit-engine.ts';

const MESSAGE_FIFO_DEPTH = 8;
const KIB = 1024;
const NOTHING = new Uint8Array(0);

export class Nic implements BarTarget, ResetByRegister {
  readonly lp: LogicalProcess;
  readonly config: NicConfig;
  readonly domain: ClockDomain;
  readonly bus: BusInterface;
  readonly linkPort: PcieLinkPort;
  readonly pcieFunction: PcieFunction;
  readonly dmaRead: DmaReadEngine;
  readonly dmaWrite: DmaWriteEngine;
  readonly port: EthernetPort;
  readonly counters = new NicCounters();
  readonly blocks: NicBlocks;
  readonly registers: NicRegisters;

  #accesses: AccessObserver | undefined;
  readonly #statistics: NicStatistics;
  /** Packet buffer (BAR2), then descriptor caches. */
  readonly #sram: Uint8Array;
  readonly #bufferBytes: number;
  readonly #all: readonly NicBlock[];
  #resetUntilCycle = 0;
  #isResetting = false;
  #barBytes: Uint8Array = NOTHING;
  #barView: DataView = new DataView(NOTHING.buffer);

  /** @throws ConfigurationError if the packet buffer is not in BAR2, or the MSI-X table differs from the interface's */
  constructor(setup: NicSetup) {
    checkSetup(setup);
    const { lp, config, ethernet } = setup;
    this.lp = lp;
    this.config = config;
    this.domain = lp.addClockDomain(config.coreClockMHz);
    const { domain, counters } = this;
    this.#bufferBytes = (config.transmitBufferKib + config.receiveBufferKib) * KIB;
    this.#sram = new Uint8Array(this.#bufferBytes + 2 * cacheBytesOf(config));
    const sram = this.#sram;
    this.bus = new BusInterface({ ...setup, domain, sram, messageFifoDepth: MESSAGE_FIFO_DEPTH });
    const { linkPort, pcieFunction, dmaRead, dmaWrite } = this.bus.blocks;
    this.linkPort = linkPort;
    this.pcieFunction = pcieFunction;
    this.dmaRead = dmaRead;
    this.dmaWrite = dmaWrite;
    this.port = new EthernetPort({
      lp,
      config: ethernet,
      writer: setup.wireWriter,
      reader: setup.wireReader,
      seed: setup.seed,
    });
    const { port } = this;
    this.blocks = makeBlocks({ lp, domain, config, counters, sram, port, pcieFunction, dmaRead, dmaWrite });
    this.#all = Object.values<NicBlock>(this.blocks);
    const { blocks } = this;
    connectBlocks({ ...blocks, port }, nicWires({ ...blocks, port }));
    this.bus.connect({ target: this });
    this.#statistics = new NicStatistics(counters, port);
    this.registers = new NicRegisters(
      { ...blocks, config, counters, port, statistics: this.#statistics },
      this,
      setup.macAddress,
    );
    domain.addEdgeKeeper(this);
  }

  /** The cycle accounts of all blocks, for the report. */
  get accounts(): readonly BlockAccount[] {
    const b = this.blocks;
    return [
      this.pcieFunction.account,
      this.dmaRead.account,
      this.dmaRead.returnAccount,
      this.dmaWrite.account,
      b.transmitEngine.account,
      b.transmitBusMaster.account,
      b.transmitMac.account,
      b.receiveMac.account,
      b.receiveEngine.account,
      b.receiveBusMaster.account,
    ];
  }

  /** State of each block, by name, and the registers: see Block.inspect. After a reset the same as after construction. */
  inspect(): BlockState {
    const states = Object.entries<NicBlock>(this.blocks).map(([name, block]) => [
      name,
      block.inspect?.() ?? {},
    ]);
    return { ...Object.fromEntries(states), registers: this.registers.inspect() };
  }

  /** Connects an observer of software's accesses to the BARs; without one, each costs a comparison. */
  observeAccesses(observer: AccessObserver): void {
    this.#accesses = observer;
  }

  barWrite(
    bar: number,
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: Cycles,
  ): number {
    this.#accesses?.barAccessed(cycle);
    if (bar === NicBar.REGISTERS) {
      if (bytes !== this.#barBytes) {
        this.#barBytes = bytes;
        this.#barView = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      }
      this.registers.write(offset, this.#barView, byteOffset, lengthBytes, cycle);
      return 1;
    }
    const count = Math.min(lengthBytes, Math.max(this.#bufferBytes - offset, 0));
    for (let at = 0; at < count; at++) this.#sram[offset + at] = bytes[byteOffset + at]!;
    this.counters.bufferWriteBytes += count;
    return Math.max(Math.ceil(lengthBytes / this.config.bufferBytesPerCycle), 1);
  }

  barRead(bar: number, offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    this.#accesses?.barAccessed(cycle);
    if (bar === NicBar.REGISTERS) {
      this.registers.read(offset, lengthBytes, into, cycle);
      return;
    }
    const count = Math.min(lengthBytes, Math.max(this.#bufferBytes - offset, 0));
    for (let at = 0; at < count; at++) into.setUint8(at, this.#sram[offset + at]!);
    this.counters.bufferReadBytes += count;
  }

  functionReset(cycle: Cycles): void {
    this.#reset(cycle);
  }

  isResetting(cycle: Cycles): boolean {
    return cycle < this.#resetUntilCycle;
  }

  resetByRegister(cycle: Cycles): void {
    this.#reset(cycle);
    this.#resetUntilCycle = cycle + this.config.resetCycles;
  }

  /** Resets everything except configuration space to the state after power-on; frames and transfers in progress are lost. */
  #reset(cycle: Cycles): void {
    if (this.#isResetting) return;
    this.#isResetting = true;
    this.counters.resets++;
    this.counters.droppedByReset += this.blocks.receiveBuffer.count;
    this.dmaRead.reset(cycle);
    this.dmaWrite.reset(cycle);
    this.port.setEnabled(false);
    for (const block of this.#all) block.reset(cycle);
    this.#statistics.reset();
    this.registers.reset();
    this.#isResetting = false;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.#resetUntilCycle -= cycles;
    for (const block of this.#all) block.rebase?.(cycles);
  }
}
