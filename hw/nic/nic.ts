/**
 * The conventional NIC: one logical process from the PCIe link to the Ethernet cable. This file only wires it.
 *
 *   PCIe link ── PcieFunction ──BAR0──► registers ─► rings, engines, masks          ┌─► TransmitMac ─┐
 *                     │        ──BAR2──► packet buffer: transmit half │ receive half │                ├─ EthernetPort ── cable
 *                     │                      ▲ bus master     bus master ▼           └── ReceiveMac ◄┘
 *                     └── DMA read and write engines (hw/dma) ── TransmitEngine, ReceiveEngine, descriptor rings
 *
 * Stages are added from the output side back: function, DMA engines, interrupts, MAC, engines, rings.
 */
import { NicBar, NicCause, nicBits } from '../../abi/nic/index.ts';
import type { BlockAccount, ClockDomain, LogicalProcess } from '../../sim/index.ts';
import { EthernetPort } from '../../wire/index.ts';
import {
  DmaMessageSender,
  DmaReadEngine,
  DmaWriteEngine,
  TrafficClass,
  trafficClassCount,
} from '../dma/index.ts';
import { type BarTarget, PcieFunction, PcieLinkPort } from '../pcie/index.ts';
import type { BusMaster } from './bus-master.ts';
import { readingBusMaster, writingBusMaster } from './bus-master-ports.ts';
import { NicCounters } from './counters.ts';
import { DescriptorRing } from './descriptor-ring.ts';
import { NicInterrupts } from './interrupts.ts';
import { checkSetup, type NicSetup } from './nic-setup.ts';
import { PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';
import { ReceiveEngine } from './receive-engine.ts';
import { ReceiveMac } from './receive-mac.ts';
import { NicRegisters } from './registers.ts';
import { NicStatistics } from './statistics.ts';
import { cacheBytesOf, TransmitEngine } from './transmit-engine.ts';
import { TransmitMac } from './transmit-mac.ts';

const MESSAGE_FIFO_DEPTH = 8;
const KIB = 1024;
const NOTHING = new Uint8Array(0);

export class Nic implements BarTarget {
  readonly lp: LogicalProcess;
  readonly config: NicConfig;
  readonly domain: ClockDomain;
  readonly linkPort: PcieLinkPort;
  readonly pcieFunction: PcieFunction;
  readonly dmaRead: DmaReadEngine;
  readonly dmaWrite: DmaWriteEngine;
  readonly port: EthernetPort;
  readonly counters = new NicCounters();
  readonly interrupts: NicInterrupts;
  readonly transmitRing: DescriptorRing;
  readonly receiveRing: DescriptorRing;
  readonly transmitEngine: TransmitEngine;
  readonly receiveEngine: ReceiveEngine;
  readonly transmitBusMaster: BusMaster;
  readonly receiveBusMaster: BusMaster;
  readonly transmitMac: TransmitMac;
  readonly receiveMac: ReceiveMac;
  readonly transmitBuffer: PacketBuffer;
  readonly receiveBuffer: PacketBuffer;
  readonly registers: NicRegisters;
  /** Notified of each load and store of software to a BAR; undefined costs one comparison. */
  onAccess: ((cycle: number) => void) | undefined;

  readonly #statistics: NicStatistics;
  /** Packet buffer (BAR2), then descriptor caches. */
  readonly #sram: Uint8Array;
  readonly #bufferBytes: number;
  readonly #linkStage: number;
  #resetUntilCycle = 0;
  #isLinkChanged = false;
  #isResetting = false;
  #barBytes: Uint8Array = NOTHING;
  #barView: DataView = new DataView(NOTHING.buffer);

  /** @throws ConfigurationError for a packet buffer that is not BAR2, or another MSI-X table than the interface's */
  constructor(setup: NicSetup) {
    checkSetup(setup);
    const { lp, config, ethernet } = setup;
    this.lp = lp;
    this.config = config;
    this.domain = lp.addClockDomain(config.coreClockMHz);
    const { domain, counters } = this;
    const transmitBytes = config.transmitBufferKib * KIB;
    const receiveBytes = config.receiveBufferKib * KIB;
    const cacheBytes = cacheBytesOf(config);
    this.#bufferBytes = transmitBytes + receiveBytes;
    this.#sram = new Uint8Array(this.#bufferBytes + 2 * cacheBytes);
    const sram = this.#sram;
    this.linkPort = new PcieLinkPort({
      lp,
      link: setup.link,
      end: setup.linkEnd,
      peer: setup.linkPeer,
      writer: setup.pcieWriter,
      reader: setup.pcieReader,
      trafficClassCount,
    });
    this.port = new EthernetPort({
      lp,
      config: ethernet,
      writer: setup.wireWriter,
      reader: setup.wireReader,
      seed: setup.seed,
    });
    this.pcieFunction = new PcieFunction({
      process: lp,
      domain,
      port: this.linkPort,
      config: setup.pcieFunction,
      link: setup.linkIdentity,
      messageTrafficClass: TrafficClass.message,
    });
    const { pcieFunction, port } = this;
    const engine = { lp, domain, link: this.linkPort, pcieFunction, config: setup.dma };
    this.dmaRead = new DmaReadEngine({ ...engine, sram });
    this.dmaWrite = new DmaWriteEngine(engine);
    const messageSender = new DmaMessageSender(this.dmaWrite, MESSAGE_FIFO_DEPTH);
    pcieFunction.connect({ target: this, messageSender, reads: this.dmaRead });
    this.linkPort.connect({ receiver: pcieFunction, completionRuns: this.dmaRead.completionRuns });
    this.interrupts = new NicInterrupts({ domain, port: pcieFunction, writes: this.dmaWrite, counters });
    const { interrupts } = this;
    this.#linkStage = domain.addStage(this.#linkChanged, this);
    port.onLinkState((_isUp, nowPs) => {
      this.#isLinkChanged = true;
      domain.wakeAfter(this.#linkStage, nowPs);
    });
    this.transmitBuffer = new PacketBuffer(0, transmitBytes);
    this.receiveBuffer = new PacketBuffer(transmitBytes, receiveBytes);
    const shared = { domain, config, counters, sram, interrupts, port, lp, pcieFunction };
    this.transmitMac = new TransmitMac({ ...shared, buffer: this.transmitBuffer });
    this.transmitBusMaster = readingBusMaster(domain, config, this.dmaRead);
    this.receiveBusMaster = writingBusMaster(domain, config, this.dmaWrite, sram);
    this.transmitRing = this.#makeRing('transmit', this.#bufferBytes);
    this.receiveRing = this.#makeRing('receive', this.#bufferBytes + cacheBytes);
    this.transmitEngine = new TransmitEngine({
      ...shared,
      ring: this.transmitRing,
      buffer: this.transmitBuffer,
      writes: this.dmaWrite,
      frameBytesMax: port.frameBytesMax,
    });
    this.receiveEngine = new ReceiveEngine({
      ...shared,
      ring: this.receiveRing,
      buffer: this.receiveBuffer,
      writes: this.dmaWrite,
    });
    this.receiveMac = new ReceiveMac({ ...shared, buffer: this.receiveBuffer });
    this.#connect();
    this.#statistics = new NicStatistics(counters, port);
    this.registers = new NicRegisters(
      { ...this.#blocks(), statistics: this.#statistics },
      this.#effects(),
      setup.macAddress,
    );
    domain.addEdgeKeeper(this);
  }

  /** The cycle accounts of all blocks, for the report. */
  get accounts(): readonly BlockAccount[] {
    return [
      this.pcieFunction.account,
      this.dmaRead.account,
      this.dmaRead.returnAccount,
      this.dmaWrite.account,
      this.transmitEngine.account,
      this.transmitBusMaster.account,
      this.transmitMac.account,
      this.receiveMac.account,
      this.receiveEngine.account,
      this.receiveBusMaster.account,
    ];
  }

  barWrite(
    bar: number,
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: number,
  ): number {
    if (this.onAccess !== undefined) this.onAccess(cycle);
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

  barRead(bar: number, offset: number, lengthBytes: number, into: DataView, cycle: number): void {
    if (this.onAccess !== undefined) this.onAccess(cycle);
    if (bar === NicBar.REGISTERS) {
      this.registers.read(offset, lengthBytes, into, cycle);
      return;
    }
    const count = Math.min(lengthBytes, Math.max(this.#bufferBytes - offset, 0));
    for (let at = 0; at < count; at++) into.setUint8(at, this.#sram[offset + at]!);
    this.counters.bufferReadBytes += count;
  }

  functionReset(cycle: number): void {
    this.#reset(cycle);
  }

  /** Who calls whom. */
  #connect(): void {
    const { transmitEngine, transmitBusMaster, transmitMac, receiveEngine, receiveBusMaster } = this;
    this.transmitRing.connect({ engine: transmitEngine });
    transmitBusMaster.connect({ engine: transmitEngine });
    transmitMac.connect({ engine: transmitEngine });
    transmitEngine.connect({ busMaster: transmitBusMaster, mac: transmitMac });
    this.receiveRing.connect({ engine: receiveEngine });
    receiveBusMaster.connect({ engine: receiveEngine });
    this.receiveMac.connect({ engine: receiveEngine });
    receiveEngine.connect({ busMaster: receiveBusMaster });
  }

  #makeRing(name: 'transmit' | 'receive', cacheOffset: number): DescriptorRing {
    const { counters, interrupts } = this;
    return new DescriptorRing({
      name,
      domain: this.domain,
      reads: this.dmaRead,
      cacheOffset,
      cacheEntries: this.config.descriptorCacheEntries,
      resetPrefetch: nicBits.queueControl.prefetch.resetValue,
      counters,
      interrupts,
    });
  }

  #blocks() {
    const { counters, interrupts, transmitRing, receiveRing, transmitEngine, receiveEngine } = this;
    const { transmitBusMaster, receiveBusMaster, transmitMac, receiveMac, receiveBuffer } = this;
    return {
      counters,
      interrupts,
      transmitRing,
      receiveRing,
      transmitEngine,
      receiveEngine,
      transmitBusMaster,
      receiveBusMaster,
      transmitMac,
      receiveMac,
      receiveBuffer,
    };
  }

  #effects() {
    return {
      isResetting: (cycle: number) => cycle < this.#resetUntilCycle,
      isLinkUp: () => this.port.isUp,
      setLinkEnabled: (isEnabled: boolean) => this.port.setEnabled(isEnabled),
      reset: (cycle: number) => {
        this.#reset(cycle);
        this.#resetUntilCycle = cycle + this.config.resetCycles;
      },
      transmitKib: this.config.transmitBufferKib,
      receiveKib: this.config.receiveBufferKib,
      frameBytesMax: this.port.frameBytesMax,
      isTransmitIdle: () => this.transmitMac.isIdle && this.transmitBuffer.isEmpty,
      isReceiveIdle: () => this.receiveBuffer.isEmpty,
    };
  }

  #linkChanged(cycle: number): void {
    if (!this.#isLinkChanged) return;
    this.#isLinkChanged = false;
    this.interrupts.set(NicCause.LSC, cycle);
  }

  /** Everything behind configuration space as after power-on; frames and transfers on their way are gone. */
  #reset(cycle: number): void {
    if (this.#isResetting) return;
    this.#isResetting = true;
    this.counters.resets++;
    this.counters.droppedByReset += this.receiveBuffer.count;
    this.dmaRead.reset(cycle);
    this.dmaWrite.reset(cycle);
    this.transmitBusMaster.reset(cycle);
    this.receiveBusMaster.reset(cycle);
    this.transmitRing.reset();
    this.receiveRing.reset();
    this.transmitEngine.reset(cycle);
    this.receiveEngine.reset(cycle);
    this.transmitBuffer.clear();
    this.receiveBuffer.clear();
    this.transmitMac.reset(cycle);
    this.receiveMac.reset(cycle);
    this.interrupts.reset(cycle);
    this.#statistics.reset();
    this.registers.reset();
    this.port.setEnabled(false);
    this.#isLinkChanged = false;
    this.#isResetting = false;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.#resetUntilCycle -= cycles;
    this.interrupts.rebase(cycles);
    this.transmitRing.rebase(cycles);
    this.receiveRing.rebase(cycles);
    this.transmitEngine.account.rebase(cycles);
    this.receiveEngine.account.rebase(cycles);
    this.transmitBusMaster.account.rebase(cycles);
    this.receiveBusMaster.account.rebase(cycles);
    this.transmitMac.rebase(cycles);
    this.receiveMac.rebase(cycles);
    this.transmitBuffer.rebase(cycles);
    this.receiveBuffer.rebase(cycles);
  }
}
